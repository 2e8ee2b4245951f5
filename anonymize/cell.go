package anonymize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// CellRecoding is local suppression ([Hundepool2010] §3): single cells of
// tuples in unsafe combinations are withheld (shown as [Top]), the rest is
// shown exactly. A withheld cell is a value of its own when combinations are
// counted.
//
// Guarantee. Attacker: knows the quasi-identifiers of one combination that was
// asked to be safe, and sees this release alone. Then more than threshold
// subjects show the same values there. Nothing is promised about several
// releases together: that is what a [Partition] is for.
// TestSuppressedCellsLeaveNoUnsafeCombination checks it. Immutable.
type CellRecoding struct {
	table    *Table
	withheld [][]bool // column -> tuple
}

// SuppressCells makes combinations safe one after the other: a combination of
// values is unsafe if at most threshold subjects show it. For each it
// withholds, in the unsafe tuples, cells of the column that leaves the fewest
// subjects unsafe (of equals the first), then again among those that are left,
// so that few cells go. Where tuples without any cell left are still too few
// to hide among each other, the smallest safe combinations go as well.
//
// Combinations are worked in the order given; list the smaller ones first. It
// fails if a combination names no column, a column that is not there or one
// twice, if threshold is below 1, and with an [*UnmetError] if the table has
// no more than threshold subjects. Cost: for each combination, one count of
// all tuples for each of its columns.
func SuppressCells(t *Table, combinations [][]int, threshold int) (*CellRecoding, error) {
	if threshold < 1 {
		return nil, fmt.Errorf("suppress cells: the threshold must be at least 1, not %d", threshold)
	}
	if t.Subjects() <= threshold {
		return nil, &UnmetError{Requirement: BlockK{threshold + 1}.String()}
	}
	r := &CellRecoding{table: t, withheld: make([][]bool, len(t.columns))}
	for c := range r.withheld {
		r.withheld[c] = make([]bool, t.Tuples())
	}
	for _, columns := range combinations {
		if len(columns) == 0 {
			return nil, errors.New("suppress cells: a combination without columns")
		}
		for i, c := range columns {
			if c < 0 || c >= len(t.columns) || slices.Contains(columns[:i], c) {
				return nil, fmt.Errorf("suppress cells: column %d is not there or named twice", c)
			}
		}
		r.protect(columns, threshold)
	}
	// Later combinations withhold cells of earlier ones.
	for again := true; again; {
		again = false
		for _, columns := range combinations {
			if len(r.unsafe(columns, threshold)) > 0 {
				r.protect(columns, threshold)
				again = true
			}
		}
	}
	return r, nil
}

// protect withholds cells until the combination has no unsafe tuple.
func (r *CellRecoding) protect(columns []int, threshold int) {
	for {
		unsafe := r.unsafe(columns, threshold)
		if len(unsafe) == 0 {
			return
		}
		open := slices.DeleteFunc(slices.Clone(columns), func(c int) bool {
			return !slices.ContainsFunc(unsafe, func(tuple uint32) bool { return !r.withheld[c][tuple] })
		})
		if len(open) == 0 {
			r.withholdAll(columns, r.smallestSafe(columns, threshold))
			continue
		}
		best, fewest := open[0], r.table.Subjects()+1
		for _, c := range open {
			if n := r.leftUnsafe(columns, threshold, c, unsafe); n < fewest {
				best, fewest = c, n
			}
		}
		r.withhold(best, unsafe)
	}
}

// withhold hides a column of tuples, and returns those that showed it before.
func (r *CellRecoding) withhold(c int, tuples []uint32) (changed []uint32) {
	for _, tuple := range tuples {
		if !r.withheld[c][tuple] {
			r.withheld[c][tuple] = true
			changed = append(changed, tuple)
		}
	}
	return changed
}

func (r *CellRecoding) withholdAll(columns []int, tuples []uint32) {
	for _, c := range columns {
		r.withhold(c, tuples)
	}
}

