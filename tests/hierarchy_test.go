package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

func TestTheDatabaseAndFilesHaveTheSameBuiltInHierarchies(t *testing.T) {
	conn := shared.superuser(t)
	for _, h := range policyfile.Builtins() {
		var kind, definition string
		if err := conn.QueryRow(t.Context(),
			`SELECT kind, definition::text FROM tailor.hierarchy WHERE name = $1 AND owner = 'tailor_owner'`,
			h.Name).Scan(&kind, &definition); err != nil {
			t.Errorf("%s: %v", h.Name, err)
			continue
		}
		if stored, err := policyfile.FromDefinition(h.Name, kind,
			json.RawMessage(definition)); err != nil || !stored.Equal(&h) {
			t.Errorf("%s is %v in the database and %v in files (%v)", h.Name, &stored, &h, err)
		}
	}
	if n := one[int](t, conn,
		`SELECT count(*) FROM tailor.hierarchy WHERE name LIKE 'builtin.%'`); n != len(
		policyfile.Builtins()) {
		t.Errorf("the database has %d built-in hierarchies, files %d", n, len(policyfile.Builtins()))
	}
}

// TestHierarchiesByNameAndFromFiles uses every built-in hierarchy and one in the
// form of ARX in a policy.
func TestHierarchiesByNameAndFromFiles(t *testing.T) {
	dba := connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
		shared.cluster.Address()))
	dsn := fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", shared.cluster.Address())
	mustExec(t, dba, `CREATE TABLE known (id integer PRIMARY KEY, age integer, born date,
		seen date, zip text, icd9 text, icd10 text, income numeric, race text);
INSERT INTO known SELECT n, n % 99, DATE '1930-01-01' + n * 31, DATE '2020-01-01' + n,
    (10000 + n * 7)::text, (250 + n % 40) || '.' || n % 10, 'E1' || n % 4 || '.' || n % 9,
    n * 701.5,
	(ARRAY['White', 'Black', 'Other'])[1 + n % 3] FROM generate_series(1, 600) n;
CALL tailor.protect('known', 'id', 5);
CALL tailor.classify('known', 'age', 'quasi_identifier', hierarchy => 'builtin.age');
CALL tailor.classify('known', 'born', 'quasi_identifier', hierarchy => 'builtin.birth_date');
CALL tailor.classify('known', 'seen', 'quasi_identifier', hierarchy => 'builtin.event_date');
CALL tailor.classify('known', 'zip', 'quasi_identifier', hierarchy => 'builtin.postal_code');
CALL tailor.classify('known', 'icd9', 'quasi_identifier', hierarchy => 'builtin.icd9');
CALL tailor.classify('known', 'icd10', 'quasi_identifier', hierarchy => 'builtin.icd10');
CALL tailor.classify('known', 'income', 'quasi_identifier', hierarchy => 'builtin.income')`)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	race := file("race.csv", "White;majority;*\nBlack;minority;*\nOther;minority;*\n")
	if code, stdout, stderr := tool(t, "hierarchy", "import", "--dsn", dsn, "--name", "race",
		race); code != 0 || stdout != "hierarchy \"race\": 3 values, 2 levels above them\n" {
		t.Fatalf("exit %d, %q %s", code, stdout, stderr)
	}
	if paths := one[string](t, shared.superuser(t),
		`SELECT definition ->> 'paths' FROM tailor.hierarchy WHERE name = 'race'`); strings.Contains(
		paths, "*") {
		t.Errorf("the top is listed, which every hierarchy has: %s", paths)
	}
	mustExec(t, dba, `CALL tailor.classify('known', 'race', 'quasi_identifier', `+
		`hierarchy => 'race'); CALL tailor.activate('known')`)
	if code, stdout, stderr := tool(t, "hierarchy", "list", "--dsn", dsn); code != 0 ||
		!strings.Contains(stdout, "builtin.icd10") || !strings.Contains(stdout, "race") {
		t.Errorf("exit %d, %s %s", code, stdout, stderr)
	}
	for _, c := range []struct {
		claim, message string
		code           int
		args           []string
	}{
		{"a file that does not exist", "no such file", 1, []string{"--name", "x", filepath.Join(dir,
			"none.csv")}},
		{"no name", "--name is missing", 2, []string{race}},
		{"no file", "1 FILE is wanted", 2, []string{"--name", "x"}},
		{"levels that do not nest", "do not nest", 2, []string{"--name", "x", file("nest.csv",
			"a;x;p\nb;x;q\n")}},
		{"a value twice", "twice", 2, []string{"--name", "x", file("twice.csv", "a;x\na;y\n")}},
		{"lines of different length", "levels", 2, []string{"--name", "x", file("length.csv",
			"a;x\nb;x;y\n")}},
		{"an empty file", "", 2, []string{"--name", "x", file("empty.csv", "")}},
		{"a reserved name", "are Tailor's own", 1, []string{"--name", "builtin.race", race}},
		{"a hierarchy of somebody else", "must be owner", 1, []string{"--name", "superuser_race", race}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			mustExec(t, shared.superuser(t),
				`INSERT INTO tailor.hierarchy VALUES ('superuser_race', 'prefix', '{"keep": []}', `+
					`'postgres') ON CONFLICT DO NOTHING`)
			code, stdout, stderr := tool(t, append([]string{"hierarchy", "import", "--dsn", dsn},
				c.args...)...)
			if code != c.code || stdout != "" || !strings.Contains(stderr, c.message) ||
				strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "; ") {
				t.Errorf("exit %d, %q, %q; want %d and %q in one line with a hint", code, stdout, stderr,
					c.code, c.message)
			}
		})
	}
	mustExec(t, shared.superuser(t),
		`DELETE FROM tailor.hierarchy WHERE name = 'superuser_race';
			DELETE FROM tailor.protection WHERE relation = 'known'::regclass; DROP VIEW research.known;
				DROP TABLE known;
SELECT nextval('tailor.catalog_version'), pg_notify('tailor', 'policies')`)
}
