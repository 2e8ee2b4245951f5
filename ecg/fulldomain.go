package ecg

import (
	"container/heap"
	"context"
	"errors"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// patienceOfSearch is the number of nodes of the lattice that are tried in
// their order, at least; tables of few tuples allow for more.
const patienceOfSearch = 32

// fullDomain cuts every block at one level for each column: of the levels with
// which the requirements are met, those that lose the least. Levels are tried
// in the order of the loss that they would have on a table without blocks,
// which the narrower labels of blocks can only lower, so that the first that
// serve are taken. Where that takes too long, the rest of the way is climbed,
// each time by the step that loses least.
func (c *Chain) fullDomain(
	ctx context.Context, p *anonymize.Partition, columns []int, requirements []anonymize.Requirement,
) (*anonymize.Partition, error) {
	losses := levelLosses(p.Table(), columns)
	queue := &levelQueue{{levels: make([]int, len(columns))}}
	seen := map[string]bool{key((*queue)[0].levels): true}
	for tried := 0; ; tried++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		candidate := heap.Pop(queue).(weighed)
		cut, err := p.AtLevels(columns, candidate.levels, requirements)
		var unmet *anonymize.UnmetError
		if err == nil || !errors.As(err, &unmet) {
			return cut, err
		}
		climbing := tried >= max(patienceOfSearch, c.affordable())
		var above levelQueue
		for i := range columns {
			if candidate.levels[i]+1 >= len(losses[i]) {
				continue
			}
			up := slices.Clone(candidate.levels)
			up[i]++
			if seen[key(up)] && !climbing {
				continue
			}
			node := weighed{levels: up}
			for j, level := range up {
				node.loss += losses[j][level]
			}
			above = append(above, node)
		}
		if climbing {
			*queue = nil // only one step up from this node, the best
			heap.Init(&above)
			above = above[:min(1, len(above))]
		}
		for _, node := range above {
			seen[key(node.levels)] = true
			heap.Push(queue, node)
		}
		if queue.Len() == 0 {
			return nil, unmet // not even p itself meets the requirements
		}
	}
}

// levelLosses is the loss of each column if it is shown at each of its levels.
func levelLosses(t *anonymize.Table, columns []int) [][]float64 {
	losses := make([][]float64, len(columns))
	for i, column := range columns {
		h := t.Columns()[column].Hierarchy
		for level := range h.Height() {
			total := 0.0
			for tuple := range uint32(t.Tuples()) {
				group := h.Generalize(t.Leaf(column, tuple), level)
				total += float64(len(t.RowsOf(tuple))) * h.Share(anonymize.Node{Level: level, Group: group})
			}
			losses[i] = append(losses[i], total)
		}
	}
	return losses
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
