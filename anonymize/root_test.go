package anonymize_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// root makes a root partition or fails the test.
func root(t testing.TB, table *anonymize.Table, plan anonymize.RootPlan) *anonymize.Partition {
	t.Helper()
	p, err := anonymize.Root(context.Background(), table, plan)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// rootTables is how many random tables a property of roots is tried on: more
// with TAILOR_SOAK=1.
func rootTables() uint64 {
	switch {
	case seeds() > 1000:
		return 400
	case raceDetector:
		return 4
	}
	return 24
}

// rootRequirements are those that a random table's root is tried with: k alone,
// and others beside it.
func rootRequirements(seed uint64, d *randomRows) []anonymize.Requirement {
	of := anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive}
	switch seed % 4 {
	case 1:
		return append(blockK(3), anonymize.BlockMaxShare{Share: 0.4})
	case 2:
		return append(blockK(3), anonymize.BlockDistinctL{L: 3, Of: of})
	case 3:
		return append(blockK(2), anonymize.BlockAlpha{Alpha: 0.4, Of: of},
			anonymize.BlockMaxShare{Share: 0.5})
	}
	return blockK(3)
}

func TestRootMeetsItsRequirementsIsFinishedAndLosesNoMoreThanRefine(t *testing.T) {
	better := 0
	for seed := range rootTables() {
		d := newRandomRows(t, seed, seed%4 > 0)
		table, must := d.table(t, nil), rootRequirements(seed, d)
		p := root(t, table, anonymize.RootPlan{Requirements: must})
		for _, model := range must {
			checker, err := model.Bind(table)
			if err != nil {
				t.Fatal(err)
			}
			for b := range uint32(p.Blocks()) {
				if !checker.Meets(p.Tuples(b)) {
					t.Fatalf("seed %d: block %d fails %s", seed, b, model)
				}
			}
		}
		all := upTo(len(d.columns))
		for _, columns := range [][]int{all, all[:1]} {
			if refined(t, p, anonymize.Refinement{Columns: columns, Requirements: must}) != p {
				t.Errorf("seed %d: the root can be refined along %v", seed, columns)
			}
		}
		cut := refined(t, anonymize.NewPartition(table),
			anonymize.Refinement{Columns: all, Requirements: must})
		switch is, was := p.Loss(all), cut.Loss(all); {
		case is > was+1e-12:
			t.Errorf("seed %d: the root loses %.4f, a refinement %.4f", seed, is, was)
		case is < was-1e-12:
			better++
		}
	}
	if better < int(rootTables())*3/4 {
		t.Errorf("only %d of %d roots lose less than a refinement", better, rootTables())
	}
}

func TestRootDependsNeitherOnTheOrderOfRowsNorOnProcessors(t *testing.T) {
	for seed := range min(rootTables(), 6) {
		d := newRandomRows(t, seed, seed%2 == 1)
		order := rand.New(rand.NewPCG(seed, 45)).Perm(len(d.leaves[0]))
		one, other := d.table(t, nil), d.table(t, order)
		sensitive := make([]uint32, len(order))
		for i, from := range order {
			sensitive[i] = d.sensitive[from]
		}
		p := root(t, one, anonymize.RootPlan{Requirements: rootRequirements(seed, d)})
		d.sensitive = sensitive
		q := onProcessors(1+int(seed%3), func() *anonymize.Partition {
			return root(t, other, anonymize.RootPlan{Requirements: rootRequirements(seed, d)})
		})
		for i, from := range order {
			a := p.BlockOf()[p.Table().TupleOfRow()[from]]
			if b := q.BlockOf()[q.Table().TupleOfRow()[i]]; a != b {
				t.Fatalf("seed %d: a row is in block %d or %d, depending on the order of rows", seed, a, b)
			}
		}
	}
	// Several neighbourhoods at once.
	table, diagnosis := hospitalTable(t, 400)
	must := append(blockK(5), anonymize.BlockDistinctL{L: 3, Of: diagnosis})
	build := func() *anonymize.Partition {
		return root(t, table, anonymize.RootPlan{Requirements: must})
	}
	alone := onProcessors(1, build)
	if !slices.Equal(onProcessors(2, build).BlockOf(), alone.BlockOf()) {
		t.Error("other blocks with two processors than with one")
	}
}

// onProcessors runs something on so many processors.
func onProcessors[T any](n int, run func() T) T {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
	return run()
}

