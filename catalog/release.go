package catalog

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// releaseLayout is the present way to store a release. What an earlier version
// of Tailor has stored in another way is stored again when it is first opened.
const releaseLayout = 2

// ReleaseName is the view, in schema tailor_release, that a chain's audience
// reads.
func ReleaseName(chain int) string { return fmt.Sprintf("%s%d", ReleasePrefix, chain) }

// ParentView is the view that shows, for each row of a release, what it shows of
// the parent.
func ParentView(release string) string { return release + "_parent" }

// LabelView is the view that shows the labels of a release by their numbers.
func LabelView(release string) string { return release + "_label" }

// createRelease makes the tables of a chain's release and the view over them.
func createRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain int) error {
	qids := r.Dimensions()
	columns := make([]string, 0, len(qids))
	for _, q := range qids {
		columns = append(columns, fmt.Sprintf("%s %s, %s text NOT NULL", ident(q.storedName()), q.ReleaseType(), ident(q.LabelColumn())))
	}
	rows := []string{blocksColumn + " integer[] NOT NULL"}
	for _, q := range r.numbered() {
		columns = append(columns, ident(q.NumberColumn())+" integer NOT NULL")
		rows = append(rows, ident(q.LabelColumn())+" jsonb NOT NULL")
	}
	statements := []string{createView(r, chain)}
	if len(qids) > 0 {
		statements = []string{
			fmt.Sprintf(`CREATE TABLE tailor_store.chain_%d_block (%s integer PRIMARY KEY, %s)`,
				chain, blockColumn, strings.Join(columns, ", ")),
			fmt.Sprintf(`CREATE TABLE tailor_store.chain_%d_row (%s)`, chain, strings.Join(rows, ", ")),
			fmt.Sprintf(`ALTER TABLE tailor_store.chain_%d_row ALTER %s SET STORAGE EXTERNAL`, chain, blocksColumn),
			fmt.Sprintf(`CALL tailor.keep_no_samples('tailor_store.chain_%d_block')`, chain),
			fmt.Sprintf(`CALL tailor.keep_no_samples('tailor_store.chain_%d_row')`, chain),
			createView(r, chain),
		}
	}
	if len(r.numbered()) > 0 {
		statements = append(statements, createLabelView(r, chain))
	}
	if r.Parent != nil {
		statements = append(statements, createParentView(r, chain))
	}
	for _, s := range statements {
		if _, err := tx.Exec(ctx, s); err != nil {
			return fmt.Errorf("create release: %w", err)
		}
	}
	return nil
}

const (
	blockColumn  = `"tailor block"`
	blocksColumn = `"tailor blocks"`
)

