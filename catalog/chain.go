package catalog

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// Chain is what one audience is shown of a relation. It is made before anybody asks;
// what the table becomes is taken in afterwards, which changes nothing for those who
// are shown already but what enough of them have in common (takein.go).
type Chain struct {
	number      int
	edition     int   // names its tables
	generation  int   // rises with whatever is written of it
	version     int64 // of the catalog in which it was opened
	policy      int   // the version of the policy
	copy        int   // the epoch that it is brought up to date with
	publication int   // of a set-valued relation
	subjects    int
	minBlock    int
	copied      time.Time // when that copy was made
	arrivals    int       // subjects who wait to be shown
	root        *ecg.Root // nil where the relation has no quasi-identifiers
	opened      time.Time
	heard       heard       // see Release.Since
	alone       atomic.Bool // nothing is left of earlier editions

	mu sync.Mutex
	// who may read the release; true where that includes what it shows of the parent
	granted map[string]bool
}

// Release is what a query may read in place of a protected relation.
type Release struct {
	Relation   *Relation
	Chain      int
	Edition    int    // names the tables and views; rises with each policy
	Generation int    // rises with whatever is written of the chain
	Epoch      int    // the copy of the table that it is brought up to date with
	View       string // in schema tailor_release
	// WithParent says that the statement reads what the release shows of its
	// relation's parent, too.
	WithParent bool
	Subjects   int
	// MinBlock is the number of subjects in the smallest block, or of those that
	// may be one of whom m codes are known.
	MinBlock int
	// Copied is when the copy was made that is shown, and Arrivals how many subjects of it
	// are not shown yet.
	Copied   time.Time
	Arrivals int
	Root     *ecg.Root // nil where the relation has no quasi-identifiers
	// Since is when this proxy first heard of the tables that the release is stored in, zero
	// if they were there when it started. A snapshot of the database that is older may not
	// have their rows.
	Since time.Time
	// Position is where the primary's log was then, or when the proxy started.
	Position Position
}

// lockTimeout bounds how long a transaction waits for others that read a release;
// whoever waits in vain is told to try again.
const lockTimeout = "SET LOCAL lock_timeout = '20s'"

// Release returns what a principal reads in place of a relation. All that a
// statement waits for is at hand after the first under a policy: it takes no lock
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

// chainOf is the chain of a relation that a principal's audience has.
func (c *Catalog) chainOf(ctx context.Context, r *Relation, p *Principal) (*Chain, error) {
	audience, err := audienceOf(r, p)
	if err != nil {
		return nil, err
	}
	if err := assertReady(r); err != nil {
		return nil, err
	}
	chain, err := c.patiently(ctx, r, audience)
	if err != nil {
		return nil, classified(err)
	}
	if chain.subjects == 0 && r.DataSetOf != 0 {
		return nil, sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").
			WithHint("Of no block of its table all are in data set %q. Blocks that are made from now on "+
				"heed who is: tailor.forget_chains has all made anew.", r.Name)
	}
	if chain.subjects == 0 && r.SetValued != nil {
		return nil, classified(&disassociate.TooFewError{})
	}
	if chain.subjects == 0 { // all have left
		return nil, assertFeasible(r, &cohort{})
	}
	return chain, nil
}

// release is what a chain shows.
func (c *Chain) release(r *Relation) *Release {
	return &Release{
		Relation: r, Chain: c.number, Edition: c.edition, Generation: c.generation, Epoch: c.copy,
		View: c.name(), Subjects: c.subjects, MinBlock: c.minBlock, Copied: c.copied,
		Arrivals: c.arrivals, Root: c.root,
		Since: c.heard.since, Position: c.heard.position,
	}
}

