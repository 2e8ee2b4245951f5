package catalog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// TestOnlyWhatMayPassIsTriedAgainInSilence: a table that cannot meet its policy is named in
// the log, and a database that is away is waited for.
func TestOnlyWhatMayPassIsTriedAgainInSilence(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&anonymize.UnmetError{Requirement: "5-anonymity"}, false},
		{fmt.Errorf("joint: %w", &disassociate.TooFewError{Records: 1, Needed: 5}), false},
		{sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold"), false},
		{&pgconn.PgError{Code: "22003"}, false},
		{&pgconn.PgError{Code: "40P01"}, true},
		{sqlstate.New(sqlstate.CannotConnectNow, "being prepared"), true},
		{errors.New("connection reset"), true},
	} {
		if got := isPassing(c.err); got != c.want {
			t.Errorf("%v: %t, want %t", c.err, got, c.want)
		}
	}
}
