package main

import (
	"math"
	"math/rand/v2"
)

// query is a range of positions for each column.
type query [][2]int

var anything = [2]int{math.MinInt, math.MaxInt}

// count is how many rows meet the conditions, by positions [column][row].
func (q query) count(positions [][]int) float64 {
	var asked []int
	for c := range q {
		if q[c] != anything {
			asked = append(asked, c)
		}
	}
	n := 0
rows:
	for row := range positions[0] {
		for _, c := range asked {
			if p := positions[c][row]; p < q[c][0] || p > q[c][1] {
				continue rows
			}
		}
		n++
	}
	return float64(n)
}

// workload are queries with the number of rows that meet each.
type workload struct {
	queries []query
	truth   []float64
}

// widest is how many years a condition covers at most.
const widest = 20

// kind is a way to draw queries.
type kind struct {
	name    string
	number  int
	most    int  // conditions
	years   int  // that a condition covers at most
	onePart bool // conditions are about one person, and so have answers in common
	counts  func(n, rows float64) bool
}

func fifty(n, _ float64) bool { return n >= 50 }

func selective(n, rows float64) bool { return 0.001*rows <= n && n <= 0.1*rows }

// mix is the place of the kind that figures against k are about.
const mix = 2

var kinds = []kind{
	{"values", 400, 3, 1, false, fifty},
	{"ranges", 400, 3, widest, false, fifty},
	{"mix, ≥ 50", 1000, 4, widest, true, func(n, rows float64) bool {
		return fifty(n, rows) && selective(n, rows)
	}},
	{"mix", 1000, 4, widest, true, selective},
}

func (k *kind) draw(d *dataset, seed uint64) workload {
	random := rand.New(rand.NewPCG(seed, 2))
	rows := d.table.Rows()
	var w workload
	for len(w.queries) < k.number {
		q := make(query, len(d.columns))
		for c := range q {
			q[c] = anything
		}
		about := random.IntN(rows)
		for _, c := range random.Perm(len(q))[:1+random.IntN(min(k.most, len(q)))] {
			if !k.onePart {
				about = random.IntN(rows)
			}
			at := d.truth[c][about]
			q[c] = [2]int{at, at}
			if year := d.columns[c].year; year != nil {
				q[c][0], q[c][1] = year(at)
				for range random.IntN(k.years) {
					_, q[c][1] = year(q[c][1] + 1)
				}
			}
		}
		if n := q.count(d.truth); k.counts(n, float64(rows)) {
			w.queries, w.truth = append(w.queries, q), append(w.truth, n)
		}
	}
	return w
}
