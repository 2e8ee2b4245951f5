package anonymize_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestWorkloadsAreReadLineByLine(t *testing.T) {
	table := newRandomRows(t, 1, false).table(t, nil)
	w, err := anonymize.ReadWorkload(strings.NewReader("# two queries\nc0\n\n c1 , c0\r\n"), table)
	if err != nil || len(w) != 2 || fmt.Sprint(w) != "[[0] [1 0]]" {
		t.Errorf("read %v, %v", w, err)
	}
	for claim, text := range map[string]string{
		"an unknown column": "c0\nnobody\n",
		"a column twice":    "c1\nc0,c0\n",
	} {
		_, err := anonymize.ReadWorkload(strings.NewReader(text), table)
		var bad *anonymize.WorkloadError
		if !errors.As(err, &bad) || bad.Line != 2 {
			t.Errorf("%s: %v", claim, err)
		}
	}
	if _, err := anonymize.ReadWorkload(strings.NewReader("\n"), table); err == nil {
		t.Error("an empty workload is accepted")
	}
}

func TestSeedWeighsColumnsAsTheMeanLossDoes(t *testing.T) {
	table := newRandomRows(t, 1, false).table(t, nil)
	r := anonymize.Workload{{0}, {1, 0}}.Seed(table, blockK(3))
	if fmt.Sprint(r.Columns) != "[0 1]" || math.Abs(r.Weights[0]-1.5) > 1e-9 ||
		math.Abs(r.Weights[1]-0.5) > 1e-9 {
		t.Errorf("columns %v, weights %v", r.Columns, r.Weights)
	}
}

func TestLinkageSeesThroughAnUnsoundChain(t *testing.T) {
	linked := anonymize.NewCommonRefinement(4)
	linked.Add(func(row int) string { return []string{"a", "a", "b", "b"}[row] })
	if n, classes := linked.Smallest(func(row int) uint32 {
		return uint32(row)
	}); n != 2 || classes != 2 {
		t.Errorf("one answer: %d subjects in the smallest of %d classes", n, classes)
	}
	linked.Add(func(row int) string { return []string{"x", "y", "x", "y"}[row] })
	if n, classes := linked.Smallest(func(row int) uint32 {
		return uint32(row)
	}); n != 1 || classes != 4 {
		t.Errorf("two answers linked: %d subjects in the smallest of %d classes", n, classes)
	}
	if n, _ := linked.Smallest(func(int) uint32 { return 0 }); n != 1 {
		t.Errorf("rows of one subject count as %d", n)
	}
}

// TestLinkedAnswersKeepSubjectsTogether checks random chains by their labels.
func TestLinkedAnswersKeepSubjectsTogether(t *testing.T) {
	for seed := range seeds() {
		d := newRandomRows(t, seed, seed%2 == 1)
		p := anonymize.NewPartition(d.table(t, nil))
		if report := run(t, p, d.randomChain(seed)); report.SmallestBlock < 5 {
			t.Fatalf("seed %d: linking all answers leaves %d subjects together", seed, report.SmallestBlock)
		}
	}
}
