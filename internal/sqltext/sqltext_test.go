package sqltext_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/sqltext"
)

func TestOnlyFormsThatTakeLongAreSlow(t *testing.T) {
	for claim, c := range map[string]struct {
		text string
		slow bool
	}{
		"an ordinary text":             {"SELECT 1 + 1 /* one /* and one */ */ -- two", false},
		"a line of dashes":             {strings.Repeat("-", 120) + "\nSELECT 1", false},
		"a long run":                   {"SELECT " + strings.Repeat("+-", 200) + "1", true},
		"many operators with blanks":   {"SELECT 1" + strings.Repeat(" + 1", 10_000), false},
		"many comments":                {strings.Repeat("/* x */ ", 10_000), false},
		"many comments in one another": {strings.Repeat("/* ", 200) + strings.Repeat(" */", 200), true},
	} {
		if got := sqltext.Slow(c.text); got != c.slow {
			t.Errorf("%s: %t", claim, got)
		}
	}
}
