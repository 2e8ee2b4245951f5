package planner_test

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// prepared is a statement as the server tells of it.
func prepared(t *testing.T, text string, types ...string) *planner.Prepared {
	t.Helper()
	kept := regexp.MustCompile(planner.KeptForm).
		FindStringSubmatch(planner.Keep("PREPARE q AS SELECT 1", text))
	if kept == nil {
		t.Fatal("what is kept is not found again")
	}
	return &planner.Prepared{Kept: kept[1], Types: types}
}

func TestEXECUTEIsReplacedByTheStatementThatItRuns(t *testing.T) {
	for _, c := range []struct {
		claim, prepare string
		types          []string
		execute, want  string
	}{
		{
			"literals", "PREPARE q (int) AS SELECT age FROM patients WHERE age > $1;",
			[]string{"pg_catalog.int4"},
			"EXECUTE q (30);",
			"SELECT age FROM patients WHERE age > CAST(30 AS pg_catalog.int4);",
		},
		{
			"a column without a name", "PREPARE q AS SELECT $1, ($2) COLLATE \"C\", $2 || 'x' FROM patients",
			[]string{"t", "u"},
			"EXECUTE q (1, E'\\'b(,')",
			`SELECT (SELECT CAST(1 AS t) AS "?column?"), ` +
				`((SELECT CAST(E'\'b(,' AS u) AS "?column?")) COLLATE "C", CAST(E'\'b(,' AS u) || 'x' ` +
				`FROM patients`,
		},
		{
			"expressions, with commas and comments", "PREPARE q AS SELECT 1 FROM patients WHERE age = $1",
			[]string{"t"},
			"EXECUTE q (greatest(1, (2)) -- )\n + (ARRAY[1,2])[1] /* , */)",
			"SELECT 1 FROM patients WHERE age = (SELECT CAST(greatest(1, (2)) -- )\n + " +
				"(ARRAY[1,2])[1] AS t))",
		},
		{
			"inside of others", "PREPARE q AS SELECT age FROM patients", nil,
			"BEGIN; CREATE TEMP TABLE execute (execute) AS EXECUTE q WITH NO DATA; EXPLAIN (TAILOR) " +
				"EXECUTE q; EXECUTE q",
			"BEGIN; CREATE TEMP TABLE execute (execute) AS SELECT age FROM patients WITH NO DATA; EXPLAIN " +
				"(TAILOR) SELECT age FROM patients; SELECT age FROM patients",
		},
		{
			"parameters in strings",
			"PREPARE q AS SELECT '$1', $$ $1 $$ FROM patients /* $1 */ WHERE age = $1 -- $1",
			[]string{"t"},
			"EXECUTE q (1)",
			"SELECT '$1', $$ $1 $$ FROM patients /* $1 */ WHERE age = CAST(1 AS t)",
		},
		{
			"other numbers of arguments", "PREPARE q AS SELECT age FROM patients WHERE age = $1",
			[]string{"t"},
			"EXECUTE q (1, 2)", "EXECUTE q (1, 2)",
		},
		{"what was not kept", "PREPARE q AS INSERT INTO names SELECT 1", nil, "EXECUTE q", "EXECUTE q"},
		{"two statements", "SELECT 1; PREPARE q AS SELECT 1", nil, "EXECUTE q", "EXECUTE q"},
		{
			"more parameters than the server knows", "PREPARE q AS SELECT $2, $99999999999 FROM patients",
			[]string{"t"},
			"EXECUTE q (1)", "EXECUTE q (1)",
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			e, ok := planner.ExecutionOf(c.execute)
			if !ok {
				t.Fatal("it is no EXECUTE")
			}
			var all []*planner.Prepared
			for _, name := range e.Names() {
				if name != "q" {
					t.Errorf("it runs %q", name)
				}
				all = append(all, prepared(t, c.prepare, c.types...))
			}
			got := c.execute
			resolved, err := e.Resolve(all)
			if resolved != nil {
				got = resolved.SQL
			}
			if err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
			if resolved, err := e.Resolve(make([]*planner.Prepared, len(all))); err != nil ||
				resolved != nil {
				t.Errorf("of unprotected ones: %v, %v", err, resolved)
			}
		})
	}
	for _, text := range []string{
		"SELECT 'execute'", "EXECUTE", "PREPARE q AS SELECT 1; EXECUTE q", "DO 'x'; EXECUTE q",
		"EXECUTE q (age)", "EXECUTE q ((SELECT 1))",
		"EXECUTE q ($1)", "DISCARD ALL; EXECUTE q", "EXECUTE U&\"q\"",
		"CREATE FUNCTION execute() RETURNS int LANGUAGE sql AS 'EXECUTE q'",
		strings.Repeat("EXECUTE q;", 100), "EXECUTE q (" + strings.Repeat("1,", 9000) + "1)",
	} {
		if _, ok := planner.ExecutionOf(text); ok {
			t.Errorf("taken for one that stands for another: %.60s", text)
		}
	}
}

