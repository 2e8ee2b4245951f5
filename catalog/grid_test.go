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
	cells := g.cells()
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
		for n, p := range divide(list, most).undivided() {
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

// TestKindsAreDividedFirst has two kinds of rows, which are told apart before anything else.
func TestKindsAreDividedFirst(t *testing.T) {
	g := newGrid([][]int{slices.Repeat([]int{5}, 100)})
	var cells []gridCell
	for bucket := range g.cells() {
		cells = append(cells, g.cell(bucket, 4), g.cell(g.cells()+bucket, 1))
	}
	for _, p := range divide(cells, 150).undivided() {
		for _, c := range p.cells {
			if c.buckets[1] != p.cells[0].buckets[1] {
				t.Fatalf("cells %v and %v are in one part", p.cells[0], c)
			}
		}
	}
}

// TestAPartOfOneCellIsNotCut has more rows of one combination than a part may have.
func TestAPartOfOneCellIsNotCut(t *testing.T) {
	g := newGrid([][]int{{100, 1}, {101}})
	p := divide([]gridCell{g.cell(0, 100), g.cell(1, 1)}, 10)
	if parts := p.undivided(); len(parts) != 2 || parts[0].rows != 100 || parts[1].rows != 1 {
		t.Errorf("parts %v", parts)
	}
	if p := divide(nil, 10); len(p.undivided()) != 1 || p.rows != 0 {
		t.Error("an empty table has parts")
	}
}
