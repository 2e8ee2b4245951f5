package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// chainKey names a chain: one relation as one audience is shown it.
type chainKey struct {
	relation uint32
	audience string
}

// Chain is what one audience is shown of a relation in an epoch. It was made
// before anybody asked, and stays as it is until the next epoch.
type Chain struct {
	number     int
	generation int   // rises with each epoch that it is carried to
	version    int64 // of the catalog in which it was opened
	policy     int   // the version of the policy
	epoch      *epoch
	root       *ecg.Root // nil where the relation has no quasi-identifiers
	opened     time.Time
	alone      atomic.Bool // nothing is left of earlier generations

	mu      sync.Mutex
	granted map[string]bool // who may read the release; true where that includes what it shows of the parent
}

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
	// MinBlock is the number of subjects in the smallest block, or of those that
	// may be one of whom m codes are known.
	MinBlock int
	Root     *ecg.Root // nil where the relation has no quasi-identifiers
}

// impatient bounds how long a transaction waits for others that read a release;
// whoever waits in vain is told to try again.
const impatient = "SET LOCAL lock_timeout = '20s'"

// Release returns what a principal reads in place of a relation. All that a
// statement waits for is at hand after the first of an epoch: it takes no lock
// that another holds for longer than a look, and writes nothing. Errors are of
// type *[sqlstate.Error].
func (c *Catalog) Release(ctx context.Context, r *Relation, p *Principal) (*Release, error) {
	chain, err := c.chainOf(ctx, r, p)
	if err != nil {
		return nil, err
	}
	if err := c.grant(ctx, r, chain, p); err != nil {
		return nil, c.overtaken(chain, err)
	}
	return chain.release(r), nil
}

// Show returns what a principal would read in place of a relation, for an account of
// it, and lets nobody read it. Who reads a table of projects for none of them, its owner
// too, gets 42501: there is no release to tell of.
func (c *Catalog) Show(ctx context.Context, r *Relation, p *Principal) (*Release, error) {
	chain, err := c.chainOf(ctx, r, p)
	if err != nil {
		return nil, err
	}
	return chain.release(r), nil
}

// AtHand says whether a principal's release of a relation can be returned without
// waiting for the database.
func (c *Catalog) AtHand(r *Relation, p *Principal) bool {
	audience, err := audienceOf(r, p)
	if err != nil {
		return true
	}
	c.mu.Lock()
	chain := c.chains[chainKey{r.OID, audience}]
	e := c.epochs[r.Epoch]
	c.mu.Unlock()
	return chain != nil && chain.stands(r, e) && chain.lets(r.granteeFor(p), r.Lent())
}

// chainOf is the chain of a relation that a principal's audience has.
func (c *Catalog) chainOf(ctx context.Context, r *Relation, p *Principal) (*Chain, error) {
	audience, err := audienceOf(r, p)
	if err != nil {
		return nil, err
	}
	e, err := c.readyEpoch(ctx, r)
	if err != nil {
		return nil, err
	}
	chain, err := c.chain(ctx, r, audience, e)
	if err != nil {
		return nil, classified(err)
	}
	return chain, nil
}

// release is what a chain shows.
func (c *Chain) release(r *Relation) *Release {
	release := &Release{
		Relation: r, Chain: c.number, Generation: c.generation,
		View: c.name(), Subjects: c.epoch.subjects, MinBlock: c.epoch.subjects, Root: c.root,
	}
	switch {
	case r.SetValued != nil:
		release.MinBlock = r.K // candidates for whoever knows m codes
	case c.root != nil:
		release.MinBlock = c.root.Partition.MinBlock()
	}
	return release
}

