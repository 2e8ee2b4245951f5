package catalog

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPartsHoldEachCellOnce divides skewed tables: every cell is in one part, no part of
// several buckets is too large, and the order in which cells are counted is no matter.
func TestPartsHoldEachCellOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	counted := [][]int{make([]int, 2), make([]int, 40000), make([]int, 7), make([]int, 1), {0, 5, 0}}
	for _, of := range counted[:4] {
		for leaf := range of {
			of[leaf] = 1 + random.IntN(1+100/(leaf+1))
		}
	}
	g := newGrid(counted)
	cells := 1
	for _, size := range g.sizes {
		cells *= size
	}
	if cells > mostCells || cells < mostCells/2 || g.sizes[0] != 2 || g.sizes[2] != 7 ||
		g.sizes[4] != 1 {
		t.Fatalf("buckets %v", g.sizes)
	}
	rows, largest := 0, 0
	of := make(map[int]int)
	for range 5000 {
		number := 0
		for column, values := range counted {
			number += g.place[column][min(random.IntN(len(values)), random.IntN(len(values)))]
		}
		n := 1 + random.IntN(50)
		of[number] += n
		rows += n
		largest = max(largest, of[number])
	}
	const most = 9000
	var parts [2]map[int]int // of each cell
	for i := range parts {
		var list []gridCell
		for number, n := range of { // in random order
			list = append(list, g.cell(number, n))
		}
		parts[i] = make(map[int]int)
		for n, p := range settled(t, divide(list, most)) {
			sum := 0
			for _, c := range p.cells {
				if _, twice := parts[i][c.number]; twice {
					t.Fatalf("cell %d is in two parts", c.number)
				}
				parts[i][c.number] = n
				sum += c.rows
			}
			if sum != p.rows || sum > most || sum < most/4 {
				t.Errorf("a part of %d rows, said to be %d", sum, p.rows)
			}
		}
	}
	if len(parts[0]) != len(of) || largest > most {
		t.Fatalf("parts hold %d of %d cells", len(parts[0]), len(of))
	}
	for number, part := range parts[0] {
		if parts[1][number] != part {
			t.Fatalf("cell %d is in parts %d and %d", number, part, parts[1][number])
		}
	}
}

// TestPartsThatCannotBeShownJoinTheSmallest has parts that are refused: one is put together with
// another, and the rest of what its sibling was divided into stays.
func TestPartsThatCannotBeShownJoinTheSmallest(t *testing.T) {
	g := newGrid([][]int{slices.Repeat([]int{5}, 64)})
	var cells []gridCell
	for bucket := range g.sizes[0] {
		cells = append(cells, g.cell(bucket, 10+bucket%3))
	}
	all := newPart(cells).rows
	sizes := func(can func(*tablePart) bool) (of []int, could bool) {
		parts, could, err := divide(slices.Clone(cells), 100).settle(func(p *tablePart) (bool, error) {
			return can(p), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		rows, seen := 0, make(map[int]bool)
		for _, p := range parts {
			of, rows = append(of, p.rows), rows+p.rows
			for _, c := range p.cells {
				seen[c.number] = true
			}
		}
		if rows != all || len(seen) != len(cells) {
			t.Fatalf("parts %v of %d rows hold %d of %d cells", of, all, len(seen), len(cells))
		}
		return of, could
	}
	whole, _ := sizes(func(*tablePart) bool { return true })
	has := func(p *tablePart, bucket int) bool {
		return slices.ContainsFunc(p.cells, func(c gridCell) bool { return c.number == bucket })
	}
	one, could := sizes(func(p *tablePart) bool { return !has(p, 20) || p.rows > 100 })
	if !could || len(one) != len(whole)-1 {
		t.Errorf("parts of %v rows, of which one cannot be shown: %v", whole, one)
	}
	none, could := sizes(func(p *tablePart) bool { return !has(p, 20) })
	if could || !slices.Equal(none, []int{all}) {
		t.Errorf("of parts that never can be shown %v are left", none)
	}
}

// TestAPartOfOneCellIsNotCut has more rows of one combination than a part may have.
func TestAPartOfOneCellIsNotCut(t *testing.T) {
	g := newGrid([][]int{{100, 1}, {101}})
	parts := settled(t, divide([]gridCell{g.cell(0, 100), g.cell(1, 1)}, 10))
	if len(parts) != 2 || parts[0].rows != 100 || parts[1].rows != 1 {
		t.Errorf("parts %v", parts)
	}
	if parts := settled(t, divide(nil, 10)); len(parts) != 1 || parts[0].rows != 0 {
		t.Error("an empty table has parts")
	}
}

// settled are the parts of one if each of them can be shown.
func settled(t *testing.T, p *tablePart) []*tablePart {
	t.Helper()
	parts, could, err := p.settle(func(*tablePart) (bool, error) { return true, nil })
	if err != nil || !could {
		t.Fatal(could, err)
	}
	return parts
}
