package main

import (
	"cmp"
	"maps"
	"slices"
)

// largestGroup is the largest strongly connected component of a graph, sorted; of several
// that are as large, the first by name.
func largestGroup(needs map[string][]string) []string {
	g := &grouping{
		needs: needs, place: make(map[string]int), low: make(map[string]int), open: make(map[string]bool),
	}
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		if g.place[name] == 0 {
			g.visit(name)
		}
	}
	if len(g.groups) == 0 {
		return nil
	}
	return slices.MinFunc(g.groups, func(x, y []string) int {
		return cmp.Or(cmp.Compare(len(y), len(x)), slices.Compare(x, y))
	})
}

// grouping is Tarjan's algorithm. A package has some tens of files, so it may recurse.
type grouping struct {
	needs  map[string][]string
	place  map[string]int // in the order of the visits, from 1
	low    map[string]int // the first place that can be reached and is open
	open   map[string]bool
	stack  []string
	groups [][]string
}

func (g *grouping) visit(name string) {
	g.place[name] = len(g.place) + 1
	g.low[name] = g.place[name]
	g.stack = append(g.stack, name)
	g.open[name] = true
	for _, other := range g.needs[name] {
		if g.place[other] == 0 {
			g.visit(other)
			g.low[name] = min(g.low[name], g.low[other])
		} else if g.open[other] {
			g.low[name] = min(g.low[name], g.place[other])
		}
	}
	if g.low[name] != g.place[name] {
		return
	}
	at := slices.Index(g.stack, name)
	group := slices.Clone(g.stack[at:])
	g.stack = g.stack[:at]
	for _, member := range group {
		delete(g.open, member)
	}
	slices.Sort(group)
	g.groups = append(g.groups, group)
}
