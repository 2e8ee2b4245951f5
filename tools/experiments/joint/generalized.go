package main

import (
	"context"
	"math/rand/v2"
	"slices"
)

// generalized publishes codes within groups of demographics by generalization alone: along
// prefixes, siblings together, until each set of up to two has k records of the group
// (global recoding of [Terrovitis2008], in each group by itself).
func (d *dataset) generalized(ctx context.Context, k, size int) ([]person, error) {
	g, err := d.groups(ctx, size)
	if err != nil {
		return nil, err
	}
	below := make(map[string][]string) // the codes of the data by prefix, as often as there are
	for r := range d.records.Len() {
		for _, code := range d.records.AppendCodes(nil, r) {
			for node := code; node != ""; node = parent(node) {
				below[node] = append(below[node], code)
			}
		}
	}
	rng := chance()
	values := d.values(g.sketch, k, rng)
	var out []person
	for group, members := range g.members {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		records := make([][]string, len(members))
		for i, r := range members {
			records[i] = d.records.AppendCodes(nil, int(r))
		}
		recode(records, k)
		for nth, nodes := range records {
			p, err := demographics(values, group, nth)
			if err != nil {
				return nil, err
			}
			p.codes = read(rng, nodes, below)
			out = append(out, p)
		}
	}
	return out, nil
}

// parent is the next wider node: "" is nothing.
func parent(node string) string {
	switch {
	case len(node) > 3:
		return node[:3]
	case len(node) > 1:
		return node[:len(node)-1]
	}
	return ""
}

// recode widens the codes of records until each node, and each pair of nodes, has k records.
func recode(records [][]string, k int) {
	for {
		counts := make(map[[2]string]int)
		for _, nodes := range records {
			for i, x := range nodes {
				counts[[2]string{x}]++
				for _, y := range nodes[i+1:] {
					counts[[2]string{x, y}]++
				}
			}
		}
		wider, gone := make(map[string]bool), make(map[string]bool) // nodes to be, and not to be
		widen := func(node string) {
			if parent(node) == "" {
				gone[node] = true
			} else {
				wider[parent(node)] = true
			}
		}
		for set, n := range counts {
			switch {
			case n >= k:
			case set[1] == "" || counts[[2]string{set[0]}] <= counts[[2]string{set[1]}]:
				widen(set[0])
			default:
				widen(set[1])
			}
		}
		if len(wider)+len(gone) == 0 {
			return
		}
		for i, nodes := range records {
			var now []string
			for _, node := range nodes {
				if gone[node] {
					continue
				}
				widest := node
				for at := parent(node); at != ""; at = parent(at) {
					if wider[at] {
						widest = at
					}
				}
				now = append(now, widest)
			}
			slices.Sort(now)
			records[i] = slices.Compact(now)
		}
	}
}

// read takes a code at random for each node.
func read(rng *rand.Rand, nodes []string, below map[string][]string) []string {
	var codes []string
	for _, node := range nodes {
		codes = append(codes, below[node][rng.IntN(len(below[node]))])
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}
