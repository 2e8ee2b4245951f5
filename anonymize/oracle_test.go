package anonymize_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// toy is a small random problem with everything in the clear, so that each
// model can be computed from its definition, row by row, by code that shares
// nothing with the engine.
type toy struct {
	paths      [][][]string // [column][value][level]
	cells      [][]string   // [column][row]
	sensitive  []string
	subjects   []uint32 // nil: a subject a row
	blocks     []uint32 // nil: none
	population [][]string
	limit      float64
	strict     bool

	columns []anonymize.Column
}

func newToy(t testing.TB, random *rand.Rand) *toy {
	t.Helper()
	y := &toy{limit: []float64{0, 0.1, 0.3, 0.6}[random.IntN(4)], strict: random.IntN(4) == 0}
	rows := 5 + random.IntN(20)
	for c := range 1 + random.IntN(3) {
		y.paths = append(y.paths, randomPaths(random))
		h, err := anonymize.NewHierarchy(y.paths[c])
		if err != nil {
			t.Fatal(err)
		}
		y.columns = append(y.columns, anonymize.Column{Name: fmt.Sprint("c", c), Hierarchy: h})
		y.cells = append(y.cells, randomCells(random, y.paths[c], rows))
		y.population = append(y.population, append(slices.Clone(y.cells[c]),
			randomCells(random, y.paths[c], rows)...))
	}
	for range rows {
		y.sensitive = append(y.sensitive, string(rune('p'+random.IntN(2+random.IntN(3)))))
	}
	if random.IntN(3) == 0 {
		y.subjects = append([]uint32{0, 1, 2}, randomCodes(random, rows-3, rows-rows/3)...)
	}
	if random.IntN(3) == 0 {
		y.blocks = randomCodes(random, rows, 2)
	}
	return y
}

// randomPaths is a hierarchy of numbers with one to four levels.
func randomPaths(random *rand.Rand) [][]string {
	values, height := 2+random.IntN(5), 1+random.IntN(3)
	paths := make([][]string, values)
	for i := range paths {
		paths[i] = []string{fmt.Sprint(i)}
	}
	group := make([]int, values)
	for i := range group {
		group[i] = i
	}
	for l := 1; l < height; l++ {
		merged, last := -1, -1
		for i := range group {
			if group[i] != last && (merged < 0 || random.IntN(2) == 0) {
				merged++
			}
			last, group[i] = group[i], merged
			paths[i] = append(paths[i], fmt.Sprint("l", l, "g", merged))
		}
	}
	for i := range paths {
		paths[i] = append(paths[i], anonymize.Top)
	}
	return paths
}

func randomCells(random *rand.Rand, paths [][]string, rows int) []string {
	cells := make([]string, rows)
	for r := range cells {
		cells[r] = paths[random.IntN(len(paths))][0]
	}
	return cells
}

// randomCodes are dense numbers below about n.
func randomCodes(random *rand.Rand, rows, n int) []uint32 {
	codes := make([]uint32, rows)
	dense := map[int]uint32{}
	for r := range codes {
		code := random.IntN(max(n, 1))
		if _, known := dense[code]; !known {
			dense[code] = uint32(len(dense))
		}
		codes[r] = dense[code]
	}
	return codes
}

func (y *toy) rows() int { return len(y.sensitive) }

func (y *toy) subject(row int) int {
	if y.subjects == nil {
		return row
	}
	return int(y.subjects[row])
}

