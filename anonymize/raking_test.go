package anonymize_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func chance(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, seed)) }

// narrowest is the cell that a value counts in, -1 for none.
func narrowest(h *anonymize.Hierarchy, m *anonymize.Margin, leaf uint32) int {
	best := -1
	for i, c := range m.Cells {
		first, last := h.Range(c.Node)
		if first <= leaf && leaf <= last && (best < 0 || c.Node.Level < m.Cells[best].Node.Level) {
			best = i
		}
	}
	return best
}

func TestMarginsHaveNoCellBelowK(t *testing.T) {
	random := chance(1)
	for run := range 300 {
		var values []string
		for v := range 1 + random.IntN(40) {
			values = append(values, strconv.Itoa(v))
		}
		h, err := anonymize.Interval{
			Widths: []float64{2, 10}, Lower: 0, Upper: 60,
			Integer: true,
		}.Build(values, run%3 == 0)
		if err != nil {
			t.Fatal(err)
		}
		rows := 20 + random.IntN(200)
		leaves, subjects := make([]uint32, rows), make([]uint32, rows)
		for i := range leaves {
			leaves[i] = uint32(float64(h.Leaves()) * math.Pow(random.Float64(), 3))
			subjects[i] = uint32(i)
			if run%2 == 0 {
				subjects[i] = uint32(i % (5 + rows/3))
			}
		}
		of := subjects
		if run%2 == 1 {
			of = nil
		}
		table, err := anonymize.NewTable([]anonymize.Column{{Name: "v", Hierarchy: h}},
			[][]uint32{leaves}, of)
		if err != nil {
			t.Fatal(err)
		}
		const k, share = 5, 0.5
		m := table.Margin(0, k, share)
		people, counted := make([]map[uint32]int, len(m.Cells)), 0
		for row, leaf := range leaves {
			cell := narrowest(h, m, leaf)
			if cell < 0 {
				t.Fatalf("run %d: value %d is of no cell", run, leaf)
			}
			if people[cell] == nil {
				people[cell] = make(map[uint32]int)
			}
			people[cell][subjects[row]]++
			counted++
		}
		for i, c := range m.Cells {
			if len(people[i]) != c.Subjects || c.Subjects < k {
				t.Errorf("run %d: cell %s has %d subjects, says %d", run, h.Label(c.Node), len(people[i]),
					c.Subjects)
			}
			for _, own := range people[i] {
				if own > 1 && float64(own) > share*float64(c.Rows) && len(m.Cells) > 1 {
					t.Errorf("run %d: one subject has %d of the %d rows of cell %s", run, own, c.Rows,
						h.Label(c.Node))
				}
			}
		}
		stricter := m.Pool(h, 2*k, share)
		for _, c := range stricter.Cells {
			if c.Subjects < 2*k && len(stricter.Cells) > 1 {
				t.Errorf("run %d: a pooled cell has %d subjects", run, c.Subjects)
			}
			counted -= c.Rows
		}
		if counted != 0 {
			t.Errorf("run %d: pooling lost %d rows", run, counted)
		}
	}
}

// TestMarginsThatWereReadCountNobodyTwice pools margins of which only the numbers are
// known, as they are published.
func TestMarginsThatWereReadCountNobodyTwice(t *testing.T) {
	h, err := anonymize.Interval{
		Widths: []float64{10}, Lower: 0, Upper: 39,
		Integer: true,
	}.Build([]string{"1", "2", "11", "12"}, false)
	if err != nil {
		t.Fatal(err)
	}
	// Six people have a row in each of two cells.
	read := anonymize.Margin{Cells: []anonymize.Cell{{
		Node: anonymize.Node{Group: 0}, Rows: 6,
		Subjects: 6,
	}, {Node: anonymize.Node{Group: 1}, Rows: 6, Subjects: 6}}}
	for claim, c := range map[string]struct {
		several bool
		k       int
		cells   int
	}{
		"each has one row, of 12 that are asked for":        {false, 12, 1},
		"each has one row, and too few":                     {false, 13, 0},
		"they have several rows, and may be the same":       {true, 12, 0},
		"they have several rows, and each cell has as many": {true, 6, 2},
	} {
		read.SeveralRows = c.several
		if got := read.Pool(h, c.k, 1); len(got.Cells) != c.cells {
			t.Errorf("%s: %d cells, want %d", claim, len(got.Cells), c.cells)
		}
	}
	s := &anonymize.Sketch{
		Hierarchies: []*anonymize.Hierarchy{h}, Rows: []int{40},
		Labels: [][]anonymize.Node{{{Level: 1}}},
	}
	if values := s.Draw(0, &anonymize.Margin{}, chance(1)); len(values.Texts) != 11 {
		t.Errorf("without a cell, a range of ten has %d values", len(values.Texts)-1)
	}
}

