package identify

import (
	"cmp"
	"slices"
)

// Bounds of the search for dependencies.
const (
	// ExceptionShare is the percentage of rows that may speak against a
	// dependency.
	ExceptionShare = 1
	// dependencyWork bounds the search: cells that are looked at.
	dependencyWork = 200_000_000
	// dependenciesAtMost are kept.
	dependenciesAtMost = 1000
)

// Dependency says that who knows one column of a row knows another.
type Dependency struct {
	From, To string
	// Exceptions is the percentage of rows that would have to go for it to hold
	// without exception ([Kivinen1995], g3).
	Exceptions float64
}

// Depend finds the columns that another column determines but for at most
// [ExceptionShare] percent of the rows. Left out is what says nothing: columns
// by which half of the rows are alone, and columns whose most frequent value
// nearly always holds anyway. complete says that all pairs were looked at; the
// search ends after 200 million cells, or a thousand dependencies.
func Depend(r *Rows) (found []Dependency, complete bool) {
	left := dependencyWork
	tallies := make([]*tally, len(r.Codes))
	guessed := make([]float64, len(r.Codes)) // percent of rows that a guess gets wrong
	all := everything(r.Count)
	for c, codes := range r.Codes {
		tallies[c] = newTally(codes)
		guessed[c] = 100 * float64(r.Count-mostFrequent(all, codes, tallies[c])) / float64(
			max(r.Count, 1),
		)
	}
	for from, codes := range r.Codes {
		g := all.refine(codes, tallies[from])
		alone := r.Count - len(g.rows)
		if 2*alone >= r.Count {
			continue
		}
		for to := range r.Codes {
			if to == from || guessed[to] == 0 {
				continue
			}
			if left -= len(g.rows) + stepWork; left < 0 || len(found) == dependenciesAtMost {
				return found, false
			}
			kept := alone + mostFrequent(g, r.Codes[to], tallies[to])
			wrong := 100 * float64(r.Count-kept) / float64(r.Count)
			if wrong <= ExceptionShare && 10*wrong <= guessed[to] {
				found = append(found, Dependency{r.Names[from], r.Names[to], wrong})
			}
		}
	}
	slices.SortStableFunc(
		found, func(a, b Dependency) int { return cmp.Compare(a.Exceptions, b.Exceptions) },
	)
	return found, true
}

// mostFrequent sums, over the groups, the rows with the group's most frequent
// code.
func mostFrequent(g *groups, codes []uint32, t *tally) (sum int) {
	g.each(func(rows []uint32) {
		most := uint32(0)
		for _, row := range rows {
			t.add(codes[row])
			most = max(most, t.counts[codes[row]])
		}
		sum += int(most)
		t.reset()
	})
	return sum
}
