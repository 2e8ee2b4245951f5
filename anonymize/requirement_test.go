package anonymize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// meetsModel is each model by its definition, over the counts of the sensitive
// values of a block and the values of all rows.
func meetsModel(r anonymize.Requirement, counts map[uint32]int, all []uint32) bool {
	base, total := make(map[uint32]float64), 0.0
	for _, v := range all {
		base[v] += 1 / float64(len(all))
	}
	var sorted []int
	for _, n := range counts {
		sorted = append(sorted, n)
		total += float64(n)
	}
	slices.Sort(sorted)
	slices.Reverse(sorted)
	share := func(v uint32) float64 { return float64(counts[v]) / total }
	const slack = 1e-9
	switch r := r.(type) {
	case anonymize.BlockDistinctL:
		return len(counts) >= r.L
	case anonymize.BlockEntropyL:
		entropy := 0.0
		for v := range counts {
			entropy -= share(v) * math.Log(share(v))
		}
		return entropy >= math.Log(r.L)-slack
	case anonymize.BlockRecursiveCL:
		tail := 0
		for _, n := range sorted[min(r.L-1, len(sorted)):] {
			tail += n
		}
		return float64(sorted[0]) < r.C*float64(tail)
	case anonymize.BlockAlpha:
		return float64(sorted[0])/total <= r.Alpha+slack
	case anonymize.BlockTCloseness:
		distance, carried := 0.0, 0.0
		for v := range uint32(len(base)) {
			carried += share(v) - base[v]
			if r.Ordered {
				distance += math.Abs(carried) / float64(len(base)-1)
			} else {
				distance += math.Abs(share(v)-base[v]) / 2
			}
		}
		return distance <= r.T+slack
	case anonymize.BlockBetaLikeness:
		for v := range counts {
			most := r.Beta
			if r.Enhanced {
				most = min(most, -math.Log(base[v]))
			}
			if (share(v)-base[v])/base[v] > most+slack {
				return false
			}
		}
		return true
	case anonymize.BlockDisclosure:
		for v := range base {
			if counts[v] == 0 || math.Abs(math.Log(share(v)/base[v])) >= r.Delta-slack {
				return false
			}
		}
		return true
	}
	return false
}

// models are requirements of all kinds on one sensitive attribute.
func models(of anonymize.Sensitive) []anonymize.Requirement {
	return []anonymize.Requirement{
		anonymize.BlockDistinctL{L: 3, Of: of},
		anonymize.BlockEntropyL{L: 2.5, Of: of},
		anonymize.BlockRecursiveCL{C: 1.5, L: 2, Of: of},
		anonymize.BlockAlpha{Alpha: 0.4, Of: of},
		anonymize.BlockTCloseness{T: 0.3, Of: of},
		anonymize.BlockTCloseness{T: 0.15, Ordered: true, Of: of},
		anonymize.BlockBetaLikeness{Beta: 1.5, Of: of},
		anonymize.BlockBetaLikeness{Beta: 1.5, Enhanced: true, Of: of},
		anonymize.BlockDisclosure{Delta: 1.2, Of: of},
	}
}

func TestModelsAgreeWithTheirDefinitions(t *testing.T) {
	d := newRandomRows(t, 9, false)
	table := d.table(t, nil)
	r := rand.New(rand.NewPCG(1, 2))
	for _, model := range models(anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive}) {
		checker, err := model.Bind(table)
		if err != nil {
			t.Fatal(err)
		}
		met, failed := 0, 0
		for range 2000 {
			tuples := randomTuples(r, table)
			counts := make(map[uint32]int)
			for _, tuple := range tuples {
				for _, row := range table.RowsOf(tuple) {
					counts[d.sensitive[row]]++
				}
			}
			want := meetsModel(model, counts, d.sensitive)
			if got := checker.Meets(tuples); got != want {
				t.Fatalf("%s: says %v of %v", model, got, counts)
			}
			if want {
				met++
			} else {
				failed++
			}
		}
		if met < 20 || failed < 20 {
			t.Errorf("%s: %d met and %d failed: not a test", model, met, failed)
		}
	}
}

// randomTuples is a few distinct tuples.
func randomTuples(r *rand.Rand, t *anonymize.Table) []uint32 {
	var tuples []uint32
	for _, tuple := range r.Perm(t.Tuples())[:1+r.IntN(min(25, t.Tuples()))] {
		tuples = append(tuples, uint32(tuple))
	}
	return tuples
}

