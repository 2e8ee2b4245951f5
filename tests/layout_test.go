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

// earlier stores a release as Tailor did before: a table of blocks with their
// labels and, in arrays, the block of each row. There is one block, so that what
// is not stored anew shows something else. That also stands for a layout whose tables
// were other ones.
const earlier = `
DO $$
DECLARE
	stored regclass;
BEGIN
	FOR stored IN SELECT oid FROM pg_class WHERE relkind IN ('r', 'v') AND relname ~ '^chain_%[1]d(_|$)' ORDER BY relkind DESC, oid LOOP
		EXECUTE format('DROP %%s %%s', CASE WHEN starts_with(stored::text, 'tailor_release.') THEN 'VIEW' ELSE 'TABLE' END, stored);
	END LOOP;
END $$;
CREATE TABLE tailor_store.chain_%[1]d_block ("tailor block" integer PRIMARY KEY, age integer, tailor_label_5 text, tailor_number_5 integer, zip text);
INSERT INTO tailor_store.chain_%[1]d_block VALUES (0, 60, '*', 0, '*');
CREATE TABLE tailor_store.chain_%[1]d_row AS SELECT %[4]s FROM tailor_store.epoch_%[2]d %[5]s;
CREATE VIEW tailor_release.chain_%[1]d AS SELECT b.*, e.ward FROM tailor_store.epoch_%[2]d e %[6]s;
ALTER TABLE tailor_store.chain_%[1]d_block OWNER TO tailor_owner;
ALTER TABLE tailor_store.chain_%[1]d_row OWNER TO tailor_owner;
ALTER VIEW tailor_release.chain_%[1]d OWNER TO tailor_owner;
GRANT SELECT ON tailor_release.chain_%[1]d TO %[3]s;
UPDATE tailor.chain SET layout = %[7]d WHERE chain = %[1]d`

// layout is an earlier way to store a release.
type layout struct {
	number             int
	rows, by, labelled string // the table of the rows, and the join that labels them
}

var layouts = map[string]layout{
	"in chunks": {
		0, `"tailor row" / 1024 AS "tailor chunk", array_agg(0 ORDER BY "tailor row") AS "tailor blocks"`, "GROUP BY 1",
		`JOIN tailor_store.chain_%[1]d_row r ON r."tailor chunk" = e."tailor row" / 1024
			JOIN tailor_store.chain_%[1]d_block b ON b."tailor block" = r."tailor blocks"[e."tailor row" %% 1024 + 1]`,
	},
	"without numbers": {1, `array_agg(0 ORDER BY "tailor row") AS "tailor blocks"`, "", byBlocks},
	"by blocks":       {2, `array_agg(0 ORDER BY "tailor row") AS "tailor blocks", '["*"]'::jsonb AS tailor_label_5`, "", byBlocks},
	"without lists":   {3, `array_agg(0 ORDER BY "tailor row") AS "tailor blocks", '["*"]'::jsonb AS tailor_label_5`, "", byBlocks},
}

func TestAReleaseThatIsStoredInAnEarlierWayShowsTheSame(t *testing.T) {
	s, _ := ownStand(t, "layouts")
	for name, l := range layouts {
		t.Run(name, func(t *testing.T) { l.showsTheSame(t, s) })
	}
}

const byBlocks = `LEFT JOIN tailor_store.chain_%[1]d_block b ON b."tailor block" = (SELECT "tailor blocks" FROM tailor_store.chain_%[1]d_row)[e."tailor row" + 1]`

// showsTheSame stores a release in the layout and compares what it shows then.
func (l layout) showsTheSame(t *testing.T, s *stand) {
	t.Helper()
	user := s.reader(t)
	const query = "SELECT age, zip, sex, count(*) FROM patients GROUP BY age, zip, sex"
	answer := func(p *proxied) []string {
		rows, err := connect(t, p.dsn(user)).Query(t.Context(), query, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
			values, err := row.Values()
			return fmt.Sprint(values), err
		})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		return all
	}
	before := answer(s.serve(t))
	direct := s.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	epoch := one[int](t, direct, `SELECT epoch FROM tailor.chain WHERE chain = $1`, chain)
	exec1(t, direct, fmt.Sprintf(earlier, chain, epoch, pgx.Identifier{user}.Sanitize(), l.rows, l.by, fmt.Sprintf(l.labelled, chain), l.number))
	if after := answer(s.serve(t)); !slices.Equal(before, after) {
		t.Errorf("%d groups before, %d others after", len(before), len(after))
	}
}

