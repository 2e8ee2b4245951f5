package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestWhatAReleaseShowsOfAParentIsReadByJoinsAlone reads it through a view of
// the reader's own, which no planner sees, beside a statement about the child.
func TestWhatAReleaseShowsOfAParentIsReadByJoinsAlone(t *testing.T) {
	c := newClinic(t, "joins_past", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	mustExec(t, conn, aJoin)
	chain := one[string](t, c.direct,
		`SELECT chain::text FROM tailor.chain WHERE relation = 'encounters'::regclass`)
	mustExec(t, conn, fmt.Sprintf(
		`DO $$ BEGIN EXECUTE 'CREATE TEMP VIEW mine AS SELECT * FROM tai' || 'lor_release.cha' || `+
			`'in_%s_parent'; END $$`, chain))
	beside := func() error {
		_, err := conn.PgConn().Exec(t.Context(),
			`SELECT m.* FROM mine m, (SELECT note FROM encounters LIMIT 1) e`).ReadAll()
		return err
	}
	assertDenied := func(when string) {
		t.Helper()
		err := beside()
		for codeIn(err) == "40001" { // the policy has just changed: to be sent again
			err = beside()
		}
		if codeIn(err) != "42501" {
			t.Errorf("%s: %v", when, err)
		}
	}
	assertDenied("while joins are answered")
	mustExec(t, c.direct,
		`CALL tailor.classify('public.patients', 'zip', 'direct_identifier'); `+
			`CALL tailor.activate('public.patients')`)
	assertDenied("as soon as the parent has hidden a column")
	refusedSoon(t, conn, aJoin, "KA004")
	assertDenied("while joins are refused")
	var ticket *pgconn.PgError
	if _, err := conn.Exec(t.Context(), "SELECT note FROM encounters\n/* tailor "+chain+",-"+chain+" "+
		strings.Repeat("0", 64)+" */"); !errors.As(err, &ticket) {
		t.Error("a text brings its own ticket")
	}
}
