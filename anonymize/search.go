package anonymize

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Algorithm is a search strategy.
type Algorithm int

const (
	// Optimal picks the exact algorithm that is fastest.
	Optimal Algorithm = iota
	// Flash is exact: depth-first greedy paths with predictive tagging.
	Flash
	// BestFirst is exact if left to finish: branch and bound in the order of
	// the bound, which holds a good solution early.
	BestFirst
	// Greedy is a heuristic, for comparison.
	Greedy
)

func (a Algorithm) String() string {
	return [...]string{"optimal", "flash", "best_first", "greedy"}[a]
}

// Options of a search. The zero value is an exact search without limits.
type Options struct {
	Algorithm Algorithm
	// MaxChecks stops the search after so many nodes checked; 0 is no limit.
	MaxChecks int
	// Progress, if not nil, is called after every check, from one goroutine
	// at a time. It delays the search and should return quickly.
	Progress func(Progress)
}

// Progress is the state of a running search.
type Progress struct {
	Checked  int     // nodes checked
	RolledUp int     // of these, from the classes of a specialization
	Found    bool    // whether any admissible node is known
	Score    float64 // of the best known
}

// Result is the transformation that a search found.
type Result struct {
	// Levels is the level of each column.
	Levels []int
	// Score by the quality model of the problem; smaller is better.
	Score float64
	// Optimal says that no admissible node scores less. Where several score
	// the same, the one with the lowest sum of levels is chosen, then the one
	// with the lowest level in the first column where they differ.
	Optimal bool
	// Lattice is the number of nodes, [math.MaxUint64] if it is larger.
	Lattice uint64
	// Checked counts the nodes whose classes were formed; RolledUp those of
	// them formed from the classes of a specialization.
	Checked, RolledUp int
}

// NoSolutionError says that no node of the lattice meets the models within the
// suppression limit.
type NoSolutionError struct{ Checked int }

func (e *NoSolutionError) Error() string {
	return "no transformation meets the privacy models within the suppression limit"
}

// Search looks for the admissible node of the generalization lattice with the
// lowest score. A node is admissible if every class that fails a model can be
// suppressed within the limit; then every class that remains meets all models,
// and a reader who knows a person's quasi-identifiers finds the person among
// at least k subjects.
//
// It fails with a *[ProblemError] on a faulty problem and with a
// *[NoSolutionError] where no node is admissible. If ctx or MaxChecks ends the
// search first, the best node found is returned with Optimal unset, or, where
// none was found, an error that wraps the cause of ctx or [ErrStopped].
//
// The worst case is exponential in the number of columns. Memory is bounded:
// the lattice is not stored.
func Search(ctx context.Context, p *Problem, o Options) (*Result, error) {
	s, err := newSpace(p)
	if err != nil {
		return nil, err
	}
	return newSearcher(ctx, s, o).run()
}

// ErrStopped says that MaxChecks ended a search before it found anything.
var ErrStopped = fmt.Errorf("search stopped before any transformation was found")

// searcher is the state that all algorithms share.
type searcher struct {
	ctx      context.Context
	space    *space
	options  Options
	checker  *checker
	aside    *checker // for a second check at the same time while climbing; nil until then
	pruning  *pruning
	rollups  *prefixRollups
	seen     map[string]struct{} // nodes checked
	best     levels              // nil until an admissible node is found
	score    float64
	checked  int
	rolledUp int
	stopped  bool
}

func newSearcher(ctx context.Context, s *space, o Options) *searcher {
	return &searcher{
		ctx: ctx, space: s, options: o, checker: newChecker(s), pruning: newPruning(s),
		rollups: newPrefixRollups(s.entries.base.count()),
		seen:    make(map[string]struct{}), score: math.Inf(1),
	}
}

func (s *searcher) run() (*Result, error) {
	proven := false
	switch s.options.Algorithm {
	case Optimal, Flash:
		proven = s.flash()
	case BestFirst:
		proven = s.bestFirst()
	case Greedy:
		s.greedy()
	}
	if s.best == nil {
		switch {
		case s.ctx.Err() != nil:
			return nil, fmt.Errorf("search: %w", context.Cause(s.ctx))
		case s.stopped:
			return nil, ErrStopped
		}
		return nil, &NoSolutionError{Checked: s.checked}
	}
	return &Result{
		Levels: toInts(s.best), Score: s.score, Optimal: proven && !s.stopped,
		Lattice: s.space.lattice.Size(), Checked: s.checked, RolledUp: s.rolledUp,
	}, nil
}

// check checks a node once and draws all conclusions.
func (s *searcher) check(v levels) checked {
	r := s.checker.check(v)
	s.conclude(v, r)
	return r
}

// conclude draws the conclusions of a check.
func (s *searcher) conclude(v levels, r checked) {
	s.rollups.spend(r.merged)
	s.record(v, r)
}

func (s *searcher) record(v levels, r checked) {
	s.checked++
	if r.rolledUp {
		s.rolledUp++
	}
	s.seen[string(v)] = struct{}{}
	if r.certain > 0 {
		s.pruning.add(v, r.certain)
	}
	if r.admissible && s.improves(v, r.score) {
		s.best, s.score = slices.Clone(v), r.score
	}
	if r.above > s.threshold() {
		s.pruning.quality.insert(v)
	}
	if s.options.Progress != nil {
		s.options.Progress(Progress{
			Checked: s.checked, RolledUp: s.rolledUp, Found: s.best != nil,
			Score: s.score,
		})
	}
	s.stopped = s.stopped || s.ctx.Err() != nil ||
		(s.options.MaxChecks > 0 && s.checked >= s.options.MaxChecks)
}

// margin is the difference below which two scores are the same.
func (s *searcher) margin() float64 { return 1e-10 * max(1, math.Abs(s.score)) }

// improves breaks ties as [Result] says.
func (s *searcher) improves(v levels, score float64) bool {
	switch margin := s.margin(); {
	case s.best == nil || score < s.score-margin:
		return true
	case score > s.score+margin:
		return false
	}
	if a, b := v.rank(), s.best.rank(); a != b {
		return a < b
	}
	return slices.Compare(v, s.best) < 0
}

// threshold is the bound above which a node cannot improve on the best one.
func (s *searcher) threshold() float64 {
	if s.best == nil {
		return math.Inf(1)
	}
	return s.score + s.margin()
}

// hopeless says that neither v nor any generalization of it can improve on the
// best node.
func (s *searcher) hopeless(v levels) bool {
	return s.space.quality.cone(v) > s.threshold() || s.pruning.quality.covers(v)
}

// resolved says that v needs no check: it has been checked, or is known to be
// inadmissible or no better than the best node.
func (s *searcher) resolved(v levels) bool {
	if s.pruning.insufficientPrivacy(v) {
		return true
	}
	if _, done := s.seen[string(v)]; done {
		return true
	}
	return s.suppressesTooMuch(v)
}

// suppressesTooMuch says that the rows v is known to suppress raise its score
// above the best. It looks for the least step that would, then asks for that.
func (s *searcher) suppressesTooMuch(v levels) bool {
	if s.best == nil {
		return false
	}
	steps := s.pruning.steps
	low, high := 0, len(steps)-1 // the last step is insufficient privacy
	for low < high {
		mid := (low + high) / 2
		if s.space.quality.node(v, steps[mid]) > s.threshold() {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return low < len(steps)-1 && s.pruning.suppresses(v, low)
}
