package tests

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestTablesThatCannotBeProtectedAreNotShown asks for what needs no
// quasi-identifier: there is nothing to refine, and still nobody to hide among.
func TestTablesThatCannotBeProtectedAreNotShown(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	owner := connect(t, p.dsn("dba"))
	cases := []struct{ name, rows, qid, require string }{
		{"few_with_qid", `SELECT n AS id, 30 + n AS age, 'ill ' || n AS illness FROM generate_series(1, 4) n`, "age", ""},
		{"few_without_qid", `SELECT n AS id, 30 + n AS age, 'ill ' || n AS illness FROM generate_series(1, 4) n`, "", ""},
		{"few_with_many_rows", `SELECT n % 4 AS id, 30 AS age, 'ill ' || n AS illness FROM generate_series(1, 40) n`, "", ""},
		{"all_alike", `SELECT n AS id, 30 + n AS age, 'ill' AS illness FROM generate_series(1, 40) n`, "age", "illness"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := "public." + c.name
			exec1(t, owner, fmt.Sprintf(`CREATE TABLE %s AS %s`, table, c.rows))
			exec1(t, owner, `CALL tailor.protect($1::text::regclass, subject => 'id', k => 5)`, table)
			exec1(t, owner, `CALL tailor.classify($1::text::regclass, 'illness', 'sensitive')`, table)
			if c.qid != "" {
				exec1(t, owner, `CALL tailor.classify($1::text::regclass, $2::text::name, 'quasi_identifier', hierarchy => 'age')`, table, c.qid)
			}
			if c.require != "" {
				exec1(t, owner, `CALL tailor.require($1::text::regclass, 'l_diversity', column_name => $2::text::name, parameter => 2)`, table, c.require)
			}
			exec1(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
			for _, sql := range []string{"SELECT count(*) FROM ", "SELECT illness FROM "} {
				waitFor(t, func() bool {
					_, err := conn.Exec(t.Context(), sql+table)
					var answer *pgconn.PgError
					if err == nil {
						t.Fatalf("%s%s was answered", sql, table)
					}
					return errors.As(err, &answer) && answer.Code == "KA001"
				})
			}
		})
	}
}
