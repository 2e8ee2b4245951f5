package tests

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/proxy"
)

// simply asks a simple query and returns its rows, each as PostgreSQL writes it.
func simply(t *testing.T, conn *pgx.Conn, text string) (rows []string, err error) {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), text).ReadAll()
	for _, result := range results {
		for _, row := range result.Rows {
			rows = append(rows, fmt.Sprintf("%s", row))
		}
	}
	return rows, err
}

// planned is how often the server has run the plan that it keeps for the session;
// -1 where it keeps none.
func planned(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	rows, err := simply(t, conn,
		"SELECT generic_plans FROM pg_prepared_statements WHERE name LIKE 'tailor%query'")
	if err != nil {
		t.Fatal(err)
	}
	runs := -1
	if len(rows) > 0 {
		_, _ = fmt.Sscanf(rows[0], "[%d]", &runs)
	}
	return runs
}

// repeating is a reader of patients and of a table that is not protected, through
// the proxy.
func repeating(t *testing.T, flags ...string) *pgx.Conn {
	t.Helper()
	p := shared.serve(t, flags...)
	user := shared.reader(t)
	admin := shared.superuser(t)
	mustExec(t, admin, "CREATE TABLE IF NOT EXISTS public.rates AS SELECT 1 AS rate")
	mustExec(t, admin, "GRANT SELECT ON public.rates TO "+user)
	mustExec(t, admin, fmt.Sprintf("GRANT TEMPORARY ON DATABASE hospital TO %s", user))
	conn := connect(t, p.dsn(user))
	if _, err := simply(t, conn, "SET tailor.notices = off"); err != nil {
		t.Fatal(err)
	}
	return conn
}

const repeatedText = "SELECT age, rate FROM patients, rates LIMIT 1"

// TestAQueryThatComesAgainIsPlannedOnce has the server count, and something else
// come in between.
func TestAQueryThatComesAgainIsPlannedOnce(t *testing.T) {
	conn := repeating(t)
	ask := func(text string) string {
		rows, err := simply(t, conn, text)
		if err != nil || len(rows) != 1 {
			t.Fatalf("%s: %v, %v", text, rows, err)
		}
		return rows[0]
	}
	first := ask(repeatedText)
	for run := 2; run <= 4; run++ {
		if again := ask(repeatedText); again != first {
			t.Errorf("run %d answers %s, the first %s", run, again, first)
		}
		if runs := planned(t, conn); runs != run {
			t.Errorf("its plan has run %d times, want %d", runs, run)
		}
	}
	ask("SELECT zip FROM patients LIMIT 1")
	if runs := planned(t, conn); runs != 1 {
		t.Errorf("another query's plan has run %d times, want 1", runs)
	}
	ask(repeatedText)
	if runs := planned(t, conn); runs != 1 {
		t.Errorf("a query's plan that was given up has run %d times, want 1", runs)
	}
}

// TestAPlanIsNotKeptThroughWhatChangesItsMeaning has the session do what could make
// the text mean something else, or the server forget it.
func TestAPlanIsNotKeptThroughWhatChangesItsMeaning(t *testing.T) {
	conn := repeating(t)
	want := func(rate string) {
		t.Helper()
		for range 2 {
			rows, err := simply(t, conn, repeatedText)
			var age, got string
			if err == nil && len(rows) == 1 {
				_, _ = fmt.Sscanf(rows[0], "[%s %s", &age, &got)
			}
			if got != rate+"]" {
				t.Errorf("%v, %v; want rate %s", rows, err, rate)
			}
		}
	}
	change := func(text string) {
		t.Helper()
		if _, err := simply(t, conn, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	want("1")
	change("CREATE TEMP TABLE rates AS SELECT 2 AS rate")
	want("2")
	change("SET search_path = public, pg_temp")
	want("1")
	change("RESET search_path")
	want("2")
	change("ALTER TABLE rates RENAME TO others")
	want("1")
	change("DEALLOCATE ALL")
	want("1")
	change("DO $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$")
	want("1")
	change("DISCARD ALL")
	change("SET tailor.notices = off")
	want("1")
	change("BEGIN")
	want("1")
	change("SAVEPOINT s")
	for _, text := range []string{"SELECT age / (age - age) FROM patients LIMIT 1", "SELECT 1 / 0"} {
		if _, err := simply(t, conn, text); err == nil {
			t.Errorf("%s: no error", text)
		}
		if _, err := simply(t, conn, repeatedText); err == nil {
			t.Error("answered in a failed transaction")
		}
		change("ROLLBACK TO s")
		want("1")
	}
	change("COMMIT")
	want("1")
	for range 2 {
		if _, err := simply(t, conn, "SELECT age / (cost - cost) FROM patients"); err == nil {
			t.Error("no error")
		}
	}
	want("1")
	if rows, err := simply(t, conn, leftAtServer); err != nil || len(rows) != 1 || rows[0] != "[0]" {
		t.Errorf("statements or portals are left: %v, %v", rows, err)
	}
}

// TestAPlanIsNotKeptOnSharedConnections has sessions take turns on one.
func TestAPlanIsNotKeptOnSharedConnections(t *testing.T) {
	conn := repeating(t, "--pool", string(proxy.PoolTransaction), "--max-upstream", "1")
	for range 3 {
		if rows, err := simply(t, conn, repeatedText); err != nil || len(rows) != 1 {
			t.Errorf("%v, %v", rows, err)
		}
		if runs := planned(t, conn); runs != -1 {
			t.Errorf("a plan is kept that has run %d times", runs)
		}
	}
}

// TestAKeptPlanIsRunByTheProxyOnly has a reader run it by its name, by messages and
// by SQL that hides the name: there would be no record.
func TestAKeptPlanIsRunByTheProxyOnly(t *testing.T) {
	conn := repeating(t)
	for range 2 {
		if _, err := simply(t, conn, repeatedText); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(way string, err error) {
		t.Helper()
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "42501" {
			t.Errorf("%s: %v, want 42501", way, err)
		}
	}
	refused("messages", conn.PgConn().ExecPrepared(t.Context(), "tailor_own_query", nil, nil, nil).
		Read().Err)
	for _, text := range []string{
		`EXECUTE tailor_own_query`,
		`EXECUTE U&"tailor\005fown_query"`,
		`DO $$ BEGIN EXECUTE 'EXECUTE tailor_o' || 'wn_query'; END $$`,
		`DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE taken AS EXECUTE tailor_o' || 'wn_query'; END $$`,
	} {
		if runs := planned(t, conn); runs < 1 {
			if _, err := simply(t, conn, repeatedText); err != nil {
				t.Fatal(err)
			}
		}
		_, err := simply(t, conn, text)
		refused(text, err)
	}
}
