package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// DefaultPatience is how long a statement waits for a release that is being made, where
// [Catalog.Patience] says nothing else.
const DefaultPatience = 30 * time.Second

// makersAtOnce bounds how many releases a process makes at a time: each takes memory, and a
// connection that others need.
const makersAtOnce = 2

// making is the work on an audience's chain, for which all wait who need it. It goes on
// whoever gives up, until the catalog is closed: a release of many rows takes longer than
// anybody waits for an answer.
type making struct {
	done  chan struct{}
	chain *Chain
	err   error
}

// chain returns an audience's chain, reading or making it. It waits as long as its context
// lets it.
func (c *Catalog) chain(ctx context.Context, r *Relation, audience string) (*Chain, error) {
	for {
		if chain := c.opened(r, audience); chain != nil {
			return chain, nil
		}
		if err := c.knownUnmade(r, audience); err != nil {
			return nil, err
		}
		m, started := c.startMaking(r, audience)
		select {
		case <-m.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a release: %w", ctx.Err())
		}
		switch {
		case m.err == nil && m.chain.stands(r):
			return m.chain, nil
		case started: // what another one's attempt came to says nothing of the next
			return m.chain, m.err
		}
	}
}

// startMaking returns the work on a chain, and says whether this began it. One at a time
// opens a chain: the others would wait for its row in the database, each with a connection in its
// hand.
func (c *Catalog) startMaking(r *Relation, audience string) (m *making, started bool) {
	key := chainKey{r.OID, audience}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.makings[key]; m != nil {
		return m, false
	}
	m = &making{done: make(chan struct{})}
	c.makings[key] = m
	go func() {
		chain, err := c.withRoot(c.life, r, audience, func(s stored) bool { return s.current })
		m.chain, m.err = c.keep(c.life, r, audience, chain, err)
		c.mu.Lock()
		delete(c.makings, key)
		c.mu.Unlock()
		close(m.done)
	}()
	return m, true
}

// patiently returns an audience's chain for a statement. Of one that is being made for
// longer than a statement waits it says how far that is: 57P03.
func (c *Catalog) patiently(ctx context.Context, r *Relation, audience string) (*Chain, error) {
	waiting, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	chain, err := c.chain(waiting, r, audience)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, c.beingPrepared(ctx, r)
	}
	return chain, err
}

// beingPrepared says of a relation how far its release is.
func (c *Catalog) beingPrepared(ctx context.Context, r *Relation) error {
	var phase string
	var share, seconds float64
	err := c.pool.QueryRow(ctx, `SELECT phase, coalesce(rows::float8 / of_rows, 0),
			extract(epoch FROM clock_timestamp() - since)::float8
		FROM tailor.progress WHERE relation = $1::oid ORDER BY since LIMIT 1`, r.OID).
		Scan(&phase, &share, &seconds)
	how, when := "", "soon"
	switch {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return unavailable(fmt.Errorf("read progress: %w", err))
	case share == 0:
		how = ": " + phase
	default:
		how = fmt.Sprintf(": %s, %.0f %%", phase, 100*share)
		left := time.Duration(seconds * (1 - share) / share * float64(time.Second))
		when = "in about " + max(left, time.Second).Round(time.Second).String()
	}
	return sqlstate.New(sqlstate.CannotConnectNow, "table %q is being prepared%s", r.Name, how).
		WithHint("Send the statement again %s. The work goes on meanwhile; "+
			"database administrators follow it in tailor.progress.", when)
}