// createView is the statement that (re)defines a release over an epoch. The
// view keeps every row of the copy, so it hides nothing that a reader's own
// function could be shown before a join, and needs no security barrier.
func createView(r *Relation, chain int) string {
	var list []string
	for i := range r.Columns {
		c := &r.Columns[i]
		switch {
		case c.Class == QuasiIdentifier:
			list = append(list, "b."+ident(c.Name))
		case c.Visible():
			list = append(list, "e."+ident(c.Name))
		}
	}
	for _, q := range r.QuasiIdentifiers() {
		list = append(list, "b."+ident(q.LabelColumn()))
	}
	for _, q := range r.numbered() {
		list = append(list, "b."+ident(q.NumberColumn()))
	}
	if r.Parent != nil {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return viewOver(r, chain, chain, ReleaseName(chain), list, len(r.QuasiIdentifiers()) > 0)
}

// createParentView is the statement that defines what a release shows of the
// parent: the quasi-identifiers of each row's subject, under the parent's own
// names. It has the rows of the release.
func createParentView(r *Relation, chain int) string {
	var list, labels []string
	for i := range r.Parent.Columns {
		own, c := &r.borrowed[i], &r.Parent.Columns[i]
		list = append(list, fmt.Sprintf("b.%s AS %s", ident(own.storedName()), ident(c.Name)))
		labels = append(labels, fmt.Sprintf("b.%s AS %s", ident(own.LabelColumn()), ident(c.LabelColumn())))
	}
	list = append(append(list, labels...), fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	return viewOver(r, chain, parentAdmission(chain), ParentView(ReleaseName(chain)), list, true)
}

// createLabelView is the statement that defines the one row with the labels of
// each numbered column as an array: the number of a label is its place there,
// from 0. An array that has been joined to another is read from memory.
func createLabelView(r *Relation, chain int) string {
	var list []string
	for _, q := range r.numbered() {
		list = append(list, fmt.Sprintf("pg_catalog.jsonb_concat(%[1]s, '[]') AS %[1]s", ident(q.LabelColumn())))
	}
	return fmt.Sprintf("CREATE OR REPLACE VIEW tailor_release.%s AS SELECT %s FROM tailor_store.chain_%d_row %s",
		LabelView(ReleaseName(chain)), strings.Join(list, ", "), chain, admitted(r, chain, chain))
}

// admitted is the condition that lets a statement read a part of a release.
func admitted(r *Relation, chain, admission int) string {
	return fmt.Sprintf("WHERE (SELECT tailor.admit(%d, EXISTS (SELECT FROM tailor.chain WHERE chain = %d AND epoch = %d)))",
		admission, chain, r.Epoch)
}

// viewOver is the statement that defines a view of a chain's rows. The blocks of
// all rows are one array, read once by a statement; array_cat makes a plain one
// of it in memory, where a subscript costs no walk and no decompression. Every
// row has its block: the join is an outer one so that PostgreSQL leaves it away
// where a statement needs no column of it. For the same reason admission stands
// below the join, on both sides: PostgreSQL may show either to a reader's own
// function before it has looked at the other.
func viewOver(r *Relation, chain, admission int, name string, list []string, blocks bool) string {
	admitted := admitted(r, chain, admission)
	from := fmt.Sprintf("(SELECT * FROM tailor_store.epoch_%d %s) e", r.Epoch, admitted)
	if blocks {
		from += fmt.Sprintf(`
LEFT JOIN (SELECT * FROM tailor_store.chain_%[1]d_block %[2]s) b ON b.%[3]s =
	(SELECT pg_catalog.array_cat(%[4]s, '{}'::integer[]) FROM tailor_store.chain_%[1]d_row)[e.%[5]s + 1]`,
			chain, admitted, blockColumn, blocksColumn, rowColumn)
	}
	if r.AggregateOnly {
		// Conditions stay above the join: PostgreSQL's own counts of rows read
		// then say nothing of how many rows meet them.
		from += " OFFSET 0"
	}
	return fmt.Sprintf(`CREATE OR REPLACE VIEW tailor_release.%s AS SELECT %s FROM %s`, name, strings.Join(list, ", "), from)
}

// grantStatement lets a role, quoted already, read the views of a release.
func grantStatement(r *Relation, chain int, role string) string {
	views := "tailor_release." + ReleaseName(chain)
	if len(r.numbered()) > 0 {
		views += ", tailor_release." + LabelView(ReleaseName(chain))
	}
	if r.Lent() {
		views += ", tailor_release." + ParentView(ReleaseName(chain))
	}
	return fmt.Sprintf("GRANT SELECT ON %s TO %s", views, role)
}

// writeRelease replaces the rows of a release by those of a chain's state. Readers
// in other transactions see the old rows or the new ones, never a mixture.
func writeRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain int, s *state) error {
	for _, part := range []string{"block", "row"} {
		if _, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM tailor_store.chain_%d_%s", chain, part)); err != nil {
			return fmt.Errorf("empty release: %w", err)
		}
	}
	numberings := numberings(r)
	blocks := fmt.Sprintf("COPY tailor_store.chain_%d_block FROM STDIN", chain)
	if err := copyText(ctx, tx, blocks, func(w io.Writer) error { return encodeBlocks(w, r, s, numberings) }); err != nil {
		return fmt.Errorf("write labels: %w", err)
	}
	list, row := "$1", []any{blocksOfRows(s.partition)}
	for _, n := range numberings {
		if n != nil {
			row = append(row, n.labels)
			list += fmt.Sprintf(", to_jsonb($%d::text[])", len(row))
		}
	}
	rows := fmt.Sprintf("INSERT INTO tailor_store.chain_%d_row VALUES (%s)", chain, list)
	if _, err := tx.Exec(ctx, rows, row...); err != nil {
		return fmt.Errorf("write blocks of rows: %w", err)
	}
	return nil
}

