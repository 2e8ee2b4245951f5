package anonymize

import "fmt"

// Transformation is the outcome of full-domain recoding at one node of the
// lattice: which rows are suppressed, how the others are shown and what that
// costs. It is immutable and safe for concurrent use.
//
// If Admissible is set, every class of rows that are shown alike, the
// suppressed ones aside, meets all privacy models of the problem.
type Transformation struct {
	// Levels is the level of each column.
	Levels []int
	// Admissible says whether the models hold within the suppression limit.
	Admissible bool
	// Score by the quality model of the problem, and by column where the model
	// has parts (else nil).
	Score    float64
	ByColumn []float64
	// SuppressedRows is the number of rows shown as [Top] in every column.
	SuppressedRows int
	// Classes is the number of classes that remain, SmallestClass the subjects
	// of the smallest of them, 0 where none remains.
	Classes, SmallestClass int

	table      *Table
	classOfRow []uint32
	suppressed []bool // by class
}

// Transform recodes the table of a problem at given levels. It fails with a
// *[ProblemError] on a faulty problem and on levels that the hierarchies do not
// have.
func Transform(p *Problem, levelOf []int) (*Transformation, error) {
	s, err := newSpace(p)
	if err != nil {
		return nil, err
	}
	v, err := s.lattice.levels(levelOf)
	if err != nil {
		return nil, err
	}
	c := newChecker(s)
	c.evaluator.thorough = true
	n, verdict := c.form(v, s.entries.base)
	n.classOf = c.grouper.classOf
	t := &Transformation{
		Levels: append([]int(nil), levelOf...), Admissible: verdict.admissible,
		Score: s.quality.score(n), ByColumn: s.quality.parts(n),
		SuppressedRows: verdict.rows, Classes: verdict.kept,
		table: p.Table, suppressed: append([]bool(nil), n.suppressed...),
	}
	t.classOfRow = make([]uint32, len(s.entries.ofRow))
	for r, entry := range s.entries.ofRow {
		t.classOfRow[r] = n.classOf[entry]
	}
	for i, subjects := range n.classes.subjects {
		if n.classes.rows[i] > 0 && !t.suppressed[i] &&
			(t.SmallestClass == 0 || int(subjects) < t.SmallestClass) {
			t.SmallestClass = int(subjects)
		}
	}
	return t, nil
}

// levels checks a node that comes from outside.
func (l Lattice) levels(of []int) (levels, error) {
	if len(of) != len(l.heights) {
		return nil, &ProblemError{
			fmt.Sprintf("%d levels for %d columns", len(of), len(l.heights)),
			"give one level for each column",
		}
	}
	v := make(levels, len(of))
	for c, level := range of {
		if level < 0 || level >= int(l.heights[c]) {
			return nil, &ProblemError{
				fmt.Sprintf("column %d has no level %d", c+1, level),
				"give levels from 0 to the height less one",
			}
		}
		v[c] = uint8(level)
	}
	return v, nil
}

// Suppressed says whether a row is suppressed.
func (t *Transformation) Suppressed(row int) bool { return t.suppressed[t.classOfRow[row]] }

// Class numbers the class of a row. Numbers are not dense, as classes that are
// suppressed have theirs too.
func (t *Transformation) Class(row int) uint32 { return t.classOfRow[row] }

// Label is how a cell is shown.
func (t *Transformation) Label(row, column int) string {
	if t.Suppressed(row) {
		return Top
	}
	h := t.table.Columns()[column].Hierarchy
	leaf := t.table.Leaf(column, t.table.TupleOfRow()[row])
	return h.Label(Node{Level: t.Levels[column], Group: h.Generalize(leaf, t.Levels[column])})
}
