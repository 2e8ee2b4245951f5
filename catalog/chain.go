package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// chainKey names a chain: one relation as one audience is shown it.
type chainKey struct {
	relation uint32
	audience
}

// Chain is the partition that one audience has been shown so far. The truth is
// in the database; this is a copy of a generation of it.
type Chain struct {
	busy    gate // of who works on the chain
	number  int
	version int64 // of the catalog in which the copy was made
	epoch   *epoch
	granted map[string]bool // who may read the release; true where that includes what it shows of the parent
	state
}

// state is what a chain has come to by a generation.
type state struct {
	generation int
	partition  *anonymize.Partition // nil where the relation has no quasi-identifiers
	score      float64              // running sum of local risks along the graph
	seeds      []string             // planted so far
	means      means                // of the partition
}

// lock waits for a chain as long as the context lets it.
func (c *Chain) lock(ctx context.Context) error {
	if err := c.busy.enter(ctx); err != nil {
		return fmt.Errorf("wait for chain %d: %w", c.number, err)
	}
	return nil
}

func (c *Chain) unlock() { c.busy.leave() }

// Release is what a query may read in place of a protected relation.
type Release struct {
	Relation   *Relation
	Chain      int
	Generation int
	View       string // in schema tailor_release
	// WithParent says that the statement reads what the release shows of its
	// relation's parent, too.
	WithParent bool
	Subjects   int
	// MinBlock is the number of subjects in the smallest block of the chain,
	// or of those that may be one of whom m codes are known.
	MinBlock int
}

// Present is a chain as a query finds it.
type Present struct {
	// Partition is nil where the relation has no quasi-identifiers.
	Partition *anonymize.Partition
	// Requirements are what every block has to meet.
	Requirements []anonymize.Requirement
	Chain        int
	Generation   int
	Score        float64
	// Unplanted are the seeds that the chain is to be prepared for first.
	Unplanted []Seed
}

// Step is what a query makes of a chain.
type Step struct {
	// Partition is the one that was found, or a refinement of it.
	Partition *anonymize.Partition
	// Planted are the seeds that it has been prepared for with it.
	Planted []Seed
	// Nodes are the stages that led there, as JSON, for the chain's graph.
	Nodes [][]byte
	Score float64
}

// Assess decides the step that a query takes. It may be called again for the
// same query, where another proxy has changed the chain meanwhile.
type Assess func(Present) (Step, error)

// impatient bounds how long a transaction waits for others that hold a chain
// or read its release; whoever waits in vain is told to try again.
const impatient = "SET LOCAL lock_timeout = '20s'"

