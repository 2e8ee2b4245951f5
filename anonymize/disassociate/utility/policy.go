package utility

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// A utility policy is a list of utility constraints, each code in at most one.
// The three kinds are those of [Loukides2014]; how exactly similar and
// frequent codes are grouped is our choice.

// LevelPolicy puts codes with a common ancestor at a level (from 1) into one
// constraint. Codes outside the taxonomy get one each. Constraints come in the
// order of their codes.
func LevelPolicy(d *disassociate.Dataset, t *Taxonomy, level int) []disassociate.Constraint {
	var list []disassociate.Constraint
	at := make(map[string]int)
	for _, code := range distinct(d) {
		name, ok := t.Ancestor(code, level)
		if !ok {
			name = code
		}
		i, seen := at[name]
		if !seen {
			i = len(list)
			at[name] = i
			list = append(list, disassociate.Constraint{Name: name})
		}
		list[i].Codes = append(list[i].Codes, code)
	}
	return list
}

// SimilarityPolicy puts each size codes that follow each other in the taxonomy
// into one constraint; the last may have fewer. Codes outside the taxonomy
// come last.
func SimilarityPolicy(d *disassociate.Dataset, t *Taxonomy, size int) []disassociate.Constraint {
	codes := distinct(d)
	rank := func(code string) int {
		if i, ok := t.order[code]; ok {
			return i
		}
		return len(t.order)
	}
	slices.SortStableFunc(codes, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	var list []disassociate.Constraint
	for group := range slices.Chunk(codes, size) {
		list = append(list, disassociate.Constraint{
			Name:  fmt.Sprintf("similar %d", len(list)+1),
			Codes: group,
		})
	}
	return list
}

// FrequencyPolicy makes constraints of frequent sets of codes: the largest
// sets first, the more frequent first among these, each if it has no code in
// common with those taken before. Sets of one code, which are left over, come
// last.
func FrequencyPolicy(d *disassociate.Dataset, sets []Frequent) []disassociate.Constraint {
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b Frequent) int {
		return cmp.Or(cmp.Compare(len(b.Items), len(a.Items)), cmp.Compare(b.Support, a.Support))
	})
	taken := make(map[string]bool)
	var list []disassociate.Constraint
	for _, set := range sets {
		codes := make([]string, len(set.Items))
		for i, it := range set.Items {
			codes[i] = d.Codes()[it].Text
		}
		if slices.ContainsFunc(codes, func(c string) bool { return taken[c] }) {
			continue
		}
		for _, c := range codes {
			taken[c] = true
		}
		slices.Sort(codes)
		list = append(list, disassociate.Constraint{
			Name:  fmt.Sprintf("frequent %d", len(list)+1),
			Codes: slices.Compact(codes),
		})
	}
	return list
}

// distinct lists the texts of the codes of a data set in order.
func distinct(d *disassociate.Dataset) []string {
	var texts []string
	for _, c := range d.Codes() {
		if c.Nth == 1 {
			texts = append(texts, c.Text)
		}
	}
	return texts
}
