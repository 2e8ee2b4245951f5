package cba

import (
	"context"
	"math"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
)

// Item numbers a code of a data set.
type Item = disassociate.Item

// Result is a generalized data set: each code is mapped to a set of codes of
// its constraint, or suppressed.
type Result struct {
	data       *disassociate.Dataset
	groupOf    []int // item -> its group, or -1 if suppressed
	groups     []group
	Suppressed Suppression
}

// Suppression counts what was removed.
type Suppression struct {
	Codes       int // distinct codes
	Occurrences int // in all records
}

// group is a generalized item: a set of codes, published as "some of these".
type group struct {
	codes      []Item
	constraint int
	records    utility.Bitset // with at least one of the codes
	support    int
	distance   float64 // summed over pairs of codes
	merged     bool    // no longer a group of its own
}

// anonymizer runs CBA.
type anonymizer struct {
	*Result
	k            int
	taxonomy     *utility.Taxonomy
	byConstraint [][]int // constraint -> its groups
	both         utility.Bitset
}

// Anonymize generalizes and suppresses codes until each set of at most m codes
// that occurs in the data is held, as generalized, by at least k records: it
// takes the sets by rising support and, while one is too rare, merges one of
// its groups with another group of the same constraint where that loses least
// information; where there is none left, it suppresses the rarest group of the
// set ([Loukides2010], algorithm 1). Codes without a constraint can only be
// suppressed.
//
// Cost: all sets of m codes that occur are held in memory.
func Anonymize(
	ctx context.Context, d *disassociate.Dataset, k, m int, constraints []disassociate.Constraint,
	t *utility.Taxonomy,
) (*Result, error) {
	holders := utility.HoldersOf(d, 1)
	sets, _, err := utility.FrequentSets(ctx, holders, 1, m, math.MaxInt)
	if err != nil {
		return nil, err
	}
	a := &anonymizer{
		Result: &Result{
			data: d, groupOf: make([]int, len(d.Codes())),
			groups: make([]group, len(d.Codes())),
		},
		k: k, taxonomy: t,
		byConstraint: make([][]int, len(constraints)),
		both:         utility.NewBitset(d.Len()),
	}
	constraintOf := make(map[string]int)
	for u, c := range constraints {
		for _, text := range c.Codes {
			constraintOf[text] = u
		}
	}
	for it, c := range d.Codes() {
		u, ok := constraintOf[c.Text]
		if !ok {
			u = -1
		} else {
			a.byConstraint[u] = append(a.byConstraint[u], it)
		}
		a.groupOf[it] = it
		a.groups[it] = group{
			codes: []Item{Item(it)}, constraint: u, records: holders[it],
			support: holders[it].Len(),
		}
	}
	for i, set := range slices.Backward(sets) {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a.protect(set.Items)
	}
	return a.Result, nil
}

// protect generalizes one set until k records hold it.
func (a *anonymizer) protect(set []Item) {
	for {
		groups := a.groupsOf(set)
		if len(groups) == 0 {
			return
		}
		if n := a.support(groups); n >= a.k || n == 0 {
			return
		}
		into, from, ok := a.cheapestMerge(groups)
		if !ok {
			a.suppress(groups)
			return
		}
		a.merge(into, from)
	}
}

