package tests

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
)

// TestASnapshotOlderThanACopyGetsNoEmptyAnswer reads a release whose chain a refresh
// has carried to a new copy, in a transaction that was there before: the view is the
// new one, and its copy has no rows for that transaction.
func TestASnapshotOlderThanACopyGetsNoEmptyAnswer(t *testing.T) {
	direct := makeDatabase(t, "older_snapshot", "")
	if err := shared.install(t.Context(), "older_snapshot"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, kinds)
	reader := connect(t, serveDatabase(t, "older_snapshot").dsn("researcher"))
	exec1(t, reader, "SELECT whole FROM kinds")
	policies, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("older_snapshot"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policies.Close)
	release := &catalog.Release{Relation: &catalog.Relation{}}
	if err := direct.QueryRow(t.Context(), `SELECT chain, epoch FROM tailor.chain`).Scan(&release.Chain, &release.Relation.Epoch); err != nil {
		t.Fatal(err)
	}
	view := fmt.Sprintf("tailor_release.chain_%d", release.Chain)
	past := connect(t, fmt.Sprintf("postgres://researcher:researcher@%s/older_snapshot?sslmode=disable", shared.cluster.Address()))
	session := one[string](t, past, "SELECT tailor.session()")
	texts := []string{"SELECT pay FROM " + view, "SELECT pay FROM generate_series(1, 1) LEFT JOIN (SELECT * FROM " + view + " OFFSET '0') r ON pay = pay OR pay IS NULL"} // as the planner writes it
	planned := func(text string) string { return policies.Ticket(text, session, []*catalog.Release{release}) }
	for _, text := range texts {
		if rows := rowsOf(t, past, planned(text)); len(rows) != 2400 {
			t.Fatalf("%s: %d rows before the refresh", text, len(rows))
		}
	}
	exec1(t, past, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	exec1(t, past, "SELECT 1; SAVEPOINT here")
	exec1(t, direct, "CALL tailor.refresh('public.kinds')")
	waitFor(t, func() bool {
		// What was planned before the proxy heard of the refresh is to be tried again.
		if _, err := reader.Exec(t.Context(), "SELECT whole FROM kinds LIMIT 1"); err != nil && codeIn(err) != "40001" {
			t.Fatal(err)
		}
		return one[int](t, direct, `SELECT epoch FROM tailor.chain`) > release.Relation.Epoch
	})
	for _, text := range texts { // the transaction goes on over the epoch that it began with
		if rows := rowsOf(t, past, planned(text)); len(rows) != 2400 {
			t.Errorf("%s: %d rows of the epoch before", text, len(rows))
		}
	}
	exec1(t, past, "SAVEPOINT here")
	newer := view + "_g1"
	release.Relation.Epoch = one[int](t, direct, `SELECT epoch FROM tailor.chain`)
	for _, text := range append(texts, strings.ReplaceAll(texts[0], view, newer), strings.ReplaceAll(texts[1], view, newer)) {
		if answers, err := past.PgConn().Exec(t.Context(), planned(text)).ReadAll(); codeIn(err) != "40001" {
			t.Errorf("%s, planned on the copy of now: %d answers and %v, want 40001", text, len(answers), err)
		}
		exec1(t, past, "ROLLBACK TO here")
	}
}