// readyEpoch is the epoch of a relation whose policy is in step with the table
// and can be met at all.
func (c *Catalog) readyEpoch(ctx context.Context, r *Relation) (*epoch, error) {
	if r.ByMeans {
		return nil, errByMeans(r)
	}
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
	var said *pgconn.PgError
	if errors.As(err, &said) && said.Code == "55P03" {
		return sqlstate.New(sqlstate.SerializationFailure, "the policy or the copy of a table is being changed").
			WithHint("Send the statement again.").Wrap(err)
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
// policy accepts.
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
	if e.rows != e.subjects {
		out = append(out, anonymize.BlockMaxShare{Share: r.MaxShare})
	}
	for _, q := range r.Requirements {
		out = append(out, anonymize.BlockDistinctL{
			L:  int(q.Parameter),
			Of: anonymize.Sensitive{Name: q.Column, CodeOfRow: e.sensitive[q.Column]},
		})
	}
	return out
}

// stands says whether a chain is that of a relation as a snapshot has it.
func (c *Chain) stands(r *Relation, e *epoch) bool {
	return c.epoch == e && c.policy == r.Version && (c.version == r.Catalog || slices.Contains(r.chains, c.number))
}

// chain returns the copy of an audience's chain, reading or making it.
func (c *Catalog) chain(ctx context.Context, r *Relation, audience string, e *epoch) (*Chain, error) {
	key := chainKey{r.OID, audience}
	opened := func() *Chain {
		c.mu.Lock()
		defer c.mu.Unlock()
		if chain := c.chains[key]; chain != nil && chain.stands(r, e) {
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
	ctx, cancel := context.WithTimeout(ctx, publicationPatience)
	defer cancel()
	chain, err := c.openChain(ctx, r, audience, e)
	if errors.Is(err, errLost) {
		return nil, c.noteLoss(ctx)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.chains[key] = chain
	c.seen[chain.number] = chain.generation
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

// lastSeen is the generation in which this proxy has had a chain, 0 if never.
func (c *Catalog) lastSeen(chain int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[chain]
}

// openChain reads a chain. Where the audience has none in this epoch, it makes
// its root, under a lock for which other proxies wait, and the release of it, in
// one transaction: whatever ends that before its commit leaves nothing behind.
func (c *Catalog) openChain(ctx context.Context, r *Relation, audience string, e *epoch) (*Chain, error) {
	chain := &Chain{version: r.Catalog, policy: r.Version, epoch: e, opened: time.Now(), granted: make(map[string]bool)}
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		was, err := c.readChain(ctx, tx, r, audience, chain, selectChain)
		if err != nil || was.ready {
			return err
		}
		if _, err := tx.Exec(ctx, impatient); err != nil {
			return err
		}
		if err := assertInForce(ctx, tx, r); err != nil {
			return err
		}
		// Somebody else may be making it.
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = '%ds'", int(publicationPatience.Seconds()))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM tailor.epoch WHERE epoch = $1 FOR UPDATE`, e.number); err != nil {
			return fmt.Errorf("lock epoch %d: %w", e.number, err)
		}
		if was, err = c.readChain(ctx, tx, r, audience, chain, selectChain+" FOR UPDATE"); err != nil || was.ready {
			return err
		}
		switch {
		case chain.number == 0:
			if err := assertNoneBefore(ctx, tx, r); err != nil {
				return err
			}
			return c.createChain(ctx, tx, r, audience, chain)
		case was.epoch > e.number:
			// Another proxy was told of the new epoch first.
			return ErrOvertaken(r)
		case was.epoch < e.number:
			return c.carry(ctx, tx, r, audience, chain, was)
		}
		chain.generation++
		if _, err := tx.Exec(ctx, `UPDATE tailor.chain SET generation = $2, layout = $3 WHERE chain = $1`,
			chain.number, chain.generation, releaseLayout); err != nil {
			return fmt.Errorf("note layout of release: %w", err)
		}
		return createRelease(ctx, tx, r, chain)
	})
	return chain, err
}

// selectChain reads the row of an audience's chain of a relation.
const selectChain = `SELECT chain, epoch, generation, partition, layout FROM tailor.chain c WHERE relation = $1 AND audience = $2`

// stored is a chain as the database has it.
type stored struct {
	epoch     int
	partition []byte
	ready     bool // on the epoch that is asked for, in the present layout, and under the policy that is in force
}

// readChain reads the row of an audience's chain, if there is one.
func (c *Catalog) readChain(ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain, statement string) (was stored, err error) {
	e := chain.epoch
	var layout int
	err = tx.QueryRow(ctx, statement, r.OID, audience).Scan(&chain.number, &was.epoch, &chain.generation, &was.partition, &layout)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return was, nil
	case err != nil:
		return was, fmt.Errorf("read chain: %w", err)
	case chain.generation < c.lastSeen(chain.number):
		return was, errLost
	case was.epoch != e.number:
		return was, nil
	}
	if e.table != nil {
		p, err := anonymize.UnmarshalPartition(e.table, was.partition)
		if err != nil {
			return was, err
		}
		chain.root = e.root(r, p)
	}
	if layout != releaseLayout {
		return was, nil
	}
	err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tailor.protection WHERE relation = $1 AND active = $2 AND epoch = $3) AND NOT tailor.restored()`,
		r.OID, r.Version, r.Epoch).Scan(&was.ready)
	if err != nil {
		return was, fmt.Errorf("read policy in force: %w", err)
	}
	return was, nil
}

// assertNoneBefore fails where an earlier version has shown the relation to audiences
// that there are no more: a root beside what they know would be a second partition of
// the same people.
func assertNoneBefore(ctx context.Context, tx pgx.Tx, r *Relation) error {
	var earlier int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM tailor.chain WHERE relation = $1 AND audience <> 'table' AND NOT starts_with(audience, 'project ')`,
		r.OID).Scan(&earlier)
	if err != nil {
		return fmt.Errorf("look for chains of earlier versions: %w", err)
	}
	if earlier > 0 {
		return sqlstate.New(sqlstate.PolicyStale, "table %q was shown by an earlier version to %d audiences, each its own way", r.Name, earlier).
			WithHint("A database administrator decides: tailor.forget_chains('%s') gives up the guarantee over what was shown before.", r)
	}
	return nil
}