func TestRootTellsProgressAndStopsWhenCancelled(t *testing.T) {
	table, _ := hospitalTable(t, 600)
	var told []float64
	plan := anonymize.RootPlan{Requirements: blockK(5), Progress: func(share float64) {
		told = append(told, share)
	}}
	root(t, table, plan)
	if len(told) < 10 || told[0] != 0 || told[len(told)-1] != 1 {
		t.Errorf("progress is told as %v", told)
	}
	for i, share := range told[1:] {
		if share < told[i]+0.01-1e-12 && share < 1 || share <= told[i] {
			t.Errorf("progress goes from %g to %g", told[i], share)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	last := 0.0
	plan.Progress = func(share float64) {
		if last = share; share > 0.1 {
			cancel()
		}
	}
	if _, err := anonymize.Root(ctx, table, plan); !errors.Is(err, context.Canceled) || last > 0.5 {
		t.Errorf("cancelled at 0.1, ends at %g with %v", last, err)
	}
}

func TestRootsThatMakeNoSenseFail(t *testing.T) {
	d := newRandomRows(t, 3, false)
	table := d.table(t, nil)
	weights := slices.Repeat([]float64{1}, len(d.columns))
	for claim, plan := range map[string]anonymize.RootPlan{
		"no k":             {},
		"k of zero":        {Requirements: blockK(0)},
		"too few weights":  {Requirements: blockK(2), Weights: weights[1:]},
		"a weight of zero": {Requirements: blockK(2), Weights: append([]float64{0}, weights[1:]...)},
		"a weight not a number": {
			Requirements: blockK(2),
			Weights:      append([]float64{math.NaN()}, weights[1:]...),
		},
	} {
		if _, err := anonymize.Root(context.Background(), table, plan); err == nil {
			t.Errorf("%s is accepted", claim)
		}
	}
	var unmet *anonymize.UnmetError
	if _, err := anonymize.Root(context.Background(), table,
		anonymize.RootPlan{Requirements: blockK(table.Rows() + 1)}); !errors.As(err, &unmet) {
		t.Errorf("too few rows for k: %v", err)
	}
	for c := range d.leaves {
		d.leaves[c] = nil
	}
	if _, err := anonymize.Root(context.Background(), d.table(t, nil),
		anonymize.RootPlan{Requirements: blockK(2)}); !errors.As(err, &unmet) {
		t.Errorf("nobody passes for two: %v", err)
	}
}

// TestRootLosesNoMoreThanWasMeasured is too slow for the race detector: make
// test begins without it.
func TestRootLosesNoMoreThanWasMeasured(t *testing.T) {
	if raceDetector {
		t.Skip("takes long under the race detector")
	}
	for _, data := range []struct {
		set        string
		columns, k int
		most       float64
	}{
		{"adult", 7, 5, 0.0290},
		{"adult", 9, 5, 0.0570},
		{"adult", 7, 10, 0.0465},
		{"adult", 7, 50, 0.1130},
		{"ss13acs", 5, 5, 0.0083},
		{"creditcard_int", 8, 5, 0.0440},
	} {
		t.Run(fmt.Sprint(data.set, data.columns, " k=", data.k), func(t *testing.T) {
			t.Parallel()
			table := loadBlockData(t, "arx/"+data.set, data.set, data.columns).table(t)
			p := root(t, table, anonymize.RootPlan{Requirements: blockK(data.k)})
			loss := p.Loss(upTo(data.columns))
			bound, err := anonymize.LowerBound(context.Background(), table, data.k)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("loss %.4f, %d blocks; bound %.4f", loss, p.Blocks(), bound)
			if loss > data.most || p.MinBlock() < data.k || bound > loss {
				t.Errorf("loss %.4f, at most %.4f wanted and at least %.4f possible; smallest block %d",
					loss, data.most, bound, p.MinBlock())
			}
		})
	}
}

// TestRootsOfWorkloadsLoseNoMoreThanWasMeasured is too slow for the race
// detector: make test begins without it.
func TestRootsOfWorkloadsLoseNoMoreThanWasMeasured(t *testing.T) {
	if raceDetector {
		t.Skip("takes long under the race detector")
	}
	table := loadBlockData(t, "arx/adult", "adult", 7).table(t)
	one := root(t, table, anonymize.RootPlan{Requirements: blockK(5)})
	shared, prepared := 0.0, 0.0
	for i, w := range adultWorkloads(t, table) {
		own := root(t, table, anonymize.RootPlan{Requirements: blockK(5), Weights: w.Weights(table)})
		a, b := w.Read(one), w.Read(own)
		t.Logf("workload %d: one root %.4f, prepared %.4f", i, a.MeanLoss, b.MeanLoss)
		if a.SmallestBlock < 5 || b.SmallestBlock < 5 {
			t.Errorf("workload %d: linking all answers leaves %d or %d subjects together", i,
				a.SmallestBlock, b.SmallestBlock)
		}
		shared += a.MeanLoss / 4
		prepared += b.MeanLoss / 4
	}
	t.Logf("mean loss: one root %.4f, prepared %.4f", shared, prepared)
	if shared > 0.0305 || prepared > 0.0280 {
		t.Errorf("mean loss is %.4f from one root, %.4f from prepared ones; was 0.0298 and 0.0274",
			shared, prepared)
	}
}

func TestWeightsFollowTheWorkload(t *testing.T) {
	table := newRandomRows(t, 1, false).table(t, nil)
	w := anonymize.Workload{{0}, {1, 0}}.Weights(table)
	if len(w) != len(table.Columns()) || math.Abs(w[0]-1.5) > 1e-9 || math.Abs(w[1]-0.5) > 1e-9 {
		t.Errorf("weights %v", w)
	}
	for c, weight := range w[2:] {
		if !(weight > 0 && weight < 0.1) {
			t.Errorf("column %d, which no query names, weighs %g", c+2, weight)
		}
	}
}

// TestARootIsNotTrappedByItsFirstCut has groups of five people who are alike but for
// their sex: to tell men from women first leaves blocks in which nothing else can be
// told.
func TestARootIsNotTrappedByItsFirstCut(t *testing.T) {
	sex, err := anonymize.NewHierarchy([][]string{{"f", "*"}, {"m", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	var paths [][]string
	for group := range 12 {
		for member := range 5 {
			paths = append(paths, []string{fmt.Sprint(group, ".", member), fmt.Sprint(group), "*"})
		}
	}
	place, err := anonymize.NewHierarchy(paths)
	if err != nil {
		t.Fatal(err)
	}
	leaves := make([][]uint32, 4)
	for person := range paths {
		leaves[0] = append(leaves[0], uint32(person%5%2))
		for c := 1; c < 4; c++ {
			code, ok := place.Code(paths[person][0])
			if !ok {
				t.Fatal("no leaf")
			}
			leaves[c] = append(leaves[c], code)
		}
	}
	table, err := anonymize.NewTable([]anonymize.Column{
		{Name: "sex", Hierarchy: sex},
		{Name: "a", Hierarchy: place},
		{Name: "b", Hierarchy: place},
		{Name: "c", Hierarchy: place},
	}, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	root, err := anonymize.Root(t.Context(), table,
		anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: 5}}})
	if err != nil {
		t.Fatal(err)
	}
	if root.Blocks() != 12 || root.Loss([]int{1}) > 0.1 {
		t.Errorf("%d blocks, loss of a place %.2f; want the 12 groups", root.Blocks(),
			root.Loss([]int{1}))
	}
}

// TestBlindCutsWithholdLittle counts the rows of blocks, cut by k alone, that have fewer
// different occupations than a model asks for.
func TestBlindCutsWithholdLittle(t *testing.T) {
	if raceDetector {
		t.Skip("takes long: make test begins with it")
	}
	data := loadBlockData(t, "arx/adult", "adult", 7)
	table := data.table(t)
	p := root(t, table, anonymize.RootPlan{Requirements: blockK(5)})
	for l, most := range map[int]float64{2: 0.02, 3: 0.1} {
		withheld := 0
		for block := range uint32(p.Blocks()) {
			different := make(map[uint32]bool)
			for _, tuple := range p.Tuples(block) {
				for _, row := range table.RowsOf(tuple) {
					different[data.others["occupation"][row]] = true
				}
			}
			if len(different) < l {
				withheld += p.Rows(block)
			}
		}
		share := float64(withheld) / float64(table.Rows())
		t.Logf("l = %d: withheld in %.4f of the rows", l, share)
		if share > most {
			t.Errorf("l = %d: withheld in %.4f of the rows", l, share)
		}
	}
}
