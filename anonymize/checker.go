package anonymize

// space is what a search works on: immutable but for the snapshots, and safe
// for concurrent use.
type space struct {
	problem   *Problem
	entries   *entries
	chunks    []*chunk
	lattice   Lattice
	quality   quality
	judge     *judge // to be forked
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
	j, err := newJudge(p, e)
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
		quality: q, judge: j, limit: j.limit, snapshots: newSnapshots(),
	}, nil
}

// checker checks nodes. It is not safe for concurrent use; each goroutine has
// one of its own.
type checker struct {
	space   *space
	grouper *grouper
	judge   *judge
	direct  bool // classes are always formed from the entries
}

func newChecker(s *space) *checker {
	return &checker{
		space: s, grouper: newGrouper(s.entries, s.chunks), judge: s.judge.fork(),
		direct: s.entries.members != nil || s.quality.leafwise(),
	}
}

// checked is what a check of a node found.
type checked struct {
	verdict
	score    float64 // of an admissible node
	above    float64 // bound on the score of all generalizations
	rolledUp bool
}

// check forms the classes of a node, judges them and scores the node.
func (c *checker) check(v levels) checked {
	n, verdict, rolledUp := c.form(v)
	r := checked{verdict: verdict, rolledUp: rolledUp}
	r.above = c.space.quality.above(n)
	if verdict.admissible {
		r.score = c.space.quality.score(n)
	}
	return r
}

// form forms and judges the classes of a node. They are valid until the next
// call.
func (c *checker) form(v levels) (*judged, verdict, bool) {
	src, rolledUp := c.space.entries.base, false
	if !c.direct {
		if near := c.space.snapshots.nearest(v); near != nil {
			src, rolledUp = near, true
		}
	}
	classes := c.grouper.group(src, v)
	if !c.direct && worthKeeping(classes.count(), src.count()) {
		c.space.snapshots.keep(v, classes)
	}
	verdict := c.judge.judge(classes, c.grouper.classOf)
	n := &judged{
		levels: v, classes: classes, suppressed: c.judge.suppressed,
		kept: verdict.kept, rows: verdict.rows, entries: c.space.entries,
	}
	if c.direct {
		n.classOf = c.grouper.classOf
	}
	return n, verdict, rolledUp
}

// worthKeeping says whether rolling up from the result would save a fifth or
// more of what rolling up from its source costs.
func worthKeeping(result, source int) bool { return 5*result <= 4*source }
