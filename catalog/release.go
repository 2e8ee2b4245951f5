package catalog

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// releaseLayout is the present way to store a release. What an earlier version
// of Tailor has stored in another way is stored again when it is first opened.
const releaseLayout = 6

// ReleaseName is the view, in schema tailor_release, that a chain's audience
// reads.
func ReleaseName(chain int) string { return fmt.Sprintf("%s%d", ReleasePrefix, chain) }

// ParentView is the view that shows, for each row of a release, what it shows of
// the parent.
func ParentView(release string) string { return release + "_parent" }

// LabelView is the view that shows the labels of a release, and the values that
// stand for them, by their numbers.
func LabelView(release string) string { return release + "_label" }

// numberColumn is the number of a label, where values are stored as rows.
const numberColumn = `"tailor number"`

// createRelease makes the tables of a chain's release and the views over them.
func createRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain int, s *state) error {
	var statements []string
	dictionaries := dictionariesOf(r, s)
	if len(dictionaries) > 0 {
		var columns, values, plain []string
		for _, d := range dictionaries {
			columns = append(columns, d.definitions()...)
			for _, c := range d.plain() {
				plain = append(plain, "ALTER "+c+" SET STORAGE EXTERNAL")
			}
			if d.isJoined() {
				values = append(values, fmt.Sprintf("%s %s", ident(d.column.storedName()), d.column.ReleaseType()))
			}
		}
		statements = append(statements,
			fmt.Sprintf(`CREATE TABLE tailor_store.chain_%d_row (%s)`, chain, strings.Join(columns, ", ")),
			fmt.Sprintf(`ALTER TABLE tailor_store.chain_%d_row %s`, chain, strings.Join(plain, ", ")),
			// Without a key, a publication of all tables would keep the row from being replaced.
			fmt.Sprintf(`ALTER TABLE tailor_store.chain_%d_row REPLICA IDENTITY FULL`, chain),
			fmt.Sprintf(`CALL tailor.keep_no_samples('tailor_store.chain_%d_row')`, chain))
		if len(values) > 0 {
			statements = append(statements,
				fmt.Sprintf(`CREATE TABLE tailor_store.chain_%d_value (%s integer PRIMARY KEY, %s)`, chain, numberColumn, strings.Join(values, ", ")),
				fmt.Sprintf(`CALL tailor.keep_no_samples('tailor_store.chain_%d_value')`, chain))
		}
	}
	statements = append(statements, createView(r, chain, dictionaries))
	if len(r.numbered()) > 0 {
		statements = append(statements, createLabelView(r, chain, dictionaries))
	}
	if r.Parent != nil {
		statements = append(statements, createParentView(r, chain, dictionaries))
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create release: %w", err)
		}
	}
	return nil
}

