package identify

import (
	"cmp"
	"slices"
)

// Bounds of the search for sets of columns.
const (
	// SetColumns is the largest set that is looked for.
	SetColumns = 4
	// SinglingShare is the percentage of rows that a set has to single out to be
	// reported.
	SinglingShare = 50
	// setWork bounds the search: cells that are looked at.
	setWork = 200_000_000
	// stepWork is what one step costs besides its rows, in cells.
	stepWork = 100
	// setsAtMost are kept.
	setsAtMost = 100
)

// Set is a set of columns with the share of the rows that it singles out: no
// other row is equal to them in all of its columns.
type Set struct {
	Columns []string
	Percent float64
}

// Combinations say which small sets of columns single people out.
type Combinations struct {
	// Minimal sets of at most [SetColumns] columns single out [SinglingShare]
	// percent of the rows, and no part of one does; by size, then falling share.
	Minimal []Set
	// Worst has the set that singles out the most rows, for each size from 1.
	Worst []Set
	// Complete says that all sets were looked at; the search ends early after
	// much work, having tried columns of many values first.
	Complete bool
}

// Accompany notes, for each column, the minimal set with others that singles out
// the most rows.
func (c *Combinations) Accompany(columns []*Column) {
	for _, column := range columns {
		for _, set := range c.Minimal {
			at := slices.Index(set.Columns, column.Name)
			if at >= 0 && len(set.Columns) > 1 && set.Percent > column.SinglesOut {
				column.SinglesOut = set.Percent
				column.Company = slices.Delete(slices.Clone(set.Columns), at, at+1)
			}
		}
	}
}

// Combine looks for sets of columns that single people out, each row taken for
// a person. It takes time and memory for at most 200 million cells, whatever the
// number of columns.
func Combine(r *Rows) *Combinations {
	s := &search{rows: r, out: &Combinations{Complete: true}, left: setWork}
	distinct := make([]int, len(r.Codes))
	for c, codes := range r.Codes {
		t := newTally(codes)
		s.tallies = append(s.tallies, t)
		distinct[c] = len(t.counts)
		s.order = append(s.order, c)
	}
	slices.SortStableFunc(
		s.order, func(a, b int) int { return cmp.Compare(distinct[b], distinct[a]) },
	)
	if r.Count == 0 {
		return s.out
	}
	for size := 1; size <= min(SetColumns, len(s.order)) && s.left > 0; size++ {
		s.worst = Set{Percent: -1}
		s.extend(nil, 0, size, everything(r.Count))
		if s.worst.Columns != nil {
			s.out.Worst = append(s.out.Worst, s.worst)
		}
	}
	slices.SortStableFunc(s.out.Minimal, func(a, b Set) int {
		return cmp.Or(
			cmp.Compare(len(a.Columns), len(b.Columns)), cmp.Compare(b.Percent, a.Percent),
		)
	})
	s.out.Minimal = s.out.Minimal[:min(len(s.out.Minimal), setsAtMost)]
	return s.out
}

type search struct {
	rows    *Rows
	tallies []*tally
	order   []int // columns, those of many values first
	found   [][]int
	left    int // cells that may still be looked at
	worst   Set // of the present size
	out     *Combinations
}

// extend adds columns from a place of the order on to a set, until it has size.
func (s *search) extend(set []int, from, size int, g *groups) {
	for i := from; i+size-len(set) <= len(s.order); i++ {
		next := append(slices.Clone(set), s.order[i])
		if s.holdsMinimal(next) {
			continue
		}
		if s.left -= len(g.rows) + stepWork; s.left < 0 {
			s.out.Complete = false
			return
		}
		c := s.order[i]
		refined := g.refine(s.rows.Codes[c], s.tallies[c])
		if len(next) < size {
			s.extend(next, i+1, size, refined)
			continue
		}
		alone := Set{Percent: 100 * float64(s.rows.Count-len(refined.rows)) / float64(s.rows.Count)}
		if alone.Percent < SinglingShare && alone.Percent <= s.worst.Percent {
			continue
		}
		slices.Sort(next) // in the order of the table
		for _, c := range next {
			alone.Columns = append(alone.Columns, s.rows.Names[c])
		}
		if alone.Percent > s.worst.Percent {
			s.worst = alone
		}
		if alone.Percent >= SinglingShare {
			s.found = append(s.found, next)
			s.out.Minimal = append(s.out.Minimal, alone)
		}
	}
}

// holdsMinimal says that a part of a set singles people out by itself.
func (s *search) holdsMinimal(set []int) bool {
	return slices.ContainsFunc(s.found, func(found []int) bool {
		return !slices.ContainsFunc(found, func(c int) bool { return !slices.Contains(set, c) })
	})
}
