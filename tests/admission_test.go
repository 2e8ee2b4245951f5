package tests

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
)

// TestASnapshotOlderThanACopyGetsNoEmptyAnswer reads a release in a transaction that was
// there before what has become of it. After a refresh the view is the same, and the
// transaction sees the rows that it began with. After an activation the view is another,
// and its table has no rows for that transaction.
func TestASnapshotOlderThanACopyGetsNoEmptyAnswer(t *testing.T) {
	direct := makeDatabase(t, "older_snapshot", "")
	if err := shared.install(t.Context(), "older_snapshot"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, kinds)
	p := serveDatabase(t, "older_snapshot")
	reader := connect(t, p.dsn("researcher"))
	mustExec(t, reader, "SELECT whole FROM kinds")
	policies, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("older_snapshot"),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policies.Close)
	release := &catalog.Release{Relation: &catalog.Relation{}}
	if err := direct.QueryRow(t.Context(), `SELECT chain, edition FROM tailor.chain`).
		Scan(&release.Chain, &release.Edition); err != nil {
		t.Fatal(err)
	}
	view := "tailor_release." + catalog.ReleaseName(release.Chain, release.Edition)
	past := connect(t, fmt.Sprintf(
		"postgres://researcher:researcher@%s/older_snapshot?sslmode=disable", shared.cluster.Address()))
	session := one[string](t, past, "SELECT tailor.session()")
	texts := []string{
		"SELECT pay FROM " + view,
		"SELECT pay FROM generate_series(1, 1) LEFT JOIN " + view + " r ON pay = pay OR pay IS NULL",
	}
	planned := func(text string) string {
		return policies.AdmissionToken(text, session, []*catalog.Release{release})
	}
	for _, text := range texts {
		if rows := rowsOf(t, past, planned(text)); len(rows) != 2400 {
			t.Fatalf("%s: %d rows before the refresh", text, len(rows))
		}
	}
	older := connect(t, p.dsn("researcher"))
	mustExec(t, older, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	mustExec(t, older, "SELECT 1; SAVEPOINT here")
	mustExec(t, past, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	snapshot := one[string](t, past, "SELECT pg_export_snapshot()")
	mustExec(t, past, "SAVEPOINT here")
	mustExec(t, direct, "INSERT INTO kinds SELECT id + 10000, long, letters, many, whole, "+
		"\"exact\", wide, \"real\", day, p, at, \"when\", short, pay FROM kinds; CALL "+
		"tailor.refresh('public.kinds')")
	awaitTakenIn(t, direct, "kinds", reader)
	if n := one[int](t, reader, "SELECT count(*) FROM kinds"); n != 4800 {
		t.Errorf("%d rows after the refresh", n)
	}
	for _, text := range texts { // the transaction goes on over what it began with
		if rows := rowsOf(t, past, planned(text)); len(rows) != 2400 {
			t.Errorf("%s: %d rows of the release as it was", text, len(rows))
		}
	}
	mustExec(t, direct, "CALL tailor.activate('public.kinds')")
	awaitTakenIn(t, direct, "kinds", reader)
	mustExec(t, past, "SAVEPOINT here")
	if err := direct.QueryRow(t.Context(), `SELECT edition FROM tailor.chain`).
		Scan(&release.Edition); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts { // an activation closes the views that there were
		if answers, err := past.PgConn().Exec(t.Context(), planned(text)).
			ReadAll(); codeIn(err) != "42501" {
			t.Errorf("%s: %d answers and %v, want 42501", text, len(answers), err)
		}
		mustExec(t, past, "ROLLBACK TO here")
	}
	if catalog.ReleaseName(release.Chain, release.Edition) == strings.TrimPrefix(view,
		"tailor_release.") {
		t.Fatal("an activation made no other edition")
	}
	for _, text := range []string{
		"SELECT pay FROM kinds", "SELECT count(*) FROM kinds WHERE whole = -1",
		"SELECT pay FROM generate_series(1, 1) LEFT JOIN kinds ON pay = pay OR pay IS NULL",
	} {
		if _, err := older.Exec(t.Context(), text); codeIn(err) != "40001" { // by the extended protocol
			t.Errorf("%s in an older transaction: %v, want 40001", text, err)
		}
		mustExec(t, older, "ROLLBACK TO here")
		if _, err := older.PgConn().Exec(t.Context(), text).ReadAll(); codeIn(err) != "40001" {
			t.Errorf("%s in an older transaction: %v, want 40001", text, err)
		}
		mustExec(t, older, "ROLLBACK TO here")
	}
	const begin = "COMMIT; BEGIN ISOLATION LEVEL REPEATABLE READ"
	mustExec(t, older, begin)
	mustExec(t, older, fmt.Sprintf("SET TRANSACTION SNAPSHOT '%s'", snapshot))
	refusedAs(t, older, "SELECT pay FROM kinds", "40001")
	mustExec(t, older, "COMMIT")
	refusedAs(t, older, fmt.Sprintf("%s; SET TRANSACTION SNAPSHOT '%s'; SELECT pay FROM kinds", begin,
		snapshot), "0A000")
	mustExec(t, older, "ROLLBACK")
	if n := one[int](t, older, "SELECT count(*) FROM kinds"); n != 4800 {
		t.Errorf("%d rows in the next transaction", n)
	}
}