// createView is the statement that (re)defines a release over an epoch.
func createView(r *Relation, chain int, dictionaries []dictionary) string {
	own := dictionaries[:len(r.QuasiIdentifiers())]
	var list, payload []string
	for i := range r.Columns {
		c := &r.Columns[i]
		switch {
		case c.Class == QuasiIdentifier:
			at := slices.IndexFunc(own, func(d dictionary) bool { return d.column == c })
			list = append(list, own[at].value(chain)+" AS "+ident(c.Name))
		case c.Visible():
			payload = append(payload, ident(c.Name))
			list = append(list, "e."+ident(c.Name))
		}
	}
	for _, d := range own {
		list = append(list, d.label(chain)+" AS "+ident(d.column.LabelColumn()))
	}
	for _, d := range own {
		if r.Numbers(d.column) {
			list = append(list, d.number()+" AS "+ident(d.column.NumberColumn()))
		}
	}
	if r.Parent != nil {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return viewOver(r, chain, chain, ReleaseName(chain), list, payload, own)
}

// createParentView is the statement that defines what a release shows of the
// parent: the quasi-identifiers of each row's subject, under the parent's own
// names. It has the rows of the release.
func createParentView(r *Relation, chain int, dictionaries []dictionary) string {
	lent := dictionaries[len(dictionaries)-len(r.borrowed):]
	var list, labels []string
	for i, d := range lent {
		c := &r.Parent.Columns[i]
		list = append(list, d.value(chain)+" AS "+ident(c.Name))
		labels = append(labels, d.label(chain)+" AS "+ident(c.LabelColumn()))
	}
	list = append(append(list, labels...), fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	return viewOver(r, chain, parentAdmission(chain), ParentView(ReleaseName(chain)), list, nil, lent)
}

// createLabelView is the statement that defines the one row with the labels of
// each numbered column, and with values that are stored as an array: the number of a
// label is its place there, from 1. An array that has been joined to another is read
// from memory.
func createLabelView(r *Relation, chain int, dictionaries []dictionary) string {
	var list []string
	for _, d := range dictionaries {
		if !d.listed {
			continue
		}
		list = append(list, fmt.Sprintf("pg_catalog.jsonb_concat(%[1]s, '[]') AS %[1]s", ident(d.column.LabelColumn())))
		if d.isFixed() {
			list = append(list, fmt.Sprintf("pg_catalog.array_cat(%s, '{}') AS %s", d.own("values"), ident(d.column.ValuesColumn())))
		}
	}
	return fmt.Sprintf("CREATE OR REPLACE VIEW tailor_release.%s AS SELECT %s FROM (SELECT * FROM tailor_store.chain_%d_row %s%s) c",
		LabelView(ReleaseName(chain)), strings.Join(list, ", "), chain, admitted(r, chain), fence)
}

// admitted is the condition that lets a statement read a part of a release.
func admitted(r *Relation, admission int) string {
	return fmt.Sprintf("WHERE (SELECT tailor.admit(%d, %d, %d))", admission, r.Epoch, releaseLayout)
}

// fence ends a subquery that PostgreSQL neither dissolves in the query around it
// nor moves conditions into. Without it admission becomes a part of an outer join's
// condition from PostgreSQL 16 on, and stands behind a reader's own function there.
// A number is no bigint before it is cast, and PostgreSQL looks at it too early: for an
// OFFSET 0 it plans no parallel scan.
const fence = " OFFSET '0'"

// viewOver is the statement that defines a view of a chain's rows, with payload
// columns of the copy. The number of each row's label is read from a string of
// bytes, which a statement reads once. Values of a type without a fixed length are
// joined by an outer join, which PostgreSQL leaves away where a statement needs none
// of them.
//
// What is admitted are the rows, behind a fence around them alone: with the
// expressions behind it as well, those that a statement does not need would cost each
// row a NULL. Nothing else is shown without a row (dictionary.value).
//
// PostgreSQL takes the number of groups by such an expression for the number of
// different row numbers, and sorts rather than hash many. So copies say that these
// are few (tailor.expect_few); where a view shows them for joins, a WITH that
// nothing reads keeps its expressions apart instead, and they count as unknown.
func viewOver(r *Relation, chain, admission int, name string, list, payload []string, dictionaries []dictionary) string {
	numbers := ""
	for _, d := range dictionaries {
		numbers += fmt.Sprintf(", %s AS %s", d.read(chain), d.own("number"))
	}
	from := fmt.Sprintf("(SELECT *%s FROM (SELECT %s FROM tailor_store.epoch_%d %s%s) f) e", numbers,
		strings.Join(append([]string{rowColumn}, payload...), ", "), r.Epoch, admitted(r, admission), fence)
	for _, d := range dictionaries {
		if d.isJoined() {
			from += fmt.Sprintf("\nLEFT JOIN tailor_store.chain_%d_value %s ON %[2]s.%[3]s = %[4]s",
				chain, d.own("value"), numberColumn, d.number())
		}
	}
	if r.AggregateOnly {
		// Conditions stay above the view: PostgreSQL's own counts of rows read
		// then say nothing of how many rows meet them.
		from += fence
	}
	apart := ""
	if r.Parent != nil {
		apart = "WITH apart AS (SELECT) "
	}
	return fmt.Sprintf(`CREATE OR REPLACE VIEW tailor_release.%s AS %sSELECT %s FROM %s`, name, apart, strings.Join(list, ", "), from)
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
	tables := []string{"row"}
	blocks := blocksOfRows(s.partition)
	var row, listed, unnested, typed []string
	var arguments, values []any
	for i, d := range dictionariesOf(r, s) {
		e := d.entries(s, i)
		row = append(row, e.row(blocks, &arguments)...)
		if d.isJoined() {
			values = append(values, e.values())
			unnested = append(unnested, fmt.Sprintf("$%d::text[]", len(values)))
			listed = append(listed, fmt.Sprintf("v%d", len(values)))
			typed = append(typed, fmt.Sprintf("v%d::%s", len(values), d.column.ReleaseType()))
		}
	}
	if len(values) > 0 {
		tables = append(tables, "value")
	}
	for _, table := range tables {
		if _, err := tx.Exec(ctx, fmt.Sprintf("DELETE FROM tailor_store.chain_%d_%s", chain, table)); err != nil {
			return fmt.Errorf("empty release: %w", err)
		}
	}
	if len(values) > 0 {
		statement := fmt.Sprintf("INSERT INTO tailor_store.chain_%d_value SELECT n, %s FROM unnest(%s) WITH ORDINALITY u (%s, n)",
			chain, strings.Join(typed, ", "), strings.Join(unnested, ", "), strings.Join(listed, ", "))
		if _, err := tx.Exec(ctx, statement, values...); err != nil {
			return fmt.Errorf("write values: %w", err)
		}
	}
	statement := fmt.Sprintf("INSERT INTO tailor_store.chain_%d_row VALUES (%s)", chain, strings.Join(row, ", "))
	if _, err := tx.Exec(ctx, statement, arguments...); err != nil {
		return fmt.Errorf("write labels: %w", err)
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
func blocksOfRows(p *anonymize.Partition) []uint32 {
	blockOf, tupleOfRow := p.BlockOf(), p.Table().TupleOfRow()
	blocks := make([]uint32, len(tupleOfRow))
	for row, tuple := range tupleOfRow {
		blocks[row] = blockOf[tuple]
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
