package tests

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/catalog"
)

// ticketed opens a release to a reader, and returns a text that reads it and what
// makes tickets for it.
func ticketed(
	t *testing.T, p *testProxy, user string,
) (*catalog.Catalog, *catalog.Release, string) {
	t.Helper()
	mustExec(t, connect(t, p.dsn(user)), "SELECT age FROM patients LIMIT 1")
	release := &catalog.Release{Relation: &catalog.Relation{}}
	if err := shared.superuser(t).QueryRow(t.Context(),
		`SELECT chain, edition, generation, epoch FROM tailor.chain `+
			`WHERE relation = 'patients'::regclass`).
		Scan(&release.Chain, &release.Edition, &release.Generation, &release.Relation.Epoch); err != nil {
		t.Fatal(err)
	}
	policies, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("hospital"),
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policies.Close)
	return policies, release, fmt.Sprintf("SELECT age FROM tailor_release.%s LIMIT 1",
		catalog.ReleaseName(release.Chain, release.Edition))
}

// TestATicketIsForOneSessionOfAllTimes shows tickets of the right form, made with
// the key, on a connection past the proxy: as a session of the proxy would have
// had them whose process had the same number.
func TestATicketIsForOneSessionOfAllTimes(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	policies, release, text := ticketed(t, p, user)
	dsn := fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user,
		shared.cluster.Address())
	direct, other := connect(t, dsn), connect(t, dsn)
	session := one[string](t, direct, "SELECT tailor.session()")
	number, start, _ := strings.Cut(session, " ")
	mustExec(t, direct,
		"SET TimeZone = 'Asia/Tokyo'; SET extra_float_digits = -5; SET DateStyle = German")
	if again := one[string](t, direct, "SELECT tailor.session()"); again != session {
		t.Errorf("%q is %q a moment later", session, again)
	}
	_, startOfOther, _ := strings.Cut(one[string](t, other, "SELECT tailor.session()"), " ")
	if number != fmt.Sprint(direct.PgConn().PID()) || start == "" || start == startOfOther {
		t.Errorf("sessions are %q and %q", session, startOfOther)
	}
	for _, c := range []struct{ claim, session, before, code string }{
		{"an earlier one of the same number, first", number + " " + startOfOther, "", "42501"},
		{"the session itself", session, "", ""},
		{"an earlier one of the same number", number + " " + startOfOther, "", "42501"},
		{"the number alone", number, "", "42501"},
		{"a start that is not known", number + " ", "", "42501"},
		{"the session itself, its plans forgotten", session, "DISCARD ALL", ""},
		{"an earlier one, the plans forgotten", number + " " + startOfOther, "DISCARD ALL", "42501"},
	} {
		mustExec(t, direct, c.before)
		_, err := direct.Exec(t.Context(), policies.AdmissionToken(text, c.session,
			[]*catalog.Release{release}), pgx.QueryExecModeSimpleProtocol)
		if codeIn(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.claim, err, c.code)
		}
	}
	another := *release
	another.Edition++
	if _, err := direct.Exec(t.Context(), policies.AdmissionToken(text, session,
		[]*catalog.Release{&another}), pgx.QueryExecModeSimpleProtocol); codeIn(err) != "40001" {
		t.Errorf("another edition: %v, want 40001", err)
	}
}

// TestASessionIsAskedForOnce counts how often the server looks for the start of
// its process among those of all others.
func TestASessionIsAskedForOnce(t *testing.T) {
	user := shared.reader(t)
	policies, release, text := ticketed(t, shared.serve(t), user)
	mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s SET track_functions = 'pl'", user))
	conn := connect(t, fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/hospital?sslmode=disable", user,
		shared.cluster.Address()))
	text = policies.AdmissionToken(text, one[string](t, conn, "SELECT tailor.session()"),
		[]*catalog.Release{release})
	mustExec(t, conn, "BEGIN")
	const calls = `SELECT coalesce(sum(calls), 0)::int FROM pg_stat_xact_user_functions ` +
		`WHERE schemaname = 'tailor' AND funcname = $1`
	before := one[int](t, conn, calls, "session") // by this test
	for range 10 {
		rowsOf(t, conn, text)
	}
	if n := one[int](t, conn, calls, "admit"); n != 10 {
		t.Errorf("%d admissions of 10 statements", n)
	}
	if n := one[int](t, conn, calls, "session") - before; n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	mustExec(t, conn, "ROLLBACK")
}

// TestPlansThatAReaderIsShownHoldNoKey has the server send the plans of all that a
// release asks, also after an error has left PL/pgSQL's own plans unused: a plan
// that is made for the values of variables shows them.
func TestPlansThatAReaderIsShownHoldNoKey(t *testing.T) {
	user := shared.reader(t)
	policies, release, text := ticketed(t, shared.serve(t), user)
	var shown strings.Builder
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user,
		user, shared.cluster.Address()))
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { shown.WriteString(n.Detail) }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	session := one[string](t, conn, "SELECT tailor.session()")
	plain := policies.AdmissionToken(text, session, []*catalog.Release{release})
	held := policies.AdmissionToken("DECLARE held CURSOR WITH HOLD FOR "+text, session,
		[]*catalog.Release{release})
	mustExec(t, conn, "SET debug_print_plan = on; SET client_min_messages = log; SET "+
		"plan_cache_mode = force_custom_plan")
	rowsOf(t, conn, "BEGIN", "SAVEPOINT s")
	// What cannot be said in the client's encoding ends the look at the ticket.
	_, err = conn.Exec(t.Context(), "SET client_encoding = 'LATIN1'; /* \u0436 */ "+text,
		pgx.QueryExecModeSimpleProtocol)
	if codeIn(err) != "22P05" {
		t.Errorf("%v, want 22P05", err)
	}
	rowsOf(t, conn, "ROLLBACK TO s", held, plain, "ROLLBACK")
	var key strings.Builder // as plans write constants, but for the blanks and the ends of lines
	for _, b := range one[[]byte](t, shared.superuser(t), "SELECT key FROM tailor.admission_key") {
		fmt.Fprint(&key, int8(b))
	}
	plans := strings.Join(strings.Fields(shown.String()), "")
	if !strings.Contains(plans, ":funcid3420:") { // sha256
		t.Errorf("no plan of how a ticket is checked is among %d bytes", len(plans))
	}
	if strings.Contains(plans, key.String()) {
		t.Error("a plan shows the key")
	}
}
