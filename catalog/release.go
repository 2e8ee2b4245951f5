package catalog

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// releaseLayout is the present way to store a release. What an earlier version of
// Tailor has shown in another way is refused; a publication of codes is shown again.
const releaseLayout = 9

// ReleaseName is the view, in schema tailor_release, that a chain's audience
// reads. Each edition has a view and tables of its own: who still reads those of
// the one before keeps nobody waiting.
func ReleaseName(chain, edition int) string {
	if edition == 0 {
		return fmt.Sprintf("%s%d", ReleasePrefix, chain)
	}
	return fmt.Sprintf("%s%d_g%d", ReleasePrefix, chain, edition)
}

// name is that of a chain's release, with which the names of its tables begin.
func (c *Chain) name() string { return ReleaseName(c.number, c.edition) }

// table is the qualified name of one of the tables of a chain's release.
func (c *Chain) table(part string) string { return fmt.Sprintf("tailor_store.%s_%s", c.name(), part) }

// ParentView is the view that shows, for each row of a release, what it shows of
// the parent.
func ParentView(release string) string { return release + "_parent" }

// LabelView is the view that shows the labels of a release, and the values that
// stand for them, by their numbers.
func LabelView(release string) string { return release + "_label" }

// createTables makes the tables of an edition, without rows.
func createTables(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, dictionaries []*dictionary) error {
	// A query that needs some of the columns reads past those that stand before them: what is
	// shown stands first, and what is hidden last.
	list := []string{"0::smallint AS " + gateColumn}
	for _, d := range dictionaries {
		list = append(list, fmt.Sprintf("NULL::%s AS %s", d.column.ReleaseType(), d.own("value")))
	}
	for _, name := range r.payload() {
		list = append(list, "e."+name)
	}
	for _, d := range dictionaries {
		list = append(list, fmt.Sprintf("0::%s AS %s", d.numberType(), d.own("number")))
	}
	for _, c := range r.averaged() {
		list = append(list, fmt.Sprintf("e.%s AS %s", ident(c.Name), c.insteadColumn()))
		if c.IsAveraged() {
			list = append(list, "0 AS "+c.cellColumn())
		}
	}
	if r.Parent != nil {
		list = append(list, "e."+rowColumn)
	}
	list = append(list, "0 AS "+blockColumn, "0 AS "+classColumn,
		"e."+personColumn, "e."+keyColumn, "e."+nthColumn)
	statements := []string{
		fmt.Sprintf("CREATE TABLE %s AS SELECT %s FROM tailor_store.epoch_%d e WITH NO DATA", chain.table("row"), strings.Join(list, ", "), r.Epoch),
		fmt.Sprintf("ALTER TABLE %[1]s ALTER %[2]s SET DEFAULT 0, ALTER %[2]s SET NOT NULL", chain.table("row"), gateColumn),
		fmt.Sprintf("CREATE TABLE %s (%[2]s bigint NOT NULL, %[3]s bigint NOT NULL, %[4]s bigint NOT NULL, %[5]s integer NOT NULL, %[6]s integer NOT NULL, epoch integer NOT NULL)",
			chain.table("gone"), personColumn, keyColumn, nthColumn, blockColumn, classColumn),
		fmt.Sprintf("CREATE TABLE %s (%s bigint NOT NULL, %s bigint NOT NULL, number integer NOT NULL, hash bigint NOT NULL, epoch integer NOT NULL)", chain.table("past"), personColumn, nthColumn),
	}
	if len(dictionaries) > 0 {
		statements = append(statements, createEntries(chain))
		statements = append(statements, chain.createLists(dictionaries)...)
	}
	for _, table := range []string{"row", "gone", "past"} {
		// A publication of all tables would keep rows without a key from being changed.
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", chain.table(table)))
	}
	return execute(ctx, tx, statements...)
}

// createEntries is the statement that makes the table of an edition's labels.
func createEntries(chain *Chain) string {
	return fmt.Sprintf(`CREATE TABLE %s (dimension integer, number integer,
		label text NOT NULL, value text, low text, high text,
		exact boolean NOT NULL, share float8 NOT NULL, PRIMARY KEY (dimension, number))`, chain.table("entry"))
}

// payload are the columns that a release has as they are, quoted: those that it shows,
// and those that data sets show which are read off it.
func (r *Relation) payload() []string {
	var out []string
	for i := range r.Columns {
		if c := &r.Columns[i]; c.Visible() && c.Class != QuasiIdentifier {
			out = append(out, ident(c.Name))
		}
	}
	for i := range r.carried {
		out = append(out, ident(r.carried[i].Name))
	}
	return out
}