func TestPlacesInWhatStandsForEXECUTEAreInTheClientsText(t *testing.T) {
	const text = "BEGIN; EXECUTE q (30, lower('Ä') || 'b'); FETCH x"
	e, ok := planner.ExecutionOf(text)
	if !ok {
		t.Fatal("it is no EXECUTE")
	}
	resolved, err := e.Resolve([]*planner.Prepared{prepared(t,
		"PREPARE q AS SELECT wrong, $1 FROM patients WHERE zip = $2 AND missing", "t", "u")})
	if err != nil {
		t.Fatal(err)
	}
	for word, place := range map[string]string{
		"BEGIN": "BEGIN", "wrong": "EXECUTE", "30": "30", "AS t": "EXECUTE", "lower": "lower",
		"|| 'b'": "|| 'b'", "missing": "EXECUTE", "FETCH": "FETCH",
	} {
		at := len([]rune(resolved.SQL[:strings.Index(resolved.SQL, word)])) + 1
		if got, want := resolved.Position(at, text),
			len([]rune(text[:strings.Index(text, place)]))+1; got != want {
			t.Errorf("%s: position %d, want %d", word, got, want)
		}
	}
}

func TestAnArgumentIsComputedOnce(t *testing.T) {
	e, _ := planner.ExecutionOf("EXECUTE q (random(), current_date)")
	_, err := e.Resolve([]*planner.Prepared{prepared(t,
		"PREPARE q AS SELECT $1 FROM patients WHERE $1 > 0 AND $2 = $2", "a", "b")})
	var refusal *sqlstate.Error
	if !errors.As(err, &refusal) || refusal.Code != sqlstate.FeatureNotSupported ||
		!strings.Contains(refusal.Message, "$1") || refusal.Position != 1 {
		t.Errorf("%v", err)
	}
}

// FuzzEXECUTE asserts that whatever stands for whatever, the outcome is planned
// or refused, and that what cannot be resolved stays as it is.
func FuzzEXECUTE(f *testing.F) {
	f.Add("EXECUTE q (1, 'a')", "PREPARE q AS SELECT $1, age FROM patients WHERE zip = $2")
	f.Add("EXPLAIN EXECUTE q; EXECUTE q", "PREPARE q (int) AS TABLE patients")
	f.Fuzz(func(t *testing.T, text, prepare string) {
		e, ok := planner.ExecutionOf(text)
		if !ok {
			return
		}
		kept := base64.StdEncoding.EncodeToString([]byte(prepare))
		var all []*planner.Prepared
		for range e.Names() {
			all = append(all, &planner.Prepared{Kept: kept, Types: []string{
				"pg_catalog.int4",
				"pg_catalog.text",
			}})
		}
		stands, err := e.Resolve(all)
		if err != nil || stands == nil {
			return
		}
		for at := range len(stands.SQL) + 2 {
			if got := stands.Position(at+1, text); got < 1 || got > len(text)+1 {
				t.Fatalf("position %d of\n%s\nis %d of\n%s", at+1, stands.SQL, got, text)
			}
		}
		if _, err := planner.Make(stands.SQL, session, hospitalSnapshot()); err != nil {
			var refusal *sqlstate.Error
			if !errors.As(err, &refusal) {
				t.Fatalf("not a refusal: %v", err)
			}
		}
	})
}