// TestASnapshotOlderThanARewrittenReleaseGetsNoNULLs has a release stored anew over the
// same copy, which the snapshot of an open transaction shows without its labels.
func TestASnapshotOlderThanARewrittenReleaseGetsNoNULLs(t *testing.T) {
	s, _ := ownStand(t, "rewritten")
	user, query := s.reader(t), "SELECT age, count(*) FROM patients GROUP BY age"
	want := rowsOf(t, connect(t, s.serve(t).dsn(user)), query+" ORDER BY age, 2")
	direct := s.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	exec1(t, direct, `UPDATE tailor.chain SET layout = 0 WHERE chain = $1`, chain)
	conn := connect(t, s.serve(t).dsn(user))
	exec1(t, conn, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	exec1(t, conn, "SELECT 1")
	_, err := conn.Exec(t.Context(), query)
	if code := codeIn(err); code != "40001" {
		t.Errorf("a snapshot older than the release: %v", err)
	}
	exec1(t, conn, "ROLLBACK")
	if got := rowsOf(t, conn, query+" ORDER BY age, 2"); !slices.Equal(got, want) {
		t.Errorf("%d groups before, %d others after", len(want), len(got))
	}
}

// TestAReleaseWithoutQuasiIdentifiersIsStoredAnewToo has one whose view an earlier
// version has made.
func TestAReleaseWithoutQuasiIdentifiersIsStoredAnewToo(t *testing.T) {
	s, _ := ownStand(t, "anew")
	user, query := s.reader(t), "SELECT count(*) FROM diagnoses"
	before := one[int](t, connect(t, s.serve(t).dsn(user)), query)
	direct := s.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'diagnoses'::regclass`)
	view := fmt.Sprintf("tailor_release.chain_%d", chain)
	definition := one[string](t, direct, `SELECT pg_get_viewdef($1::text::regclass)`, view)
	exec1(t, direct, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT * FROM (%s) x WHERE false", view, strings.TrimSuffix(strings.TrimSpace(definition), ";")))
	exec1(t, direct, `UPDATE tailor.chain SET layout = 3 WHERE chain = $1`, chain)
	if after := one[int](t, connect(t, s.serve(t).dsn(user)), query); after != before || after == 0 {
		t.Errorf("%d rows before, %d after", before, after)
	}
}

// TestNumbersOfLabelsAreTheirRanks reads them where they are stored. Groups come in an
// order that follows from the numbers, and blocks are in the order in which they were
// made.
func TestNumbersOfLabelsAreTheirRanks(t *testing.T) {
	user := shared.reader(t)
	exec1(t, connect(t, shared.serve(t).dsn(user)), "SELECT zip, age, sex FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	for _, column := range []string{"age", "zip"} {
		labels := one[[]string](t, direct, fmt.Sprintf(`SELECT "tailor names %d"::text[] FROM tailor_store.chain_%d_label`,
			one[int](t, direct, `SELECT attnum::int FROM pg_attribute WHERE attrelid = 'patients'::regclass AND attname = $1`, column), chain))
		if len(labels) < 3 || !slices.IsSorted(labels) {
			t.Errorf("%d labels of %s are not in their order", len(labels), column)
		}
	}
}

func TestPostgreSQLLooksUpLabelsOnlyWhereTheyAreShown(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	for column, want := range map[string]bool{"avg(cost)": false, "avg(age)": false, "count(zip)": false, "count(tailor_label_5)": true} {
		rows, err := direct.Query(t.Context(), fmt.Sprintf("EXPLAIN SELECT %s FROM tailor_release.chain_%d", column, chain))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(plan, "\n"), fmt.Sprintf("chain_%d_label", chain)); got != want {
			t.Errorf("labels looked up for %s: %v\n%s", column, got, strings.Join(plan, "\n"))
		}
	}
}

func TestARoleSeesNothingOfAReleaseThatItIsNotAdmittedTo(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), "SELECT age, zip FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	showsNothing(t, "hospital", user, chain, 5, "ward = 'x'", "age", "zip", "cost", "tailor_label_5", "tailor_number_5", "tailor_number_6")
}

// showsNothing asks a release past the proxy, by a function that tells what it is
// shown of a column; labelled is the number of one whose labels are listed, and
// nobody a condition on a payload that no row meets.
func showsNothing(t *testing.T, database, user string, chain, labelled int, nobody string, columns ...string) {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%[1]s@%s/%s?sslmode=disable", user, shared.cluster.Address(), database))
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
	exec1(t, past, `CREATE FUNCTION pg_temp.tell(v anyelement) RETURNS boolean LANGUAGE plpgsql COST 0.0001
		AS $$ BEGIN RAISE NOTICE 'seen %', v; RETURN true; END $$`)
	for _, plan := range []string{"", "SET enable_hashjoin = off", "SET enable_mergejoin = off", "RESET enable_hashjoin"} {
		exec1(t, past, plan)
		for _, column := range columns {
			for _, text := range []string{
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s)`,
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ON pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ON pg_temp.tell(%[2]s) AND %[2]s::text > '' AND %[4]s`,
				`SELECT count(*) FROM tailor_release.chain_%d_label WHERE pg_temp.tell(tailor_label_%[3]s)`,
				`SELECT count(*) FROM tailor_release.chain_%d_label WHERE pg_temp.tell(tailor_value_%[3]s)`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d_label ON pg_temp.tell(tailor_label_%[3]s) AND tailor_label_%[3]s::text > ''`,
			} {
				_, err := past.Exec(t.Context(), strings.NewReplacer("%d", strconv.Itoa(chain), "%[2]s", column, "%[3]s", strconv.Itoa(labelled), "%[4]s", nobody).Replace(text))
				if err == nil || seen > 0 {
					t.Fatalf("%s, %s: a function was shown %d values of %s, error %v", plan, text, seen, column, err)
				}
			}
		}
	}
}

