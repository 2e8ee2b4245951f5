package tests

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestActivationThroughTheProxyReturnsWhenReadersAreShownTheTable has readers ask at once
// what an administrator has just activated, by both protocols; a table of too few subjects
// is not waited for, and the administrator is told why.
func TestActivationThroughTheProxyReturnsWhenReadersAreShownTheTable(t *testing.T) {
	s, _ := ownStand(t, "activation_waits")
	p := s.serve(t)
	reader := connect(t, p.dsn(s.reader(t)))
	var warnings []string
	config, err := pgx.ParseConfig(p.dsn("dba"))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Severity == "WARNING" {
			warnings = append(warnings, n.Message)
		}
	}
	admin, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close(t.Context()) })
	protect := func(table, rows string) string {
		return strings.NewReplacer("NAME", table, "ROWS", rows).Replace(`
			CREATE TABLE NAME AS SELECT n AS id, n % 50 AS age FROM generate_series(1, ROWS) n;
			ALTER TABLE NAME ADD PRIMARY KEY (id); CALL tailor.protect('NAME', 'id', 5);
			CALL tailor.classify('NAME', 'age', 'quasi_identifier', hierarchy => 'age')`)
	}
	for table, mode := range map[string]pgx.QueryExecMode{
		"simply": pgx.QueryExecModeSimpleProtocol, "extended": pgx.QueryExecModeCacheStatement,
	} {
		mustExec(t, admin, protect(table, "20000"), pgx.QueryExecModeSimpleProtocol)
		mustExec(t, admin, "CALL tailor.activate('"+table+"')", mode)
		if n := one[int](t, reader, "SELECT count(*) FROM "+table); n != 20000 {
			t.Errorf("%d rows of table %s", n, table)
		}
	}
	// "again" runs when the session has been at rest
	for i, table := range []string{"bound", "again"} {
		mustExec(t, admin, protect(table, "20000"), pgx.QueryExecModeSimpleProtocol)
		for range 10 * i {
			mustExec(t, admin, "SELECT 1")
			time.Sleep(50 * time.Millisecond)
		}
		mustExec(t, admin, "CALL tailor.activate($1)", table)
		if n := one[int](t, reader, "SELECT count(*) FROM "+table); n != 20000 {
			t.Errorf("%d rows of table %s", n, table)
		}
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %q", warnings)
	}
	mustExec(t, admin, protect("few", "3"), pgx.QueryExecModeSimpleProtocol)
	for range 2 {
		mustExec(t, admin, "CALL tailor.activate('few')")
		mustExec(t, admin, "CALL tailor.activate($1)", "few")
	}
	if len(warnings) != 8 || !strings.Contains(warnings[7], "few") {
		t.Errorf("of a table with three subjects: %q", warnings)
	}
	refusedAs(t, reader, "SELECT count(*) FROM few", "KA001")
}
