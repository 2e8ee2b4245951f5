package ecg

import (
	"strconv"
	"time"
)

// Bound is where a condition cuts the domain of an attribute: behind what is smaller than At,
// or behind At itself. Rows whose label lies on both sides are placed by an estimate.
type Bound struct {
	At    float64 // as of [Coordinate]
	After bool
}

// cuts says whether a label has values on both sides.
func (b Bound) cuts(l Label) bool {
	if b.After {
		return l.Low <= b.At && b.At < l.High
	}
	return l.Low < b.At && b.At <= l.High
}

// times are the forms in which PostgreSQL writes dates and times under datestyle ISO.
var times = []string{
	time.DateOnly, time.DateTime, "2006-01-02 15:04:05Z07", "2006-01-02 15:04", time.RFC3339,
}

// Coordinate is the place of a number, or of a date or a time in seconds since 1970, on its
// scale. It fails with text that is none of these, or that is written in another way.
func Coordinate(text string) (float64, bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, true
	}
	for _, form := range times {
		if at, err := time.Parse(form, text); err == nil {
			return float64(at.UnixMilli()) / 1000, true
		}
	}
	return 0, false
}

// placed is the share of the rows whose label of an attribute lies on both sides of a bound,
// or is none that has ends.
func (r *Root) placed(attribute int, bounds []Bound) float64 {
	rows, all := r.rowsOf(attribute), 0.0
	placed := 0.0
	for number, n := range rows {
		all += n
		l := r.Shown.Labels[attribute][number]
		cut := !l.Exact && !l.Bounded
		for i := 0; i < len(bounds) && !cut && !l.Exact; i++ {
			cut = bounds[i].cuts(l)
		}
		if cut {
			placed += n
		}
	}
	if all == 0 {
		return 0
	}
	return placed / all
}

// rowsOf are the rows of each label of an attribute.
func (r *Root) rowsOf(attribute int) []float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.labelled == nil {
		r.labelled = make([][]float64, len(r.Shown.Attributes))
	}
	if r.labelled[attribute] == nil {
		rows := make([]float64, len(r.Shown.Labels[attribute]))
		for class, number := range r.Shown.Classes[attribute] {
			rows[number] += float64(r.Shown.Rows[class])
		}
		r.labelled[attribute] = rows
	}
	return r.labelled[attribute]
}
