// Package metrics counts and measures, and prints the figures in Prometheus's
// text format (version 0.0.4). All of it is safe for concurrent use; an
// observation takes no lock and allocates nothing.
package metrics

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Registry holds metrics and prints them in the order in which they were made.
type Registry struct {
	mu       sync.Mutex
	families []family
}

// family is all series of one name.
type family interface {
	print(w *bufio.Writer)
}

func (r *Registry) add(f family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.families = append(r.families, f)
}

// Print writes all metrics.
func (r *Registry) Print(w io.Writer) error {
	r.mu.Lock()
	families := slices.Clone(r.families)
	r.mu.Unlock()
	out := bufio.NewWriter(w)
	for _, f := range families {
		f.print(out)
	}
	return out.Flush()
}

func header(w *bufio.Writer, name, help, kind string) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// labels is the part of a series behind its name; empty without a label.
func labels(label, value string) string {
	if label == "" {
		return ""
	}
	return "{" + label + "=" + strconv.Quote(value) + "}"
}

// Counter only grows.
type Counter struct{ n atomic.Int64 }

// Add counts.
func (c *Counter) Add(n int64) { c.n.Add(n) }

type counters struct {
	name, help, label string
	values            []string
	series            []*Counter
}

func (c *counters) print(w *bufio.Writer) {
	header(w, c.name, c.help, "counter")
	for i, s := range c.series {
		fmt.Fprintf(w, "%s%s %d\n", c.name, labels(c.label, c.values[i]), s.n.Load())
	}
}

// Counter makes a counter without a label.
func (r *Registry) Counter(name, help string) *Counter {
	c := &Counter{}
	r.add(&counters{name: name, help: help, values: []string{""}, series: []*Counter{c}})
	return c
}

// Counters makes a counter for each value of a label.
func (r *Registry) Counters(name, help, label string, values ...string) map[string]*Counter {
	c := &counters{name: name, help: help, label: label, values: values}
	byValue := make(map[string]*Counter)
	for _, v := range values {
		byValue[v] = &Counter{}
		c.series = append(c.series, byValue[v])
	}
	r.add(c)
	return byValue
}

type gauge struct {
	name, help string
	read       func() float64
}

func (g *gauge) print(w *bufio.Writer) {
	header(w, g.name, g.help, "gauge")
	fmt.Fprintf(w, "%s %s\n", g.name, number(g.read()))
}

// Gauge makes a metric that is read when it is printed.
func (r *Registry) Gauge(name, help string, read func() float64) { r.add(&gauge{name, help, read}) }

// info is a metric that is always 1: its labels say something of the program.
type info struct{ name, help, labels string }

func (i *info) print(w *bufio.Writer) {
	header(w, i.name, i.help, "gauge")
	fmt.Fprintf(w, "%s{%s} 1\n", i.name, i.labels)
}

// Info makes a metric of value 1 whose labels, each a name with its value, say something that
// does not change while the program runs.
func (r *Registry) Info(name, help string, labels ...[2]string) {
	var texts []string
	for _, l := range labels {
		texts = append(texts, l[0]+"="+strconv.Quote(l[1]))
	}
	r.add(&info{name, help, strings.Join(texts, ",")})
}

// maxSeries bounds what a label that grows may cost.
const maxSeries = 1000

// Gauges are the last value for each value of a label. Beyond 1,000 values of
// the label no further ones are kept.
type Gauges struct {
	name, help, label string
	mu                sync.Mutex
	last              map[string]float64
}

// Gauges makes them.
func (r *Registry) Gauges(name, help, label string) *Gauges {
	g := &Gauges{name: name, help: help, label: label, last: make(map[string]float64)}
	r.add(g)
	return g
}

// Set keeps a value.
func (g *Gauges) Set(value string, v float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known := g.last[value]; known || len(g.last) < maxSeries {
		g.last[value] = v
	}
}

func (g *Gauges) print(w *bufio.Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	header(w, g.name, g.help, "gauge")
	values := make([]string, 0, len(g.last))
	for v := range g.last {
		values = append(values, v)
	}
	slices.Sort(values)
	for _, v := range values {
		fmt.Fprintf(w, "%s%s %s\n", g.name, labels(g.label, v), number(g.last[v]))
	}
}

// bounds of the buckets of durations, in seconds: 50 µs to 100 s.
var bounds = []float64{
	50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 200e-3, 500e-3, 1, 2,
	5, 10, 100,
}

// Durations is a histogram of times, in seconds.
type Durations struct {
	buckets     [19]atomic.Int64 // the last is beyond all bounds
	nanoseconds atomic.Int64
}

// Observe adds a time.
func (d *Durations) Observe(t time.Duration) {
	i, _ := slices.BinarySearch(bounds, t.Seconds())
	d.buckets[i].Add(1)
	d.nanoseconds.Add(int64(t))
}

type histograms struct {
	name, help, label string
	values            []string
	series            []*Durations
}

func (h *histograms) print(w *bufio.Writer) {
	header(w, h.name, h.help, "histogram")
	for i, d := range h.series {
		prefix := ""
		if h.label != "" {
			prefix = h.label + "=" + strconv.Quote(h.values[i]) + ","
		}
		total := int64(0)
		for b, bound := range append(slices.Clone(bounds), math.Inf(1)) {
			total += d.buckets[b].Load()
			fmt.Fprintf(w, "%s_bucket{%sle=\"%s\"} %d\n", h.name, prefix, number(bound), total)
		}
		own := labels(h.label, h.values[i])
		fmt.Fprintf(w, "%s_sum%s %s\n", h.name, own, number(float64(d.nanoseconds.Load())/1e9))
		fmt.Fprintf(w, "%s_count%s %d\n", h.name, own, total)
	}
}

// Durations makes a histogram for each value of a label.
func (r *Registry) Durations(name, help, label string, values ...string) map[string]*Durations {
	h := &histograms{name: name, help: help, label: label, values: values}
	byValue := make(map[string]*Durations)
	for _, v := range values {
		byValue[v] = &Durations{}
		h.series = append(h.series, byValue[v])
	}
	r.add(h)
	return byValue
}

// Duration makes a histogram without a label.
func (r *Registry) Duration(name, help string) *Durations {
	return r.Durations(name, help, "", "")[""]
}

func number(v float64) string {
	if math.IsInf(v, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