// leftUnsafe counts the subjects left unsafe if a column were withheld.
func (r *CellRecoding) leftUnsafe(columns []int, threshold, c int, tuples []uint32) int {
	changed := r.withhold(c, tuples)
	left := newTally(r.table, nil).subjects(r.unsafe(columns, threshold))
	for _, tuple := range changed {
		r.withheld[c][tuple] = false
	}
	return left
}

// classes groups tuples by what a combination shows, in order of appearance.
func (r *CellRecoding) classes(columns []int) [][]uint32 {
	index := make(map[string]int)
	var classes [][]uint32
	key := make([]byte, 0, 4*len(columns))
	for tuple := range uint32(r.table.Tuples()) {
		key = key[:0]
		for _, c := range columns {
			shown := ^uint32(0)
			if !r.withheld[c][tuple] {
				shown = r.table.tuples[c][tuple]
			}
			key = binary.LittleEndian.AppendUint32(key, shown)
		}
		at, ok := index[string(key)]
		if !ok {
			at = len(classes)
			index[string(key)] = at
			classes = append(classes, nil)
		}
		classes[at] = append(classes[at], tuple)
	}
	return classes
}

// unsafe lists the tuples in combinations of at most threshold subjects.
func (r *CellRecoding) unsafe(columns []int, threshold int) []uint32 {
	var out []uint32
	count := newTally(r.table, nil)
	for _, class := range r.classes(columns) {
		if count.subjects(class) <= threshold {
			out = append(out, class...)
		}
	}
	return out
}

// smallestSafe is the safe class with the fewest subjects; of equals the one
// whose values come first.
func (r *CellRecoding) smallestSafe(columns []int, threshold int) []uint32 {
	var smallest []uint32
	fewest := r.table.Subjects() + 1
	count := newTally(r.table, nil)
	for _, class := range r.classes(columns) {
		n := count.subjects(class)
		if n > threshold && (n < fewest || n == fewest && r.before(columns, class[0], smallest[0])) {
			smallest, fewest = class, n
		}
	}
	return smallest
}

func (r *CellRecoding) before(columns []int, a, b uint32) bool {
	for _, c := range columns {
		if x, y := r.table.tuples[c][a], r.table.tuples[c][b]; x != y {
			return x < y
		}
	}
	return false
}

// Withheld says whether a tuple's value in a column is withheld.
func (r *CellRecoding) Withheld(column int, tuple uint32) bool { return r.withheld[column][tuple] }

// Unsafe is the number of subjects in combinations that at most threshold
// subjects show.
func (r *CellRecoding) Unsafe(columns []int, threshold int) int {
	return newTally(r.table, nil).subjects(r.unsafe(columns, threshold))
}

// Label is the text shown for a tuple in a column: [Top] where it is withheld,
// else the value itself.
func (r *CellRecoding) Label(tuple uint32, column int) string {
	if r.withheld[column][tuple] {
		return Top
	}
	return r.table.columns[column].Hierarchy.Label(Node{Group: r.table.Leaf(column, tuple)})
}

// WithheldCells is the number of cells of the columns, over all rows, that are
// withheld.
func (r *CellRecoding) WithheldCells(columns []int) int {
	cells := 0
	for _, c := range columns {
		for tuple, gone := range r.withheld[c] {
			if gone {
				cells += len(r.table.RowsOf(uint32(tuple)))
			}
		}
	}
	return cells
}

// WithheldRows is the number of rows that are withheld in every column.
func (r *CellRecoding) WithheldRows() int {
	rows := 0
	for tuple := range uint32(r.table.Tuples()) {
		shown := func(column []bool) bool { return !column[tuple] }
		if !slices.ContainsFunc(r.withheld, shown) {
			rows += len(r.table.RowsOf(tuple))
		}
	}
	return rows
}

// ModificationRate is the share of the cells of the columns, over all rows,
// that are withheld: the MR of [Chen], in [0, 1].
func (r *CellRecoding) ModificationRate(columns []int) float64 {
	if len(columns) == 0 || r.table.Rows() == 0 {
		return 0
	}
	return float64(r.WithheldCells(columns)) / float64(len(columns)*r.table.Rows())
}