// adultRoot is the root of Adult with its margins.
func adultRoot(t testing.TB) (*anonymize.Table, *anonymize.Partition, []*anonymize.Margin) {
	t.Helper()
	table := loadBlockData(t, "arx/adult", "adult", 7).table(t)
	p, err := anonymize.Root(context.Background(), table, anonymize.RootPlan{Requirements: blockK(5)})
	if err != nil {
		t.Fatal(err)
	}
	var margins []*anonymize.Margin
	for c := range table.Columns() {
		margins = append(margins, table.Margin(c, 5, 0.5))
	}
	return table, p, margins
}

// drawn are the values of each row, [column][row], as leaves of an enumerated hierarchy.
func drawn(
	t testing.TB, table *anonymize.Table, p *anonymize.Partition, margins []*anonymize.Margin,
	seed uint64,
) [][]uint32 {
	t.Helper()
	byColumn := make(map[int]*anonymize.Margin)
	for c := range table.Columns() {
		byColumn[c] = nil
		if margins != nil {
			byColumn[c] = margins[c]
		}
	}
	all := p.Sketch().DrawAll(byColumn, func() *rand.Rand {
		seed++
		return chance(seed)
	})
	out := make([][]uint32, len(table.Columns()))
	for c, column := range table.Columns() {
		values := all[c]
		taken := make([]int, p.Blocks())
		out[c] = make([]uint32, len(table.TupleOfRow()))
		for row, tuple := range table.TupleOfRow() {
			block := p.BlockOf()[tuple]
			place := values.Of[block][taken[block]]
			taken[block]++
			leaf, ok := column.Hierarchy.Code(values.Texts[place])
			if !ok {
				t.Fatalf("column %s: a value is no leaf", column.Name)
			}
			first, last := column.Hierarchy.Range(p.Cover(block, c))
			if leaf < first || leaf > last {
				t.Fatalf("column %s: a value is not of its label", column.Name)
			}
			out[c][row] = leaf
		}
	}
	return out
}

// TestCountsByValues asks for how many people meet conditions, and compares with values
// that are spread evenly.
func TestCountsByValues(t *testing.T) {
	if raceDetector {
		t.Skip("takes long: make test begins with it")
	}
	table, p, margins := adultRoot(t)
	truth := make([][]uint32, len(table.Columns()))
	for c := range truth {
		for _, tuple := range table.TupleOfRow() {
			truth[c] = append(truth[c], table.Leaf(c, tuple))
		}
	}
	raked, even := drawn(t, table, p, margins, 7), drawn(t, table, p, nil, 7)
	for c, m := range margins {
		cells := make([]int, len(m.Cells))
		for _, leaf := range raked[c] {
			cells[narrowest(table.Columns()[c].Hierarchy, m, leaf)]++
		}
		for i, cell := range m.Cells {
			if off := math.Abs(float64(cells[i] - cell.Rows)); off > 2+0.01*float64(cell.Rows) {
				t.Errorf("column %d: cell %s has %d values, its margin %d", c,
					table.Columns()[c].Hierarchy.Label(cell.Node), cells[i], cell.Rows)
			}
		}
	}
	random := chance(3)
	var errors, evenErrors []float64
	for len(errors) < 400 {
		lo, hi := make([]uint32, len(truth)), make([]uint32, len(truth))
		for c := range hi {
			hi[c] = math.MaxUint32
		}
		for range 1 + random.IntN(3) {
			c := random.IntN(len(truth))
			lo[c] = truth[c][random.IntN(len(truth[c]))]
			hi[c] = lo[c]
			if c == 0 {
				hi[c] = lo[c] + random.Uint32N(20)
			}
		}
		count := func(of [][]uint32) (n float64) {
			for row := range of[0] {
				met := true
				for c := range of {
					met = met && lo[c] <= of[c][row] && of[c][row] <= hi[c]
				}
				if met {
					n++
				}
			}
			return n
		}
		if n := count(truth); n >= 50 {
			errors, evenErrors = append(errors, math.Abs(count(raked)-n)/n),
				append(evenErrors, math.Abs(count(even)-n)/n)
		}
	}
	mean, most := summary(errors)
	evenMean, _ := summary(evenErrors)
	t.Logf("relative error of counts: mean %.4f, 90 %% below %.4f; values spread evenly: mean %.4f",
		mean, most, evenMean)
	if mean > 0.012 || most > 0.03 {
		t.Errorf("counts are off by %.4f, 90 %% by less than %.4f", mean, most)
	}
	if 2*mean > evenMean {
		t.Errorf("raked values are off by %.4f, evenly spread ones by %.4f", mean, evenMean)
	}
}

