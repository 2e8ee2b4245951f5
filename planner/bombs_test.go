package planner_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// shapes are texts that make the parser recurse: head, then n times the link,
// then the middle, then n times the tail's link, then the end.
var shapes = map[string]struct{ head, link, middle, back, end string }{
	"operators":       {"SELECT age FROM patients WHERE 1 = 1", " + 1", "", "", ""},
	"minus":           {"SELECT ", "- ", "age", "", " FROM patients"},
	"conjunctions":    {"SELECT age FROM patients WHERE true", " AND NOT true", "", "", ""},
	"not":             {"SELECT age FROM patients WHERE ", "NOT ", "true", "", ""},
	"parentheses":     {"SELECT ", "(", "age", ")", " FROM patients"},
	"casts":           {"SELECT age", "::int", "", "", " FROM patients"},
	"joins":           {"SELECT 1 FROM patients", " CROSS JOIN numbers", "", "", ""},
	"natural joins":   {"SELECT 1 FROM patients", " NATURAL JOIN zip_city", "", "", ""},
	"unions":          {"SELECT age FROM patients", " UNION SELECT 1", "", "", ""},
	"nested unions":   {"SELECT age FROM patients", " UNION (SELECT 1", "", ")", ""},
	"subqueries":      {"SELECT * FROM ", "(SELECT * FROM ", "patients", ") q", ""},
	"scalar":          {"SELECT ", "(SELECT ", "age FROM patients", ")", ""},
	"lateral":         {"SELECT 1 FROM patients", ", LATERAL (SELECT 1", "", ") q", ""},
	"case":            {"SELECT ", "CASE WHEN true THEN ", "age", " END", " FROM patients"},
	"functions":       {"SELECT ", "abs(", "age", ")", " FROM patients"},
	"arrays":          {"SELECT ", "ARRAY[", "age", "]", " FROM patients"},
	"subscripts":      {"SELECT (ARRAY[age])", "[1]", "", "", " FROM patients"},
	"rows":            {"SELECT ", "ROW(", "age", ")", " FROM patients"},
	"lists":           {"SELECT age FROM patients WHERE age IN (1", ",1", "", "", ")"},
	"with":            {"", "WITH a AS (", "SELECT age FROM patients", ") SELECT 1", ""},
	"collations":      {"SELECT zip", ` COLLATE "C"`, "", "", " FROM patients"},
	"qualified names": {"SELECT age", ".age", "", "", " FROM patients"},
	"types":           {"SELECT age::int", "[]", "", "", " FROM patients"},
	"exists":          {"SELECT 1 FROM patients WHERE ", "EXISTS (SELECT 1 WHERE ", "true", ")", ""},
	"grouping sets":   {"SELECT 1 FROM patients GROUP BY ", "GROUPING SETS (", "age", ")", ""},
	"statements":      {"SELECT age FROM patients", ";SELECT 1", "", "", ""},
	"string pieces":   {"SELECT 'a'", "\n'a'", "", "", " FROM patients"},
	"comments":        {"SELECT age ", "/*", "", "*/", " FROM patients"},
	"operator":        {"SELECT age ", "+", "", "", " FROM patients"},
	"words":           {"SELECT ", "a ", "", "", " FROM patients"},
	"long string":     {"SELECT '", "a", "", "", "', age FROM patients"},
}

func bomb(shape string, n int) string {
	s := shapes[shape]
	return s.head + strings.Repeat(s.link, n) + s.middle + strings.Repeat(s.back, n) + s.end
}

// TestTheDeepestTextsAllowedArePlanned sends the deepest text of each shape that
// the limits let through: the process must survive the parser, in little time.
func TestTheDeepestTextsAllowedArePlanned(t *testing.T) {
	snapshot := hospitalSnapshot()
	for shape := range shapes {
		t.Run(shape, func(t *testing.T) {
			tooLarge := func(n int) bool {
				_, err := planner.Make(bomb(shape, n), session, snapshot)
				var refusal *sqlstate.Error
				return errors.As(err, &refusal) &&
					slices.Contains([]sqlstate.Code{sqlstate.StatementTooComplex, sqlstate.ProgramLimitExceeded},
						refusal.Code)
			}
			least, most := 1, 300_000
			if !tooLarge(most) {
				t.Fatal("there is no limit")
			}
			for most-least > 1+least/8 {
				if middle := (least + most) / 2; tooLarge(middle) {
					most = middle
				} else {
					least = middle
				}
			}
			started := time.Now()
			tooLarge(least)
			if took := time.Since(started); took > 20*time.Second {
				t.Errorf("%d links take %v", least, took)
			}
		})
	}
}
