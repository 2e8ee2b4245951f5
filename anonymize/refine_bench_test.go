package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// wideTable is a table of rows with up to eight quasi-identifiers: age, sex,
// code of a place, education, status, occupation, year and ward, correlated a
// little.
func wideTable(tb testing.TB, rows, width int) *anonymize.Table {
	tb.Helper()
	r := rand.New(rand.NewPCG(7, 11))
	widths := []int{100, 2, 1000, 16, 7, 14, 60, 40}[:width]
	columns := make([]anonymize.Column, len(widths))
	leaves := make([][]uint32, len(widths))
	for c, n := range widths {
		paths := make([][]string, n)
		for v := range n {
			paths[v] = []string{
				strconv.Itoa(v), fmt.Sprint("a", v/5), fmt.Sprint("b", v/10),
				fmt.Sprint("c", v/50), "*",
			}
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			tb.Fatal(err)
		}
		columns[c] = anonymize.Column{Name: fmt.Sprint("q", c), Hierarchy: h}
		leaves[c] = make([]uint32, rows)
	}
	for i := range rows {
		u := r.Float64()
		for c, n := range widths {
			v := r.Float64()
			if c%2 == 0 {
				v = (u + 2*v) / 3
			} else {
				v *= v
			}
			leaves[c][i] = uint32(v * float64(n))
		}
	}
	t, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// BenchmarkRefine partitions along six of eight columns, then along the other
// two as well.
func BenchmarkRefine(b *testing.B) {
	for _, rows := range []int{1e4, 1e5, 1e6} {
		t := wideTable(b, rows, 8)
		for _, step := range []string{"first six", "two more"} {
			b.Run(fmt.Sprintf("%s/rows=%d", step, rows), func(b *testing.B) {
				var p *anonymize.Partition
				first := anonymize.Refinement{Columns: upTo(6), Requirements: blockK(5)}
				more := anonymize.Refinement{Columns: upTo(8), Requirements: blockK(5)}
				start, then, columns := anonymize.NewPartition(t), first, 6
				if step == "two more" {
					columns = 8
					start, then = refined(b, start, first), more
				}
				for b.Loop() {
					if step != "two more" {
						start = anonymize.NewPartition(t)
					}
					p = refined(b, start, then)
				}
				b.ReportMetric(float64(p.Blocks()), "blocks")
				b.ReportMetric(p.Loss(upTo(columns)), "loss")
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}

// BenchmarkChain runs the four reference workloads on adult, each as one chain
// of 20 queries. The loss to compare with is that of plain median cuts:
// 0.101 on average (README of the workloads).
func BenchmarkChain(b *testing.B) {
	t := loadBlockData(b, "arx/adult", "adult", 7).table(b)
	workloads := adultWorkloads(b, t)
	for _, mode := range []string{"alone", "seeded"} {
		b.Run(mode, func(b *testing.B) {
			loss, queries := 0.0, 0
			for b.Loop() {
				loss, queries = 0, 0
				for _, w := range workloads {
					p := anonymize.NewPartition(t)
					if mode == "seeded" {
						p = refined(b, p, w.Seed(t, blockK(5)))
					}
					for _, q := range w {
						p = refined(b, p, anonymize.Refinement{Columns: q, Requirements: blockK(5)})
						loss += p.Loss(q) / float64(len(w)*len(workloads))
						queries++
					}
				}
			}
			b.ReportMetric(loss, "loss")
			b.ReportMetric(float64(queries)*float64(b.N)/b.Elapsed().Seconds(), "queries/s")
		})
	}
}
