// Package svgplot draws line charts as SVG, for documentation that is
// generated from measurements.
package svgplot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Chart is a line chart. The vertical axis is logarithmic if LogY is set, and
// so is the horizontal one with LogX; their values must be positive then.
type Chart struct {
	Title, X, Y string
	LogX, LogY  bool
	Lines       []Line
}

// Line is a named series of points, drawn in order. Dots leaves out the line between them.
type Line struct {
	Name   string
	Points [][2]float64
	Dots   bool
}

// Measures of the drawing, in pixels.
const (
	width, height            = 640, 400
	left, right, top, bottom = 72, 150, 40, 52
)

// colours tell the lines apart; so do the shapes of their points.
var colours = []string{"#0b6e99", "#c8553d", "#3a7d44", "#6a4c93", "#8a6d1d", "#444444"}

// axis maps values to positions.
type axis struct {
	low, high float64 // of the values, as logarithms if log
	log       bool
	from, to  float64 // pixels
}

func (a *axis) at(v float64) float64 {
	if a.log {
		v = math.Log10(v)
	}
	return a.from + (v-a.low)/(a.high-a.low)*(a.to-a.from)
}

// newAxis makes room for values: from 0, or for whole powers of ten.
func newAxis(values []float64, logarithmic bool, from, to float64) *axis {
	a := &axis{log: logarithmic, from: from, to: to, low: math.Inf(1), high: math.Inf(-1)}
	for _, v := range values {
		if logarithmic {
			v = math.Log10(v)
		}
		a.low, a.high = min(a.low, v), max(a.high, v)
	}
	if logarithmic {
		a.low, a.high = math.Floor(a.low), math.Ceil(a.high)
	} else {
		a.low, a.high = min(0, a.low), a.high*1.05
	}
	if a.high <= a.low {
		a.high = a.low + 1
	}
	return a
}

// ticks are the values to label: powers of ten, or about five round steps.
func (a *axis) ticks() []float64 {
	var out []float64
	if a.log {
		for e := a.low; e <= a.high; e++ {
			out = append(out, math.Pow(10, e))
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/5)))
	for _, f := range []float64{1, 2, 5, 10} {
		if (a.high-a.low)/(step*f) <= 6 {
			step *= f
			break
		}
	}
	for i := math.Ceil(a.low / step); i*step <= a.high; i++ {
		out = append(out, i*step)
	}
	return out
}

// Write draws the chart.
func (c *Chart) Write(w io.Writer) error {
	var xs, ys []float64
	for _, l := range c.Lines {
		for _, p := range l.Points {
			xs, ys = append(xs, p[0]), append(ys, p[1])
		}
	}
	x := newAxis(xs, c.LogX, left, width-right)
	y := newAxis(ys, c.LogY, height-bottom, top)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d"`+
		` font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, left, 22, "start", 14, c.Title)
	text(&b, (left+width-right)/2, height-14, "middle", 12, c.X)
	fmt.Fprintf(&b, `<text x="16" y="%d" text-anchor="middle" transform="rotate(-90 16 %d)">%s</text>`+
		"\n",
		height/2, height/2, html.EscapeString(c.Y))
	for _, v := range x.ticks() {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#ddd"/>`+"\n", x.at(v), top,
			x.at(v), height-bottom)
		text(&b, x.at(v), height-bottom+18, "middle", 12, fmt.Sprintf("%g", v))
	}
	for _, v := range y.ticks() {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", left, y.at(v),
			width-right, y.at(v))
		text(&b, left-8, y.at(v)+4, "end", 12, fmt.Sprintf("%.4g", v))
	}
	for i, l := range c.Lines {
		c.line(&b, i, &l, x, y)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// line draws one series and its entry in the legend.
func (c *Chart) line(b *strings.Builder, i int, l *Line, x, y *axis) {
	colour := colours[i%len(colours)]
	var path []string
	for _, p := range l.Points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(p[0]), y.at(p[1])))
	}
	if !l.Dots {
		fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n",
			strings.Join(path, " "), colour)
	}
	for _, p := range l.Points {
		mark(b, i, x.at(p[0]), y.at(p[1]), colour)
	}
	at := float64(top + 12 + 20*i)
	mark(b, i, width-right+18, at-4, colour)
	text(b, width-right+30, at, "start", 12, l.Name)
}

func mark(b *strings.Builder, i int, x, y float64, colour string) {
	if i%2 == 0 {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x, y, colour)
		return
	}
	fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="8" height="8" fill="%s"/>`+"\n", x-4, y-4, colour)
}

func text(b *strings.Builder, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n", x, y,
		anchor, size, html.EscapeString(s))
}
