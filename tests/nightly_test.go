package tests

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestATableLoadedAnewEveryNightGoesOn drops a table, makes it again and loads it in
// another order, with newcomers: nobody is shown in two ways, and readers have no
// privilege on it that the load has given them.
func TestATableLoadedAnewEveryNightGoesOn(t *testing.T) {
	const load = `CREATE TABLE people (id int PRIMARY KEY, token text NOT NULL, age int NOT NULL,
		zip text NOT NULL);
		INSERT INTO people SELECT g, 'token ' || g, g * 7 %% 90, lpad((g * 13 %% 300)::text, 5,
			'35') FROM generate_series(1, %d) g ORDER BY random();
		CREATE TABLE codes (person int NOT NULL, code text NOT NULL);
		INSERT INTO codes SELECT g, 'c' || c FROM generate_series(1, %[1]d) g, generate_series(1, 1
			+ g %% 3) c ORDER BY random();`
	direct := makeDatabase(t, "nightly", fmt.Sprintf(load, 600))
	if err := shared.install(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20, 40],
		"lower": 0, "upper": 119}');
		CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3, 2, 1]}');
		CALL tailor.protect('people', subject => 'id', k => 5);
			CALL tailor.classify('people', 'id', 'direct_identifier');
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
			CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'zip');
		CALL tailor.classify('people', 'token', 'non_sensitive');
		CALL tailor.protect('codes', subject => 'person', k => 5);
			CALL tailor.classify('codes', 'person', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('codes', column_name => 'code');
		CALL tailor.grant_reader('researcher'); CALL tailor.activate('people');
			CALL tailor.activate('codes');
		ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO researcher`)
	p := serveDatabase(t, "nightly")
	ask := func(sql string) map[string]string {
		t.Helper()
		conn := connect(t, p.dsn("researcher"))
		answeredSoon(t, conn, sql)
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]string)
		var key, value string
		if _, err := pgx.ForEachRow(rows, []any{&key, &value},
			func() error { out[key] += value + " "; return nil }); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const people, codes = `SELECT token, tailor.label(age) || ' ' || tailor.label(zip)
		FROM people`, `SELECT person::text, code FROM codes ORDER BY 1, 2`
	before, coded := ask(people), ask(codes)
	if len(before) != 600 || len(coded) != 600 {
		t.Fatalf("%d people and the codes of %d are shown, want 600", len(before), len(coded))
	}
	for night := range 3 {
		n := 600 + 120*(night+1)
		mustExec(t, direct, fmt.Sprintf(`DROP TABLE people, codes; `+load+`
			CALL tailor.refresh('people'); CALL tailor.refresh('codes')`, n))
		awaitTakenIn(t, direct, "people")
		awaitTakenIn(t, direct, "codes")
		now, codedNow := ask(people), ask(codes)
		for what, is := range map[string][2]map[string]string{
			"people": {before, now},
			"codes":  {coded, codedNow},
		} {
			if len(is[1]) != n {
				t.Errorf("night %d: %d of %s are shown, want %d", night, len(is[1]), what, n)
			}
			maps.DeleteFunc(is[1], func(key, _ string) bool { _, was := is[0][key]; return !was })
			if !maps.Equal(is[0], is[1]) {
				t.Fatalf("night %d: %s are shown in another way", night, what)
			}
		}
		before, coded = ask(people), ask(codes)
		if one[bool](t, direct, `SELECT has_table_privilege('researcher', 'people', 'SELECT') OR
			has_table_privilege('researcher', 'codes', 'SELECT')`) {
			t.Error("readers can read the table that was loaded")
		}
	}
	// Whoever does not own what was there before does not go on with it.
	mustExec(t, direct, `CREATE ROLE nightly_stranger; GRANT tailor_admin TO nightly_stranger; GRANT
		CREATE ON SCHEMA public TO nightly_stranger; DROP TABLE codes`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		for _, sql := range []string{
			`DROP OWNED BY nightly_stranger`,
			`DROP ROLE nightly_stranger`,
		} {
			if _, err := direct.Exec(ctx, sql); err != nil {
				t.Error(err)
			}
		}
	})
	mustExec(t, direct, `SET SESSION AUTHORIZATION nightly_stranger;
		CREATE TABLE codes (person int, code text)`)
	refused(t, direct, "55000", `CALL tailor.refresh('codes')`)
	mustExec(t, direct, `RESET SESSION AUTHORIZATION`)
	refused(t, direct, "55000", `CALL tailor.refresh('codes')`)
	// The schema research has one table of a name.
	mustExec(t, direct, fmt.Sprintf(`DROP TABLE codes, people; CREATE SCHEMA elsewhere;
		CREATE TABLE elsewhere.people AS SELECT 90000 + n AS id, n %% 60 AS age
			FROM generate_series(1, 200) n;
		CALL tailor.protect('elsewhere.people', subject => 'id', k => 5);
		CALL tailor.classify('elsewhere.people', 'id', 'direct_identifier');
		CALL tailor.classify('elsewhere.people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.activate('elsewhere.people'); `+load, 600))
	refused(t, direct, "42710", `CALL tailor.refresh('people')`)
}