func (y *toy) table(t testing.TB, cells [][]string, subjects []uint32) *anonymize.Table {
	t.Helper()
	leaves := make([][]uint32, len(cells))
	for c := range cells {
		for _, cell := range cells[c] {
			leaf, ok := y.columns[c].Hierarchy.Code(cell)
			if !ok {
				t.Fatal("value not in hierarchy")
			}
			leaves[c] = append(leaves[c], leaf)
		}
	}
	table, err := anonymize.NewTable(y.columns, leaves, subjects)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (y *toy) problem(t testing.TB) *anonymize.Problem {
	return &anonymize.Problem{
		Table:     y.table(t, y.cells, y.subjects),
		Sensitive: []anonymize.SensitiveAttribute{anonymize.NewSensitiveAttribute("s", y.sensitive)},
		Blocks:    y.blocks, SuppressionLimit: y.limit, Strict: y.strict,
	}
}

// label is the text of a cell at a level.
func (y *toy) label(c, level int, cell string) string {
	for _, p := range y.paths[c] {
		if p[0] == cell {
			return p[level]
		}
	}
	panic("unknown cell")
}

// cover is the number of values that a label stands for.
func (y *toy) cover(c, level int, label string) float64 {
	n := 0.0
	for _, p := range y.paths[c] {
		if p[level] == label {
			n++
		}
	}
	return n
}

// toyClass is a class at a node: its rows in order.
type toyClass struct {
	y      *toy
	labels []string
	rows   []int
	people int // subjects of the population
}

func (k *toyClass) size() int {
	seen := map[int]bool{}
	for _, r := range k.rows {
		seen[k.y.subject(r)] = true
	}
	return len(seen)
}

// first is the first tuple of the class, by block, then by position of the
// values in their hierarchies.
func (k *toyClass) first() []int {
	var first []int
	for _, r := range k.rows {
		tuple := []int{0}
		if k.y.blocks != nil {
			tuple[0] = int(k.y.blocks[r])
		}
		for c := range k.y.cells {
			tuple = append(tuple, slices.IndexFunc(k.y.paths[c], func(p []string) bool {
				return p[0] == k.y.cells[c][r]
			}))
		}
		if first == nil || slices.Compare(tuple, first) < 0 {
			first = tuple
		}
	}
	return first
}

// shares is the distribution of the sensitive attribute over pairs of subject
// and value, by value, and the counts behind it.
func (y *toy) shares(rows []int) (share map[string]float64, count map[string]int) {
	pairs := map[string]bool{}
	share, count = map[string]float64{}, map[string]int{}
	for _, r := range rows {
		pairs[fmt.Sprint(y.subject(r), " ", y.sensitive[r])] = true
	}
	for pair := range pairs {
		_, value, _ := strings.Cut(pair, " ")
		count[value]++
		share[value] += 1 / float64(len(pairs))
	}
	return share, count
}

func (y *toy) allRows() []int {
	rows := make([]int, y.rows())
	for r := range rows {
		rows[r] = r
	}
	return rows
}

// classes of a node, in the order of their first rows.
func (y *toy) classes(levels []int) []*toyClass {
	byKey := map[string]*toyClass{}
	var classes []*toyClass
	for r := range y.rows() {
		labels := make([]string, len(y.cells))
		for c := range y.cells {
			labels[c] = y.label(c, levels[c], y.cells[c][r])
		}
		key := fmt.Sprint(labels)
		if y.blocks != nil {
			key = fmt.Sprint(y.blocks[r], key)
		}
		if byKey[key] == nil {
			byKey[key] = &toyClass{y: y, labels: labels}
			classes = append(classes, byKey[key])
		}
		byKey[key].rows = append(byKey[key].rows, r)
	}
	for _, k := range classes {
		for p := range y.population[0] {
			same := true
			for c := range y.cells {
				same = same && y.label(c, levels[c], y.population[c][p]) == k.labels[c]
			}
			if same {
				k.people++
			}
		}
	}
	return classes
}

// outcome of a node: the classes that remain and the rows that do not.
type outcome struct {
	kept       []*toyClass
	suppressed []int
	admissible bool
}

// judge applies models of classes, then models of the table, then strictness.
func (y *toy) judge(classes []*toyClass, models []toyModel) outcome {
	var o outcome
	var dropped []*toyClass
	for _, k := range classes {
		holds := true
		for _, m := range models {
			holds = holds && (m.class == nil || m.class(k))
		}
		if holds {
			o.kept = append(o.kept, k)
		} else {
			dropped = append(dropped, k)
		}
	}
	for len(o.kept) > 0 {
		holds := true
		for _, m := range models {
			holds = holds && (m.table == nil || m.table(o.kept))
		}
		if holds {
			break
		}
		smallest := slices.MinFunc(o.kept, func(a, b *toyClass) int {
			return cmp.Or(cmp.Compare(a.size(), b.size()), slices.Compare(a.first(), b.first()))
		})
		o.kept = slices.DeleteFunc(o.kept, func(k *toyClass) bool { return k == smallest })
		dropped = append(dropped, smallest)
	}
	people := map[uint32]map[int]bool{}
	for _, k := range dropped {
		o.suppressed = append(o.suppressed, k.rows...)
		for _, r := range k.rows {
			block := uint32(0)
			if y.blocks != nil {
				block = y.blocks[r]
			}
			if people[block] == nil {
				people[block] = map[int]bool{}
			}
			people[block][y.subject(r)] = true
		}
	}
	slices.Sort(o.suppressed)
	o.admissible = float64(len(o.suppressed)) <= math.Floor(y.limit*float64(y.rows()))
	least := 1
	for _, m := range models {
		least = max(least, m.least)
	}
	for _, seen := range people {
		if y.strict && len(seen) < least {
			o.admissible = false
		}
	}
	return o
}

// nodes lists the whole lattice.
func (y *toy) nodes() [][]int {
	nodes := [][]int{{}}
	for c := range y.columns {
		var longer [][]int
		for _, n := range nodes {
			for l := range y.columns[c].Hierarchy.Height() {
				longer = append(longer, append(slices.Clone(n), l))
			}
		}
		nodes = longer
	}
	return nodes
}
