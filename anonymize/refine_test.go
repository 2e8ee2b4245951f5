package anonymize_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func k5() []anonymize.Requirement { return []anonymize.Requirement{anonymize.BlockK{K: 5}} }

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func chain(t testing.TB, p *anonymize.Partition, q [][]int) float64 {
	mean := 0.0
	var err error
	for _, s := range q {
		if p, err = p.Refine(context.Background(), anonymize.Refinement{Columns: s, Requirements: k5(), Outlook: outlook(p.Table())}); err != nil {
			t.Fatal(err)
		}
		mean += p.Loss(s) / float64(len(q))
	}
	return mean
}

func weightsOf(q [][]int, n int) []float64 {
	w := make([]float64, n)
	for _, s := range q {
		for _, c := range s {
			w[c] += 1 / float64(len(s)) / float64(len(q))
		}
	}
	return w
}

func randomWorkload(seed uint64, n int) [][]int {
	r := rand.New(rand.NewPCG(seed, 1))
	var q [][]int
	for range 20 {
		q = append(q, r.Perm(n)[:1+r.IntN(4)])
	}
	return q
}

func TestScratch(t *testing.T) {
	set := "adult"
	if s := os.Getenv("SET"); s != "" {
		set = s
	}
	ns := map[string][]int{"adult": {7, 9}, "ss13acs": {5}, "creditcard_int": {8}}[set]
	for _, n := range ns {
		table := loadReference(t, "arx/"+set, set, n).table(t)
		start := time.Now()
		p, err := anonymize.NewPartition(table).Refine(context.Background(), anonymize.Refinement{Columns: upTo(n), Requirements: k5()})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%d columns %.5f blocks %d min %d %v\n", n, p.Loss(upTo(n)), p.Blocks(), p.MinBlock(), time.Since(start).Round(time.Millisecond))
		if n == 9 {
			continue
		}
		for name, source := range map[string]int{"given": 4, "random": 8} {
			if name == "given" && set != "adult" {
				continue
			}
			var sets [][][]int
			for w := range source {
				if name == "given" {
					sets = append(sets, readWorkload(t, table, fmt.Sprintf("workloads/adult7-%d.txt", w)))
				} else {
					sets = append(sets, randomWorkload(uint64(w), n))
				}
			}
			for _, f := range []float64{0.5, 0.7} {
				foresight = f
				sum := 0.0
				fmt.Printf("%s chain f=%.2f:", name, f)
				start := time.Now()
				for _, q := range sets {
					m := chain(t, anonymize.NewPartition(table), q)
					fmt.Printf(" %.4f", m)
					sum += m
				}
				fmt.Printf("  mean %.5f %v\n", sum/float64(source), time.Since(start).Round(time.Millisecond))
			}
			sum := 0.0
			for _, q := range sets {
				p, err := anonymize.NewPartition(table).Refine(context.Background(), anonymize.Refinement{Columns: upTo(n), Requirements: k5(), Weights: weightsOf(q, n)})
				if err != nil {
					t.Fatal(err)
				}
				m := 0.0
				for _, s := range q {
					m += p.Loss(s) / float64(len(q))
				}
				sum += m
				fmt.Printf(" %.4f", m)
			}
			fmt.Printf("  seeded mean %.5f\n", sum/float64(source))
		}
	}
}

var foresight = 0.5

func outlook(t *anonymize.Table) []float64 {
	o := make([]float64, len(t.Columns()))
	for i := range o {
		o[i] = foresight
	}
	return o
}
