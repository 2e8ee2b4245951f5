package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// flat is a table of columns whose values are all alike, of given numbers of
// values, without levels between value and root.
func flat(t testing.TB, rows int, widths ...int) *anonymize.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 3))
	var columns []anonymize.Column
	var leaves [][]uint32
	for c, n := range widths {
		paths := make([][]string, n)
		for v := range paths {
			paths[v] = []string{fmt.Sprint(v), anonymize.Top}
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, anonymize.Column{Name: fmt.Sprint("f", c), Hierarchy: h})
		values := make([]uint32, rows)
		for i := range values {
			values[i] = uint32(r.IntN(n))
		}
		leaves = append(leaves, values)
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func TestLongFlatColumnsAreShownWhereThereIsRoom(t *testing.T) {
	table := flat(t, 40000, 1000, 20)
	p := refined(t, anonymize.NewPartition(table),
		anonymize.Refinement{Columns: []int{0}, Requirements: blockK(5)})
	if loss := p.Loss([]int{0}); loss > 0.001 || p.MinBlock() < 5 {
		t.Errorf("40 rows a value, and yet loss %.3f, smallest block %d", loss, p.MinBlock())
	}
}

func TestLongFlatColumnsMeetEveryRequirement(t *testing.T) {
	table := flat(t, 40000, 3000, 20)
	r := rand.New(rand.NewPCG(4, 4))
	sensitive := make([]uint32, table.Rows())
	for row := range sensitive {
		sensitive[row] = uint32(min(r.IntN(9), 4))
	}
	must := append(blockK(5), anonymize.BlockDistinctL{
		L:  4,
		Of: anonymize.Sensitive{Name: "s", CodeOfRow: sensitive},
	})
	p := refined(t, anonymize.NewPartition(table),
		anonymize.Refinement{Columns: []int{0}, Requirements: must})
	checker, err := must[1].Bind(table)
	if err != nil {
		t.Fatal(err)
	}
	for b := range uint32(p.Blocks()) {
		if p.Subjects(b) < 5 || !checker.Meets(p.Tuples(b)) {
			t.Fatalf("block %d of %d with %d subjects fails", b, p.Blocks(), p.Subjects(b))
		}
	}
	if loss := p.Loss([]int{0}); loss > 0.3 {
		t.Errorf("loss is %.3f", loss)
	}
}

func TestOutlookCostsAnAnswerNoMoreThanItsReserve(t *testing.T) {
	// There is room for the first column or for the others.
	table := flat(t, 40000, 2000, 30, 30)
	narrow := anonymize.Refinement{
		Columns: []int{0}, Requirements: blockK(5),
		Outlook: make([]float64, 3),
	}
	best := refined(t, anonymize.NewPartition(table), narrow).Loss([]int{0})
	far := narrow
	far.Outlook = []float64{1, 1, 1}
	loss := refined(t, anonymize.NewPartition(table), far).Loss([]int{0})
	if loss > best+anonymize.MaxOutlookCost {
		t.Errorf("loss is %.3f with an outlook and %.3f without", loss, best)
	}
}

func TestTuplesThatSufficeAreShownExactly(t *testing.T) {
	p := refined(t, anonymize.NewPartition(flat(t, 1000, 5, 4)),
		anonymize.Refinement{Columns: upTo(2), Requirements: blockK(5)})
	if p.Blocks() != 20 || p.Loss(upTo(2)) != 0 {
		t.Errorf("%d blocks at loss %g for 20 tuples of about 50 rows", p.Blocks(), p.Loss(upTo(2)))
	}
}

func TestOutlookKeepsRoomForLaterQueries(t *testing.T) {
	table := loadBlockData(t, "arx/adult", "adult", 7).table(t)
	later := func(outlook []float64) float64 {
		p := refined(t, anonymize.NewPartition(table),
			anonymize.Refinement{Columns: []int{1, 2, 4}, Requirements: blockK(5), Outlook: outlook})
		p = refined(t, p, anonymize.Refinement{
			Columns: []int{3, 6}, Requirements: blockK(5),
			Outlook: outlook,
		})
		return p.Loss([]int{3, 6})
	}
	if with, without := later(nil), later(make([]float64, 7)); with > without/2 {
		t.Errorf("a later query loses %.3f with an outlook and %.3f without", with, without)
	}
}

func TestAPartitionDoesNotDependOnTheNumberOfProcessors(t *testing.T) {
	patients := 20_000
	if raceDetector {
		patients = 5000
	}
	table, diagnosis := hospitalTable(t, patients)
	must := append(blockK(5), anonymize.BlockDistinctL{L: 3, Of: diagnosis})
	refine := func(processors int) []uint32 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		p := anonymize.NewPartition(table)
		for _, columns := range [][]int{{1, 4}, {0, 1}} {
			p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: must})
		}
		return p.BlockOf()
	}
	alone := refine(1)
	for _, processors := range []int{2, 5} {
		if !slices.Equal(refine(processors), alone) {
			t.Errorf("other blocks with %d processors than with one", processors)
		}
	}
}