// stored finds a column of the relation, or one that is carried for a data set, by its
// quoted name in copies and releases.
func (r *Relation) stored(quoted string) *Column {
	for _, list := range [][]Column{r.Columns, r.carried} {
		for i := range list {
			if ident(list[i].Name) == quoted {
				return &list[i]
			}
		}
	}
	return nil
}

// rowColumns are the columns of a release's rows, in order, without the shown ones of
// its dimensions.
func (r *Relation) rowColumns() []string {
	out := []string{personColumn, keyColumn, nthColumn, blockColumn, classColumn}
	if r.Parent != nil {
		out = append(out, rowColumn)
	}
	return append(out, r.payload()...)
}

// shownColumns are those of its dimensions.
func shownColumns(dictionaries []*dictionary) []string {
	var out []string
	for _, d := range dictionaries {
		out = append(out, d.own("number"), d.own("value"))
	}
	return out
}

// execute runs statements in turn.
func execute(ctx context.Context, tx pgx.Tx, statements ...string) error {
	for _, statement := range statements {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// publishTables makes an edition fit to be read: indexes, statistics, views, and who
// may read them.
func publishTables(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, dictionaries []*dictionary) error {
	indexed, err := indexedColumns(ctx, tx, r, dictionaries)
	if err != nil {
		return err
	}
	row := chain.table("row")
	var statements []string
	for _, c := range r.averaged() {
		statements = append(statements,
			fmt.Sprintf("ALTER TABLE %s ALTER %s SET STATISTICS 0", row, ident(c.Name)))
	}
	// It is 0 or fails. Of a condition IS NOT NULL PostgreSQL expects nearly all rows to meet
	// it, of a mere boolean half of them; and it looks at that before all others.
	asked := fmt.Sprintf("SELECT CASE WHEN CASE WHEN %s THEN true ELSE %s END THEN 0::smallint END",
		keeps, chain.admitted(chain.number))
	admitted := fmt.Sprintf("(%s) IS NOT NULL", asked)
	// Where an index finds no row, no row's condition is looked at. So the gate stands in
	// every index: what it is compared with is asked before a scan of the index begins.
	if len(indexed) > 0 {
		admitted += fmt.Sprintf(" AND %s = (%s)", gateColumn, asked)
	}
	for _, column := range indexed {
		statements = append(statements,
			fmt.Sprintf("CREATE INDEX ON %s (%s, %s)", row, column, gateColumn))
	}
	statements = append(statements,
		fmt.Sprintf("ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY", row),
		fmt.Sprintf("CREATE POLICY admitted ON %s FOR SELECT USING (%s)", row, admitted))
	for _, may := range []string{"INSERT WITH CHECK", "UPDATE USING", "DELETE USING"} {
		statements = append(statements, fmt.Sprintf("CREATE POLICY %s ON %s FOR %s ((SELECT %s))", "kept_by_"+may[:6], row, may, keeps))
	}
	statements = append(statements, chain.createView(r, dictionaries))
	if len(r.numbered()) > 0 {
		statements = append(statements, chain.createLabelView(r, dictionaries))
	}
	if r.Parent != nil {
		statements = append(statements, chain.createParentView(r, dictionaries))
	}
	if r.Scope != "project" {
		statements = append(statements, chain.grantStatement(r, readers))
	}
	return execute(ctx, tx, statements...)
}

// copyInto streams rows into a table.
func copyInto(ctx context.Context, tx pgx.Tx, table string, encode func(*copyWriter)) error {
	return copyText(ctx, tx, fmt.Sprintf("COPY %s FROM STDIN", table), func(to io.Writer) error {
		w := &copyWriter{to: to}
		encode(w)
		w.flush()
		return w.err
	})
}

// storeEntries writes the entries that a release has not stored yet, and the lists of
// all. The row of lists is another one then, so that a transaction that reads the one
// before keeps nobody waiting.
func storeEntries(ctx context.Context, tx pgx.Tx, chain *Chain, dictionaries []*dictionary) error {
	var more bool
	for _, d := range dictionaries {
		more = more || d.stored < len(d.entries)
	}
	var lists int
	if len(dictionaries) > 0 {
		if err := tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s", chain.table("label"))).Scan(&lists); err != nil {
			return err
		}
	}
	if len(dictionaries) == 0 || !more && lists == 1 {
		return nil
	}
	err := copyInto(ctx, tx, chain.table("entry"), func(w *copyWriter) {
		for _, d := range dictionaries {
			for i, e := range d.entries[d.stored:] {
				w.number(d.column.Number)
				w.number(d.stored + i + 1)
				w.text(e.label)
				w.textOrNull(e.value, e.valued)
				w.textOrNull(e.low, e.bounded)
				w.textOrNull(e.high, e.bounded)
				w.boolean(e.lost.Exact)
				w.real(e.lost.Share)
				w.end()
			}
			d.stored = len(d.entries)
		}
	})
	if err != nil {
		return err
	}
	var values []string
	for _, d := range dictionaries {
		for _, l := range d.lists() {
			values = append(values, fmt.Sprintf("(SELECT %s FROM %s WHERE dimension = %d)", l.aggregate, chain.table("entry"), d.column.Number))
		}
	}
	return execute(ctx, tx, "ANALYZE "+chain.table("entry"), "DELETE FROM "+chain.table("label"),
		fmt.Sprintf("INSERT INTO %s SELECT %s", chain.table("label"), strings.Join(values, ", ")))
}

// readDictionaries are those of a release.
func readDictionaries(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain) ([]*dictionary, error) {
	out := newDictionaries(r)
	if len(out) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, `SELECT a.attname::text, a.atttypid = 'integer'::regtype FROM pg_attribute a
		WHERE a.attrelid IN ($1::text::regclass, $2::text::regclass) AND a.attnum > 0 AND NOT a.attisdropped`, chain.table("row"), chain.table("label"))
	if err != nil {
		return nil, err
	}
	wide := make(map[string]bool)
	var name string
	var integer bool
	if _, err := pgx.ForEachRow(rows, []any{&name, &integer}, func() error { wide[ident(name)] = integer; return nil }); err != nil {
		return nil, err
	}
	of := make(map[int]*dictionary)
	for _, d := range out {
		_, d.named = wide[d.own("names")]
		d.wide = wide[d.own("number")]
		of[d.column.Number] = d
	}
	rows, err = tx.Query(ctx, fmt.Sprintf("SELECT dimension, label, coalesce(value, ''), value IS NOT NULL, coalesce(low, ''), coalesce(high, ''), low IS NOT NULL, share, exact FROM %s ORDER BY dimension, number", chain.table("entry")))
	if err != nil {
		return nil, err
	}
	var dimension int
	var e entry
	_, err = pgx.ForEachRow(rows, []any{&dimension, &e.label, &e.value, &e.valued, &e.low, &e.high, &e.bounded, &e.lost.Share, &e.lost.Exact}, func() error {
		d := of[dimension]
		if d == nil {
			return fmt.Errorf("release %s has a dimension %d, which its policy has not", chain.name(), dimension)
		}
		d.entries = append(d.entries, e)
		d.stored = len(d.entries)
		d.numbers[e.shown()] = uint32(len(d.entries))
		return nil
	})
	return out, err
}

