package tests

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// TestATicketIsForOneSessionOfAllTimes shows tickets of the right form, made with
// the key, on a connection past the proxy: as a session of the proxy would have
// had them whose process had the same number.
func TestATicketIsForOneSessionOfAllTimes(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), "SELECT age FROM patients LIMIT 1")
	release := &catalog.Release{Relation: &catalog.Relation{}}
	if err := shared.superuser(t).QueryRow(t.Context(), `SELECT chain, epoch FROM tailor.chain WHERE audience = $1`, "principal "+user).
		Scan(&release.Chain, &release.Relation.Epoch); err != nil {
		t.Fatal(err)
	}
	policies, err := catalog.Open(t.Context(), shared.cluster.ServiceDSN("hospital"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(policies.Close)
	text := fmt.Sprintf("SELECT age FROM tailor_release.chain_%d LIMIT 1", release.Chain)
	dsn := fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user, shared.cluster.Address())
	direct, other := connect(t, dsn), connect(t, dsn)
	session := one[string](t, direct, "SELECT tailor.session()")
	number, start, _ := strings.Cut(session, " ")
	exec1(t, direct, "SET TimeZone = 'Asia/Tokyo'; SET extra_float_digits = -5; SET DateStyle = German")
	if again := one[string](t, direct, "SELECT tailor.session()"); again != session {
		t.Errorf("%q is %q a moment later", session, again)
	}
	_, startOfOther, _ := strings.Cut(one[string](t, other, "SELECT tailor.session()"), " ")
	if number != fmt.Sprint(direct.PgConn().PID()) || start == "" || start == startOfOther {
		t.Errorf("sessions are %q and %q", session, startOfOther)
	}
	for _, c := range []struct{ claim, session, code string }{
		{"the session itself", session, ""},
		{"an earlier one of the same number", number + " " + startOfOther, "42501"},
		{"the number alone", number, "42501"},
		{"a start that is not known", number + " ", "42501"},
	} {
		_, err := direct.Exec(t.Context(), policies.Ticket(text, c.session, []*catalog.Release{release}), pgx.QueryExecModeSimpleProtocol)
		if codeIn(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%s: %v, want %q", c.claim, err, c.code)
		}
	}
	another := *release
	another.Relation = &catalog.Relation{Epoch: release.Relation.Epoch + 1}
	if _, err := direct.Exec(t.Context(), policies.Ticket(text, session, []*catalog.Release{&another}), pgx.QueryExecModeSimpleProtocol); codeIn(err) != "40001" {
		t.Errorf("another copy: %v, want 40001", err)
	}
}
