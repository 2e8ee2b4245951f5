package anonymize_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func kAnonymous(table *anonymize.Table, k int) *anonymize.Problem {
	return &anonymize.Problem{
		Table: table, Privacy: []anonymize.Privacy{anonymize.KAnonymity{K: k}},
		Quality: anonymize.Loss{}, SuppressionLimit: 0.05,
	}
}

// wide has 4^14 = 268,435,456 nodes.
func wide(t testing.TB, rows int) *anonymize.Problem {
	values := make([]int, 14)
	for c := range values {
		values[c] = 8
	}
	return kAnonymous(synthetic(t, rows, values, 0.9), 3)
}

func TestLatticesBeyondMemoryAreSearchedWithinBounds(t *testing.T) {
	p := wide(t, 1000)
	var before, after runtime.MemStats
	for _, a := range []anonymize.Algorithm{anonymize.Flash, anonymize.BestFirst, anonymize.Greedy} {
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := mustSearch(t, context.Background(), p, anonymize.Options{Algorithm: a, MaxChecks: 3000})
		runtime.ReadMemStats(&after)
		if r.Lattice != 1<<28 || r.Optimal {
			t.Errorf("%v: %d nodes, optimal %v", a, r.Lattice, r.Optimal)
		}
		if held := int64(after.HeapInuse) - int64(before.HeapInuse); held > 200<<20 {
			t.Errorf("%v holds %d MB", a, held>>20)
		}
		tr, err := anonymize.Transform(p, r.Levels)
		if err != nil || !tr.Admissible || tr.SmallestClass < 3 || tr.SuppressedRows > 50 {
			t.Errorf("%v: %+v, %v", a, tr, err)
		}
	}
}

func TestLatticesBeyondMemoryAreProvenWhereBoundsReach(t *testing.T) {
	values := make([]int, 15)
	for c := range values {
		values[c] = 8
	}
	p := kAnonymous(synthetic(t, 3000, values, 0.99), 2)
	p.SuppressionLimit = 0.2
	want := mustSearch(t, context.Background(), p, anonymize.Options{Algorithm: anonymize.Flash})
	got := mustSearch(t, context.Background(), p, anonymize.Options{Algorithm: anonymize.BestFirst})
	if want.Lattice != 1<<30 || !want.Optimal || !got.Optimal || want.Score != got.Score {
		t.Errorf("flash %+v, best_first %+v", want, got)
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	p := wide(t, 1000)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	progress := func(state anonymize.Progress) {
		if calls++; state.Checked != calls || state.RolledUp > state.Checked {
			t.Errorf("call %d says %d checked, %d rolled up", calls, state.Checked, state.RolledUp)
		}
		if calls == 20 {
			cancel()
		}
	}
	start := time.Now()
	r, err := anonymize.Search(ctx, p, anonymize.Options{
		Algorithm: anonymize.Flash,
		Progress:  progress,
	})
	if calls != 20 || time.Since(start) > time.Minute {
		t.Errorf("%d nodes checked, 20 before the context ended", calls)
	}
	if err == nil && r.Optimal {
		t.Error("an interrupted search claims a proof")
	}
	calls = 0
	if _, err := anonymize.Search(ctx, p,
		anonymize.Options{Algorithm: anonymize.BestFirst}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that had ended: %v", err)
	}
	_, err = anonymize.Search(context.Background(), p,
		anonymize.Options{MaxChecks: 1, Algorithm: anonymize.Greedy})
	if !errors.Is(err, anonymize.ErrStopped) {
		t.Errorf("stopped after one check: %v", err)
	}
}

func TestKeysBeyond64BitsAreGroupedInPasses(t *testing.T) {
	var values []int
	for range 12 {
		values = append(values, 1000) // 12 columns of 10 bits
	}
	p := kAnonymous(synthetic(t, 400, values, 0.99), 2)
	p.SuppressionLimit = 0.5
	levels := make([]int, len(values))
	one, err := anonymize.Transform(p, levels)
	if err != nil {
		t.Fatal(err)
	}
	distinct := map[[12]uint32]int{}
	for row := range p.Table.Rows() {
		var tuple [12]uint32
		for c := range tuple {
			tuple[c] = p.Table.Leaf(c, p.Table.TupleOfRow()[row])
		}
		distinct[tuple]++
	}
	kept := 0
	for _, n := range distinct {
		if n >= 2 {
			kept++
		}
	}
	if one.Classes != kept || len(distinct) != p.Table.Tuples() {
		t.Errorf("%d classes and %d tuples, want %d and %d", one.Classes, p.Table.Tuples(), kept,
			len(distinct))
	}
}

func TestFaultyProblemsAreRefused(t *testing.T) {
	table := synthetic(t, 10, []int{4}, 0)
	for claim, change := range map[string]func(p *anonymize.Problem){
		"k larger than the table": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.KAnonymity{K: 11}}
		},
		"k of 0": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.KAnonymity{}}
		},
		"a limit above 1":         func(p *anonymize.Problem) { p.SuppressionLimit = 1.1 },
		"a limit below 0":         func(p *anonymize.Problem) { p.SuppressionLimit = -0.1 },
		"no models":               func(p *anonymize.Problem) { p.Privacy = nil },
		"no quality":              func(p *anonymize.Problem) { p.Quality = nil },
		"no table":                func(p *anonymize.Problem) { p.Table = nil },
		"blocks of another table": func(p *anonymize.Problem) { p.Blocks = []uint32{0} },
		"an unknown sensitive column": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.TCloseness{Sensitive: "s", T: 1}}
		},
		"k-map without a population": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.KMap{K: 2}}
		},
		"a risk of 0": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.HighestRisk{}}
		},
		"a risk that needs more people": func(p *anonymize.Problem) {
			p.Privacy = []anonymize.Privacy{anonymize.HighestRisk{Max: 0.01}}
		},
	} {
		p := kAnonymous(table, 2)
		change(p)
		_, err := anonymize.Search(context.Background(), p, anonymize.Options{})
		var fault *anonymize.ProblemError
		if !errors.As(err, &fault) || fault.Remedy == "" {
			t.Errorf("%s: %v", claim, err)
		}
	}
	if _, err := anonymize.Transform(kAnonymous(table, 2), []int{9}); err == nil {
		t.Error("a level that the hierarchy does not have is accepted")
	}
}