// Release brings the principal's chain of a relation to what assess asks for
// and returns the release. A change is committed before Release returns, under
// a lock that other proxies respect; what assess returns must refine what it
// was given. Errors are of type *[sqlstate.Error].
//
// project names a declared workload that the chain is prepared for, "" for none.
func (c *Catalog) Release(ctx context.Context, r *Relation, p *Principal, project string, assess Assess) (*Release, error) {
	e, err := c.readyEpoch(ctx, r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	chain, err := c.chain(ctx, r, p, e)
	if err != nil {
		return nil, classified(err)
	}
	if err := chain.lock(ctx); err != nil {
		return nil, classified(err)
	}
	defer chain.unlock()
	if err := c.grant(ctx, r, chain, p); err != nil {
		return nil, c.overtaken(chain, err)
	}
	if e.table != nil {
		if err := c.refine(ctx, r, chain, project, assess); err != nil {
			return nil, c.overtaken(chain, err)
		}
	} else if _, err := assess(Present{Chain: chain.number}); err != nil {
		return nil, classified(err)
	}
	release := &Release{
		Relation: r, Chain: chain.number, Generation: chain.generation,
		View: ReleaseName(chain.number), Subjects: e.subjects, MinBlock: e.subjects,
	}
	switch {
	case r.SetValued != nil:
		release.MinBlock = r.K // candidates for whoever knows m codes
	case chain.partition != nil:
		release.MinBlock = chain.partition.MinBlock()
	}
	return release, nil
}

// readyEpoch is the epoch of a relation whose policy is in step with the table
// and can be met at all.
func (c *Catalog) readyEpoch(ctx context.Context, r *Relation) (*epoch, error) {
	if r.Stale {
		return nil, sqlstate.New(sqlstate.PolicyStale, "the policy of table %q is stale: the table has changed shape", r.Name).
			WithHint("A database administrator classifies the new columns and calls tailor.activate.")
	}
	if err := c.publish(ctx, r); err != nil {
		return nil, classified(err)
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	e, err := c.epochOf(ctx, r)
	var missing *pgconn.PgError
	if errors.As(err, &missing) && missing.Code == "42P01" {
		return nil, ErrOvertaken(r) // two refreshes since the snapshot
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return e, assertFeasible(r, e)
}

// classified keeps outcomes that are meant for the client and hides others
// behind "unavailable".
func classified(err error) error {
	var known *sqlstate.Error
	if errors.As(err, &known) {
		return known
	}
	var few *disassociate.TooFewError
	if errors.As(err, &few) {
		return sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").
			WithHint("Too few subjects of the table have codes at all.")
	}
	var unmet *anonymize.UnmetError
	if errors.As(err, &unmet) {
		return sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").
			WithHint("The table as a whole does not meet %s.", unmet.Requirement)
	}
	return unavailable(err)
}

// assertFeasible fails where not even everybody together is a block that the
// policy accepts. A query that needs no refinement shows that block.
func assertFeasible(r *Relation, e *epoch) error {
	unmet := ""
	if e.subjects < r.K {
		unmet = fmt.Sprintf("%d-anonymity", r.K)
	}
	for _, q := range r.Requirements {
		if e.kinds[q.Column] < int(q.Parameter) {
			unmet = fmt.Sprintf("%d-diversity of %q", int(q.Parameter), q.Column)
		}
	}
	if unmet == "" {
		return nil
	}
	return sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").
		WithHint("The table as a whole does not meet %s.", unmet)
}

// requirements are the privacy models of a relation over an epoch.
func requirements(r *Relation, e *epoch) []anonymize.Requirement {
	out := []anonymize.Requirement{anonymize.BlockK{K: r.K}}
	for _, q := range r.Requirements {
		out = append(out, anonymize.BlockDistinctL{
			L:  int(q.Parameter),
			Of: anonymize.Sensitive{Name: q.Column, CodeOfRow: e.sensitive[q.Column]},
		})
	}
	return out
}

// refine asks assess on the copy of the chain first. Only where that asks for
// a change is the database locked and, if another proxy was faster, the chain
// read again.
func (c *Catalog) refine(ctx context.Context, r *Relation, chain *Chain, project string, assess Assess) error {
	present := func(s *state) Present {
		return Present{
			Partition: s.partition, Requirements: requirements(r, chain.epoch), Unplanted: r.unplanted(s.seeds, project),
			Chain: chain.number, Generation: s.generation, Score: s.score,
		}
	}
	step, err := assess(present(&chain.state))
	if err != nil || step.Partition == chain.partition && step.Planted == nil {
		return err
	}
	var next state
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		latest, err := lockChain(ctx, tx, r, chain)
		if err != nil {
			return err
		}
		next = latest
		if latest.generation != chain.generation {
			if step, err = assess(present(&latest)); err != nil {
				return err
			}
		}
		if step.Partition == latest.partition && step.Planted == nil {
			return nil
		}
		next.generation, next.partition, next.score = latest.generation+1, step.Partition, step.Score
		next.means = latest.means.refined(step.Partition)
		for _, seed := range step.Planted {
			next.seeds = append(slices.Clone(next.seeds), seed.Key())
		}
		if err := storeNodes(ctx, tx, chain.number, next.generation, step.Nodes); err != nil {
			return err
		}
		return c.storeChain(ctx, tx, r, chain.number, &next)
	})
	if errors.Is(err, errLost) {
		return c.noteLoss(ctx)
	}
	if err != nil {
		return err
	}
	// Only what is committed is believed.
	chain.state = next
	return nil
}

// lockChain locks a chain's row until the end of the transaction and returns
// its latest state.
func lockChain(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain) (state, error) {
	var s state
	var stored, means []byte
	if err := hold(ctx, tx, r, chain); err != nil {
		return s, err
	}
	err := tx.QueryRow(ctx, `SELECT generation, partition, score, seeds, means FROM tailor.chain WHERE chain = $1`, chain.number).
		Scan(&s.generation, &stored, &s.score, &s.seeds, &means)
	if err != nil {
		return s, fmt.Errorf("lock chain: %w", err)
	}
	if s.generation == chain.generation {
		return chain.state, nil
	}
	if s.generation < chain.generation {
		return s, errLost
	}
	if s.partition, err = anonymize.UnmarshalPartition(chain.epoch.table, stored); err != nil {
		return s, err
	}
	s.means, err = readMeans(r, chain.epoch, s.partition, means)
	return s, err
}

func (c *Catalog) storeChain(ctx context.Context, tx pgx.Tx, r *Relation, number int, s *state) error {
	stored, err := s.partition.MarshalBinary()
	if err != nil {
		return err
	}
	means, err := s.means.stored(r)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE tailor.chain SET generation = $2, partition = $3, blocks = $4, min_block = $5,
		score = $6, seeds = $7, means = $8, changed = now() WHERE chain = $1`,
		number, s.generation, stored, s.partition.Blocks(), s.partition.MinBlock(), s.score, nonNil(s.seeds), means)
	if err != nil {
		return fmt.Errorf("store chain: %w", err)
	}
	// Other proxies are to look again before they say how fine it is.
	if _, err := tx.Exec(ctx, `SELECT pg_notify('tailor', $1)`, c.chainNews(number)); err != nil {
		return fmt.Errorf("announce chain: %w", err)
	}
	return writeRelease(ctx, tx, r, number, s)
}

// chain returns the copy of a principal's chain, reading or creating it.
func (c *Catalog) chain(ctx context.Context, r *Relation, p *Principal, e *epoch) (*Chain, error) {
	a := audienceOf(r, p)
	key := chainKey{r.OID, a}
	opened := func() *Chain {
		c.mu.Lock()
		defer c.mu.Unlock()
		if chain := c.chains[key]; chain != nil && chain.version == r.Catalog && chain.epoch == e {
			return chain
		}
		return nil
	}
	if chain := opened(); chain != nil {
		return chain, nil
	}
	// One at a time opens a chain: the others would wait for its row in the
	// database, each with a connection in its hand.
	opening := c.opening(key)
	if err := opening.enter(ctx); err != nil {
		return nil, fmt.Errorf("wait for a chain to be opened: %w", err)
	}
	defer opening.leave()
	if chain := opened(); chain != nil {
		return chain, nil
	}
	chain, err := c.openChain(ctx, r, a, e)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chains[key] = chain
	return chain, nil
}

// opening is where one is let in who opens a chain.
func (c *Catalog) opening(key chainKey) gate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.openings[key] == nil {
		c.openings[key] = newGate()
	}
	return c.openings[key]
}

// openChain reads a chain, or creates it with one block that holds everybody.
func (c *Catalog) openChain(ctx context.Context, r *Relation, a audience, e *epoch) (*Chain, error) {
	chain := &Chain{busy: newGate(), version: r.Catalog, epoch: e, granted: make(map[string]bool)}
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		var epochNumber, layout int
		var stored, means []byte
		if _, err := tx.Exec(ctx, impatient); err != nil {
			return err
		}
		if err := assertInForce(ctx, tx, r); err != nil {
			return err
		}
		name, err := a.name(ctx, tx, r)
		if err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT chain, epoch, generation, partition, score, seeds, layout, means FROM tailor.chain
			WHERE relation = $1 AND audience = $2 FOR UPDATE`, r.OID, name).
			Scan(&chain.number, &epochNumber, &chain.generation, &stored, &chain.score, &chain.seeds, &layout, &means)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return createChain(ctx, tx, r, name, a.role, chain)
		case err != nil:
			return fmt.Errorf("read chain: %w", err)
		case epochNumber > e.number:
			// Another proxy was told of the new epoch first.
			return ErrOvertaken(r)
		case epochNumber < e.number:
			return c.refit(ctx, tx, r, chain, epochNumber, stored, means)
		case e.table == nil && layout == releaseLayout:
			return nil
		case e.table == nil: // what lets its readers in is stored, too
			return replaceRelease(ctx, tx, r, chain.number, &chain.state)
		}
		if chain.partition, err = anonymize.UnmarshalPartition(e.table, stored); err != nil {
			return err
		}
		if chain.means, err = readMeans(r, e, chain.partition, means); err != nil || layout == releaseLayout {
			return err
		}
		if err := replaceRelease(ctx, tx, r, chain.number, &chain.state); err != nil {
			return err
		}
		return writeRelease(ctx, tx, r, chain.number, &chain.state)
	})
	return chain, err
}

