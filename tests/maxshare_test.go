package tests

import "testing"

// TestNobodyOwnsMoreThanASetShareOfABlock has a person with a third of all rows.
// Whoever knows a person's block would else know most of its rows to be his.
func TestNobodyOwnsMoreThanASetShareOfABlock(t *testing.T) {
	direct := makeDatabase(t, "shares", `CREATE TABLE stays (person int, day int, token int);
		INSERT INTO stays SELECT CASE WHEN g % 3 = 0 THEN 0 ELSE 1 + g % 60 END, CASE WHEN g % 3 = 0
			THEN g % 5 ELSE g * 7 % 90 END, g FROM generate_series(1, 300) g`)
	if err := shared.install(t.Context(), "shares"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct,
		`CALL tailor.define_hierarchy('days', 'interval',
			'{"widths": [5, 10, 30], "lower": 0, "upper": 119}');
		CALL tailor.protect('stays', 'person', 5);
			CALL tailor.classify('stays', 'day', 'quasi_identifier', hierarchy => 'days');
		CALL tailor.classify('stays', 'token', 'non_sensitive');
			CALL tailor.grant_reader('researcher'); CALL tailor.activate('stays')`)
	reader := connect(t, serveDatabase(t, "shares").dsn("researcher"))
	largest := func() float64 {
		answeredSoon(t, reader, "SELECT day FROM stays")
		mustExec(t, direct, "DROP TABLE IF EXISTS shown; CREATE TABLE shown (token int, day text)")
		shown := make(disclosed)
		shown.answer(t, reader, "SELECT token, day FROM stays")
		for token, labels := range shown {
			mustExec(t, direct, "INSERT INTO shown VALUES ($1::text::int, $2)", token, labels[0])
		}
		return one[float64](t, direct, `SELECT max(n / total)::float8 FROM (
			SELECT count(*)::numeric AS n, sum(count(*)) OVER (PARTITION BY shown.day) AS total
			FROM shown JOIN stays USING (token) GROUP BY shown.day, person) s`)
	}
	mustExec(t, direct,
		`CALL tailor.max_share('stays', 1); CALL tailor.activate('stays'); `+
			`CALL tailor.forget_chains('stays')`)
	if share := largest(); share <= 0.5 {
		t.Errorf("without a bound the largest share is %.2f: nothing is tested", share)
	}
	for _, bound := range []float64{0.5, 0.4} {
		mustExec(t, direct, `CALL tailor.max_share('stays', $1)`, bound)
		mustExec(t, direct, `CALL tailor.activate('stays')`)
		waitFor(t, func() bool {
			return one[bool](t, direct,
				`SELECT c.epoch = p.epoch FROM tailor.chain c JOIN tailor.protection p USING (relation)`)
		})
		if share := largest(); share > bound {
			t.Errorf("somebody owns %.2f of a block, of at most %.2f", share, bound)
		}
	}
	mustExec(t, direct, `CALL tailor.max_share('stays', 0.3); CALL tailor.activate('stays')`)
	refusedSoon(t, reader, "SELECT day FROM stays", "KA001")
	refusedAs(t, direct, `CALL tailor.max_share('stays', 0)`, "22023")
}
