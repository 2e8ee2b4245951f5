package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// warmUp opens the releases of the present snapshot, in the background, and makes
// those that nobody has made, so that no researcher's first query has to wait for
// them. One that takes long holds up none of another table. What fails is told once, and
// tried again by the query that needs it, or in another epoch.
func (c *Catalog) warmUp(ctx context.Context) {
	s := c.snapshot.Load()
	if s == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range s.relations() {
		if !c.warming[r.OID] {
			c.warming[r.OID] = true
			go c.warm(ctx, r)
		}
	}
}

// warm prepares a relation until it is as the present snapshot has it.
func (c *Catalog) warm(ctx context.Context, r *Relation) {
	for r != nil {
		select {
		case c.warmers <- struct{}{}:
			c.prepareOrTell(ctx, r)
			<-c.warmers
		case <-ctx.Done():
		}
		c.mu.Lock()
		now := c.snapshot.Load().relation(r.OID)
		if now == r || ctx.Err() != nil {
			now = nil
		}
		if now == nil {
			delete(c.warming, r.OID)
		}
		c.mu.Unlock()
		r = now
	}
}

// prepareOrTell prepares a relation, and says once why it cannot, to the log and to the
// table's owner.
func (c *Catalog) prepareOrTell(ctx context.Context, r *Relation) {
	state := unmade{r.Version, r.Epoch}
	c.mu.Lock()
	known := c.told[r.OID] == state
	c.mu.Unlock()
	if known {
		return
	}
	err := c.prepare(ctx, r)
	if err == nil || ctx.Err() != nil || isPassing(err) {
		return
	}
	c.log.Warn("release not brought up to date", "relation", r.String(), "error", withoutValues(err))
	why := sqlstate.From(classified(err))
	if why.Code == sqlstate.CannotConnectNow {
		why = &sqlstate.Error{Message: withoutValues(err), Hint: "The log of the proxy has more."}
	}
	if _, err := c.pool.Exec(ctx, "CALL tailor.note_unmade($1, $2, $3, $4, $5)",
		r.OID, r.Version, r.Epoch, why.Message, why.Hint); err != nil {
		return // the next one to look at it tells
	}
	c.mu.Lock()
	c.told[r.OID] = state
	c.mu.Unlock()
}

// isPassing says that the next attempt may have another outcome: the relation is being
// changed, or the database is away.
func isPassing(err error) bool {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return slices.Contains([]string{"55P03", "40P01", "57P01", "57P02", "57P03"}, said.Code)
	}
	code := sqlstate.From(classified(err)).Code
	return code == sqlstate.SerializationFailure || code == sqlstate.CannotConnectNow
}

// withoutValues is an error for the log: of what the server says, what may quote a
// value is left out.
func withoutValues(err error) string {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return failure(said)
	}
	return err.Error()
}

// prepare opens all releases of a relation, makes those that are missing, and brings
// those up to date whose table has another copy. Where
// chains have just been forgotten another policy is about to follow, which one made now
// would stand in the way of: then only a query has it made.
func (c *Catalog) prepare(ctx context.Context, r *Relation) error {
	if r.Stale || r.startsAnew {
		return nil
	}
	for _, audience := range r.audiences() {
		chain, err := c.chain(ctx, r, audience)
		if err != nil {
			return err
		}
		if chain.copy != r.Epoch || r.hasLater(chain) {
			if chain, err = c.bringUp(ctx, r, audience); err != nil {
				return err
			}
		}
		if chain.root != nil {
			chain.root.Warm()
		}
		if err := c.sweep(ctx, chain); err != nil {
			return err
		}
	}
	return nil
}

// Unsettled is a relation of which readers are not shown what they should be.
type Unsettled struct {
	Relation *Relation
	Reason   *sqlstate.Error
}

// Settle reads the catalog anew and brings the releases of some relations up to date, as a
// proxy does in the background, and returns those of which nothing comes as things are. It
// ends with the context.
func (c *Catalog) Settle(ctx context.Context, which func(*Relation) bool) (failed []Unsettled) {
	conn, err := c.pool.Acquire(ctx)
	if err != nil {
		return nil // then others say so
	}
	err = c.reload(ctx, conn.Conn())
	conn.Release()
	snapshot, unknown := c.Snapshot()
	if err != nil || unknown != nil {
		return nil
	}
	for _, r := range snapshot.relations() {
		if !which(r) {
			continue
		}
		if err := c.prepare(ctx, r); err != nil && ctx.Err() == nil && !isPassing(err) {
			failed = append(failed, Unsettled{r, sqlstate.From(err)})
		}
	}
	return failed
}

// BringUpToDate makes the releases of a table, given by its number in pg_class, and
// takes its copy in. Errors are of type *[sqlstate.Error].
func (c *Catalog) BringUpToDate(ctx context.Context, table uint32) error {
	snapshot, err := c.Snapshot()
	if err != nil {
		return err
	}
	for _, r := range snapshot.relations() {
		if r.OID != table {
			continue
		}
		for _, audience := range r.audiences() {
			if _, err := c.openChain(ctx, r, audience, r.isUpToDate); err != nil {
				return classified(err)
			}
		}
		return nil
	}
	return sqlstate.New(sqlstate.UndefinedTable, "the table has no policy in force").
		WithHint("CALL tailor.activate first.")
}

// lingering is how long the release of an earlier generation stays for statements
// that were planned over it.
const lingering = 30 * time.Second

// sweep drops what is stored of a chain's earlier generations, once nothing is planned
// over it any more; what a transaction still reads goes another time.
func (c *Catalog) sweep(ctx context.Context, chain *Chain) error {
	if chain.alone.Load() || time.Since(chain.opened) < lingering {
		return nil
	}
	var alone bool
	if err := c.pool.QueryRow(ctx, "SELECT tailor.drop_earlier($1)", chain.number).
		Scan(&alone); err != nil {
		return fmt.Errorf("drop earlier releases: %w", err)
	}
	chain.alone.Store(alone)
	return nil
}

// heard is the last edition of a chain that the proxy has heard of, and when.
type heard struct {
	edition  int
	since    time.Time
	position Position
}

// hear notes the editions that a snapshot has. Those of the first one were there before any
// session; what is new after a time without a snapshot may have come while sessions were open.
func (c *Catalog) hear(s *Snapshot, position Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := time.Now()
	if c.heard == nil {
		since, c.heard = time.Time{}, make(map[int]heard)
	}
	for _, r := range s.protected {
		for _, chain := range r.chains {
			c.hearOf(chain.Number, heard{chain.Edition, since, position})
		}
	}
}

// hearOf says since when an edition is known; of an earlier one, since when the last is.
func (c *Catalog) hearOf(chain int, now heard) heard {
	known, ok := c.heard[chain]
	if !ok || known.edition < now.edition {
		known = now
		c.heard[chain] = known
	}
	return known
}

// forget frees the chains that a snapshot no longer knows.
func (c *Catalog) forget(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, chain := range c.chains {
		known := false
		for _, r := range s.protected {
			known = known || r.OID == key.relation && chain.stands(r)
		}
		if !known {
			delete(c.chains, key)
		}
	}
}