func summary(errors []float64) (mean, ninety float64) {
	for _, e := range errors {
		mean += e / float64(len(errors))
	}
	slices.Sort(errors)
	return mean, errors[len(errors)*9/10]
}

// TestValuesFollowFromLabelsAndMargins exchanges what people of different blocks have, in
// ways that labels and margins do not show.
func TestValuesFollowFromLabelsAndMargins(t *testing.T) {
	widths := []float64{10}
	var values []string
	for v := range 40 {
		values = append(values, strconv.Itoa(v))
	}
	h, err := anonymize.Interval{
		Widths: widths, Lower: 0, Upper: 39,
		Integer: true,
	}.Build(values, false)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := anonymize.NewHierarchy([][]string{{"a", "*"}, {"b", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	random := chance(5)
	columns := []anonymize.Column{
		{Name: "age", Hierarchy: h},
		{Name: "born", Hierarchy: h},
		{Name: "site", Hierarchy: groups},
	}
	leaves := make([][]uint32, len(columns))
	for i := range uint32(400) {
		age := random.Uint32N(40)
		leaves[0], leaves[1], leaves[2] = append(leaves[0], age), append(leaves[1], 39-age),
			append(leaves[2], i%2)
	}
	draw := func(large bool) (of []*anonymize.Values) {
		table, err := anonymize.NewTable(columns, leaves, nil)
		if err != nil {
			t.Fatal(err)
		}
		// By decade and site: the labels of two tables are the same.
		s := &anonymize.Sketch{Rows: make([]int, 8), Large: large}
		margins := make(map[int]*anonymize.Margin)
		for c := range columns {
			s.Hierarchies = append(s.Hierarchies, columns[c].Hierarchy)
			margins[c] = table.Margin(c, 5, 1)
		}
		for b := range uint32(8) {
			s.Labels = append(s.Labels, []anonymize.Node{
				{Level: 1, Group: b % 4},
				{Level: 1, Group: 3 - b%4},
				{Group: b / 4},
			})
		}
		for _, tuple := range table.TupleOfRow() {
			s.Rows[table.Leaf(0, tuple)/10+4*table.Leaf(2, tuple)]++
		}
		values := s.DrawAll(margins, func() *rand.Rand { return chance(9) })
		for c := range columns {
			of = append(of, values[c])
		}
		return of
	}
	before := [][]*anonymize.Values{draw(false), draw(true)}
	for range 4000 { // two people of a decade exchange their ages, or what is told of their birth
		c, i, j := random.IntN(2), random.IntN(400), random.IntN(400)
		if leaves[c][i]/10 == leaves[c][j]/10 {
			leaves[c][i], leaves[c][j] = leaves[c][j], leaves[c][i]
		}
	}
	for i, after := range [][]*anonymize.Values{draw(false), draw(true)} {
		for c := range columns {
			if !slices.Equal(before[i][c].Texts, after[c].Texts) ||
				!slices.EqualFunc(before[i][c].Of, after[c].Of, func(x, y []uint32) bool {
					return slices.Equal(x, y)
				}) {
				t.Errorf("values of %s depend on more than labels, margins and chance", columns[c].Name)
			}
		}
	}
}

// TestTakenValuesAreRarelyDrawn has one of two values of a label shown by blocks of its
// own at one site, and at another site by none.
func TestTakenValuesAreRarelyDrawn(t *testing.T) {
	h, err := anonymize.NewHierarchy([][]string{{"a", "ab", "*"}, {"b", "ab", "*"}, {"c", "c", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	sites, err := anonymize.NewHierarchy([][]string{{"1", "*"}, {"2", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &anonymize.Sketch{
		Hierarchies: []*anonymize.Hierarchy{h, sites},
		Rows:        []int{500, 100, 100},
		Labels: [][]anonymize.Node{
			{{Group: 0}, {Group: 0}},
			{{Level: 1}, {Group: 0}},
			{{Level: 1}, {Group: 1}},
		},
	}
	m := &anonymize.Margin{Cells: []anonymize.Cell{
		{Node: anonymize.Node{Group: 0}, Rows: 550, Subjects: 550},
		{Node: anonymize.Node{Group: 1}, Rows: 150, Subjects: 150},
	}}
	values := s.Draw(0, m, chance(1))
	drawn := func(block int) (n int) {
		for _, place := range values.Of[block] {
			if values.Texts[place] == "a" {
				n++
			}
		}
		return n
	}
	if drawn(0) != 500 || drawn(1) > 5 || drawn(1)+drawn(2) < 48 || drawn(1)+drawn(2) > 52 {
		t.Errorf("value a is drawn %d, %d and %d times", drawn(0), drawn(1), drawn(2))
	}
}

func TestValuesOfDomains(t *testing.T) {
	interval := func(iv anonymize.Interval, values ...string) *anonymize.Hierarchy {
		h, err := iv.Build(values, true)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	dates, err := anonymize.Dates{
		Levels: []string{"month"}, Lower: "2020-01-01",
		Upper: "2020-12-31",
	}.Build([]string{"2020-02-10"}, false)
	if err != nil {
		t.Fatal(err)
	}
	codes, err := anonymize.Prefix{Keep: []int{2}}.Build([]string{"10115", "10117", "20095"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for claim, c := range map[string]struct {
		h      *anonymize.Hierarchy
		node   anonymize.Node
		margin *anonymize.Margin
		want   int // different values
		holds  func(string) bool
	}{
		"a range of whole numbers, whatever the data have": {
			interval(anonymize.Interval{Widths: []float64{10}, Lower: 0, Upper: 99, Integer: true}, "31"),
			anonymize.Node{Level: 1},
			nil, 10, func(v string) bool {
				n, err := strconv.Atoi(v)
				return err == nil && 30 <= n && n <= 39
			},
		},
		"a range of dense numbers": {
			interval(anonymize.Interval{Widths: []float64{10}, Lower: 0, Upper: 100}, "31.5"),
			anonymize.Node{Level: 1},
			nil, 100, func(v string) bool {
				n, err := strconv.ParseFloat(v, 64)
				return err == nil && 30 <= n && n < 40
			},
		},
		"a month": {dates, anonymize.Node{Level: 1}, nil, 29, func(v string) bool {
			return v[:8] == "2020-02-"
		}},
		"codes that the margin does not tell": {
			codes, anonymize.Node{Level: 1}, nil, 1, func(v string) bool { return v == "10***" },
		},
		"codes that it does": {
			codes,
			anonymize.Node{Level: 1},
			&anonymize.Margin{Cells: []anonymize.Cell{{
				Node: anonymize.Node{Group: 1}, Rows: 600,
				Subjects: 600,
			}, {Node: anonymize.Node{Level: 2}, Rows: 400, Subjects: 400}}},
			2, func(v string) bool { return v == "10***" || v == "10117" },
		},
	} {
		t.Run(claim, func(t *testing.T) {
			s := &anonymize.Sketch{
				Hierarchies: []*anonymize.Hierarchy{c.h}, Rows: []int{1000},
				Labels: [][]anonymize.Node{{c.node}},
			}
			values := s.Draw(0, c.margin, chance(1))
			if got := len(values.Texts) - 1; got != c.want && !(c.want == 100 && got >= 100) {
				t.Errorf("%d different values, wanted %d", got, c.want)
			}
			for _, v := range values.Texts[1:] {
				if !c.holds(v) {
					t.Errorf("value %s is not of the label", v)
				}
			}
		})
	}
}
