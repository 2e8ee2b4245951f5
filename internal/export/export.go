package export

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Formats are the names of what files can be written as.
var Formats = []string{"csv", "sql", "parquet"}

// Job is what is to be exported.
type Job struct {
	Tables    []string // as in SQL; empty for all that the role reads
	Format    string   // one of Formats
	Dir       string   // made if it is not there
	Recipient string   // for the audit record and the manifest; empty for the role
	Labels    bool     // a column more for each quasi-identifier, with its label
	Progress  func(table string, rows int64)
}

// Table is what was written of a table, as the manifest says it.
type Table struct {
	Name    string   `json:"table"`
	File    string   `json:"file"`
	Rows    int64    `json:"rows"`
	SHA256  string   `json:"sha256"`
	Columns []Column `json:"columns"`
	// Notice is what the proxy said beside the answer: smallest block, loss by column, the
	// time of the copy.
	Notice json.RawMessage `json:"release,omitempty"`
	schema string
}

// Column is a line of the dictionary (research.tailor_columns).
type Column struct {
	Name      string  `json:"name"`
	Type      string  `json:"type"`
	Class     string  `json:"class"`
	Hierarchy string  `json:"hierarchy,omitempty"`
	Value     string  `json:"value,omitempty"` // raked, middle, label; empty for what is as it is
	Exact     float64 `json:"exact"`           // share of rows
	Loss      float64 `json:"loss"`            // mean share of the domain that a label covers
	// Null counts the values that are NULL in Parquet, which cannot hold them.
	Null int64 `json:"null_in_parquet,omitempty"`
}

// Manifest is manifest.json.
type Manifest struct {
	Database  string    `json:"database"`
	Role      string    `json:"role"`
	Recipient string    `json:"recipient"`
	Exported  time.Time `json:"exported"`
	Format    string    `json:"format"`
	Tables    []Table   `json:"tables"`
}

// Fault is what whoever exports can mend.
type Fault struct{ What, Remedy string }

func (e *Fault) Error() string { return e.What + "; " + e.Remedy }

// refusals are the SQLSTATEs by which the proxy says that it does not show a table in rows.
var refusals = []string{"0A000", "42501", "KA001", "KA004"}

// RefusedError says that the proxy does not show a table in rows.
type RefusedError struct {
	Table         string
	Message, Hint string
}

func (e *RefusedError) Error() string { return e.Table + ": " + e.Message }

