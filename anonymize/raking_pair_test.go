package anonymize_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// births are people of 20 to 79 years with the day of their birth and a site, and the
// columns; age and birth nearly determine one another.
func births(t *testing.T) *anonymize.Table {
	t.Helper()
	random := chance(6)
	var days, ages, sites []string
	for range 20000 {
		age := 20 + random.IntN(60)
		day := time.Date(2025-age, 1, 1+random.IntN(365), 0, 0, 0, 0, time.UTC)
		days, ages = append(days, day.Format(time.DateOnly)), append(ages, strconv.Itoa(age))
		sites = append(sites, strconv.Itoa(int(40*math.Pow(random.Float64(), 3))))
	}
	born, err := anonymize.Dates{
		Levels: []string{"month", "year", "decade"}, Lower: "1940-01-01",
		Upper: "2009-12-31",
	}.Build(distinctOf(days), false)
	if err != nil {
		t.Fatal(err)
	}
	age, err := anonymize.Interval{
		Widths: []float64{5, 10, 20}, Upper: 119,
		Integer: true,
	}.Build(distinctOf(ages), false)
	if err != nil {
		t.Fatal(err)
	}
	site, err := anonymize.Prefix{Keep: []int{1}}.Build(distinctOf(sites), false)
	if err != nil {
		t.Fatal(err)
	}
	columns := []anonymize.Column{
		{Name: "born", Hierarchy: born},
		{Name: "age", Hierarchy: age},
		{Name: "site", Hierarchy: site},
	}
	leaves := make([][]uint32, len(columns))
	for c, values := range [][]string{days, ages, sites} {
		for _, v := range values {
			leaf, _ := columns[c].Hierarchy.Code(v)
			leaves[c] = append(leaves[c], leaf)
		}
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func distinctOf(values []string) []string {
	out := slices.Clone(values)
	slices.Sort(out)
	return slices.Compact(out)
}

// TestPairsAgree counts the rows whose age and birth fit together.
func TestPairsAgree(t *testing.T) {
	table := births(t)
	p := root(t, table, anonymize.RootPlan{Requirements: blockK(5)})
	sketch, margins := p.Sketch(), make(map[int]*anonymize.Margin)
	for c := range table.Columns() {
		margins[c] = table.Margin(c, 5, 0.5)
	}
	agree := func(born, age *anonymize.Values) (share float64) {
		for block, of := range born.Of {
			for row, place := range of {
				year, _ := strconv.Atoi(born.Texts[place][:4])
				if n, _ := strconv.Atoi(age.Texts[age.Of[block][row]]); n+year == 2025 {
					share += 1 / float64(table.Rows())
				}
			}
		}
		return share
	}
	values := sketch.DrawAll(margins, func() *rand.Rand { return chance(1) })
	together := agree(values[0], values[1])
	apart := agree(sketch.Draw(0, margins[0], chance(1)), sketch.Draw(1, margins[1], chance(2)))
	t.Logf("ages and births agree in %.3f of the rows, in %.3f if they are drawn apart",
		together, apart)
	if together < 0.98 || apart > 0.9 {
		t.Errorf("ages and births agree in %.3f of the rows, in %.3f if they are drawn apart",
			together, apart)
	}
	for c, column := range table.Columns() {
		cells := make([]int, len(margins[c].Cells))
		for _, of := range values[c].Of {
			for _, place := range of {
				leaf, known := column.Hierarchy.Code(values[c].Texts[place])
				if c == 1 && known {
					cells[narrowest(column.Hierarchy, margins[c], leaf)]++
				}
			}
		}
		for i, cell := range margins[c].Cells {
			if off := math.Abs(float64(cells[i] - cell.Rows)); c == 1 && off > 2+0.02*float64(cell.Rows) {
				t.Errorf("age %s has %d values, its margin %d", column.Hierarchy.Label(cell.Node), cells[i],
					cell.Rows)
			}
		}
	}
}

// TestFewRowsMakeNoPair has two blocks, of ten rows together, in which births and sites tell one
// another, among many of which the births are not known.
func TestFewRowsMakeNoPair(t *testing.T) {
	table := births(t)
	margins := map[int]*anonymize.Margin{0: table.Margin(0, 5, 0.5), 2: table.Margin(2, 5, 0.5)}
	s := &anonymize.Sketch{}
	for _, c := range table.Columns() {
		s.Hierarchies = append(s.Hierarchies, c.Hierarchy)
	}
	born, site := s.Hierarchies[0], s.Hierarchies[2]
	show := func(rows int, born anonymize.Node, of string) {
		s.Rows = append(s.Rows, rows)
		s.Labels = append(s.Labels, []anonymize.Node{
			born, s.Hierarchies[1].Root(), {Group: leafOf(t, site, of)},
		})
	}
	year := func(of string) anonymize.Node {
		return anonymize.Node{Level: 2, Group: born.Generalize(leafOf(t, born, of), 2)}
	}
	show(5, year("1950"), "0")
	show(5, year("1990"), "1")
	for range 30 {
		show(100, born.Root(), "0")
		show(100, born.Root(), "1")
	}
	if n := s.Pairs([]int{0, 2}, margins); n > 0 {
		t.Errorf("%d pairs", n)
	}
	s.Rows[0], s.Rows[1] = 500, 500
	if n := s.Pairs([]int{0, 2}, margins); n != 1 {
		t.Errorf("%d pairs where the two blocks have a seventh of the rows", n)
	}
}

// TestPairsComeInRandomOrder draws ages and births of a block many times: no row has the
// lesser ones more often than others.
func TestPairsComeInRandomOrder(t *testing.T) {
	table := births(t)
	margins := map[int]*anonymize.Margin{0: table.Margin(0, 5, 0.5), 1: table.Margin(1, 5, 0.5)}
	s := &anonymize.Sketch{}
	for _, c := range table.Columns() {
		s.Hierarchies = append(s.Hierarchies, c.Hierarchy)
	}
	born, age := s.Hierarchies[0], s.Hierarchies[1]
	show := func(rows int, year, years string, level int) {
		s.Rows = append(s.Rows, rows)
		s.Labels = append(s.Labels, []anonymize.Node{
			{Level: 3, Group: born.Generalize(leafOf(t, born, year), 3)},
			{Level: level, Group: age.Generalize(leafOf(t, age, years), level)},
			s.Hierarchies[2].Root(),
		})
	}
	show(10, "1985", "41", 2) // which is looked at
	for years := 20; years < 80; years += 5 {
		show(300, strconv.Itoa(2025-years), strconv.Itoa(years), 1)
	}
	const times = 60
	var least [2][10]int
	for seed := range uint64(times) {
		values := s.DrawAll(margins, func() *rand.Rand { seed += times; return chance(seed) })
		for c := range least {
			best := 0
			for row, place := range values[c].Of[0] {
				if values[c].Texts[place] < values[c].Texts[values[c].Of[0][best]] {
					best = row
				}
			}
			least[c][best]++
		}
	}
	for c := range least {
		for row, n := range least[c] {
			if n > times/3 {
				t.Errorf("column %d: row %d has the least value %d times of %d", c, row, n, times)
			}
		}
	}
}

// leafOf is the first leaf that begins with a text.
func leafOf(t *testing.T, h *anonymize.Hierarchy, text string) uint32 {
	t.Helper()
	for leaf := range uint32(h.Leaves()) {
		if strings.HasPrefix(h.Label(anonymize.Node{Group: leaf}), text) {
			return leaf
		}
	}
	t.Fatal("no such leaf")
	return 0
}
