package tests

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// inChunks stores a release as Tailor did at first: the blocks of the rows in
// arrays of 1,024.
const inChunks = `
DROP VIEW tailor_release.chain_%[1]d, tailor_release.chain_%[1]d_label;
ALTER TABLE tailor_store.chain_%[1]d_row RENAME TO whole;
CREATE TABLE tailor_store.chain_%[1]d_row AS
	SELECT (n - 1) / 1024 AS "tailor chunk", array_agg(block ORDER BY n) AS "tailor blocks"
	FROM tailor_store.whole, unnest("tailor blocks") WITH ORDINALITY u (block, n) GROUP BY 1;
DROP TABLE tailor_store.whole;
ALTER TABLE tailor_store.chain_%[1]d_row OWNER TO tailor_owner;
CREATE VIEW tailor_release.chain_%[1]d AS SELECT b.age, b.zip FROM tailor_store.epoch_%[2]d e
	JOIN tailor_store.chain_%[1]d_row r ON r."tailor chunk" = e."tailor row" / 1024
	JOIN tailor_store.chain_%[1]d_block b ON b."tailor block" = r."tailor blocks"[e."tailor row" %% 1024 + 1];
ALTER VIEW tailor_release.chain_%[1]d OWNER TO tailor_owner;
GRANT SELECT ON tailor_release.chain_%[1]d TO %[3]s;
UPDATE tailor.chain SET layout = 0 WHERE chain = %[1]d`

// withoutNumbers stores a release as Tailor did next: labels had no numbers.
const withoutNumbers = `
DROP VIEW tailor_release.chain_%[1]d, tailor_release.chain_%[1]d_label;
ALTER TABLE tailor_store.chain_%[1]d_block DROP tailor_number_4, DROP tailor_number_5;
ALTER TABLE tailor_store.chain_%[1]d_row DROP tailor_label_4, DROP tailor_label_5;
CREATE VIEW tailor_release.chain_%[1]d AS SELECT b.*, e.ward FROM tailor_store.epoch_%[2]d e
	JOIN tailor_store.chain_%[1]d_block b ON b."tailor block" = (SELECT "tailor blocks" FROM tailor_store.chain_%[1]d_row)[e."tailor row" + 1];
ALTER VIEW tailor_release.chain_%[1]d OWNER TO tailor_owner;
GRANT SELECT ON tailor_release.chain_%[1]d TO %[3]s;
UPDATE tailor.chain SET layout = 1 WHERE chain = %[1]d`

func TestAReleaseThatIsStoredInAnEarlierWayShowsTheSame(t *testing.T) {
	for name, earlier := range map[string]string{"in chunks": inChunks, "without numbers": withoutNumbers} {
		t.Run(name, func(t *testing.T) { showsTheSame(t, earlier) })
	}
}

// showsTheSame stores a release as a statement says and compares what it shows.
func showsTheSame(t *testing.T, earlier string) {
	t.Helper()
	user := shared.reader(t)
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
	before := answer(shared.serve(t))
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE audience = $1`, "principal "+user)
	epoch := one[int](t, direct, `SELECT epoch FROM tailor.chain WHERE chain = $1`, chain)
	exec1(t, direct, fmt.Sprintf(earlier, chain, epoch, pgx.Identifier{user}.Sanitize()))
	if after := answer(shared.serve(t)); !slices.Equal(before, after) {
		t.Errorf("%d groups before, %d others after", len(before), len(after))
	}
}

func TestPostgreSQLLooksUpBlocksOnlyForQuasiIdentifiers(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE audience = $1`, "principal "+user)
	for column, want := range map[string]bool{"cost": false, "age": true} {
		rows, err := direct.Query(t.Context(), fmt.Sprintf("EXPLAIN SELECT avg(%s) FROM tailor_release.chain_%d", column, chain))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(plan, "\n"), fmt.Sprintf("chain_%d_block", chain)); got != want {
			t.Errorf("blocks looked up for %s: %v\n%s", column, got, strings.Join(plan, "\n"))
		}
	}
}

func TestARoleSeesNothingOfAReleaseThatItIsNotAdmittedTo(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	exec1(t, connect(t, p.dsn(user)), "SELECT age, zip FROM patients")
	direct := shared.superuser(t)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE audience = $1`, "principal "+user)
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user, shared.cluster.Address()))
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
		for _, column := range []string{"age", "cost", "tailor_label_5"} {
			for _, text := range []string{
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s)`,
				`SELECT count(*) FROM tailor_release.chain_%d WHERE pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ON pg_temp.tell(%[2]s) AND %[2]s::text > ''`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d ON pg_temp.tell(%[2]s) AND %[2]s::text > '' AND ward = 'x'`,
				`SELECT count(*) FROM tailor_release.chain_%d_label WHERE pg_temp.tell(tailor_label_5)`,
				`SELECT count(*) FROM generate_series(1, 9) LEFT JOIN tailor_release.chain_%d_label ON pg_temp.tell(tailor_label_5) AND tailor_label_5::text > ''`,
			} {
				_, err := past.Exec(t.Context(), strings.NewReplacer("%d", strconv.Itoa(chain), "%[2]s", column).Replace(text))
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
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain WHERE audience = $1`, "principal "+user)
	lookups := func(condition string) (counts [2]int) {
		conn := connect(t, p.dsn(user))
		for _, text := range []string{
			`SET enable_hashjoin = off`, `SET enable_mergejoin = off`, `SET enable_material = off`, `SET enable_memoize = off`,
			`BEGIN`, `SELECT age, count(*) FROM staff WHERE ` + condition + ` GROUP BY age`,
		} {
			exec1(t, conn, text)
		}
		for i, name := range []string{"block_pkey", "block"} {
			counts[i] = one[int](t, conn, fmt.Sprintf(`SELECT coalesce(sum(pg_stat_get_xact_numscans(oid) + pg_stat_get_xact_tuples_returned(oid)), 0)::integer
				FROM pg_class WHERE relname = 'chain_%d_%s'`, chain, name))
		}
		return counts
	}
	if three, one := lookups(`unit = 'secret'`), lookups(`unit = 'secret' AND pay = 9001`); three != one {
		t.Errorf("lookups for three hidden people %v, for one %v", three, one)
	}
}
