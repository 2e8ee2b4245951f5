package tests

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// earlier makes of a release one of an earlier version: its view asks a function of
// that time, which here lets everybody in, and its table has no policies.
const earlier = `
DROP FUNCTION tailor.admit(integer, integer, integer) CASCADE;
DROP VIEW tailor_release.chain_%[1]d;
CREATE FUNCTION tailor.admit(%[4]s) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT true';
ALTER FUNCTION tailor.admit OWNER TO tailor_owner;
GRANT EXECUTE ON FUNCTION tailor.admit TO tailor_reader;
ALTER TABLE tailor_store.chain_%[1]d_row DISABLE ROW LEVEL SECURITY;
CREATE VIEW tailor_release.chain_%[1]d AS SELECT e.age, e.ward FROM (SELECT "tailor value 5"
    AS age, ward FROM tailor_store.chain_%[1]d_row) e WHERE (SELECT tailor.admit(%[5]s));
ALTER VIEW tailor_release.chain_%[1]d OWNER TO tailor_owner;
GRANT SELECT ON tailor_release.chain_%[1]d TO %[2]s;
UPDATE tailor.chain SET layout = %[3]d WHERE chain = %[1]d`

// layouts are earlier ways to store a release, by what their views asked.
var layouts = []struct {
	claim, parameters, arguments string
	number                       int
}{
	{"in chunks", "chain integer, visible boolean", "%d, true", 0},
	{"by blocks", "chain integer, epoch integer", "%d, 1", 3},
	{"with a root for each copy", "chain integer, epoch integer, layout integer", "%d, 1, 7", 7},
}

