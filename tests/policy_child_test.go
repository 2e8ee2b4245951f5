package tests

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPlansForetellWhatAChildLoses by the quasi-identifiers that it borrows, too.
func TestPlansForetellWhatAChildLoses(t *testing.T) {
	direct, p := datasetWard(t, "child_plan", "")
	mustExec(t, direct, `CALL tailor.define_hierarchy('stay', 'date', '{"levels": ["month", "quarter"],
		"lower": "2025-01-01", "upper": "2025-12-31"}');`+
		strings.Replace(staysPolicy, "hierarchy => 'day'", "hierarchy => 'stay'", 1))
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays")
	shown := 100 * one[float64](t, conn, `SELECT loss::float8 FROM research.tailor_columns
		WHERE table_name = 'stays' AND column_name = 'day'`)
	plan := filepath.Join(t.TempDir(), "policy.yaml")
	dsn := shared.cluster.SuperuserDSN("child_plan")
	if _, stderr, code := tailor(t, "policy", "export", "--dsn", dsn, plan); code != 0 {
		t.Fatal(stderr)
	}
	said, stderr, _ := tailor(t, "policy", "plan", "--dsn", dsn, plan)
	m := regexp.MustCompile(`\(day ([0-9.]+) %\), ([0-9.]+) % now`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("%s%s", said, stderr)
	}
	for _, foretold := range m[1:] {
		if math.Abs(figure(foretold)-shown) > 3 {
			t.Errorf("%s %% are foretold, and %.1f %% shown", foretold, shown)
		}
	}
	t.Logf("%v, shown %.1f", m[1:], shown)
}

// TestAParentThatComesLaterTakesNoChildDown: readers have been shown visits by their own
// quasi-identifiers. When the table of people is protected, visits go on so, and plan says what
// else there is.
func TestAParentThatComesLaterTakesNoChildDown(t *testing.T) {
	direct := makeDatabase(t, "parent_later", `
CREATE TABLE people AS SELECT n AS id, 20 + n * 7919 % 60 AS age FROM generate_series(1, 400) n;
ALTER TABLE people ADD PRIMARY KEY (id);
CREATE TABLE visits AS SELECT n AS id, 1 + n % 400 AS person,
	date '2025-01-01' + (n * 104729 % 365) AS day FROM generate_series(1, 1200) n;
ALTER TABLE visits ADD PRIMARY KEY (id), ADD FOREIGN KEY (person) REFERENCES people`)
	if err := shared.install(t.Context(), "parent_later"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('day', 'date', '{"levels": ["month", "quarter"],
			"lower": "2025-01-01", "upper": "2025-12-31"}');
		CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20], "lower": 0, "upper": 99}');
		CALL tailor.protect('visits', subject => 'person', k => 5);
		CALL tailor.classify('visits', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.activate('visits')`)
	conn := connect(t, serveDatabase(t, "parent_later").dsn("researcher"))
	answeredSoon(t, conn, "SELECT day FROM visits")

	dsn := shared.cluster.SuperuserDSN("parent_later")
	run := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := tailor(t, args...)
		if code != 0 {
			t.Fatalf("tailor %v: exit %d\n%s%s", args, code, stdout, stderr)
		}
		return stdout + stderr
	}
	exported := run("policy", "export", "--dsn", dsn, "-")
	file := policyFile(t, strings.Replace(exported, "tables:\n",
		"  age: {type: interval, widths: [10, 20], lower: 0, upper: 99}\n"+`tables:
  public.people:
    subject: id
    k: 5
    columns:
      id: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: age}
`, 1))
	const goesOn = "shown it without the quasi-identifiers of public.people: it goes on so"
	if said := run("policy", "plan", "--dsn", dsn, file); !strings.Contains(said, goesOn) {
		t.Error(said)
	}
	if said := run("policy", "apply", "--dsn", dsn, file); !strings.Contains(said,
		"applied: 1 of 2 tables activated: public.people") {
		t.Error(said)
	}
	answeredSoon(t, conn, "SELECT age FROM people")
	answeredSoon(t, conn, "SELECT day FROM visits")
	const joined = "SELECT age, day FROM visits v JOIN people p ON v.person = p.id"
	if _, err := conn.Exec(t.Context(), joined); err == nil {
		t.Error("a join is answered")
	}
	if said := run("policy", "plan", "--dsn", dsn, file); !strings.Contains(said, goesOn) {
		t.Error(said)
	}

	// The owner decides.
	admin, told := noticing(t, dsn)
	mustExec(t, admin, `CALL tailor.activate('visits')`)
	assertTold(t, told, "table public.visits is refused to readers from now on")
	refusedSoon(t, conn, "SELECT day FROM visits", "KA004")
	mustExec(t, admin, `CALL tailor.forget_chains('visits')`)
	answeredSoon(t, conn, joined)

	// A column in force that is gone from table and file.
	exported = run("policy", "export", "--dsn", dsn, "-")
	mustExec(t, admin, `ALTER TABLE people ADD note text;
		CALL tailor.classify('people', 'note', 'non_sensitive'); CALL tailor.activate('people');
		ALTER TABLE people DROP COLUMN note`)
	if said := run("policy", "plan", "--dsn", dsn, policyFile(t, exported)); !strings.Contains(said,
		"public.people: to be changed") {
		t.Error(said)
	}
}
