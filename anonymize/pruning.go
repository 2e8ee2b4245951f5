package anonymize

// pruning remembers what checked nodes say about nodes not yet checked
// ([PrasserKohlmayer2016] §3):
//
//   - A node that has to suppress s rows for models that are monotone with
//     suppression shows that all of its specializations suppress at least s.
//     Above the limit that is insufficient privacy; below, it raises the bound
//     on their score. Rows are remembered in steps of a sixteenth of the limit,
//     one antichain for each step.
//   - A node whose classes bound the score of all its generalizations above the
//     best known shows insufficient quality upward.
//
// A sufficient node says nothing about its generalizations: under suppression
// loss is not monotone.
type pruning struct {
	steps   []int      // rows, ascending; the last is limit+1
	rows    []*downset // by step: nodes that suppress at least as many
	quality *antichain
}

const evidenceSteps = 16

func newPruning(s *space) *pruning {
	e := &pruning{quality: newAntichain(s.lattice.heights)}
	for i := 1; i <= evidenceSteps; i++ {
		step := s.limit*i/evidenceSteps + 1
		if n := len(e.steps); n > 0 && e.steps[n-1] == step {
			continue
		}
		e.steps = append(e.steps, step)
		e.rows = append(e.rows, newDownset(s.lattice.heights))
	}
	return e
}

// add remembers a checked node.
func (e *pruning) add(v levels, certain int) {
	for i, step := range e.steps {
		if certain >= step {
			e.rows[i].insert(v)
		}
	}
}

// insufficientPrivacy says whether v is known to exceed the limit.
func (e *pruning) insufficientPrivacy(v levels) bool { return e.rows[len(e.rows)-1].covers(v) }

// suppresses says whether v is known to suppress at least the rows of step i.
func (e *pruning) suppresses(v levels, i int) bool { return e.rows[i].covers(v) }

// known is a number of rows that v is known to suppress at least.
func (e *pruning) known(v levels) int {
	for i := len(e.steps) - 1; i >= 0; i-- {
		if e.rows[i].covers(v) {
			return e.steps[i]
		}
	}
	return 0
}
