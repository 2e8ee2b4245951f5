package catalog

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// releaseLayout is the present way to store a release. What an earlier version
// of Tailor has stored in another way is stored again when it is first opened.
const releaseLayout = 7

// ReleaseName is the view, in schema tailor_release, that a chain's audience
// reads. Each generation has a view and tables of its own: who still reads those of
// the one before keeps nobody waiting.
func ReleaseName(chain, generation int) string {
	if generation == 0 {
		return fmt.Sprintf("%s%d", ReleasePrefix, chain)
	}
	return fmt.Sprintf("%s%d_g%d", ReleasePrefix, chain, generation)
}

// name is that of a chain's release, with which the names of its tables begin.
func (c *Chain) name() string { return ReleaseName(c.number, c.generation) }

// ParentView is the view that shows, for each row of a release, what it shows of
// the parent.
func ParentView(release string) string { return release + "_parent" }

// LabelView is the view that shows the labels of a release, and the values that
// stand for them, by their numbers.
func LabelView(release string) string { return release + "_label" }

// createRelease stores what a chain shows as a plain table, and makes the views
// of it. A relation without quasi-identifiers is shown from its copy.
func createRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain) error {
	var p *anonymize.Partition
	if chain.root != nil {
		p = chain.root.Partition
	}
	dictionaries := dictionariesOf(r, p)
	if p != nil {
		if err := storeRows(ctx, tx, r, chain, dictionaries); err != nil {
			return fmt.Errorf("store release: %w", err)
		}
	}
	statements := []string{chain.createView(r, dictionaries)}
	if len(r.numbered()) > 0 {
		statements = append(statements, chain.createLabelView(r, dictionaries))
	}
	if r.Parent != nil {
		statements = append(statements, chain.createParentView(r, dictionaries))
	}
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("create release: %w", err)
		}
	}
	return nil
}