// createLists are the statements that make the table of the one row with the labels,
// and values, by their numbers.
func (c *Chain) createLists(dictionaries []*dictionary) []string {
	var columns, plain []string
	for _, d := range dictionaries {
		for _, l := range d.lists() {
			columns = append(columns, fmt.Sprintf("%s %s NOT NULL", l.column, l.typ))
			if l.plain {
				plain = append(plain, fmt.Sprintf("ALTER %s SET STORAGE EXTERNAL", l.column))
			}
		}
	}
	table := c.table("label")
	statements := []string{fmt.Sprintf("CREATE TABLE %s (%s)", table, strings.Join(columns, ", "))}
	if len(plain) > 0 {
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s %s", table, strings.Join(plain, ", ")))
	}
	return append(statements, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", table), fmt.Sprintf("CALL tailor.keep_no_samples('%s')", table))
}

// indexedColumns are the columns of a release that stand for those that an index
// of the table begins with, more or fewer as the policy says.
func indexedColumns(ctx context.Context, tx pgx.Tx, r *Relation, dictionaries []*dictionary) ([]string, error) {
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
	names = append(names, r.Indexes.Add...)
	slices.Sort(names)
	var out []string
	for _, name := range slices.Compact(names) {
		c := r.Column(name)
		switch {
		case c == nil || !c.Visible() || slices.Contains(r.Indexes.Drop, name):
		case c.IsPayload() && r.AggregateOnly:
			if !c.IsAveraged() {
				out = append(out, c.insteadColumn())
			}
		case c.Class != QuasiIdentifier:
			out = append(out, ident(name))
		default:
			at := slices.IndexFunc(dictionaries, func(d *dictionary) bool { return d.column == c })
			out = append(out, dictionaries[at].own("value"))
		}
	}
	return out, nil
}

// readers is the role that all readers are members of.
const readers = "tailor_reader"

// keeps is the condition that the session is Tailor's own, or in a procedure of
// Tailor's, and not one that reads through a view of Tailor's.
const keeps = "(pg_catalog.pg_has_role(SESSION_USER, 'tailor_owner', 'MEMBER')" +
	" OR CURRENT_USER = 'tailor_owner')"

// admitted is the condition that lets a statement read a part of a release.
func (c *Chain) admitted(admission int) string {
	return fmt.Sprintf("(SELECT tailor.admit(%d, %d, %d))", admission, c.edition, releaseLayout)
}

// fence ends a subquery that PostgreSQL neither dissolves in the query around it
// nor moves conditions into. A number is no bigint before it is cast, and
// PostgreSQL looks at it too early: for an OFFSET 0 it plans no parallel scan.
const fence = " OFFSET '0'"

// createView is the statement that defines a release over an epoch. Admission is asked
// by the table, before it shows a row to anything (publishTables).
func (c *Chain) createView(r *Relation, dictionaries []*dictionary) string {
	var list []string
	for i := range r.Columns {
		column := &r.Columns[i]
		switch {
		case column.Class == QuasiIdentifier:
			at := slices.IndexFunc(dictionaries, func(d *dictionary) bool { return d.column == column })
			list = append(list, fmt.Sprintf("e.%s AS %s", dictionaries[at].own("value"), ident(column.Name)))
		case column.IsPayload() && r.AggregateOnly:
			list = append(list, fmt.Sprintf("e.%s AS %s", column.insteadColumn(), ident(column.Name)))
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
	if r.Parent != nil && !r.IsJoint() {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return c.viewOver(r, c.name(), list, "")
}

// createParentView is the statement that defines what a release shows of the
// parent: the quasi-identifiers of each row's subject, under the parent's own
// names. It has the rows of the release.
func (c *Chain) createParentView(r *Relation, dictionaries []*dictionary) string {
	var list, labels []string
	for i, d := range dictionaries[len(dictionaries)-len(r.borrowed):] {
		column := &r.Parent.Columns[i]
		list = append(list, fmt.Sprintf("e.%s AS %s", d.own("value"), ident(column.Name)))
		labels = append(labels, d.label(c.name())+" AS "+ident(column.LabelColumn()))
	}
	list = append(append(list, labels...), fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	admitted := " WHERE " + c.admitted(parentAdmission(c.number))
	return c.viewOver(r, ParentView(c.name()), list, admitted)
}

// createLabelView is the statement that defines the one row with the labels of
// each numbered column, whether they are exact, the ends of what they cover, and values
// that are stored as an array: the number of a label is its place there, from 1. An array
// that has been joined to another is read from memory.
func (c *Chain) createLabelView(r *Relation, dictionaries []*dictionary) string {
	var list []string
	for _, d := range dictionaries {
		if !d.listed {
			continue
		}
		list = append(list, fmt.Sprintf("pg_catalog.jsonb_concat(%[1]s, '[]') AS %[1]s", ident(d.column.LabelColumn())))
		array := func(part, column string) {
			list = append(list, fmt.Sprintf("pg_catalog.array_cat(%s, '{}') AS %s", d.own(part), ident(column)))
		}
		array("exact", d.column.ExactColumn())
		if d.isFixed() {
			array("values", d.column.ValuesColumn())
		}
		if d.column.IsMeasured() {
			array("low", d.column.LowColumn())
			array("high", d.column.HighColumn())
		}
	}
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM (SELECT * FROM tailor_store.%s_label WHERE %s%s) c",
		LabelView(c.name()), strings.Join(list, ", "), c.name(), c.admitted(c.number), fence)
}

// viewOver is the statement that defines a view of a chain's rows, with a condition or
// without. A publication of codes, whose table asks for nothing, is read behind a fence.
func (c *Chain) viewOver(r *Relation, name string, list []string, condition string) string {
	from := c.table("row") + " e" + condition
	if r.SetValued != nil {
		from = fmt.Sprintf("(SELECT * FROM tailor_store.epoch_%d WHERE %s%s) e", c.publication,
			c.admitted(c.number), fence)
	}
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM %s", name,
		strings.Join(list, ", "), from)
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

func commas(list []string) string { return strings.Join(list, ", ") }
