package fidelity

import (
	"math"
	"slices"
)

// Cells sums up the errors of cells. Errors are relative: the distance of what the release says
// from the true value, by the size of the true value, 0.01 for one percent.
type Cells struct {
	// Cells is how many errors the figures stand for. They are nil for none.
	Cells  int      `json:"cells"`
	Mean   *float64 `json:"mean"`
	Median *float64 `json:"median"`
	P90    *float64 `json:"p90"`
	Max    *float64 `json:"max"`
	// Undefined cells have a relative error that is not defined: the true value is 0 and the
	// release's is not, or one of them only is NULL or no finite number.
	Undefined int `json:"undefined"`
	// Other cells are no numbers; Differing of them are not the same.
	Other     int `json:"other"`
	Differing int `json:"differing"`
	// Worst are cells with the greatest errors, the greatest first.
	Worst []Worst `json:"worst,omitempty"`

	errors []float64
}

// Worst is a cell that is far off.
type Worst struct {
	Group   []string `json:"group"` // values of the keys
	Measure string   `json:"measure"`
	True    float64  `json:"true"`
	Release float64  `json:"release"`
	Error   float64  `json:"error"`
}

// mostWorst is how many of the worst cells of a query are told.
const mostWorst = 3

// RelativeError is the error of a cell. It is not defined where the true value is 0 and the
// release's is not, and where one of them is no finite number.
func RelativeError(truth, release float64) (relative float64, defined bool) {
	switch {
	case math.IsNaN(truth) && math.IsNaN(release), truth == release:
		return 0, true
	case truth == 0, math.IsNaN(truth - release), math.IsInf(truth-release, 0):
		return 0, false
	}
	return math.Abs(release-truth) / math.Abs(truth), true
}

// add takes up a cell with numbers.
func (c *Cells) add(w Worst) {
	relative, defined := RelativeError(w.True, w.Release)
	if !defined {
		c.Undefined++
		return
	}
	c.errors = append(c.errors, relative)
	if relative == 0 || len(c.Worst) == mostWorst && relative <= c.Worst[mostWorst-1].Error {
		return
	}
	w.Error = relative
	at, _ := slices.BinarySearchFunc(c.Worst, relative, func(w Worst, e float64) int {
		if w.Error >= e {
			return -1
		}
		return 1
	})
	c.Worst = slices.Insert(c.Worst, at, w)
	c.Worst = c.Worst[:min(len(c.Worst), mostWorst)]
}

// addAll takes up the cells of another, without the worst ones.
func (c *Cells) addAll(other *Cells) {
	c.errors = append(c.errors, other.errors...)
	c.Undefined += other.Undefined
	c.Other += other.Other
	c.Differing += other.Differing
}

// sumUp computes the figures.
func (c *Cells) sumUp() {
	slices.Sort(c.errors)
	c.Cells = len(c.errors)
	if c.Cells == 0 {
		return
	}
	sum := 0.0
	for _, e := range c.errors {
		sum += e
	}
	mean := sum / float64(c.Cells)
	median, p90, most := Quantile(c.errors, 0.5), Quantile(c.errors, 0.9), c.errors[c.Cells-1]
	c.Mean, c.Median, c.P90, c.Max = &mean, &median, &p90, &most
}

// Quantile is PostgreSQL's percentile_cont of sorted values, of which there is at least one.
func Quantile(sorted []float64, share float64) float64 {
	at := share * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}