// Owns says whether a principal has the rights of a relation's owner, who may
// see whatever is in it.
func (c *Catalog) Owns(ctx context.Context, p *Principal, r *Relation) (bool, error) {
	var owns bool
	err := c.pool.QueryRow(ctx, `SELECT pg_catalog.pg_has_role($1, c.relowner, 'USAGE') FROM pg_catalog.pg_class c WHERE c.oid = $2`,
		p.Name, r.OID).Scan(&owns)
	if err != nil {
		return false, unavailable(fmt.Errorf("read owner: %w", err))
	}
	return owns, nil
}

// root is a partition of the epoch as queries are assessed on it.
func (e *epoch) root(r *Relation, p *anonymize.Partition) *ecg.Root {
	return ecg.NewRoot(p, r.gate(), r.recoding())
}

// gate is the risk that the policy accepts.
func (r *Relation) gate() ecg.Gate {
	if r.Gate == "" || r.Gate == "highest" { // of the highest risk, K has been made
		return ecg.HighestRisk(r.K)
	}
	return ecg.Gate{K: r.K, Measure: r.Gate, Threshold: r.MaxRisk}
}

// recoding is how a root generalizes.
func (r *Relation) recoding() string {
	if r.Recoding == ecg.FullDomain {
		return ecg.FullDomain
	}
	return ecg.Local
}

// rootPlan says how the root of an audience is made.
func (r *Relation) rootPlan(audience string, e *epoch) ecg.RootPlan {
	return ecg.RootPlan{Requirements: requirements(r, e), Gate: r.gate(), Recoding: r.recoding(), Workload: r.workload(audience)}
}

// makeRoot partitions an epoch as finely as the policy allows.
func (c *Catalog) makeRoot(ctx context.Context, r *Relation, audience string, e *epoch) (*anonymize.Partition, error) {
	started := time.Now()
	log := c.log.With("relation", r.String(), "epoch", e.number, "audience", audience)
	log.Info("making a root")
	p, err := ecg.MakeRoot(ctx, e.table, r.rootPlan(audience, e))
	if err != nil {
		return nil, fmt.Errorf("make the root of epoch %d: %w", e.number, err)
	}
	log.Info("made a root", "blocks", p.Blocks(), "smallest", p.MinBlock(), "duration", time.Since(started))
	return p, nil
}

func (c *Catalog) createChain(ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain) error {
	e := chain.epoch
	stored, blocks, minBlock := []byte{}, 1, e.subjects
	if e.table != nil {
		p, err := c.makeRoot(ctx, r, audience, e)
		if err != nil {
			return err
		}
		if stored, err = p.MarshalBinary(); err != nil {
			return err
		}
		chain.root, blocks, minBlock = e.root(r, p), p.Blocks(), p.MinBlock()
	}
	err := tx.QueryRow(ctx, `INSERT INTO tailor.chain (relation, audience, epoch, partition, blocks, min_block, layout)
		VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING chain`,
		r.OID, audience, e.number, stored, blocks, minBlock, releaseLayout).Scan(&chain.number)
	if err != nil {
		return fmt.Errorf("create chain: %w", err)
	}
	return createRelease(ctx, tx, r, chain)
}