// assertReady fails where nothing can be shown under the policy of a relation as it is.
func assertReady(r *Relation) error {
	if r.ByMeans {
		return errByMeans(r)
	}
	if r.Stale {
		return sqlstate.New(sqlstate.PolicyStale,
			"the policy of table %q is stale: the table has changed shape", r.Name).
			WithHint("A database administrator classifies the new columns and calls tailor.activate.")
	}
	return nil
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
		return sqlstate.New(sqlstate.SerializationFailure,
			"the policy or the copy of a table is being changed").
			WithHint("Send the statement again.").Wrap(err)
	}
	if said != nil && said.Code == string(sqlstate.PolicyStale) {
		return sqlstate.New(sqlstate.PolicyStale, "%s", said.Message).WithHint("%s", said.Hint).Wrap(err)
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

// assertFeasible fails where not even all of a cohort together are a block that the
// policy accepts.
func assertFeasible(r *Relation, e *cohort) error {
	unmet := e.unmetBy(r)
	if unmet == "" {
		return nil
	}
	return sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").
		WithHint("The table as a whole does not meet %s.", unmet)
}

// requirements are the privacy models that a relation is cut by, over a cohort.
func requirements(r *Relation, e *cohort) []anonymize.Requirement {
	out := []anonymize.Requirement{anonymize.BlockK{K: r.K}}
	if e.rows != e.subjects {
		out = append(out, anonymize.BlockMaxShare{Share: r.MaxShare})
	}
	if r.BlindCuts {
		return out
	}
	for _, q := range r.Requirements {
		of := anonymize.Sensitive{CodeOfRow: e.sensitive[q.Column]}
		out = append(out, q.model(of, e.references[q.Column]))
	}
	return out
}

// cohortSize is how many subjects that nobody has been shown before are shown together.
func (r *Relation) cohortSize() int {
	if r.Cohort > 0 {
		return max(r.Cohort, r.K)
	}
	return max(100, 20*r.K)
}

// chainState is a chain as a snapshot has it.
type chainState struct{ Number, Edition, Generation int }

// stands says whether a chain is that of a relation as a snapshot has it. A copy that
// it has not been brought up to date with is no matter.
func (c *Chain) stands(r *Relation) bool {
	return c.policy == r.Version && (c.version == r.Catalog || r.has(c.number, c.edition))
}

// has says whether a snapshot has an edition of a chain.
func (r *Relation) has(chain, edition int) bool {
	return slices.ContainsFunc(r.chains, func(s chainState) bool {
		return s.Number == chain && s.Edition == edition
	})
}

// hasLater says whether a snapshot knows of more that was written of a chain: somebody
// was erased, or another proxy has taken a copy in.
func (r *Relation) hasLater(c *Chain) bool {
	return slices.ContainsFunc(r.chains, func(s chainState) bool {
		return s.Number == c.number && s.Generation > c.generation
	})
}

// Stands says whether a release is still what a relation has, whatever has been taken
// in since.
func (r *Release) Stands(now *Relation) bool {
	return now.Version == r.Relation.Version &&
		(now.Catalog == r.Relation.Catalog || now.has(r.Chain, r.Edition))
}

// opened is the copy of a chain that stands, nil if there is none.
func (c *Catalog) opened(r *Relation, audience string) *Chain {
	c.mu.Lock()
	defer c.mu.Unlock()
	if chain := c.chains[chainKey{r.OID, audience}]; chain != nil && chain.stands(r) {
		return chain
	}
	return nil
}

// bringUp brings an audience's chain up to date with the relation's copy.
func (c *Catalog) bringUp(ctx context.Context, r *Relation, audience string) (*Chain, error) {
	chain, err := c.withRoot(ctx, r, audience, r.isUpToDate)
	return c.keep(ctx, r, audience, chain, err)
}

// isUpToDate says whether a chain shows what there is in the relation's copy.
func (r *Relation) isUpToDate(s stored) bool { return s.current && s.copy >= r.Epoch }

// keep keeps a chain that was opened.
func (c *Catalog) keep(
	ctx context.Context, r *Relation, audience string, chain *Chain, err error,
) (*Chain, error) {
	if errors.Is(err, errLost) {
		return nil, c.noteLoss(ctx)
	}
	var position Position
	if err == nil {
		position, err = c.advance(ctx, c.pool.QueryRow)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	key := chainKey{r.OID, audience}
	if err != nil {
		if known := classified(err); sqlstate.From(known).Code == sqlstate.RiskTooHigh {
			c.unmade[key] = notMade{unmade{r.Version, r.Epoch}, known}
		}
		return nil, err
	}
	delete(c.unmade, key)
	chain.heard = c.hearOf(chain.number, heard{chain.edition, time.Now(), position})
	c.chains[key] = chain
	return chain, nil
}

// lastSeen is the generation in which this proxy has had a chain, 0 if never.
func (c *Catalog) lastSeen(chain int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[chain]
}

// unmade is a state of a relation in which no release can be made.
type unmade struct{ policy, epoch int }

// notMade is why a release cannot be made: it would take as long to find out again.
type notMade struct {
	unmade
	err error
}

// knownUnmade fails where it is known that a release cannot be made as things are.
func (c *Catalog) knownUnmade(r *Relation, audience string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, found := c.unmade[chainKey{r.OID, audience}]; found &&
		known.unmade == (unmade{r.Version, r.Epoch}) {
		return known.err
	}
	return nil
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

// rootPlan says how a cohort is partitioned for an audience.
func (r *Relation) rootPlan(audience string, e *cohort) ecg.RootPlan {
	return ecg.RootPlan{
		Requirements: requirements(r, e), Gate: r.gate(), Recoding: r.recoding(),
		Workload: r.workload(audience),
	}
}
