package proxy

import (
	"context"
	"slices"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// A text over releases gets its ticket when the server prepares it, and is recorded when it is
// run. In between, SQL that the proxy does not see could run it: a DO block opens a cursor on what
// pg_prepared_statements shows, and Execute names that. So no other portal that has a name is run
// before each text that has a ticket is recorded. (SQL can make no portal without a name, and a
// simple query has its own text only, whatever runs inside.)
//
// Test: TestWhateverHasATicketIsRecorded.

// ticket is one that a text has got without a record.
type ticket struct {
	of       *prepared // of a simple query one of its own
	text     string    // the client's own
	decision *decision
}

// mostTickets is how many a session has at most.
const mostTickets = 64

// giveTicket notes that a text gets one.
func (s *session) giveTicket(ctx context.Context, t ticket) error {
	if err := s.limitTickets(ctx); err != nil {
		return err
	}
	s.tickets = append(s.tickets, t)
	return nil
}

func (s *session) limitTickets(ctx context.Context) error {
	if len(s.tickets) < mostTickets {
		return nil
	}
	return s.recordTickets(ctx, nil)
}

// owesRecords says whether texts have tickets and no record, but for one that is about to be
// recorded itself; nil for none.
func (s *session) owesRecords(but *prepared) bool {
	return slices.ContainsFunc(s.tickets, func(t ticket) bool { return t.of != but })
}

// recordTickets makes such records durable.
func (s *session) recordTickets(ctx context.Context, but *prepared) error {
	for s.owesRecords(but) {
		i := slices.IndexFunc(s.tickets, func(t ticket) bool { return t.of != but })
		record := s.record(s.tickets[i].text)
		record.Verdict = audit.Released
		s.tickets[i].decision.describe(record)
		if err := s.append(ctx, record); err != nil {
			return err
		}
		s.tickets = slices.Delete(s.tickets, i, i+1)
	}
	return nil
}

// useTickets forgets those of a statement that has been recorded.
func (s *session) useTickets(of *prepared) {
	s.tickets = slices.DeleteFunc(s.tickets, func(t ticket) bool { return t.of == of })
}
