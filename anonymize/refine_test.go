package anonymize_test

import (
	"context"
	"fmt"
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

func TestScratch(t *testing.T) {
	for _, n := range []int{7, 9} {
		table := loadReference(t, "arx/adult", "adult", n).table(t)
		start := time.Now()
		p, err := anonymize.NewPartition(table).Refine(context.Background(), anonymize.Refinement{Columns: upTo(n), Requirements: k5()})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(n, "columns", p.Loss(upTo(n)), p.Blocks(), p.MinBlock(), time.Since(start))
		if n != 7 {
			continue
		}
		sum := 0.0
		for w := range 4 {
			q := readWorkload(t, table, fmt.Sprintf("workloads/adult7-%d.txt", w))
			start := time.Now()
			p, mean := anonymize.NewPartition(table), 0.0
			for _, s := range q {
				if p, err = p.Refine(context.Background(), anonymize.Refinement{Columns: s, Requirements: k5()}); err != nil {
					t.Fatal(err)
				}
				mean += p.Loss(s) / float64(len(q))
			}
			fmt.Println("chain", w, mean, p.Blocks(), p.MinBlock(), time.Since(start))
			sum += mean / 4
		}
		fmt.Println("mean", sum)
	}
}
