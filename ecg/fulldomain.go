package ecg

import (
	"container/heap"
	"errors"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// fullDomain cuts every block at one level for each column: of the levels with
// which the requirements are met, those that lose the least. Levels are tried
// in the order of the loss that they would have on a table without blocks,
// which the narrower labels of blocks can only lower, so that the first that
// serve are taken.
func (c *Chain) fullDomain(p *anonymize.Partition, columns []int, requirements []anonymize.Requirement) (*anonymize.Partition, error) {
	table := p.Table()
	start := make([]int, len(columns))
	queue := &levelQueue{{levels: start}}
	seen := map[string]bool{key(start): true}
	for queue.Len() > 0 {
		candidate := heap.Pop(queue).(weighed)
		cut, err := p.AtLevels(columns, candidate.levels, requirements)
		var unmet *anonymize.UnmetError
		if err == nil || !errors.As(err, &unmet) {
			return cut, err
		}
		for i, column := range columns {
			h := table.Columns()[column].Hierarchy
			if candidate.levels[i]+1 >= h.Height() {
				continue
			}
			up := slices.Clone(candidate.levels)
			up[i]++
			if seen[key(up)] {
				continue
			}
			seen[key(up)] = true
			heap.Push(queue, weighed{levels: up, loss: levelLoss(table, columns, up)})
		}
	}
	return nil, &anonymize.UnmetError{Requirement: "the policy"} // the top level is p itself, which meets it
}

// levelLoss is the mean loss of the columns if each is shown at its level.
func levelLoss(t *anonymize.Table, columns, levels []int) float64 {
	total := 0.0
	for i, column := range columns {
		h := t.Columns()[column].Hierarchy
		rows := make([]int, h.Groups(levels[i]))
		for tuple := range uint32(t.Tuples()) {
			rows[h.Generalize(t.Leaf(column, tuple), levels[i])] += len(t.RowsOf(tuple))
		}
		for group, n := range rows {
			total += float64(n) * h.Share(anonymize.Node{Level: levels[i], Group: uint32(group)})
		}
	}
	return total / float64(len(columns)) / float64(max(1, t.Rows()))
}

func key(levels []int) string {
	out := make([]byte, len(levels))
	for i, l := range levels {
		out[i] = byte(l)
	}
	return string(out)
}

// weighed is a node of the lattice of levels with its loss.
type weighed struct {
	levels []int
	loss   float64
}

// levelQueue yields the node that loses least, then the lowest.
type levelQueue []weighed

func (q levelQueue) Len() int { return len(q) }

func (q levelQueue) Less(i, j int) bool {
	if q[i].loss != q[j].loss {
		return q[i].loss < q[j].loss
	}
	return key(q[i].levels) < key(q[j].levels)
}

func (q levelQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *levelQueue) Push(x any) { *q = append(*q, x.(weighed)) }

func (q *levelQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
