package tests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestTablesThatCannotBeProtectedAreNotShown asks for what needs no
// quasi-identifier: there is nothing to refine, and still nobody to hide among.
func TestTablesThatCannotBeProtectedAreNotShown(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	owner := connect(t, p.dsn("dba"))
	cases := []struct{ name, rows, qid, require string }{
		{"few_with_qid", `SELECT n AS id, 30 + n AS age, 'ill ' || n AS illness ` +
			`FROM generate_series(1, 4) n`, "age", ""},
		{
			"few_without_qid",
			`SELECT n AS id, 30 + n AS age, 'ill ' || n AS illness FROM generate_series(1, 4) n`, "", "",
		},
		{
			"few_with_many_rows",
			`SELECT n % 4 AS id, 30 AS age, 'ill ' || n AS illness FROM generate_series(1, 40) n`, "", "",
		},
		{
			"all_alike", `SELECT n AS id, 30 + n AS age, 'ill' AS illness FROM generate_series(1, 40) n`,
			"age", "illness",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := "public." + c.name
			mustExec(t, owner, fmt.Sprintf(`CREATE TABLE %s AS %s`, table, c.rows))
			mustExec(t, owner, `CALL tailor.protect($1::text::regclass, subject => 'id', k => 5)`, table)
			mustExec(t, owner, `CALL tailor.classify($1::text::regclass, 'illness', 'sensitive')`, table)
			if c.qid != "" {
				mustExec(t, owner,
					`CALL tailor.classify($1::text::regclass, $2::text::name, 'quasi_identifier', `+
						`hierarchy => 'age')`, table, c.qid)
			}
			if c.require != "" {
				mustExec(t, owner,
					`CALL tailor.require($1::text::regclass, 'l_diversity', column_name => $2::text::name, `+
						`parameter => 2)`, table, c.require)
			}
			mustExec(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
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

// TestATableOfFewerThanKIsRefusedAlike: whether there are no subjects or some, too
// few of them get the same answer, which is no failure. A release goes on once there are
// enough; of those whom it shows, single ones who leave are shown still.
func TestATableOfFewerThanKIsRefusedAlike(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	owner := connect(t, p.dsn("dba"))
	const few = "The table as a whole does not meet 5-anonymity."
	for i, c := range []struct{ name, policy, hint string }{
		{
			"emptied_with_qid",
			`CALL tailor.classify('public.%[1]s', 'age', 'quasi_identifier', hierarchy => 'age')`, few,
		},
		{"emptied_without_qid", `SELECT`, few},
		{
			"emptied_aggregates",
			`CALL tailor.classify('public.%[1]s', 'age', 'non_sensitive'); ` +
				`CALL tailor.rows('public.%[1]s', false)`, few,
		},
		{
			"emptied_set_valued", `CALL tailor.set_valued('public.%[1]s', 'illness', 2)`,
			"Too few subjects of the table have codes at all.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			oneIn(t, 2, i)
			mustExec(t, owner, fmt.Sprintf(`CREATE TABLE %s (id int, age int, illness text)`, c.name))
			mustExec(t, owner,
				fmt.Sprintf(`CALL tailor.protect('public.%[1]s', subject => 'id', k => 5); `+
					`CALL tailor.classify('public.%[1]s', 'illness', 'sensitive'); `+c.policy, c.name))
			renew := "activate"
			said, renewed, first := make(map[string]bool), 0, 0
			for _, n := range []int{0, 1, 4, 5, 0, 10, 4, 0, 5} {
				mustExec(t, owner, fmt.Sprintf(`DELETE FROM %[1]s; INSERT INTO %[1]s
					SELECT %[4]d + n, 30 + n, 'ill' FROM generate_series(1, %[2]d) n;
					CALL tailor.%[3]s('public.%[1]s')`, c.name, n, renew, first))
				if c.name == "emptied_set_valued" { // whose codes are published once
					first += 100
				}
				renew = "refresh"
				if n >= 5 {
					renewed++
				}
				for _, sql := range []string{
					"SELECT count(*) FROM " + c.name, "SELECT illness FROM " + c.name,
					"SELECT count(illness), sum(age) FROM " + c.name,
				} {
					if c.policy == "SELECT" || c.name == "emptied_set_valued" {
						sql = strings.ReplaceAll(sql, ", sum(age)", "")
					}
					if c.name == "emptied_aggregates" && strings.HasPrefix(sql, "SELECT illness") {
						continue
					}
					refused := n < 5 && (n == 0 || renewed < 1 || c.name == "emptied_set_valued")
					var answer *pgconn.PgError
					waitFor(t, func() bool {
						answer = nil
						tag, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
						if refused {
							return errors.As(err, &answer) && answer.Code != "40001" && answer.Code != "42P01" &&
								answer.Code != "42501"
						}
						return err == nil && tag.RowsAffected() > 0
					})
					if answer != nil {
						said[answer.Code+" "+answer.Message+": "+answer.Hint] = true
					}
				}
			}
			if len(said) != 1 || !said["KA001 risk cannot be brought below the threshold: "+c.hint] {
				t.Errorf("it is said %q", slices.Collect(maps.Keys(said)))
			}
		})
	}
}

// TestARefreshSaysWhyNothingIsShown has a proxy find out what the owner waits for.
func TestARefreshSaysWhyNothingIsShown(t *testing.T) {
	p := shared.serve(t)
	dsn := p.dsn("dba")
	owner := connect(t, dsn)
	mustExec(t, owner, `CREATE TABLE never_shown (id int, age int, illness text);
		INSERT INTO never_shown SELECT n, n % 50, 'the same' FROM generate_series(1, 100) n;
		CALL tailor.protect('never_shown', subject => 'id', k => 5);
		CALL tailor.classify('never_shown', 'illness', 'sensitive');
		CALL tailor.require('never_shown', 'l_diversity', 'illness', 2);
		CALL tailor.activate('never_shown')`)
	const why = "risk cannot be brought below the threshold"
	code, _, stderr := tool(t, "refresh", "--dsn", dsn, "--table", "never_shown", "--timeout", "20s")
	if code == 0 || !strings.Contains(stderr, "not shown: "+why) ||
		!strings.Contains(stderr, "The table as a whole does not meet") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	_, found, _ := tool(t, "doctor", "--dsn", shared.cluster.SuperuserDSN("hospital"))
	if !strings.Contains(found, "never_shown: what is shown of it is not brought up to date: "+why) {
		t.Errorf("the doctor says %s", found)
	}
	mustExec(t, owner, `UPDATE never_shown SET illness = 'another' WHERE id % 2 = 0`)
	code, stdout, stderr := tool(t, "refresh", "--dsn", dsn, "--table", "never_shown")
	if code != 0 || !strings.Contains(stdout, "100 subjects are shown") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
	if n := one[int](t, owner, `SELECT count(*) FROM tailor.failures`); n > 0 {
		t.Errorf("%d failures", n)
	}
	mustExec(t, owner, `ALTER TABLE never_shown RENAME illness TO ailment`)
	code, _, stderr = tool(t, "refresh", "--dsn", dsn, "--table", "never_shown")
	if code == 0 || !strings.Contains(stderr, `has no column "illness" any more`) {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
