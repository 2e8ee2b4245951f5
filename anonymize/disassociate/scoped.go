package disassociate

import (
	"cmp"
	"context"
	"slices"
)

// holding is a cluster whose item chunk has a certain code.
type holding struct {
	cluster int32
	support int32
}

// refineScoped publishes each code of the item chunks in shared chunks of its
// own: it walks the clusters that have the code in their item chunk, in order,
// and closes a chunk as soon as the code occurs k times there; what remains at
// the end joins the last chunk. A code with fewer than k occurrences in all
// item chunks stays there, as does the last code of a cluster that needs it
// (see mayLeave) and every sensitive code.
//
// It is not in the papers. Guarantee 1 holds because each code of a cluster is
// in one place, the chunks are independent of each other, and each shared
// chunk has k copies of its code, which can all be given to the k records of
// the cluster in question. No joint clusters are needed, so scopes may overlap
// freely. TestRandomDataMeetsTheDefinition compares with the definition.
//
// Codes of few item chunks go first: a code that must stay where it is then is
// a frequent one, whose count suffers least from not being counted once.
// Cost: linear in the item chunks.
func refineScoped(
	ctx context.Context, cfg *Config, r *roles, clusters []cluster, progress func(done int),
) ([]shared, error) {
	holdings := make([][]holding, len(r.constraint))
	left := make([]int, len(clusters))
	var codes []Item
	for p := range clusters {
		c := &clusters[p]
		left[p] = len(c.items)
		for i, it := range c.items {
			if r.sensitive[it] {
				continue
			}
			if len(holdings[it]) == 0 {
				codes = append(codes, it)
			}
			holdings[it] = append(holdings[it], holding{int32(p), c.support[i]})
		}
	}
	slices.SortFunc(codes, func(x, y Item) int {
		return cmp.Or(cmp.Compare(len(holdings[x]), len(holdings[y])), cmp.Compare(x, y))
	})
	var chunks []shared
	gone := make([][]Item, len(clusters))
	for done, it := range codes {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		mayLeave := func(p int32) bool { return clusters[p].mayLeave(left[p], cfg) }
		for _, scope := range scopes(holdings[it], cfg.K, mayLeave) {
			for _, p := range scope {
				left[p]--
				gone[p] = append(gone[p], it)
			}
			chunks = append(chunks, shared{scope: scope, codes: []Item{it}})
		}
		progress(done + 1)
	}
	for p := range clusters {
		slices.Sort(gone[p])
		clusters[p].removeItems(gone[p])
	}
	return chunks, nil
}

// scopes groups the clusters that a code may leave so that it occurs k times
// in each group. There is no group if it occurs fewer than k times in all.
func scopes(holdings []holding, k int, mayLeave func(cluster int32) bool) [][]int32 {
	var groups [][]int32
	var open []int32
	occurrences := 0
	for _, h := range holdings {
		if !mayLeave(h.cluster) {
			continue
		}
		open = append(open, h.cluster)
		if occurrences += int(h.support); occurrences >= k {
			groups = append(groups, open)
			open, occurrences = nil, 0
		}
	}
	if len(groups) > 0 {
		groups[len(groups)-1] = append(groups[len(groups)-1], open...)
	}
	return groups
}