func createChain(ctx context.Context, tx pgx.Tx, r *Relation, audience string, role uint32, chain *Chain) error {
	var means []byte
	stored, blocks, minBlock := []byte{}, 1, chain.epoch.subjects
	if chain.epoch.table != nil {
		chain.partition = chain.epoch.whole()
		minBlock = chain.partition.MinBlock()
		var err error
		if stored, err = chain.partition.MarshalBinary(); err != nil {
			return err
		}
		chain.means = newMeans(r, chain.epoch, chain.partition)
		if means, err = chain.means.stored(r); err != nil {
			return err
		}
	}
	// Two proxies may create the same chain at once: the second waits here and
	// fails on the unique key; its client asks again.
	err := tx.QueryRow(ctx, `INSERT INTO tailor.chain (relation, audience, role, epoch, partition, blocks, min_block, layout, means)
		VALUES ($1, $2, nullif($3::oid, 0), $4, $5, $6, $7, $8, $9) RETURNING chain`,
		r.OID, audience, role, chain.epoch.number, stored, blocks, minBlock, releaseLayout, means).Scan(&chain.number)
	if err != nil {
		return fmt.Errorf("create chain: %w", err)
	}
	if err := createRelease(ctx, tx, r, chain.number, &chain.state); err != nil {
		return err
	}
	if chain.partition == nil {
		return nil
	}
	return writeRelease(ctx, tx, r, chain.number, &chain.state)
}
