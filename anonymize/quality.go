package anonymize

import (
	"fmt"
	"math"
)

// Quality is a quality model: a score of a transformation that the search
// minimizes, 0 or little being best. All score rows, not subjects.
//
// The models differ in how early a node can be ruled out. Where the bound
// follows from the levels alone (loss, entropy, precision, mean squared error,
// modification rate) whole regions of the lattice are never visited; where it
// follows from the classes of a node (discernibility, class sizes, ambiguity,
// divergence) the generalizations of a visited node are ruled out.
type Quality interface {
	fmt.Stringer
	bind(b *binding) (quality, error)
}

// binding is what a quality model is bound to.
type binding struct {
	problem *Problem
	entries *entries
	lattice Lattice
	limit   int    // rows that may be suppressed
	least   uint32 // fewest subjects of a class, at least 1
}

func (b *binding) columns() []Column { return b.problem.Table.Columns() }

// leafRows is the number of rows of each leaf of a column.
func (b *binding) leafRows(column int) []float64 {
	rows := make([]float64, b.columns()[column].Hierarchy.Leaves())
	for i, leaf := range b.entries.leaves[column] {
		rows[leaf] += float64(b.entries.base.rows[i])
	}
	return rows
}

// quality is a model bound to a problem. It is safe for concurrent use.
type quality interface {
	// node bounds the score of v from below, given that at least so many rows
	// are suppressed there.
	node(v levels, suppressed int) float64
	// cone bounds the score of v and of all its generalizations from below.
	cone(v levels) float64
	// above bounds the score of v and all its generalizations from below, from
	// the classes of v. It is -Inf where the model has no such bound.
	above(n *judged) float64
	// score is the score of a node.
	score(n *judged) float64
	// parts is the score of each column, nil where the model has none.
	parts(n *judged) []float64
	// leafwise says that score needs n.classOf.
	leafwise() bool
}

// judged is a node whose classes have been formed and judged.
type judged struct {
	levels     levels
	classes    *classes
	suppressed []bool   // by class
	classOf    []uint32 // entry -> class, for leafwise models only
	kept       int      // classes that remain, with at least one row
	rows       int      // rows suppressed
	entries    *entries
}

func (n *judged) leaves(column int) []uint32 { return n.entries.leaves[column] }
func (n *judged) entryRows() []uint32        { return n.entries.base.rows }

// Aggregate says how the loss of a table follows from that of its columns.
type Aggregate int

const (
	// Geometric is ∏(Lᵢ+1)^(1/m) - 1.
	Geometric Aggregate = iota
	// Arithmetic is the mean.
	Arithmetic
	// sum of the parts.
	sum
)

func (a Aggregate) String() string {
	return [...]string{"geometric mean", "arithmetic mean", "sum"}[a]
}

// Of aggregates the loss of each column.
func (a Aggregate) Of(losses []float64) float64 {
	return a.of(len(losses), func(c int) float64 { return losses[c] })
}

// of aggregates m parts given by index.
func (a Aggregate) of(m int, part func(column int) float64) float64 {
	if a == Geometric {
		product := 1.0
		for c := range m {
			product *= part(c) + 1
		}
		return math.Pow(product, 1/float64(m)) - 1
	}
	total := 0.0
	for c := range m {
		total += part(c)
	}
	if a == Arithmetic {
		total /= float64(m)
	}
	return total
}
