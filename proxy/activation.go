package proxy

import (
	"context"
	"fmt"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/words"
)

// activations are words, beside the name of the schema, without which a statement activates
// no policy.
var activations = words.New([]string{"activate"})

// awaitReleases has a session whose statement has activated a policy wait until readers are
// shown what it lets them see, or cannot be, of which the client is warned. A cancel request
// ends the wait, and nothing else; so does the end of the session.
func (s *session) awaitReleases() error {
	ctx, done := s.work.during(context.Background())
	defer done()
	for _, failed := range s.proxy.catalog.Settle(ctx) {
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