// groupsOf lists the different groups of a set that are not suppressed.
func (r *Result) groupsOf(set []Item) []int {
	var groups []int
	for _, it := range set {
		if g := r.groupOf[it]; g >= 0 && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	return groups
}

// Holders is the number of records that may hold all of a query for all that
// the generalized data say: those with each group of it. Suppressed codes do
// not count; it is 0 where nothing else is left.
func (r *Result) Holders(query []Item) int {
	groups := r.groupsOf(query)
	if len(groups) == 0 {
		return 0
	}
	return r.support(groups)
}

// support is the number of records that hold a code of each group.
func (r *Result) support(groups []int) int {
	all := slices.Clone(r.groups[groups[0]].records)
	n := r.groups[groups[0]].support
	for _, g := range groups[1:] {
		n = all.And(all, r.groups[g].records)
	}
	return n
}

// cheapestMerge finds the groups to merge: one of the given, and another of
// its constraint.
func (a *anonymizer) cheapestMerge(groups []int) (into, from int, ok bool) {
	least := math.Inf(1)
	for _, g := range groups {
		u := a.groups[g].constraint
		if u < 0 {
			continue
		}
		for _, other := range a.byConstraint[u] {
			if other == g || a.groups[other].merged {
				continue
			}
			if loss := a.loss(g, other); loss < least {
				least, into, from, ok = loss, g, other, true
			}
		}
	}
	return into, from, ok
}

// loss is the binary logarithm of the information loss of a merged group:
// (2^codes - 1) × mean distance of its codes × its support. As a logarithm it
// cannot overflow.
func (a *anonymizer) loss(g, h int) float64 {
	x, y := &a.groups[g], &a.groups[h]
	codes := len(x.codes) + len(y.codes)
	copy(a.both, x.records)
	a.both.Or(y.records)
	mean := a.distance(x, y) / float64(codes*(codes-1)/2)
	return subsets(codes) + math.Log2(mean) + math.Log2(float64(a.both.Len()))
}

// subsets is log2(2^codes - 1).
func subsets(codes int) float64 {
	if codes > 50 {
		return float64(codes)
	}
	return math.Log2(math.Exp2(float64(codes)) - 1)
}

// distance sums the distances of all pairs of codes of two groups together.
func (a *anonymizer) distance(x, y *group) float64 {
	sum := x.distance + y.distance
	for _, c := range x.codes {
		for _, e := range y.codes {
			sum += a.taxonomy.Distance(a.data.Codes()[c].Text, a.data.Codes()[e].Text)
		}
	}
	return sum
}

func (a *anonymizer) merge(into, from int) {
	x, y := &a.groups[into], &a.groups[from]
	x.distance = a.distance(x, y)
	records := slices.Clone(x.records)
	records.Or(y.records)
	x.records, x.support = records, records.Len()
	for _, it := range y.codes {
		a.groupOf[it] = into
	}
	x.codes = append(x.codes, y.codes...)
	y.merged = true
}

// suppress removes the rarest of the groups of a set.
func (a *anonymizer) suppress(groups []int) {
	rarest := slices.MinFunc(groups, func(g, h int) int {
		return a.groups[g].support - a.groups[h].support
	})
	g := &a.groups[rarest]
	g.merged = true
	for _, it := range g.codes {
		a.groupOf[it] = -1
	}
	gone := make(map[Item]bool, len(g.codes))
	for _, it := range g.codes {
		gone[it] = true
	}
	a.Suppressed.Codes += len(g.codes)
	for r := range a.data.Len() {
		for _, it := range a.data.Items(r) {
			if gone[it] {
				a.Suppressed.Occurrences++
			}
		}
	}
}

// Groups is the number of generalized items that stand for several codes.
func (r *Result) Groups() int {
	n := 0
	for g := range r.groups {
		if !r.groups[g].merged && len(r.groups[g].codes) > 1 {
			n++
		}
	}
	return n
}

// Count estimates how many records hold all of a query. A generalized item
// means any non-empty subset of its codes, each as likely, so q codes of a
// group of n are all held with probability 2^(n-q)/(2^n-1). A suppressed code
// is held by no record.
func (r *Result) Count(query []Item) float64 {
	inGroup := make(map[int]int)
	for _, it := range query {
		g := r.groupOf[it]
		if g < 0 {
			return 0
		}
		inGroup[g]++
	}
	groups := r.groupsOf(query)
	estimate := float64(r.support(groups))
	for _, g := range groups {
		n := len(r.groups[g].codes)
		estimate *= math.Exp2(float64(n-inGroup[g]) - subsets(n))
	}
	return estimate
}

// CountAny is the number of records that hold at least one of codes, which
// make up a utility constraint: a record with any group of it does.
func (r *Result) CountAny(codes []string) float64 {
	wanted := make(map[string]bool, len(codes))
	for _, c := range codes {
		wanted[c] = true
	}
	any := utility.NewBitset(r.data.Len())
	for it, c := range r.data.Codes() {
		if g := r.groupOf[it]; g >= 0 && wanted[c.Text] {
			any.Or(r.groups[g].records)
		}
	}
	return float64(any.Len())
}
