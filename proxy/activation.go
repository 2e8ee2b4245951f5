package proxy

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
)

// activation is a call without which a statement activates no policy.
var activation = regexp.MustCompile(`(?i)\btailor"?\s*\.\s*"?activate"?\s*\(`)

// parameter is where a text has a parameter, which may name a table.
var parameter = regexp.MustCompile(`\$\d`)

// awaitReleases has a session that has called tailor.activate wait until readers are shown
// what the policies let them see of the tables that the text names, of all tables if it has
// parameters. The client is warned of tables of which that cannot be. A cancel request, and the
// end of the session, end the wait and nothing else. It is not to be called on a loop, which
// serves others.
func (s *session) awaitReleases(text string) error {
	ctx, done := s.work.during(context.Background())
	defer done()
	every := parameter.MatchString(text)
	named := func(r *catalog.Relation) bool { return every || strings.Contains(text, r.Name) }
	for _, failed := range s.proxy.catalog.Settle(ctx, named) {
		warning, err := encode(&pgproto3.NoticeResponse{
			Severity: "WARNING", SeverityUnlocalized: "WARNING", Code: "01000",
			Message: fmt.Sprintf("readers are not shown table %q as it is now: %s",
				failed.Relation, failed.Reason.Message),
			Hint: failed.Reason.Hint,
		})
		if err != nil {
			return err
		}
		if _, err := s.out.Write(warning); err != nil {
			return err
		}
	}
	return nil
}