func TestCountersOfPostgreSQLTellNothingOfAHiddenCondition(t *testing.T) {
	p, direct := serveStaff(t, "counters", 3, 9000)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), `SELECT age, count(*) FROM staff GROUP BY age`)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE relation = 'staff'::regclass`)
	lookups := func(condition string) (counts [2]int) {
		conn := connect(t, p.dsn(user))
		for _, text := range []string{
			`SET enable_hashjoin = off`, `SET enable_mergejoin = off`, `SET enable_material = off`, `SET enable_memoize = off`,
			`BEGIN`, `SELECT age, count(*) FROM staff WHERE ` + condition + ` GROUP BY age`,
		} {
			exec1(t, conn, text)
		}
		for i, name := range []string{"row", "label"} {
			counts[i] = one[int](t, conn, fmt.Sprintf(`SELECT coalesce(sum(pg_stat_get_xact_numscans(oid) + pg_stat_get_xact_tuples_returned(oid)), 0)::integer
				FROM pg_class WHERE relname = 'chain_%d_%s'`, chain, name))
		}
		return counts
	}
	if three, one := lookups(`unit = 'secret'`), lookups(`unit = 'secret' AND pay = 9001`); three != one {
		t.Errorf("lookups for three hidden people %v, for one %v", three, one)
	}
}

// unguarded is the query of a release's view without its admission.
func unguarded(t *testing.T, direct *pgx.Conn, view string) string {
	t.Helper()
	definition := one[string](t, direct, `SELECT trim(pg_get_viewdef($1::text::regclass), ';')`, view)
	without := regexp.MustCompile(`(?s)\s+WHERE \( SELECT tailor\.admit\(.*?\) AS admit\)`).ReplaceAllString(definition, "")
	if without == definition {
		t.Fatalf("%s has no admission", view)
	}
	return without
}

// placed is a query for the rows of a release, by a column that tells them apart: what
// stands for their quasi-identifiers, the subject, and what is the same where the
// release shows two alike.
func placed(t *testing.T, conn *pgx.Conn, chain, key string) string {
	t.Helper()
	alike := one[string](t, conn, `SELECT string_agg(format('r.%I', attname), ', ')
		FROM pg_attribute WHERE attrelid = $1::text::regclass AND attname LIKE 'tailor number %'`, "tailor_store.chain_"+chain+"_row")
	return fmt.Sprintf(`SELECT r.%[2]s AS name, r."tailor key" & 4294967295 AS tuple, r."tailor person" AS subject, ARRAY[%[3]s] AS block
		FROM tailor_store.chain_%[1]s_row r`, chain, key, alike)
}

// TestPostgreSQLExpectsFewGroups looks at a table, at a child whose rows are joined
// along the key, and at what its release shows of the parent: plans for as many
// groups as rows would sort them.
func TestPostgreSQLExpectsFewGroups(t *testing.T) {
	p, user := shared.serve(t), shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), `SELECT age FROM patients`)
	direct := shared.superuser(t)
	expectsFew(t, direct, one[string](t, direct, `SELECT 'chain_' || chain FROM tailor.chain WHERE relation = 'patients'::regclass`), "age", 1000)

	c := newClinic(t, "few_groups", 5, 5, crowd)
	exec1(t, connect(t, c.dsn("researcher")), `SELECT p.age, day FROM encounters e JOIN patients p ON e.patient_id = p.id`)
	child := one[string](t, c.direct, `SELECT 'chain_' || chain FROM tailor.chain WHERE relation = 'encounters'::regclass`)
	expectsFew(t, c.direct, child, "day", 200)
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
	if groups := planned(fmt.Sprintf("SELECT %s FROM tailor_release.%s GROUP BY 1", column, release)); groups > most {
		t.Errorf("%s: %d groups by %s are expected", release, groups, column)
	}
}
