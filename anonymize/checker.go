package anonymize

// space is what a search works on: immutable but for the snapshots, and safe
// for concurrent use.
type space struct {
	problem   *Problem
	entries   *entries
	chunks    []*chunk
	lattice   Lattice
	quality   quality
	judge     *nodeEvaluator // to be forked
	limit     int
	snapshots *snapshots
}

func newSpace(p *Problem) (*space, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	lattice, err := newLattice(p.Table.Columns())
	if err != nil {
		return nil, err
	}
	e := newEntries(p)
	j, err := newNodeEvaluator(p, e)
	if err != nil {
		return nil, err
	}
	b := &binding{problem: p, entries: e, lattice: lattice, limit: j.limit, least: j.smallest}
	q, err := p.Quality.bind(b)
	if err != nil {
		return nil, err
	}
	return &space{
		problem: p, entries: e, chunks: newChunks(e, p.Table.Columns()), lattice: lattice,
		quality: q, judge: j, limit: j.limit, snapshots: newSnapshots(e.base.count()),
	}, nil
}

// checker checks nodes. It is not safe for concurrent use; each goroutine has
// one of its own.
type checker struct {
	space     *space
	grouper   *grouper
	evaluator *nodeEvaluator
	direct    bool // classes are always formed from the entries
}

func newChecker(s *space) *checker {
	return &checker{
		space: s, grouper: newGrouper(s.entries, s.chunks), evaluator: s.judge.fork(),
		direct: s.entries.members != nil || s.quality.leafwise(),
	}
}

// checked is what a check of a node found.
type checked struct {
	verdict
	score    float64 // of an admissible node, or of any if the evaluator is thorough
	above    float64 // bound on the score of all generalizations
	rolledUp bool
	merged   int // classes of the source less classes of the node
}

// check forms the classes of a node, judges them and scores the node.
func (c *checker) check(v levels) checked {
	src, rolledUp := c.source(v)
	n, verdict := c.form(v, src)
	r := checked{
		verdict: verdict, rolledUp: rolledUp, merged: src.count() - n.classes.count(),
		above: c.space.quality.above(n),
	}
	if verdict.admissible || c.evaluator.thorough {
		r.score = c.space.quality.score(n)
	}
	return r
}

// source is the smallest set of classes that v can be formed from.
func (c *checker) source(v levels) (src *classes, rolledUp bool) {
	if !c.direct {
		if near := c.space.snapshots.nearest(v); near != nil {
			return near, true
		}
	}
	return c.space.entries.base, false
}

// form forms and judges the classes of a node. They are valid until the next
// call.
func (c *checker) form(v levels, src *classes) (*judged, verdict) {
	classes := c.grouper.group(src, v)
	c.keep(v, classes, src)
	verdict := c.evaluator.evaluate(classes, c.grouper.classOf)
	n := &judged{
		levels: v, classes: classes, suppressed: c.evaluator.suppressed,
		kept: verdict.kept, rows: verdict.rows, entries: c.space.entries,
	}
	if c.direct {
		n.classOf = c.grouper.classOf
	}
	return n, verdict
}

// keep remembers the classes of v where rolling up from them saves a fifth or
// more of what rolling up from their source costs.
func (c *checker) keep(v levels, classes, src *classes) {
	if !c.direct && 5*classes.count() <= 4*src.count() {
		c.space.snapshots.keep(v, classes)
	}
}

// support forms the classes of v for the sake of its generalizations only.
func (c *checker) support(v levels) {
	if c.direct {
		return
	}
	src, _ := c.source(v)
	c.keep(v, c.grouper.group(src, v), src)
}
