package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestTwoReleasesOfAFamilyShareNoFact attaches policies to tables of the demo's
// patients that show exact what the release of patients shows exact: whoever
// reads both strikes from one block what the other block lacks.
func TestTwoReleasesOfAFamilyShareNoFact(t *testing.T) {
	_, owner := ownStand(t, "facts")
	for i, test := range []struct {
		name, column, from string
		refused            string
	}{
		{"one name and the same values", "ward text", "SELECT id, ward FROM patients", "ward"},
		{"one name, other values", "cost int", "SELECT id, id * 7919 % 10007 FROM patients", "cost"},
		{
			"the same values under another name", "station text", "SELECT id, ward FROM patients",
			"station",
		},
		{"in other letters", "station text", "SELECT id, upper(ward) || ' ' FROM patients", "station"},
		{
			"a part of the people", "station text", "SELECT id, ward FROM patients WHERE id % 20 = 0",
			"station",
		},
		{"of every third row", "station text", "SELECT id, CASE WHEN n = 1 THEN ward ELSE md5(id::text " +
			"|| n) END FROM patients, generate_series(1, 3) n", "station"},
		{
			"wrong for a third", "station text",
			"SELECT id, CASE WHEN id % 3 = 0 THEN 'lost' ELSE ward END FROM patients", "station",
		},
		{
			"what follows from a value", "code char(4)", "SELECT id, left(md5(ward), 4) FROM patients",
			"code",
		},
		{
			"what a value follows from", "code text",
			"SELECT id, left(md5(diagnosis || age % 2), 6) FROM patients", "code",
		},
		{
			"an amount in another currency", "dollars float8", "SELECT id, cost * 1.08 + 3 FROM patients",
			"dollars",
		},
		{
			"an amount as a number of another type", "amount text", "SELECT id, cost::text FROM patients",
			"amount",
		},
		{"keys without a foreign key", "loose", "SELECT id, ward FROM patients", "station"},

		{"nothing in common", "lucky int", "SELECT id, id * 7919 % 10007 % 5 FROM patients", ""},
		{"a common word", "state text", "SELECT id, 'open' FROM patients", ""},
		{"a weak tie", "long boolean", "SELECT id, cost > 4000 OR id % 3 = 0 FROM patients", ""},
		{"every value once", "note text", "SELECT id, md5(id::text) FROM patients", ""},
		{"nobody", "station text", "SELECT id, ward FROM patients WHERE id < 0", ""},
		{"numbers of somebody else", "stranger", "SELECT id, left(md5(id::text), 1) FROM patients", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			oneIn(t, 3, i)
			table, reference := fmt.Sprintf("part_%d", i), "REFERENCES patients"
			if test.column == "loose" || test.column == "stranger" {
				test.column, reference = "station text", ""
			}
			mustExec(t, owner,
				fmt.Sprintf(`CREATE TABLE %[1]s (patient_id int NOT NULL %[2]s, %[3]s); INSERT INTO %[1]s %[4]s;
				CALL tailor.protect('%[1]s', subject => 'patient_id', k => 5)`, table, reference, test.column,
					test.from))
			var column string
			if _, err := fmt.Sscan(test.column, &column); err != nil {
				t.Fatal(err)
			}
			mustExec(t, owner, `CALL tailor.classify($1::text::regclass, $2, 'non_sensitive')`, table,
				column)
			_, err := owner.Exec(t.Context(), `CALL tailor.activate($1::text::regclass)`, table)
			if test.refused == "" {
				if err != nil {
					t.Errorf("refused: %v", errorText(err))
				}
				mustExec(t, owner, `CALL tailor.classify($1::text::regclass, $2, 'direct_identifier')`, table,
					column)
				mustExec(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
				return
			}
			assertState(t, err, "0A000", test.refused)
			mustExec(t, owner, `CALL tailor.shared_fact($1::text::regclass, $2, 'accepted'); `, table,
				column)
			mustExec(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
			// A new class is a new decision.
			mustExec(t, owner, `CALL tailor.classify($1::text::regclass, $2, 'sensitive')`, table, column)
			_, err = owner.Exec(t.Context(), `CALL tailor.activate($1::text::regclass)`, table)
			assertState(t, err, "0A000", test.refused)
			mustExec(t, owner, `CALL tailor.classify($1::text::regclass, $2, 'direct_identifier')`, table,
				column)
			mustExec(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
		})
	}
}

// errorText is an error with its detail.
func errorText(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Message + ": " + answer.Detail
	}
	return fmt.Sprint(err)
}

// TestAPolicyFileSaysThatASharedFactIsAccepted plans, applies and exports it.
func TestAPolicyFileSaysThatASharedFactIsAccepted(t *testing.T) {
	s, owner := ownStand(t, "factsfile")
	mustExec(t, owner, `CREATE TABLE homes (id int PRIMARY KEY, street text);
		INSERT INTO homes SELECT n, 'street ' || n % 7 FROM generate_series(1, 90) n;
		CREATE TABLE tenants (home int NOT NULL REFERENCES homes, street text);
			INSERT INTO tenants SELECT id, street FROM homes`)
	text := `version: 1
tables:
  public.homes: {subject: id, k: 5, columns: {id: {class: direct_identifier},
    street: {class: non_sensitive}}}
  public.tenants: {subject: home, k: 5, columns: {home: {class: direct_identifier},
    street: {class: sensitive}}}
`
	dsn := fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", s.cluster.Address())
	refused := policyFile(t, text)
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, refused); code != 1 ||
		!strings.Contains(stdout, "! street: public.homes shows") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	if code, _, stderr := tool(t, "policy", "apply", "--dsn", dsn, refused); code != 1 ||
		!strings.Contains(stderr, "show the same fact") {
		t.Errorf("exit %d, %s", code, stderr)
	}
	accepted := policyFile(t, strings.Replace(text, "{class: sensitive}",
		"{class: sensitive, shared_fact: accepted}", 1))
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, accepted); code != 0 {
		t.Errorf("exit %d, %s", code, stdout)
	}
	for _, want := range []string{"applied: 2 of 2", "applied: 0 of 2"} {
		if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", dsn, accepted); code != 0 ||
			!strings.Contains(stdout, want) {
			t.Errorf("exit %d, %s%s, want %s", code, stdout, stderr, want)
		}
	}
	_, stdout, _ := tool(t, "policy", "export", "--dsn", dsn, "-")
	for _, want := range []string{
		"street: {class: sensitive, shared_fact: accepted}",
		"cost: {class: non_sensitive, shared_fact: accepted}",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the export lacks %q:\n%s", want, stdout)
		}
	}
	if code, _, stderr := tool(t, "policy", "plan", "--dsn", dsn, refused); code != 1 {
		t.Errorf("what is taken back is not asked about: %s", stderr)
	}
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", dsn,
		policyFile(t, stdout)); code != 0 || !strings.Contains(stdout, "applied: 0 of 5") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// TestFactsAreComparedByTheirBytes: under a collation of their own "café" and "cafe" are equal,
