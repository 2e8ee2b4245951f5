package anonymize_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// worldsOf are people in cells, cut by one column after the other, who could
// have any whole numbers below a bound.
type worldsOf struct {
	claim string
	cells []int   // people of each
	cuts  [][]int // by column, the part that each cell is in
	below int
	width float64 // of labels below the whole range
	k     int
}

// all calls f for all numbers that the people could have, those of a cell in
// ascending order.
func (w *worldsOf) all(f func(values []int)) {
	var values []int
	var cell func(c, left, from int)
	cell = func(c, left, from int) {
		switch {
		case left > 0:
			for v := from; v < w.below; v++ {
				values = append(values, v)
				cell(c, left-1, v)
				values = values[:len(values)-1]
			}
		case c+1 < len(w.cells):
			cell(c+1, w.cells[c+1], 0)
		default:
			f(values)
		}
	}
	cell(0, w.cells[0], 0)
}

// chain is the partition as it is refined along one column more each time.
func (w *worldsOf) chain(t *testing.T) []*anonymize.Partition {
	t.Helper()
	cuts, columns := make([][]uint32, len(w.cuts)), []int{}
	people := 0
	for cell, n := range w.cells {
		people += n
		for c := range cuts {
			for range n {
				cuts[c] = append(cuts[c], uint32(w.cuts[c][cell]))
			}
		}
	}
	chain := []*anonymize.Partition{anonymize.NewPartition(measured(t, make([]int, people), cuts...))}
	for c := range cuts {
		columns = append(columns, c+1)
		chain = append(chain, refined(t, chain[c], anonymize.Refinement{Columns: columns, Requirements: blockK(w.k)}))
	}
	return chain
}

// possible is what goes with all that was told: the ends of the sum of a group,
// and the values of its people.
type possible struct {
	low, high int
	values    map[int]bool
	width     float64
}

func TestNoChoiceOfGroupsNarrowsASumBelowItsLabelOrRulesOutAValue(t *testing.T) {
	for _, w := range []worldsOf{
		{"many different values under a narrow label", []int{10}, nil, 5, 1, 10},
		{"what is left over is what would be held back alone", []int{9, 9}, [][]int{{0, 1}}, 4, 2, 3},
		{"everybody's mean is held back", []int{12, 5}, [][]int{{0, 1}}, 4, 2, 2},
		{"a group splits later", []int{12, 8, 8}, [][]int{{0, 1, 1}, {0, 1, 2}}, 3, 1, 2},
	} {
		t.Run(w.claim, func(t *testing.T) {
			iv := anonymize.Interval{Widths: []float64{w.width}, Lower: 0, Upper: float64(w.below - 1), Integer: true}
			values := make([]string, w.below)
			for v := range values {
				values[v] = fmt.Sprint(v)
			}
			h, err := iv.Build(values, false)
			if err != nil {
				t.Fatal(err)
			}
			chain := w.chain(t)
			last := chain[len(chain)-1]
			answers := make(map[string]map[uint32]*possible)
			w.all(func(values []int) {
				of := anonymize.Measured{Hierarchy: h}
				for _, v := range values {
					leaf, _ := h.Code(fmt.Sprint(v))
					of.LeafOfRow = append(of.LeafOfRow, leaf)
				}
				var answer strings.Builder
				m := anonymize.NewMeans(chain[0], of, w.k, true)
				for _, p := range chain {
					m = m.Refine(p)
					for b := range uint32(p.Blocks()) {
						sum, _, told := m.Told(b)
						fmt.Fprint(&answer, m.Label(b), m.Group(b), sum, told, " ")
					}
				}
				groups := answers[answer.String()]
				if groups == nil {
					groups = make(map[uint32]*possible)
					answers[answer.String()] = groups
				}
				sums := make(map[uint32]int)
				for row, v := range values {
					b := last.BlockOf()[last.Table().TupleOfRow()[row]]
					if _, _, told := m.Told(b); !told {
						continue
					}
					g := m.Group(b)
					if groups[g] == nil {
						low, high, _ := h.Ends(m.Label(b))
						groups[g] = &possible{low: math.MaxInt, values: make(map[int]bool), width: high - low}
					}
					sums[g] += v
					groups[g].values[v] = true
				}
				for g, sum := range sums {
					groups[g].low, groups[g].high = min(groups[g].low, sum), max(groups[g].high, sum)
				}
			})
			told := 0
			for answer, groups := range answers {
				for _, g := range groups {
					told++
					if wide := float64(g.high - g.low + 1); wide < g.width || float64(len(g.values)) < g.width {
						t.Errorf("a sum under a label of %g is from %d to %d, values are among %v: %s", g.width, g.low, g.high, g.values, answer)
					}
				}
			}
			if told == 0 {
				t.Error("nothing is told in any world")
			}
		})
	}
}
