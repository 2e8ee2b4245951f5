package main

import (
	"context"
	"math/rand/v2"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// The experiment: of so many people, as many leave with each copy as come.
const (
	k      = 5 // subjects who may go, or stay, together
	start  = 20_000
	copies = 100
	flow   = 40 // 0.2 %
)

// rule says when newcomers are shown.
type rule struct {
	root   int     // k that blocks are made for
	cohort int     // how many are partitioned by themselves
	fit    float64 // blocks that lose so many times what the first root does are shown; 0: all are
	copies int     // and those of somebody who has waited for so many copies; 0: no others
}

// outcome is what a rule comes to.
type outcome struct {
	loss     float64 // mean share of the domain that a cell covers, at the end
	relative float64 // the same, of a root at once over those who are there then
	waited   float64 // copies, on average, of those who were shown and of those who wait still
	waiting  float64 // the share of the people there who are not shown at the end
	stale    float64 // the share of rows of people who have left
}

// block is a block of a release that lives on.
type block struct {
	loss          float64 // of each of its people
	members, left int
}

// people are those of the table, in an order drawn at random.
type people struct {
	columns []anonymize.Column
	leaves  [][]uint32 // [column][person]
}

// partition makes a root over people, and says which block each is in.
func (a *people) partition(ctx context.Context, people []int, least int) ([]*block, error) {
	leaves := make([][]uint32, len(a.columns))
	for c := range leaves {
		for _, person := range people {
			leaves[c] = append(leaves[c], a.leaves[c][person])
		}
	}
	table, err := anonymize.NewTable(a.columns, leaves, nil)
	if err != nil {
		return nil, err
	}
	p, err := anonymize.Root(ctx, table,
		anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: least}}})
	if err != nil {
		return nil, err
	}
	blocks := make([]*block, p.Blocks())
	for i := range blocks {
		blocks[i] = &block{members: p.Subjects(uint32(i))}
		for c, column := range a.columns {
			blocks[i].loss += column.Hierarchy.Share(p.Cover(uint32(i),
				c)) / float64(len(a.columns))
		}
	}
	of := make([]*block, len(people))
	for i, tuple := range table.TupleOfRow() {
		of[i] = blocks[p.BlockOf()[tuple]]
	}
	return of, nil
}

// meanLoss is that of the people of blocks.
func meanLoss(of []*block) (loss float64) {
	for _, b := range of {
		loss += b.loss / float64(len(of))
	}
	return loss
}

// resident is somebody who is in the table.
type resident struct {
	person int
	came   int    // with which copy
	shown  *block // nil for one who waits
}

// simulate lets people come and go under a rule. The seed is fixed.
func simulate(ctx context.Context, a *people, first []*block, r rule) (o outcome, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	var there []*resident
	blocks := make(map[*block]bool)
	for person := range start {
		// Each rule counts in blocks of its own.
		there = append(there, &resident{person: person})
	}
	own := make(map[*block]*block)
	for person, b := range first {
		if own[b] == nil {
			own[b] = &block{loss: b.loss, members: b.members}
			blocks[own[b]] = true
		}
		there[person].shown = own[b]
	}
	limit := r.fit * meanLoss(first)
	next, waits, arrived := start, 0, 0
	for copy := range copies {
		for range flow {
			i := rng.IntN(len(there))
			if b := there[i].shown; b != nil {
				b.left++
			}
			there[i] = there[len(there)-1]
			there = there[:len(there)-1]
		}
		for range flow {
			there = append(there, &resident{person: next, came: copy})
			next++
		}
		var waiting []*resident
		var people []int
		for _, who := range there {
			if who.shown == nil {
				waiting, people = append(waiting, who), append(people, who.person)
			}
		}
		if len(waiting) < r.cohort {
			continue
		}
		of, err := a.partition(ctx, people, r.root)
		if err != nil {
			return o, err
		}
		due := make(map[*block]bool)
		for i, who := range waiting {
			due[of[i]] = due[of[i]] || r.copies > 0 && copy-who.came >= r.copies
		}
		for i, who := range waiting {
			if r.fit > 0 && of[i].loss > limit && !due[of[i]] {
				continue
			}
			who.shown = of[i]
			blocks[of[i]] = true
			waits, arrived = waits+copy-who.came, arrived+1
		}
	}
	rows, stale := 0, 0
	for b := range blocks {
		left := 0 // those who may not go
		if b.left < k || b.members-b.left > 0 && b.members-b.left < k {
			left = b.left
		}
		n := b.members - b.left + left
		rows, stale = rows+n, stale+left
		o.loss += b.loss * float64(n)
	}
	var now []int
	hidden := 0
	for _, who := range there {
		now = append(now, who.person)
		if who.shown == nil {
			hidden++
			waits, arrived = waits+copies-who.came, arrived+1
		}
	}
	once, err := a.partition(ctx, now, k)
	if err != nil {
		return o, err
	}
	o.loss /= float64(rows)
	o.relative = o.loss / meanLoss(once)
	o.waited = float64(waits) / float64(arrived)
	o.waiting = float64(hidden) / float64(len(there))
	o.stale = float64(stale) / float64(rows)
	return o, nil
}