// and columns of several collations can be compared under none of these.
func TestFactsAreComparedByTheirBytes(t *testing.T) {
	direct := makeDatabase(t, "facts_bytes", `
		CREATE COLLATION alike (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
		CREATE TABLE guests (id int PRIMARY KEY, drink text COLLATE alike, town text COLLATE "de-x-icu",
			room text COLLATE "C");
		INSERT INTO guests SELECT n, CASE WHEN n % 2 = 0 THEN 'café' ELSE 'cafe' END, 'town ' || n % 5,
			'room ' || n % 3 FROM generate_series(1, 90) n`)
	if err := shared.install(t.Context(), "facts_bytes"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.protect('guests', 'id', 5);
		CALL tailor.classify('guests', 'drink', 'non_sensitive');
		CALL tailor.classify('guests', 'town', 'non_sensitive');
		CALL tailor.classify('guests', 'room', 'non_sensitive'); CALL tailor.activate('guests')`)
	for column, want := range map[string]int{"drink": 2, "town": 5, "room": 3} {
		if n := one[int](t, direct, `SELECT count(DISTINCT u)::int FROM tailor.shown_fact f,
			unnest(f.facts) u WHERE f.column_name = $1`, column); n != want {
			t.Errorf("%s: %d values, want %d", column, n, want)
		}
	}
}
