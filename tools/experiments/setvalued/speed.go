package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/internal/setdata"
	"github.com/hiatus-tailor/tailor/internal/svgplot"
	"github.com/hiatus-tailor/tailor/tools/experiments/page"
)

// runs is how often each time is taken; the median counts.
const runs = 9

// speed measures time and memory, from the data set in memory to the verified
// form.
func (e *experiments) speed(p *page.Section) error {
	p.Printf("### Speed\n\nMedian of %d runs on %s, %d processors, %s, from the data set in memory "+
		"to the verified form; k = 5, m = 2, no constraints.\n",
		runs, e.machine, runtime.GOMAXPROCS(0), runtime.Version())
	sizes := []int{5000, 10_000, 25_000, 40_000, e.nhds.Len()}
	lines := make([]svgplot.Line, len(refinements))
	rows := make([][]string, len(sizes))
	for i, n := range sizes {
		d, err := setdata.Head(e.nhds, n)
		if err != nil {
			return err
		}
		rows[i] = []string{fmt.Sprint(n)}
		for j, refine := range refinements {
			median, _, err := e.time(d, refine)
			if err != nil {
				return err
			}
			lines[j].Name = refine.String()
			lines[j].Points = append(lines[j].Points, [2]float64{float64(n), median.Seconds()})
			rows[i] = append(rows[i], fmt.Sprintf("%.3f s", median.Seconds()))
		}
	}
	growth := []string{"exponent of growth"}
	for _, l := range lines {
		growth = append(growth, fmt.Sprintf("%.2f", slope(l.Points)))
	}
	p.Table([]string{"records", "none", "joint", "scoped"}, append(rows, growth))
	p.Printf("The exponent is the slope of log(time) over log(records): 1 is linear, 2 quadratic. " +
		"Aimed at: 0.2 s for 25,000 records and 0.6 s for 58,302, scoped, below 2.\n\n")
	if err := p.Plot("setvalued-time", &svgplot.Chart{
		Title: "Time against records (k = 5, m = 2)", X: "records (logarithmic)",
		Y:    "seconds (logarithmic)",
		LogX: true, LogY: true, Lines: lines,
	}); err != nil {
		return err
	}
	large, err := setdata.Synthetic(150_000, 8_000, 6, seed)
	if err != nil {
		return err
	}
	rows = nil
	for _, refine := range refinements {
		median, peak, err := e.time(large, refine)
		if err != nil {
			return err
		}
		rows = append(rows, []string{
			refine.String(), fmt.Sprintf("%.2f s", median.Seconds()), fmt.Sprintf("%d MB", peak>>20),
		})
	}
	p.Printf("150,000 synthetic records with %d distinct codes, %.1f a record on average. Memory is "+
		"the largest heap seen during a run, data set included.\n",
		len(large.Codes()), float64(large.Occurrences())/float64(large.Len()))
	p.Table([]string{"refinement", "time", "memory"}, rows)
	return nil
}

// time is the median time of a run, and the largest heap seen at its progress
// reports.
func (e *experiments) time(
	d *disassociate.Dataset, refine disassociate.Refinement,
) (time.Duration, uint64, error) {
	cfg := disassociate.Default(5, 2)
	cfg.Refine = refine
	var peak uint64
	var last time.Time
	watch := func(disassociate.Stage, int, int) {
		if time.Since(last) < 50*time.Millisecond {
			return
		}
		last = time.Now()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
	}
	if _, err := disassociate.Disassociate(e.ctx, d, cfg, rand.New(rand.NewPCG(seed, seed)),
		watch); err != nil {
		return 0, 0, err
	}
	var times []time.Duration
	for range runs {
		runtime.GC()
		begin := time.Now()
		if _, err := disassociate.Disassociate(e.ctx, d, cfg, rand.New(rand.NewPCG(seed, seed)),
			nil); err != nil {
			return 0, 0, err
		}
		times = append(times, time.Since(begin))
	}
	slices.Sort(times)
	return times[len(times)/2], peak, nil
}

// slope fits log(y) over log(x) by least squares.
func slope(points [][2]float64) float64 {
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(p[0]), math.Log(p[1])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	n := float64(len(points))
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}