func TestModelsAreMonotone(t *testing.T) {
	for seed := range uint64(4) {
		d := newRandomRows(t, seed, false)
		table := d.table(t, nil)
		r := rand.New(rand.NewPCG(seed, 3))
		of := anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive}
		for _, model := range append(models(of), anonymize.BlockK{K: 4}) {
			checker, err := model.Bind(table)
			if err != nil {
				t.Fatal(err)
			}
			for range 2000 {
				tuples := randomTuples(r, table)
				cut := r.IntN(len(tuples) + 1)
				if checker.Meets(tuples[:cut]) && checker.Meets(tuples[cut:]) && !checker.Meets(tuples) {
					t.Fatalf("%s: two blocks meet it, both together do not", model)
				}
			}
		}
	}
}

func TestParametersThatSwitchAModelOffFail(t *testing.T) {
	d := newRandomRows(t, 5, false)
	table := d.table(t, nil)
	of := anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive}
	for _, model := range []anonymize.Requirement{
		anonymize.BlockK{},
		anonymize.BlockDistinctL{L: 1, Of: of},
		anonymize.BlockEntropyL{L: 1, Of: of},
		anonymize.BlockEntropyL{L: math.NaN(), Of: of},
		anonymize.BlockRecursiveCL{C: 0, L: 2, Of: of},
		anonymize.BlockRecursiveCL{C: 2, L: 1, Of: of},
		anonymize.BlockAlpha{Alpha: 1, Of: of},
		anonymize.BlockTCloseness{T: 0, Of: of},
		anonymize.BlockTCloseness{T: 1, Of: of},
		anonymize.BlockBetaLikeness{Of: of},
		anonymize.BlockBetaLikeness{Beta: math.Inf(1), Of: of},
		anonymize.BlockDisclosure{Of: of},
		anonymize.BlockDisclosure{Delta: math.NaN(), Of: of},
		anonymize.BlockDistinctL{L: 2, Of: anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive[1:]}},
	} {
		if _, err := model.Bind(table); err == nil {
			t.Errorf("%s is accepted", model)
		}
	}
}

func TestSensitiveValuesAreCountedBySubject(t *testing.T) {
	h, err := anonymize.NewHierarchy([][]string{{"a", "*"}, {"b", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	// Subject 0 has value 0 in eight rows; subjects 1 and 2 have values 1 and 2.
	subjects, sensitive := make([]uint32, 10), make([]uint32, 10)
	subjects[8], sensitive[8] = 1, 1
	subjects[9], sensitive[9] = 2, 2
	table, err := anonymize.NewTable([]anonymize.Column{{Name: "q", Hierarchy: h}},
		[][]uint32{make([]uint32, 10)}, subjects)
	if err != nil {
		t.Fatal(err)
	}
	checker, err := anonymize.BlockAlpha{
		Alpha: 0.34,
		Of:    anonymize.Sensitive{Name: "s", CodeOfRow: sensitive},
	}.Bind(table)
	if err != nil {
		t.Fatal(err)
	}
	if !checker.Meets([]uint32{0}) {
		t.Error("rows of one subject are counted one by one")
	}
}

func TestRandomChainsMeetSeveralModelsAtOnce(t *testing.T) {
	for seed := range 3 * seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		table := d.table(t, nil)
		of := anonymize.Sensitive{Name: "s", CodeOfRow: d.sensitive}
		must := append(blockK(3), anonymize.BlockDistinctL{L: 2, Of: of},
			anonymize.BlockAlpha{Alpha: 0.4, Of: of})
		if seed%4 < 2 {
			must = append(must, anonymize.BlockTCloseness{T: 0.6, Of: of})
		}
		p := anonymize.NewPartition(table)
		for _, columns := range d.randomChain(seed) {
			p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: must})
		}
		for _, model := range must {
			checker, err := model.Bind(table)
			if err != nil {
				t.Fatal(err)
			}
			for b := range uint32(p.Blocks()) {
				if !checker.Meets(p.Tuples(b)) {
					t.Fatal(fmt.Sprint("seed ", seed, ": block ", b, " fails ", model))
				}
			}
		}
	}
}
