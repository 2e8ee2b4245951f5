package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPlanSaysTheEndsOfDates plans a policy whose dates have no ends.
func TestAPlanSaysTheEndsOfDates(t *testing.T) {
	makeDatabase(t, "ends", `CREATE TABLE people (id int PRIMARY KEY, born date, seen date, gone date);
INSERT INTO people SELECT g, date '1931-05-06' + g * 100, date '2011-01-01' + g
    FROM generate_series(1, 200) g`)
	if err := shared.install(t.Context(), "ends"); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "policy.yaml")
	policy := `version: 1
hierarchies:
  day: {type: date, levels: [month, year, decade]}
  late: {type: date, levels: [month, year], lower: "2000-01-01"}
  whole: {type: date, levels: [month, year], lower: "2000-01-01", upper: "2029-12-31"}
tables:
  public.people:
    subject: id
    k: 5
    columns:
      id: {class: direct_identifier}
      born: {class: quasi_identifier, hierarchy: day}
      seen: {class: quasi_identifier, hierarchy: late}
      gone: {class: quasi_identifier, hierarchy: whole}
`
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn := shared.cluster.SuperuserDSN("ends")
	code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, file)
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{
		`  born: hierarchy day has the ends 1900-01-01 and 2099-12-31, and loss counts by them; ` +
			`whole decades around the data are lower: "1930-01-01", upper: "1989-12-31"` + "\n",
		`  seen: hierarchy late has the ends 2000-01-01 and 2099-12-31, and loss counts by them; ` +
			`whole decades around the data are lower: "2010-01-01", upper: "2019-12-31"` + "\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "gone: hierarchy") {
		t.Errorf("of given ends:\n%s", stdout)
	}
}
