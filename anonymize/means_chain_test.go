package anonymize_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// skewed are values of which some are far from the others, and the columns that
// cut them.
func skewed(seed uint64, rows int) (values []int, cuts [][]uint32) {
	random := rand.New(rand.NewPCG(seed, 9))
	cuts = make([][]uint32, 3)
	for range rows {
		v := min(random.IntN(120), random.IntN(120), random.IntN(120))
		if random.IntN(30) == 0 {
			v = 119
		}
		values = append(values, v)
		for c := range cuts {
			cuts[c] = append(cuts[c], uint32(random.IntN(6)))
		}
	}
	return values, cuts
}

// groups are the sets of rows over which means are shown.
func groups(p *anonymize.Partition, m *anonymize.Means) map[string][]int {
	out := make(map[string][]int)
	for row, tuple := range p.Table().TupleOfRow() {
		block := p.BlockOf()[tuple]
		if mean, ok := m.Mean(block); ok {
			key := fmt.Sprint(m.Group(block), mean)
			out[key] = append(out[key], row)
		}
	}
	return out
}

func TestWhatIsLeftOverPassesTheGuardToo(t *testing.T) {
	split, stayed, pooled := 0, 0, 0
	for seed := range uint64(40) {
		values, cuts := skewed(seed, 400)
		table := measured(t, values, cuts...)
		p := anonymize.NewPartition(table)
		m := meansOf(p, 5)
		family := map[string][]int{}
		note := func() {
			for _, rows := range groups(p, m) {
				family[fmt.Sprint(rows)] = rows
			}
		}
		note()
		for _, columns := range [][]int{{1}, {1, 2}, {0, 1}, {1, 2, 3}, {0, 1, 2, 3}} {
			next := refined(t, p, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
			before := len(groups(p, m))
			m, p = m.Refine(next), next
			switch after := groups(p, m); {
			case len(after) > before:
				split++
				if len(after) < p.Blocks() {
					pooled++
				}
			default:
				stayed++
			}
			note()
		}
		sets := make([][]int, 0, len(family))
		for _, rows := range family {
			sets = append(sets, rows)
		}
		for i, set := range sets {
			rest := slices.Clone(set)
			for j, part := range sets {
				if i == j || len(part) > len(set) {
					continue
				}
				within := 0
				for _, row := range part {
					if _, ok := slices.BinarySearch(set, row); ok {
						within++
					}
				}
				if within != 0 && within != len(part) {
					t.Fatal("two sets that were shown cross")
				}
				if within > 0 {
					rest = slices.DeleteFunc(rest, func(row int) bool { _, ok := slices.BinarySearch(part, row); return ok })
				}
			}
			if len(rest) == 0 {
				continue
			}
			var left []int
			for _, row := range rest {
				left = append(left, values[row])
			}
			if !meansOf(anonymize.NewPartition(measured(t, left)), 5).Varied() {
				t.Errorf("seed %d: a difference of sums is of %d people whom the guard would hold back", seed, len(left))
			}
		}
	}
	if split < 20 || pooled < 10 || stayed == 0 {
		t.Errorf("%d refinements split groups, %d of them with blocks put together, %d split none", split, pooled, stayed)
	}
}

func TestGroupsDoNotDependOnTheOrderOfRows(t *testing.T) {
	values, cuts := skewed(77, 300)
	shown := func(order []int) map[int]string {
		v := make([]int, len(order))
		c := [][]uint32{make([]uint32, len(order)), make([]uint32, len(order)), make([]uint32, len(order))}
		for i, row := range order {
			v[i] = values[row]
			for j := range c {
				c[j][i] = cuts[j][row]
			}
		}
		p := anonymize.NewPartition(measured(t, v, c...))
		m := meansOf(p, 5)
		for _, columns := range [][]int{{1}, {1, 2, 3}} {
			p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
			m = m.Refine(p)
		}
		out := make(map[int]string)
		for i, tuple := range p.Table().TupleOfRow() {
			mean, ok := m.Mean(p.BlockOf()[tuple])
			out[order[i]] = fmt.Sprint(m.Label(p.BlockOf()[tuple]), mean, ok)
		}
		return out
	}
	order := rand.New(rand.NewPCG(1, 1)).Perm(300)
	straight := make([]int, 300)
	for i := range straight {
		straight[i] = i
	}
	a, b := shown(straight), shown(order)
	for row, s := range a {
		if b[row] != s {
			t.Fatalf("a row shows %s in one order and %s in another", s, b[row])
		}
	}
}

func TestMeansSurviveEncoding(t *testing.T) {
	values, cuts := skewed(5, 400)
	p := anonymize.NewPartition(measured(t, values, cuts...))
	m := meansOf(p, 5)
	for _, columns := range [][]int{{1}, {1, 2}} {
		p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
		m = m.Refine(p)
	}
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	read, err := anonymize.UnmarshalMeans(p, first(p.Table()), 5, true, data)
	if err != nil {
		t.Fatal(err)
	}
	finer := refined(t, p, anonymize.Refinement{Columns: []int{1, 2, 3}, Requirements: blockK(5)})
	if a, b := groups(finer, m.Refine(finer)), groups(finer, read.Refine(finer)); len(a) == 0 || fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("%d groups before, %d after", len(a), len(b))
	}
	for i := range data {
		if _, err := anonymize.UnmarshalMeans(p, first(p.Table()), 5, true, data[:i]); !errors.Is(err, anonymize.ErrMeansData) {
			t.Fatalf("%d of %d bytes are read: %v", i, len(data), err)
		}
	}
}