// copyText streams what encode writes, in COPY's text format.
func copyText(ctx context.Context, tx pgx.Tx, statement string, encode func(io.Writer) error) error {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(encode(writer)) }()
	_, err := tx.Conn().PgConn().CopyFrom(ctx, reader, statement)
	reader.CloseWithError(err) // frees the encoder where the server stopped first
	return err
}

// copyBuffer is how much is encoded before it is handed on.
const copyBuffer = 64 << 10

// encodeBlocks writes one line a block: its number, and for each
// quasi-identifier the representative and the label of its node; behind them the
// numbers of those labels that are numbered. A column that is shown by means has
// the mean and the label of the block's group.
func encodeBlocks(w io.Writer, r *Relation, s *state, numberings []*numbering) error {
	qids, p := r.Dimensions(), s.partition
	buffer := make([]byte, 0, copyBuffer+4096)
	for block := range uint32(p.Blocks()) {
		buffer = strconv.AppendUint(buffer, uint64(block), 10)
		for i, q := range qids {
			var h *anonymize.Hierarchy
			var node anonymize.Node
			v, ok := "", false
			if m := s.means[i]; m != nil {
				h, node = m.Hierarchy(), m.Label(block)
				v, ok = meanOf(q, m, block)
			} else {
				h, node = p.Table().Columns()[i].Hierarchy, p.Cover(block, i)
			}
			if !ok {
				v, ok = released(q, h, node)
			}
			buffer = append(buffer, '\t')
			if ok {
				buffer = appendEscaped(buffer, v)
			} else {
				buffer = append(buffer, `\N`...)
			}
			buffer = append(buffer, '\t')
			buffer = appendEscaped(buffer, h.Label(node))
			numberings[i].meet(h.Label(node))
		}
		for _, n := range numberings {
			if n != nil {
				buffer = append(buffer, '\t')
				buffer = strconv.AppendInt(buffer, int64(n.last), 10)
			}
		}
		buffer = append(buffer, '\n')
		if len(buffer) > copyBuffer {
			if _, err := w.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
	}
	_, err := w.Write(buffer)
	return err
}

// released is the value of the column's own type that stands for a node: the
// label for text, the value itself for a leaf, the middle of a range for
// numbers and dates, and nothing (NULL) where the type has no such value.
func released(q *Column, h *anonymize.Hierarchy, node anonymize.Node) (string, bool) {
	if null, ok := h.NullCode(); ok {
		if first, last := h.Range(node); first == null && last == null {
			return "", false
		}
	}
	if q.Category == "S" {
		return h.Label(node), true
	}
	if node.Level == 0 || q.Hierarchy.Kind == "interval" || q.Hierarchy.Kind == "date" {
		return h.Representative(node)
	}
	return "", false
}

// blocksOfRows is the block of each row of the copy, in their order.
func blocksOfRows(p *anonymize.Partition) []int32 {
	blockOf, tupleOfRow := p.BlockOf(), p.Table().TupleOfRow()
	blocks := make([]int32, len(tupleOfRow))
	for row, tuple := range tupleOfRow {
		blocks[row] = int32(blockOf[tuple])
	}
	return blocks
}

// appendEscaped writes a value in COPY's text format.
func appendEscaped(buffer []byte, value string) []byte {
	for i := range len(value) {
		switch value[i] {
		case '\\':
			buffer = append(buffer, `\\`...)
		case '\n':
			buffer = append(buffer, `\n`...)
		case '\r':
			buffer = append(buffer, `\r`...)
		case '\t':
			buffer = append(buffer, `\t`...)
		default:
			buffer = append(buffer, value[i])
		}
	}
	return buffer
}