// Run writes one file for each table, dictionary.csv, SHA256SUMS and manifest.json, all of one
// moment, and reports what was refused. No file that is there is written over, and none has its
// name before all are written. The connection is a reader's, through the proxy; it is the
// caller's to close. notice has the details of the last notice that the connection got.
func Run(
	ctx context.Context, conn *pgx.Conn, job Job, notice func() string,
) (_ *Manifest, refused []*RefusedError, err error) {
	m := &Manifest{
		Role: conn.Config().User, Database: conn.Config().Database, Format: job.Format,
		Recipient: job.Recipient, Exported: time.Now().UTC().Truncate(time.Second),
	}
	if m.Recipient == "" {
		m.Recipient = m.Role
	}
	for _, setting := range []string{
		"SET client_encoding = 'UTF8'", "SET datestyle = 'ISO, YMD'", "SET timezone = 'UTC'",
		"SET intervalstyle = 'postgres'", "SET extra_float_digits = 1", "SET bytea_output = 'hex'",
		"SET tailor.representation = 'value'",
	} {
		if _, err := conn.Exec(ctx, setting); err != nil {
			return nil, nil, err
		}
	}
	if err := assertReader(ctx, conn); err != nil {
		return nil, nil, err
	}
	if len(job.Tables) == 0 {
		if err := awaitReleases(ctx, conn); err != nil {
			return nil, nil, err
		}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	tables, err := readable(ctx, tx)
	if err != nil {
		return nil, nil, err
	}
	if tables, err = chosen(tables, job.Tables); err != nil {
		return nil, nil, err
	}
	if err := name(tables, job); err != nil {
		return nil, nil, err
	}
	d, err := newDraft(job.Dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, d.discard()) }()
	for _, t := range tables {
		if _, err := tx.Exec(ctx, "SAVEPOINT tailor_export"); err != nil {
			return nil, nil, err
		}
		err := t.write(ctx, tx, d, job, m.Recipient)
		var server *pgconn.PgError
		if errors.As(err, &server) && slices.Contains(refusals, server.Code) {
			refused = append(refused, &RefusedError{t.Name, server.Message, server.Hint})
			if _, err := tx.Exec(ctx, "ROLLBACK TO SAVEPOINT tailor_export"); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		if detail := notice(); json.Valid([]byte(detail)) {
			t.Notice = json.RawMessage(detail)
		}
		m.Tables = append(m.Tables, *t)
	}
	if len(m.Tables) == 0 {
		return m, refused, nil
	}
	if err := m.writeBeside(d); err != nil {
		return nil, nil, err
	}
	return m, refused, d.publish()
}

// name settles the names of files, and of the columns for labels. They must be different.
func name(tables []*Table, job Job) error {
	files := make(map[string]bool)
	for _, t := range tables {
		t.File = strings.Map(fileRune, t.Name) + "." + job.Format
		if files[t.File] {
			return &Fault{"two tables would be file " + t.File, "export them to two folders"}
		}
		files[t.File] = true
		if !job.Labels {
			continue
		}
		columns := make(map[string]bool)
		for _, c := range t.Columns {
			columns[c.Name] = true
		}
		for _, c := range t.Columns {
			label := c.labelName()
			switch {
			case c.Class != "quasi_identifier":
			case columns[label]:
				return &Fault{
					fmt.Sprintf("table %s has a column %q already, which is to hold the labels of %q", t.Name,
						label, c.Name),
					"leave out --labels, or have the owner of the table name the column otherwise",
				}
			default:
				columns[label] = true
			}
		}
	}
	return nil
}

// longestName is of an identifier, in bytes.
const longestName = 63

// labelName is the name of the column with the labels.
func (c *Column) labelName() string {
	const end = "_label"
	return cut(c.Name, longestName-len(end)) + end
}

// cut shortens a name to so many bytes, and to whole characters.
func cut(name string, bytes int) string {
	return strings.ToValidUTF8(name[:min(len(name), bytes)], "")
}

// fileRune keeps of a table's name what a file's may hold.
func fileRune(r rune) rune {
	if r == '/' || r == '\\' || r == ':' || r < ' ' {
		return '_'
	}
	return r
}

// awaitReleases asks for each protected table that the role is not shown yet: the proxy has the
// release of one that it may read made, and says so of one that takes longer. Without it, an
// export of all tables would leave that out.
func awaitReleases(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT table_name FROM information_schema.views
		WHERE table_schema = 'research' AND table_name NOT IN ('tailor_margins', 'tailor_columns')
			AND table_name NOT IN (SELECT table_name FROM research.tailor_columns)`)
	if err != nil {
		return asReader(err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return asReader(err)
	}
	for _, name := range names {
		_, err := conn.Exec(ctx, "SELECT FROM "+pgx.Identifier{"research", name}.Sanitize()+" LIMIT 0")
		var server *pgconn.PgError
		switch {
		case errors.As(err, &server) && server.Code == "57P03":
			return &Fault{server.Message, "name the tables that are to be exported, or wait"}
		case err != nil && (server == nil || conn.IsClosed()):
			return err
		}
	}
	return nil
}

// readable are the tables that the role is shown, with their columns.
func readable(ctx context.Context, tx pgx.Tx) ([]*Table, error) {
	rows, err := tx.Query(ctx, `SELECT quote_ident(c.table_schema),
			format('%I.%I', c.table_schema, c.table_name), c.column_name, CASE
			WHEN EXISTS (SELECT FROM pg_catalog.pg_type t
				WHERE t.oid = to_regtype(regexp_replace(c.data_type, '\(.*\)', ''))
					AND t.typnamespace = 'pg_catalog'::regnamespace) THEN c.data_type ELSE 'text' END,
			c.class, coalesce(c.hierarchy, ''), coalesce(c.value_is, ''), c.exact, c.loss
		FROM research.tailor_columns c
		LEFT JOIN information_schema.columns i ON i.table_schema = 'research'
			AND i.table_name = c.table_name AND i.column_name = c.column_name
		ORDER BY c.table_schema, c.table_name, i.ordinal_position`)
	if err != nil {
		return nil, asReader(err)
	}
	var tables []*Table
	var schema, name string
	var c Column
	into := []any{
		&schema, &name, &c.Name, &c.Type, &c.Class, &c.Hierarchy, &c.Value, &c.Exact, &c.Loss,
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if len(tables) == 0 || tables[len(tables)-1].Name != name {
			tables = append(tables, &Table{Name: name, schema: schema})
		}
		t := tables[len(tables)-1]
		t.Columns = append(t.Columns, c)
		return nil
	})
	return tables, asReader(err)
}

// asReader is an error of a question that every reader may ask.
func asReader(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) && server.Code == "42501" {
		return errNoReader
	}
	return err
}

var errNoReader = &Fault{"the role is shown no table", "connect as a reader, through the proxy"}

// chosen are the tables that were asked for, all if none was.
func chosen(tables []*Table, names []string) ([]*Table, error) {
	if len(names) == 0 {
		if len(tables) == 0 {
			return nil, errNoReader
		}
		return tables, nil
	}
	var out []*Table
	for _, name := range names {
		at := slices.IndexFunc(tables, func(t *Table) bool {
			return t.Name == name || strings.TrimPrefix(t.Name, "public.") == name
		})
		if at < 0 {
			return nil, &Fault{
				"the role is shown no table " + name, "research.tailor_columns lists what it is shown",
			}
		}
		if slices.Contains(out, tables[at]) {
			return nil, &Fault{"table " + name + " is named twice", "name it once"}
		}
		out = append(out, tables[at])
	}
	return out, nil
}

// write writes the file of a table. The name of the recipient is an identifier in the
// statement, which the audit log keeps as it is.
func (t *Table) write(
	ctx context.Context, tx pgx.Tx, d *draft, job Job, recipient string,
) error {
	source := pgx.Identifier{cut("for "+recipient, longestName)}.Sanitize()
	var list []string
	var columns []Column
	for _, c := range t.Columns {
		name := pgx.Identifier{c.Name}.Sanitize()
		list, columns = append(list, source+"."+name), append(columns, c)
		if job.Labels && c.Class == "quasi_identifier" {
			label := c
			label.Name, label.Type, label.Value = c.labelName(), "text", "label"
			list = append(list, fmt.Sprintf("tailor.label(%s.%s) AS %s", source, name,
				pgx.Identifier{label.Name}.Sanitize()))
			columns = append(columns, label)
		}
	}
	t.Columns = columns
	query := fmt.Sprintf("SELECT %s FROM %s AS %s", strings.Join(list, ", "), t.Name, source)
	return d.write(t.File, func(file io.Writer) error {
		to := &counted{to: file, sum: sha256.New()}
		progress := func(rows int64) {
			if job.Progress != nil {
				job.Progress(t.Name, rows)
			}
		}
		var err error
		switch job.Format {
		case "csv":
			to.lines = progress
			err = t.copy(ctx, tx, to, query, "FORMAT csv, HEADER")
		case "sql":
			if _, err = io.WriteString(to, t.definition()); err == nil {
				to.lines = progress
				if err = t.copy(ctx, tx, to, query, "FORMAT text"); err == nil {
					_, err = io.WriteString(to, "\\.\n")
				}
			}
		case "parquet":
			err = t.parquet(ctx, tx, to, query, progress)
		default:
			err = fmt.Errorf("unknown format %q", job.Format)
		}
		t.SHA256 = hex.EncodeToString(to.sum.Sum(nil))
		return err
	})
}

// copy has the server write the rows.
func (t *Table) copy(ctx context.Context, tx pgx.Tx, to io.Writer, query, options string) error {
	tag, err := tx.Conn().PgConn().CopyTo(ctx, to,
		fmt.Sprintf("COPY (%s) TO STDOUT (%s)", query, options))
	t.Rows = tag.RowsAffected()
	return err
}

// definition is SQL that makes the table, up to where its rows follow.
func (t *Table) definition() string {
	var list, names []string
	for _, c := range t.Columns {
		name := pgx.Identifier{c.Name}.Sanitize()
		list, names = append(list, "\n    "+name+" "+c.Type), append(names, name)
	}
	schema := ""
	if !strings.HasPrefix(t.Name, "public.") {
		schema = fmt.Sprintf("CREATE SCHEMA IF NOT EXISTS %s;\n", t.schema)
	}
	return fmt.Sprintf("SET client_encoding = 'UTF8';\n%sCREATE TABLE %[2]s (%[3]s\n);\nCOPY %[2]s "+
		"(%[4]s) FROM stdin;\n",
		schema, t.Name, strings.Join(list, ","), strings.Join(names, ", "))
}

// parquet writes the rows with the types of the answer.
func (t *Table) parquet(
	ctx context.Context, tx pgx.Tx, to io.Writer, query string, progress func(rows int64),
) error {
	rows, err := tx.Query(ctx, query, pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return err
	}
	defer rows.Close()
	file := newParquetFile(to, rows.FieldDescriptions())
	for rows.Next() {
		if err := file.write(rows.RawValues()); err != nil {
			return err
		}
		t.Rows++
		progress(t.Rows)
	}
	for i := range t.Columns {
		t.Columns[i].Null = file.null[i]
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return file.close()
}

// writeBeside writes what describes the files. The manifest is the last.
func (m *Manifest) writeBeside(d *draft) error {
	var sums strings.Builder
	for _, t := range m.Tables {
		fmt.Fprintf(&sums, "%s  %s\n", t.SHA256, t.File)
	}
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"dictionary.csv", m.dictionary},
		{"SHA256SUMS", func(w io.Writer) error {
			_, err := io.WriteString(w, sums.String())
			return err
		}},
		{"manifest.json", func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(m)
		}},
	} {
		if err := d.write(file.name, file.write); err != nil {
			return err
		}
	}
	return nil
}

// dictionary writes a line for each column of each file.
func (m *Manifest) dictionary(to io.Writer) error {
	w := csv.NewWriter(to)
	lines := [][]string{{"table", "column", "type", "class", "hierarchy", "value_is", "exact", "loss"}}
	for _, t := range m.Tables {
		for _, c := range t.Columns {
			lines = append(lines, []string{
				t.Name, c.Name, c.Type, c.Class, c.Hierarchy, c.Value,
				fmt.Sprintf("%.4f", c.Exact), fmt.Sprintf("%.4f", c.Loss),
			})
		}
	}
	return w.WriteAll(lines)
}

// counted sums up what is written, and tells how many lines there are, if that is asked for.
type counted struct {
	to      io.Writer
	sum     hash.Hash
	written int64
	lines   func(written int64)
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.sum.Write(p[:n])
	if c.lines != nil {
		c.written += int64(bytes.Count(p[:n], []byte{'\n'}))
		c.lines(c.written)
	}
	return n, err
}
