package planner_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// chained is a query over a chain of queries that each hand on all columns.
func chained(columns, levels int) string {
	var s strings.Builder
	s.WriteString("WITH q0 AS (SELECT ")
	for i := range columns {
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, `age AS "%s%d"`, strings.Repeat("n", 55), i)
	}
	s.WriteString(" FROM patients)")
	for i := 1; i <= levels; i++ {
		fmt.Fprintf(&s, ", q%d AS (SELECT * FROM q%d)", i, i-1)
	}
	fmt.Fprintf(&s, " SELECT * FROM q%d", levels)
	return s.String()
}

func TestShortTextsCannotStandForLongOnes(t *testing.T) {
	for claim, c := range map[string]struct {
		columns, levels int
		code            sqlstate.Code
	}{
		"too many columns in one list": {900, 1, "54011"},
		"too long once rewritten":      {800, 55, sqlstate.ProgramLimitExceeded},
		"too many columns over levels": {800, 400, sqlstate.StatementTooComplex},
	} {
		t.Run(claim, func(t *testing.T) {
			_, err := planner.Make(chained(c.columns, c.levels), session, hospitalSnapshot())
			var refusal *sqlstate.Error
			if !errors.As(err, &refusal) || refusal.Code != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
}