// TestAReleaseOfAnEarlierVersionIsRefusedUntilItIsForgotten has releases that
// remember of whom nothing was shown but a place in a copy. Beside them, what is made
// now would be a second partition of the same people.
func TestAReleaseOfAnEarlierVersionIsRefusedUntilItIsForgotten(t *testing.T) {
	s, _ := ownStand(t, "layouts")
	const query = "SELECT age, ward FROM patients"
	for i, l := range layouts {
		t.Run(l.claim, func(t *testing.T) {
			oneIn(t, 2, i)
			user, direct := s.reader(t), s.superuser(t)
			p := s.serve(t)
			answeredSoon(t, connect(t, p.dsn(user)), query)
			p.stop(t)
			chain := one[int](t, direct,
				`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
			mustExec(t, direct, fmt.Sprintf(earlier, chain, pgx.Identifier{user}.Sanitize(), l.number,
				l.parameters, fmt.Sprintf(l.arguments, chain)))
			past := connect(t, fmt.Sprintf("postgres://%s:%[1]s@%s/hospital?sslmode=disable", user,
				s.cluster.Address()))
			asked := fmt.Sprintf("SELECT count(*) FROM tailor_release.chain_%d", chain)
			if one[int](t, past, asked) == 0 {
				t.Fatal("the earlier view shows nothing before the upgrade")
			}
			for range 2 {
				if err := s.install(t.Context(), "hospital"); err != nil {
					t.Fatal(err)
				}
			}
			reader := connect(t, s.serve(t).dsn(user))
			for _, call := range []string{
				``, `CALL tailor.refresh('patients')`,
				`CALL tailor.activate('patients')`,
			} {
				mustExec(t, direct, call)
				for _, sql := range []string{
					query, `SELECT count(*) FROM patients`,
					`EXPLAIN (TAILOR) SELECT age FROM patients`,
				} {
					if hint := refusedSoon(t, reader, sql, "KA004").Hint; !strings.Contains(hint,
						"tailor.forget_chains('public.patients')") {
						t.Errorf("after %q: %s: %s", call, sql, hint)
					}
				}
				if n, err := past.Exec(t.Context(), asked); err == nil {
					t.Errorf("after %q the earlier view is read past the proxy: %v", call, n)
				}
			}
			refusedAs(t, reader, asked, "42501")
			mustExec(t, direct, `CALL tailor.forget_chains('patients')`)
			answeredSoon(t, reader, query)
			if left := one[string](t, direct,
				`SELECT coalesce(string_agg(relname, ', '), '') FROM pg_class WHERE relname ~ $1`,
				fmt.Sprintf("^chain_%d(_|$)", chain)); left != "" {
				t.Errorf("left behind: %s", left)
			}
		})
	}
}

// TestASnapshotOlderThanARewrittenReleaseGetsNoNULLs has a release stored anew by an
// activation, which the snapshot of an open transaction shows without its rows.
func TestASnapshotOlderThanARewrittenReleaseGetsNoNULLs(t *testing.T) {
	s, _ := ownStand(t, "rewritten")
	p, query := s.serve(t), "SELECT age, count(*) FROM patients GROUP BY age"
	conn := connect(t, p.dsn(s.reader(t)))
	want := rowsOf(t, conn, query+" ORDER BY age, 2")
	direct := s.superuser(t)
	const edition = `SELECT edition FROM tailor.chain WHERE relation = 'patients'::regclass`
	before := one[int](t, direct, edition)
	mustExec(t, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	mustExec(t, conn, "SELECT 1")
	mustExec(t, direct, `CALL tailor.activate('patients')`)
	waitFor(t, func() bool { return one[int](t, direct, edition) > before })
	_, err := conn.Exec(t.Context(), query)
	if code := codeIn(err); code != "40001" {
		t.Errorf("a snapshot older than the release: %v", err)
	}
	mustExec(t, conn, "ROLLBACK")
	if got := rowsOf(t, conn, query+" ORDER BY age, 2"); !slices.Equal(got, want) {
		t.Errorf("%d groups before, %d others after", len(want), len(got))
	}
}

// TestAReleaseWithoutQuasiIdentifiersIsStoredAnewToo has one whose view and table an earlier
// version has made: the table asked for nothing.
func TestAReleaseWithoutQuasiIdentifiersIsStoredAnewToo(t *testing.T) {
	s, _ := ownStand(t, "anew")
	user, query := s.reader(t), "SELECT count(*) FROM diagnoses"
	before := one[int](t, connect(t, s.serve(t).dsn(user)), query)
	direct := s.superuser(t)
	chain := one[int](t, direct,
		`SELECT chain FROM tailor.chain WHERE relation = 'diagnoses'::regclass`)
	view := fmt.Sprintf("tailor_release.chain_%d", chain)
	definition := one[string](t, direct, `SELECT pg_get_viewdef($1::text::regclass)`, view)
	mustExec(t, direct, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT * FROM (%s) x WHERE false",
		view, strings.TrimSuffix(strings.TrimSpace(definition), ";")))
	mustExec(t, direct, `UPDATE tailor.chain SET layout = 3 WHERE chain = $1`, chain)
	stored := one[string](t, direct,
		`SELECT 'tailor_store.epoch_' || max(epoch) FROM tailor.publication`)
	for _, policy := range []string{"admitted", "kept_by_insert", "kept_by_update", "kept_by_delete"} {
		mustExec(t, direct, fmt.Sprintf("DROP POLICY %s ON %s", policy, stored))
	}
	mustExec(t, direct, fmt.Sprintf(`ALTER TABLE %s NO FORCE ROW LEVEL SECURITY,
		DISABLE ROW LEVEL SECURITY, DROP COLUMN "tailor gate"`, stored))
	if after := one[int](t, connect(t, s.serve(t).dsn(user)), query); after != before || after == 0 {
		t.Errorf("%d rows before, %d after", before, after)
	}
	past := connect(t, fmt.Sprintf("postgres://%s:%[1]s@%s/hospital?sslmode=disable", user,
		s.cluster.Address()))
	now := one[string](t, direct, `SELECT 'tailor_release.chain_' || chain || '_g' || edition
		FROM tailor.chain WHERE chain = $1`, chain)
	refusedAs(t, past, "SELECT count(*) FROM "+now, "42501")
}

// TestNumbersOfLabelsAreTheirRanks reads them where they are stored. Groups come in an
// order that follows from the numbers, and blocks are in the order in which they were
// made.
func TestNumbersOfLabelsAreTheirRanks(t *testing.T) {
	user := shared.reader(t)
	mustExec(t, connect(t, shared.serve(t).dsn(user)), "SELECT zip, age, sex FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct,
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	for _, column := range []string{"age", "zip"} {
		labels := one[[]string](t, direct, fmt.Sprintf(
			`SELECT "tailor names %d"::text[] FROM tailor_store.chain_%d_label`,
			one[int](t, direct,
				`SELECT attnum::int FROM pg_attribute WHERE attrelid = 'patients'::regclass AND attname = $1`,
				column), chain))
		if len(labels) < 3 || !slices.IsSorted(labels) {
			t.Errorf("%d labels of %s are not in their order", len(labels), column)
		}
	}
}

func TestPostgreSQLLooksUpLabelsOnlyWhereTheyAreShown(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct,
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	for column, want := range map[string]bool{
		"avg(cost)": false, "avg(age)": false,
		"count(zip)": false, "count(tailor_label_5)": true,
	} {
		rows, err := direct.Query(t.Context(), fmt.Sprintf("EXPLAIN SELECT %s FROM "+
			"tailor_release.chain_%d", column, chain))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(plan, "\n"),
			fmt.Sprintf("chain_%d_label", chain)); got != want {
			t.Errorf("labels looked up for %s: %v\n%s", column, got, strings.Join(plan, "\n"))
		}
	}
}

func TestARoleSeesNothingOfAReleaseThatItIsNotAdmittedTo(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, connect(t, p.dsn(user)), "SELECT age, zip FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct,
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	showsNothing(t, "hospital", user, chain, 5, "ward = 'x'", "age", "zip", "cost", "tailor_label_5",
		"tailor_number_5", "tailor_number_6")
}

// showsNothing asks a release past the proxy, by a function that tells what it is
// shown of a column; labelled is the number of one whose labels are listed, and
// nobody a condition on a payload that no row meets.
func showsNothing(
	t *testing.T, database, user string, chain, labelled int, nobody string, columns ...string,
) {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%[1]s@%s/%s?sslmode=disable", user,
		shared.cluster.Address(), database))
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	config.OnNotice = func(*pgconn.PgConn, *pgconn.Notice) { seen++ }
	past, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = past.Close(t.Context()) })
	mustExec(t, past, `CREATE FUNCTION pg_temp.tell(v anyelement) RETURNS boolean LANGUAGE plpgsql
		COST 0.0001
		AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$`)
	for _, plan := range []string{
		"", "SET enable_hashjoin = off", "SET enable_mergejoin = off",
		"RESET enable_hashjoin",
	} {
		mustExec(t, past, plan)
		for _, column := range columns {
			for _, text := range []string{
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s)`,
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ` +
					`ON pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ` +
					`ON pg_temp.tell(%[2]s) AND %[2]s::text > '' AND %[4]s`,
				`SELECT count(*) FROM tailor_release.chain_%d_label WHERE pg_temp.tell(tailor_label_%[3]s)`,
				`SELECT count(*) FROM tailor_release.chain_%d_label WHERE pg_temp.tell(tailor_value_%[3]s)`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d_label ` +
					`ON pg_temp.tell(tailor_label_%[3]s) AND tailor_label_%[3]s::text > ''`,
			} {
				_, err := past.Exec(t.Context(), strings.NewReplacer("%d", strconv.Itoa(chain), "%[2]s", column,
					"%[3]s", strconv.Itoa(labelled), "%[4]s", nobody).Replace(text))
				if err == nil || seen > 0 {
					t.Fatalf("%s, %s: a function was shown %d values of %s, error %v", plan, text, seen,
						column, err)
				}
			}
		}
	}
}

// placed is a query for the rows of a release, by a column that tells them apart: what
// stands for their quasi-identifiers, the subject, and what is the same where the
// release shows two alike.
func placed(t *testing.T, conn *pgx.Conn, chain, key string) string {
	t.Helper()
	alike := one[string](t, conn, `SELECT string_agg(format('r.%I', attname), ', ')
		FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname LIKE 'tailor number %'`,
		"tailor_store.chain_"+chain+"_row")
	return fmt.Sprintf(
		`SELECT r.%[2]s AS name, r."tailor key" & 4294967295 AS tuple, r."tailor person"
			AS subject, ARRAY[%[3]s] AS block
		FROM tailor_store.chain_%[1]s_row r`, chain, key, alike)
}

// TestPostgreSQLExpectsFewGroups looks at a table, at a child whose rows are joined
// along the key, and at what its release shows of the parent: plans for as many
// groups as rows would sort them.
func TestPostgreSQLExpectsFewGroups(t *testing.T) {
	p, user := shared.serve(t), shared.reader(t)
	mustExec(t, connect(t, p.dsn(user)), `SELECT age FROM patients`)
	direct := shared.superuser(t)
	expectsFew(t, direct, one[string](t, direct,
		`SELECT 'chain_' || chain FROM tailor.chain WHERE relation = 'patients'::regclass`), "age", 1000)

	c := newClinic(t, "few_groups", 5, 5, crowd)
	mustExec(t, connect(t, c.dsn("researcher")),
		`SELECT p.age, day FROM encounters e JOIN patients p ON e.patient_id = p.id`)
	child := one[string](t, c.direct,
		`SELECT 'chain_' || chain FROM tailor.chain WHERE relation = 'encounters'::regclass`)
	expectsFew(t, c.direct, child, "day", 1000)
	expectsFew(t, c.direct, child+"_parent", "age", 200)
}

// expectsFew says how many groups by a column of a release PostgreSQL may expect.
func expectsFew(t *testing.T, direct *pgx.Conn, release, column string, most int) {
	t.Helper()
	planned := func(sql string) int {
		plan := one[string](t, direct, "EXPLAIN "+sql)
		n, err := strconv.Atoi(regexp.MustCompile(`rows=(\d+)`).FindStringSubmatch(plan)[1])
		if err != nil {
			t.Fatal(plan, err)
		}
		return n
	}
	if rows := planned("SELECT FROM tailor_release." + release); rows <= most {
		t.Fatalf("%s has only %d rows", release, rows)
	}
	if groups := planned(fmt.Sprintf("SELECT %s FROM tailor_release.%s GROUP BY 1", column,
		release)); groups > most {
		t.Errorf("%s: %d groups by %s are expected", release, groups, column)
	}
}