// storeRows writes the table of a release, in the random order of the copy's
// rows, and checks what is to be shown before anybody can see it.
func storeRows(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, dictionaries []dictionary) error {
	n := chain.name()
	for _, statement := range []string{
		fmt.Sprintf("CREATE TABLE tailor_store.%s_entry (dimension integer, number integer, label text, value text)", n),
		fmt.Sprintf("CREATE TABLE tailor_store.%s_tuple (%s integer, %s)", n, tupleColumn, columnsOf(dictionaries, func(d dictionary) string {
			return d.own("number") + " " + d.numberType()
		})),
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for table, encode := range map[string]func(*copyWriter){
		"entry": func(w *copyWriter) { writeEntries(w, dictionaries) },
		"tuple": func(w *copyWriter) { chain.writeTuples(w, dictionaries) },
	} {
		err := copyText(ctx, tx, fmt.Sprintf("COPY tailor_store.%s_%s FROM STDIN", n, table), func(to io.Writer) error {
			w := &copyWriter{to: to}
			encode(w)
			w.flush()
			return w.err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if err := assertSafe(ctx, tx, r, chain, dictionaries); err != nil {
		return err
	}
	indexed, err := indexedColumns(ctx, tx, r, dictionaries)
	if err != nil {
		return err
	}
	statements := append([]string{chain.createRows(r, dictionaries)}, chain.createLists(dictionaries)...)
	statements = append(statements, fmt.Sprintf("DROP TABLE tailor_store.%[1]s_entry, tailor_store.%[1]s_tuple", n))
	if r.AggregateOnly {
		indexed = nil // conditions stay above the view
	}
	for _, column := range indexed {
		statements = append(statements, fmt.Sprintf("CREATE INDEX ON tailor_store.%s_row (%s)", n, column))
	}
	if r.AggregateOnly {
		// An estimate of how many rows meet a condition would be an answer about fewer than k.
		statements = append(statements, fmt.Sprintf("CALL tailor.keep_no_samples('tailor_store.%s_row')", n))
	}
	statements = append(statements,
		fmt.Sprintf("ANALYZE tailor_store.%s_row", n),
		fmt.Sprintf("ALTER TABLE tailor_store.%s_row ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY", n),
		// It is true or fails. Of a condition IS NOT NULL PostgreSQL expects nearly all
		// rows to meet it, of a mere boolean half of them.
		fmt.Sprintf("CREATE POLICY admitted ON tailor_store.%s_row FOR SELECT USING (%s IS NOT NULL)", n, admitted(r, chain.number)))
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// columnsOf is a list with an element for each dimension.
func columnsOf(dictionaries []dictionary, of func(dictionary) string) string {
	var list []string
	for _, d := range dictionaries {
		list = append(list, of(d))
	}
	return strings.Join(list, ", ")
}

func writeEntries(w *copyWriter, dictionaries []dictionary) {
	for _, d := range dictionaries {
		for i, e := range d.entries {
			w.number(d.column.Number)
			w.number(i + 1)
			w.text(e.label)
			if e.valued {
				w.text(e.value)
			} else {
				w.null()
			}
			w.end()
		}
	}
}

// writeTuples writes the numbers of what each tuple of the copy is shown by.
func (c *Chain) writeTuples(w *copyWriter, dictionaries []dictionary) {
	blockOf := c.root.Partition.BlockOf()
	for stored, tuple := range c.epoch.tuples {
		w.number(stored)
		for _, d := range dictionaries {
			w.number(int(d.numbers[blockOf[tuple]]))
		}
		w.end()
	}
}

// assertSafe checks what is about to be shown, by itself: whoever shares all
// labels are enough subjects, and meet the other models.
func assertSafe(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, dictionaries []dictionary) error {
	counts := []string{"count(*)"}
	if chain.epoch.rows != chain.epoch.subjects {
		counts[0] = fmt.Sprintf("count(DISTINCT e.%s)", subjectColumn)
	}
	holds := []string{fmt.Sprintf("%s >= %d", counts[0], r.K)}
	for _, q := range r.Requirements {
		holds = append(holds, fmt.Sprintf("count(DISTINCT e.%[1]s) + (count(*) > count(e.%[1]s))::integer >= %[2]d", ident(q.Column), int(q.Parameter)))
	}
	alike := columnsOf(dictionaries, func(d dictionary) string { return "t." + d.own("number") })
	var unsafe int
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (
		SELECT FROM tailor_store.epoch_%d e JOIN tailor_store.%s_tuple t USING (%s) GROUP BY %s HAVING NOT (%s)) unsafe`,
		r.Epoch, chain.name(), tupleColumn, alike, strings.Join(holds, " AND "))).Scan(&unsafe)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if unsafe == 0 && chain.epoch.rows != chain.epoch.subjects {
		err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT count(*) FROM (SELECT FROM (
			SELECT %[3]s, count(*) AS "tailor rows" FROM tailor_store.epoch_%[1]d e JOIN tailor_store.%[2]s_tuple t USING (%[4]s) GROUP BY %[3]s, e.%[5]s) t
			GROUP BY %[3]s HAVING max("tailor rows") > %[6]g * sum("tailor rows")) unsafe`,
			r.Epoch, chain.name(), alike, tupleColumn, subjectColumn, r.MaxShare)).Scan(&unsafe)
		if err != nil {
			return fmt.Errorf("check shares: %w", err)
		}
	}
	if unsafe > 0 {
		return sqlstate.New(sqlstate.InternalError, "%d classes of what would be shown of table %q do not meet its policy", unsafe, r.Name).
			WithHint("Nothing was released. This is a fault of Tailor: please report it.")
	}
	return nil
}

// createRows is the statement that writes the table of a release.
func (c *Chain) createRows(r *Relation, dictionaries []dictionary) string {
	var list []string
	if r.Parent != nil {
		number := "e." + rowColumn
		if r.Scope == "project" {
			number = "(row_number() OVER (ORDER BY gen_random_uuid()) - 1)::integer AS " + rowColumn
		}
		list = append(list, number)
	}
	for i := range r.Columns {
		if c := &r.Columns[i]; c.Visible() && c.Class != QuasiIdentifier {
			list = append(list, "e."+ident(c.Name))
		}
	}
	from := fmt.Sprintf("tailor_store.epoch_%d e JOIN tailor_store.%s_tuple t USING (%s)", r.Epoch, c.name(), tupleColumn)
	for _, d := range dictionaries {
		list = append(list, "t."+d.own("number"), fmt.Sprintf("%s.value AS %s", d.own("entry"), d.own("value")))
		from += fmt.Sprintf(" LEFT JOIN (SELECT number, value::%s AS value FROM tailor_store.%s_entry WHERE dimension = %d) %s ON %[4]s.number = t.%[5]s",
			d.column.ReleaseType(), c.name(), d.column.Number, d.own("entry"), d.own("number"))
	}
	// In the order of the copy, the rows of two projects would lie beside each other.
	order := "e." + rowColumn
	if r.Scope == "project" {
		order = "gen_random_uuid()"
	}
	return fmt.Sprintf("CREATE TABLE tailor_store.%s_row AS SELECT %s FROM %s ORDER BY %s", c.name(), strings.Join(list, ", "), from, order)
}

// createLists are the statements that write the one row with the labels, and
// values, by their numbers.
func (c *Chain) createLists(dictionaries []dictionary) []string {
	var columns, plain, lists []string
	for _, d := range dictionaries {
		for _, l := range d.lists() {
			columns = append(columns, fmt.Sprintf("%s %s NOT NULL", l.column, l.typ))
			if l.plain {
				plain = append(plain, fmt.Sprintf("ALTER %s SET STORAGE EXTERNAL", l.column))
			}
			lists = append(lists, fmt.Sprintf("(SELECT %s FROM tailor_store.%s_entry WHERE dimension = %d)", l.aggregate, c.name(), d.column.Number))
		}
	}
	table := fmt.Sprintf("tailor_store.%s_label", c.name())
	statements := []string{fmt.Sprintf("CREATE TABLE %s (%s)", table, strings.Join(columns, ", "))}
	if len(plain) > 0 {
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s %s", table, strings.Join(plain, ", ")))
	}
	return append(statements, fmt.Sprintf("INSERT INTO %s SELECT %s", table, strings.Join(lists, ", ")),
		fmt.Sprintf("CALL tailor.keep_no_samples('%s')", table))
}

// indexedColumns are the columns of a release that stand for those that an index
// of the table begins with.
func indexedColumns(ctx context.Context, tx pgx.Tx, r *Relation, dictionaries []dictionary) ([]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT a.attname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indrelid = $1 AND m.amname = 'btree' AND i.indpred IS NULL AND i.indisvalid ORDER BY 1`, r.OID)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	var out []string
	for _, name := range names {
		c := r.Column(name)
		switch {
		case c == nil || !c.Visible():
		case c.Class != QuasiIdentifier:
			out = append(out, ident(name))
		default:
			at := slices.IndexFunc(dictionaries, func(d dictionary) bool { return d.column == c })
			out = append(out, dictionaries[at].own("value"))
		}
	}
	return out, nil
}

// admitted is the condition that lets a statement read a part of a release.
func admitted(r *Relation, admission int) string {
	return fmt.Sprintf("(SELECT tailor.admit(%d, %d, %d))", admission, r.Epoch, releaseLayout)
}

// fence ends a subquery that PostgreSQL neither dissolves in the query around it
// nor moves conditions into. A number is no bigint before it is cast, and
// PostgreSQL looks at it too early: for an OFFSET 0 it plans no parallel scan.
const fence = " OFFSET '0'"

// createView is the statement that defines a release over an epoch. Admission is
// asked once by the view, whether there are rows or not, and by the table before it
// shows a row to anything: PostgreSQL may move the view's own condition behind a
// reader's function, in an outer join from version 16 on.
func (c *Chain) createView(r *Relation, dictionaries []dictionary) string {
	var list []string
	for i := range r.Columns {
		column := &r.Columns[i]
		switch {
		case column.Class == QuasiIdentifier:
			at := slices.IndexFunc(dictionaries, func(d dictionary) bool { return d.column == column })
			list = append(list, fmt.Sprintf("e.%s AS %s", dictionaries[at].own("value"), ident(column.Name)))
		case column.Visible():
			list = append(list, "e."+ident(column.Name))
		}
	}
	own := dictionaries[:len(r.QuasiIdentifiers())]
	for _, d := range own {
		list = append(list, d.label(c.name())+" AS "+ident(d.column.LabelColumn()))
	}
	for _, d := range own {
		if r.Numbers(d.column) {
			list = append(list, fmt.Sprintf("e.%s AS %s", d.own("number"), ident(d.column.NumberColumn())))
		}
	}
	if r.Parent != nil {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return c.viewOver(r, c.number, c.name(), list, len(dictionaries) > 0)
}

// createParentView is the statement that defines what a release shows of the
// parent: the quasi-identifiers of each row's subject, under the parent's own
// names. It has the rows of the release.
func (c *Chain) createParentView(r *Relation, dictionaries []dictionary) string {
	var list, labels []string
	for i, d := range dictionaries[len(dictionaries)-len(r.borrowed):] {
		column := &r.Parent.Columns[i]
		list = append(list, fmt.Sprintf("e.%s AS %s", d.own("value"), ident(column.Name)))
		labels = append(labels, d.label(c.name())+" AS "+ident(column.LabelColumn()))
	}
	list = append(append(list, labels...), fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	return c.viewOver(r, parentAdmission(c.number), ParentView(c.name()), list, true)
}

// createLabelView is the statement that defines the one row with the labels of
// each numbered column, and with values that are stored as an array: the number of a
// label is its place there, from 1. An array that has been joined to another is read
// from memory.
func (c *Chain) createLabelView(r *Relation, dictionaries []dictionary) string {
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
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM (SELECT * FROM tailor_store.%s_label WHERE %s%s) c",
		LabelView(c.name()), strings.Join(list, ", "), c.name(), admitted(r, c.number), fence)
}

// viewOver is the statement that defines a view of a chain's rows. A copy, which
// asks for nothing itself, is read behind a fence. Where only aggregates are
// answered the whole view is fenced: conditions stay above it, and PostgreSQL's own
// counts of rows read say nothing of how many rows meet them.
func (c *Chain) viewOver(r *Relation, admission int, name string, list []string, stored bool) string {
	from := fmt.Sprintf("tailor_store.%s_row e WHERE %s", c.name(), admitted(r, admission))
	if !stored {
		from = fmt.Sprintf("(SELECT * FROM tailor_store.epoch_%d WHERE %s%s) e", r.Epoch, admitted(r, admission), fence)
	}
	if r.AggregateOnly {
		from += fence
	}
	return fmt.Sprintf(`CREATE VIEW tailor_release.%s AS SELECT %s FROM %s`, name, strings.Join(list, ", "), from)
}

// grantStatement lets a role, quoted already, read the views of a release.
func (c *Chain) grantStatement(r *Relation, role string) string {
	views := "tailor_release." + c.name()
	if len(r.numbered()) > 0 {
		views += ", tailor_release." + LabelView(c.name())
	}
	if r.Lent() {
		views += ", tailor_release." + ParentView(c.name())
	}
	return fmt.Sprintf("GRANT SELECT ON %s TO %s", views, role)
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
