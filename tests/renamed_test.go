package tests

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAChainFollowsItsRole renames readers, gives their names to others and makes
// them again: who is the same is shown the same chain, and nobody else is.
func TestAChainFollowsItsRole(t *testing.T) {
	direct := shared.superuser(t)
	first := shared.reader(t)
	p := shared.serve(t)
	chainOf := func(p *proxied, user string) int {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), p.dsn(user))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		exec1(t, conn, "SELECT count(*) FROM patients")
		return one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass AND role = $1::text::regrole`, user)
	}
	named := func(statement string, names ...any) { exec1(t, direct, fmt.Sprintf(statement, names...)) }
	rename := func(from, to string) {
		named("ALTER ROLE %s RENAME TO %s", from, to)
		named("ALTER ROLE %s PASSWORD '%[1]s'", to)
	}
	join := func(name string) {
		named("CREATE ROLE %s LOGIN PASSWORD '%[1]s'", name)
		exec1(t, direct, "CALL tailor.grant_reader($1)", name)
	}

	original := chainOf(p, first)
	renamed := first + "_too"
	rename(first, renamed)
	if got := chainOf(p, renamed); got != original {
		t.Errorf("who was renamed has chain %d, before %d", got, original)
	}
	if got := chainOf(shared.serve(t), renamed); got != original {
		t.Errorf("by another proxy who was renamed has chain %d, before %d", got, original)
	}
	join(first)
	other := chainOf(p, first)
	if other == original {
		t.Error("who got the name of another has got the chain as well")
	}

	// Names are exchanged, and the newcomer comes first.
	rename(renamed, "for_a_moment")
	rename(first, renamed)
	rename("for_a_moment", first)
	if got := chainOf(p, renamed); got != other {
		t.Errorf("the newcomer has chain %d, before %d", got, other)
	}
	if got := chainOf(p, first); got != original {
		t.Errorf("the first one has chain %d, before %d", got, original)
	}

	if got := chainOf(shared.serve(t), renamed); got != other { // which writes down the name
		t.Errorf("by another proxy the newcomer has chain %d, before %d", got, other)
	}
	named("DROP OWNED BY %s", renamed)
	named("DROP ROLE %s", renamed)
	join(renamed)
	if got := chainOf(p, renamed); got != other {
		t.Errorf("who was made again has chain %d, before %d", got, other)
	}
}
