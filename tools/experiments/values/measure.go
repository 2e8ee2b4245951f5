package main

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// workloads is how many of each kind are asked.
const workloads = 4

// result is how far off counts are by one way to read a release.
type result struct {
	name   string
	errors []summary // of each kind
}

// summary is of the relative errors of workloads: the mean and the 90th percentile.
type summary struct{ mean, ninety spread }

// spread is the mean, the least and the greatest of some figures.
type spread struct{ middle, least, greatest float64 }

func (s spread) String() string {
	if s.least == s.greatest {
		return fmt.Sprintf("%.2f", 100*s.middle)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", 100*s.middle, 100*s.least, 100*s.greatest)
}

func spreadOf(figures []float64) spread {
	s := spread{least: slices.Min(figures), greatest: slices.Max(figures)}
	for _, f := range figures {
		s.middle += f / float64(len(figures))
	}
	return s
}

// summarized sums up errors, a list for each workload and chance.
func summarized(errors [][]float64) summary {
	var means, nineties []float64
	for _, e := range errors {
		slices.Sort(e)
		means, nineties = append(means, spreadOf(e).middle), append(nineties, e[len(e)*9/10])
	}
	return summary{spreadOf(means), spreadOf(nineties)}
}

// measure asks the workloads, by kind, of the releases of a table for k.
func measure(ctx context.Context, d *dataset, k int, asked [][]workload) ([]result, error) {
	all, r, err := ways(ctx, d, k)
	if err != nil {
		return nil, err
	}
	var out []result
	for _, way := range all {
		out = append(out, result{way.name, summaries(asked, func(w workload) (errors [][]float64) {
			for _, count := range way.counts {
				var own []float64
				for i, q := range w.queries {
					own = append(own, math.Abs(count(q)-w.truth[i])/w.truth[i])
				}
				errors = append(errors, own)
			}
			return errors
		})})
	}
	worlds := r.worlds(1)
	out = append(out, result{"bound", summaries(asked, func(w workload) [][]float64 {
		return [][]float64{uncertain(worlds, w)}
	})})
	return out, nil
}

func summaries(asked [][]workload, errors func(workload) [][]float64) (out []summary) {
	for _, workloads := range asked {
		var all [][]float64
		for _, w := range workloads {
			all = append(all, errors(w)...)
		}
		out = append(out, summarized(all))
	}
	return out
}
