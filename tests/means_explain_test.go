package tests

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestAnAccountTellsNoLabelsOfBlocksThatMeansHoldBack(t *testing.T) {
	// Of team x, half earn one amount: their block has the narrowest label, and
	// is shown with others.
	direct := makeDatabase(t, "means_account", `GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE crew (id int PRIMARY KEY, team text, pay numeric(9, 2));
INSERT INTO crew SELECT n, 'x', 4321 FROM generate_series(1, 6) n;
INSERT INTO crew SELECT 10 + n, 'x', 4000 + n * 150 + n FROM generate_series(1, 6) n;
INSERT INTO crew SELECT 20 + n, 'y', 1000 + n * 1300 FROM generate_series(1, 12) n;`)
	if err := shared.install(t.Context(), "means_account"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, `CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [100, 1000, 5000], "lower": 0, "upper": 20000}');
CALL tailor.define_hierarchy('letter', 'prefix', '{"keep": [1]}'); CALL tailor.protect('crew', 'id', 5);
CALL tailor.classify('crew', 'team', 'quasi_identifier', hierarchy => 'letter'); CALL tailor.classify('crew', 'pay', 'quasi_identifier', hierarchy => 'pay');
CALL tailor.represent('crew', 'pay', 'mean'); CALL tailor.activate('crew')`)
	reader := connect(t, serveDatabase(t, "means_account").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT avg(pay) FROM crew`)
	rows := table(t, reader, `SELECT team, pay FROM crew`)
	if one[int](t, direct, `SELECT blocks FROM tailor.chain`) < 3 {
		t.Fatal("the blocks are those of the teams")
	}
	loss, teams := 0.0, 0.0
	for _, row := range rows {
		low, high := ends(t, row[1])
		loss += (high - low) / payRange / float64(len(rows))
		if row[0] == "*" {
			teams += 1 / float64(len(rows))
		}
	}
	var account struct {
		Tables []struct {
			Loss, Score float64
			Stages      []struct {
				Loss  float64
				Local *struct{}
			}
		}
	}
	told := func(sql string) {
		t.Helper()
		account.Tables = nil
		if err := json.Unmarshal([]byte(one[string](t, reader, `EXPLAIN (TAILOR, FORMAT JSON) `+sql)), &account); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]float64{`SELECT pay FROM crew`: loss, `SELECT team, pay FROM crew`: (loss + teams) / 2} {
		told(sql)
		of := account.Tables[0]
		if last := of.Stages[len(of.Stages)-1]; math.Abs(of.Loss-want) > 1e-9 || math.Abs(last.Loss-want) > 1e-9 || last.Local != nil {
			t.Errorf("%s: a loss of %g is told, that of the labels is %g (local figures: %t)", sql, of.Loss, want, last.Local != nil)
		}
	}
	// Nor does the sum of risks count who shares a label of a block.
	if score := account.Tables[0].Score; score > 1./12+1e-9 {
		t.Errorf("a sum of risks of %g", score)
	}
	text := strings.Join(rowsOf(t, reader, `EXPLAIN (TAILOR) SELECT pay FROM crew`), "\n")
	if !strings.Contains(text, "as shown") {
		t.Error(text)
	}
}
