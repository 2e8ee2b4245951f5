package tests

import (
	"fmt"
	"testing"
)

// TestModelsHoldThroughChangesAtRandom asks for several models of one column, of values at
// random of which many are missing, through refreshes, erasures and stricter policies.
func TestModelsHoldThroughChangesAtRandom(t *testing.T) {
	for _, c := range []struct{ cuts, effects string }{
		{"blind", "batch"},
		{"by_models", "batch"},
		{"blind", "at_once"},
		{"by_models", "at_once"},
	} {
		t.Run(c.cuts+" "+c.effects, func(t *testing.T) {
			name := "models_random_" + c.cuts + "_" + c.effects
			direct := makeDatabase(t, name, `GRANT USAGE ON SCHEMA public TO PUBLIC;
				CREATE TABLE cases (id int PRIMARY KEY, age int, sex text, diagnosis text, note text);
				CREATE FUNCTION drawn(g int) RETURNS text LANGUAGE sql
					AS $$SELECT (ARRAY['flu', 'flu', NULL, NULL, 'd1', 'd2', 'd3', 'd4'])[1 +
					((hashint4(g) >> 12) & 7)]$$;
				INSERT INTO cases SELECT g, 20 + hashint4(g) & 63, (ARRAY['f', 'm'])[1 + (hashint4(g) >> 8)
					& 1], drawn(g), 'n' || (hashint4(g + 7) & 3) FROM generate_series(1, 900) g`)
			if err := shared.install(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			mustExec(t, direct, modelsPolicy("alpha", 0.5, c.cuts))
			mustExec(t, direct, fmt.Sprintf(`CALL tailor.require('cases', 'l_diversity', 'diagnosis', 3);
				CALL tailor.require('cases', 'entropy_l_diversity', 'note', 1.5);
					CALL tailor.cohort('cases', 20);
				CALL tailor.changes('cases', '%[1]s'); CALL tailor.departures('cases', '%[1]s');
					CALL tailor.activate('cases')`, c.effects))
			conn := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
			untilAnswered(t, conn, `SELECT count(*) FROM cases`)
			check := func(what string, alpha float64) {
				t.Helper()
				blocks, withheld := assertModel(t, direct, "alpha", alpha, c.cuts == "blind")
				assertModel(t, direct, "l_diversity", 3, c.cuts == "blind")
				t.Logf("%s: %d blocks, %d withheld", what, blocks, withheld)
			}
			check("first", 0.5)
			follows := func(what, change string, alpha float64) {
				t.Helper()
				before := one[int](t, direct, `SELECT generation FROM tailor.chain`)
				mustExec(t, direct, change)
				waitFor(t, func() bool {
					return one[int](t, direct, `SELECT generation FROM tailor.chain`) > before
				})
				check(what, alpha)
			}
			for round := range 4 {
				follows("changes",
					fmt.Sprintf(`UPDATE cases SET diagnosis = drawn(id * 31 + %[1]d)
						WHERE hashint4(id + %[1]d) & 3 < 2; DELETE FROM cases WHERE hashint4(id * 5 + %[1]d) & 7 = 0;
					INSERT INTO cases SELECT g, 20 + hashint4(g) & 63, (ARRAY['f', 'm'])[1 + (hashint4(g) >> 8)
						& 1], drawn(g), 'n' || (g & 3) FROM generate_series(%[1]d * 1000, %[1]d * 1000 + 60) g;
					CALL tailor.refresh('cases')`, round+1), 0.5)
				mustExec(t, direct, `SELECT set_config('x.id', (SELECT min(id)::text FROM cases), false)`)
				mustExec(t, direct,
					fmt.Sprintf(`CALL tailor.erase('cases', current_setting('x.id'), '%s'); `+
						`DELETE FROM cases WHERE id::text = current_setting('x.id')`,
						[]string{"at_once", "with_block"}[round%2]))
				check("erasure", 0.5)
			}
			follows("stricter",
				`CALL tailor.require('cases', 'alpha', 'diagnosis', 0.4); `+
					`CALL tailor.protect('cases', 'id', 8); CALL tailor.activate('cases')`, 0.4)
			if c.cuts == "by_models" {
				c.cuts = "blind"
				follows("blind cuts", `CALL tailor.cuts('cases', 'blind'); CALL tailor.activate('cases')`, 0.4)
			}
		})
	}
}
