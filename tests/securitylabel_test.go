package tests

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestASecurityLabelClassifiesAColumn labels columns through the proxy, by the
// simple and the extended protocol, as their owner and as a reader.
func TestASecurityLabelClassifiesAColumn(t *testing.T) {
	p := shared.serve(t)
	owner, reader := connect(t, p.dsn("dba")), connect(t, p.dsn(shared.reader(t)))
	mustExec(t, owner, `CREATE TABLE labelled (id integer, age integer, mood text)`)
	mustExec(t, owner, `CALL tailor.protect('labelled', 'id', 5)`)
	mustExec(t, owner, `SECURITY LABEL FOR tailor `+
		`ON COLUMN public.labelled.age IS 'quasi_identifier hierarchy=builtin.age'`)
	if _, err := owner.Exec(t.Context(),
		`SECURITY LABEL FOR tailor ON COLUMN labelled.mood IS 'sensitive'`,
		pgx.QueryExecModeDescribeExec); err != nil {
		t.Fatal(err)
	}
	super := shared.superuser(t)
	const classes = `SELECT string_agg(column_name || ' ' || class || coalesce(' ' || hierarchy, ` +
		`''), ', ' ORDER BY column_name) FROM tailor.classification WHERE relation = 'labelled'::regclass`
	if got := one[string](t, super,
		classes); got != "age quasi_identifier builtin.age, mood sensitive" {
		t.Errorf("classes: %s", got)
	}
	for _, c := range []struct {
		claim, sqlstate, label string
		conn                   *pgx.Conn
	}{
		{
			"an unknown class", "22023", `SECURITY LABEL FOR tailor ON COLUMN labelled.age IS 'secret'`,
			owner,
		},
		{
			"an unknown word", "22023",
			`SECURITY LABEL FOR tailor ON COLUMN labelled.age IS 'sensitive please'`, owner,
		},
		{"a table", "0A000", `SECURITY LABEL FOR tailor ON TABLE labelled IS 'sensitive'`, owner},
		{
			"another provider", "22023", `SECURITY LABEL FOR other ON COLUMN labelled.age IS 'sensitive'`,
			owner,
		},
		{
			"a reader", "42501", `SECURITY LABEL FOR tailor ON COLUMN labelled.age IS 'non_sensitive'`,
			reader,
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			_, err := c.conn.Exec(t.Context(), c.label)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) || answer.Code != c.sqlstate {
				t.Errorf("%v, want SQLSTATE %s", err, c.sqlstate)
			}
		})
	}
	mustExec(t, super, `DELETE FROM tailor.protection WHERE relation = 'labelled'::regclass; `+
		`DROP TABLE labelled`)
}
