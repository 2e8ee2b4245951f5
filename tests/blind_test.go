package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// clustered is a table in which neighbours mostly have one diagnosis, so that cuts that
// look at diagnoses are others than those that do not.
const clustered = `
CREATE TABLE people (id int PRIMARY KEY, age int, zip text, diagnosis text, cost int, token text);
INSERT INTO people SELECT g, g % 80, (10000 + g * 7919 % 40)::text,
	CASE WHEN g % 80 < 30 AND g % 11 > 0 THEN 'flu' ELSE 'd' || g % 5 END, g % 1000, 't' || g
	FROM generate_series(1, 2000) g;`

const clusteredPolicy = `
CALL tailor.define_hierarchy('age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('zip', 'prefix', '{"keep": [4, 3]}');
CALL tailor.protect('people', subject => 'id', k => 5);
CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('people', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('people', 'diagnosis', 'sensitive');
CALL tailor.classify('people', 'cost', 'non_sensitive');
CALL tailor.classify('people', 'token', 'non_sensitive');
CALL tailor.grant_reader('researcher');
UPDATE tailor.classification SET shown_as = 'middle' WHERE class = 'quasi_identifier';
%s
CALL tailor.activate('people');`

// clusteredOf protects the table in a database of its own and serves it.
func clusteredOf(t *testing.T, name, more string) (direct *pgx.Conn, p *testProxy) {
	t.Helper()
	direct = makeDatabase(t, name, clustered)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf(clusteredPolicy, more))
	return direct, serveDatabase(t, name)
}

const (
	shownAlike = "SELECT token, age, zip FROM people ORDER BY token"
	inBlocks   = "SELECT age, zip, count(DISTINCT diagnosis), count(diagnosis), count(*) FROM " +
		"people GROUP BY age, zip"
	blindCuts = `CALL tailor.require('people', 'l_diversity', 'diagnosis', 3); ` +
		`CALL tailor.cuts('people', 'blind');`
)

// TestBlindCutsDependOnNoPayload compares labels with those of a policy without models.
func TestBlindCutsDependOnNoPayload(t *testing.T) {
	_, plain := clusteredOf(t, "blind_none", "")
	direct, p := clusteredOf(t, "blind_cuts", blindCuts)
	_, seeing := clusteredOf(t, "blind_seeing",
		`CALL tailor.require('people', 'l_diversity', 'diagnosis', 3);`)
	conn := connect(t, p.dsn("researcher"))
	labels := strings.Join(rowsOf(t, conn, shownAlike), "\n")
	if labels != strings.Join(rowsOf(t, connect(t, plain.dsn("researcher")), shownAlike), "\n") {
		t.Error("blind cuts are others than those without models")
	}
	if labels == strings.Join(rowsOf(t, connect(t, seeing.dsn("researcher")), shownAlike), "\n") {
		t.Error("nothing is tested: cuts that look at diagnoses are the same")
	}
	diverse := func(after string) (withheld int) {
		t.Helper()
		for _, row := range rowsOf(t, conn, "SET tailor.representation = 'label'", inBlocks) {
			f := strings.Split(row, "|")
			switch {
			case f[3] == "0":
				withheld++
			case f[2] < "3" || f[3] != f[4]:
				t.Errorf("%s: block %s", after, row)
			}
		}
		return withheld
	}
	if withheld := diverse("at first"); withheld == 0 {
		t.Error("nothing is withheld")
	}
	if total := one[int](t, conn, "SELECT count(cost) FROM people"); total != 2000 {
		t.Errorf("%d costs are shown", total)
	}
	// All costs change, and so do some diagnoses; people arrive and leave.
	mustExec(t, direct,
		`UPDATE people SET cost = cost + 1; UPDATE people SET diagnosis = 'd' || id % 4 WHERE id % 3 = 0;
		INSERT INTO people SELECT 5000 + g, g % 20, '10001', 'flu', 1, 'n' || g
			FROM generate_series(1, 200) g; CALL tailor.refresh('people')`)
	waitFor(t, func() bool { return one[int](t, conn, "SELECT count(*) FROM people") == 2200 })
	diverse("after a refresh")
	mustExec(t, direct,
		`CALL tailor.protect('people', subject => 'id', k => 9); `+
			`CALL tailor.require('people', 'l_diversity', 'diagnosis', 4); CALL tailor.activate('people')`)
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT min(min_block) FROM tailor.chains") >= 9
	})
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT FROM people", pgx.QueryExecModeSimpleProtocol)
		return err == nil
	})
	for _, row := range rowsOf(t, conn, inBlocks) {
		if f := strings.Split(row, "|"); f[3] != "0" && f[2] < "4" {
			t.Errorf("under a stricter policy: block %s", row)
		}
	}
}

// TestBlindCutsArePartOfPolicies writes and reads them.
func TestBlindCutsArePartOfPolicies(t *testing.T) {
	direct, _ := clusteredOf(t, "blind_policy", blindCuts)
	dsn := shared.cluster.SuperuserDSN("blind_policy")
	code, exported, stderr := tool(t, "policy", "export", "--dsn", dsn, "-")
	if code != 0 || !strings.Contains(exported, "\n    cuts: blind\n") {
		t.Fatalf("exit %d, %s%s", code, exported, stderr)
	}
	file := policyFile(t, exported)
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, file); code != 0 ||
		!strings.Contains(stdout, "0 to change") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	stricter := policyFile(t, strings.Replace(exported, "k: 5", "k: 6", 1))
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, stricter); code != 0 ||
		!strings.Contains(stdout, "diagnosis is withheld in ") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if _, err := direct.Exec(t.Context(), `CALL tailor.cuts('people', 'sharp')`); codeIn(
		err) != "22023" {
		t.Errorf("sharp cuts: %v", err)
	}
}
