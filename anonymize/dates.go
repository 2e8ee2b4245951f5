package anonymize

import (
	"fmt"
	"math"
	"time"
)

// dayLayout is a date as PostgreSQL prints it with DateStyle ISO.
const dayLayout = "2006-01-02"

// instantLayout is a time as PostgreSQL prints it with DateStyle ISO.
const instantLayout = "2006-01-02 15:04:05.999999"

// Resolution is what the values of a hierarchy over time are.
type Resolution int

// Days are dates; Instants are times without a zone, and ZonedInstants with one, which
// PostgreSQL prints in UTC.
const (
	Days Resolution = iota
	Instants
	ZonedInstants
)

// Dates describes a hierarchy over time. Levels, from narrow to wide, are out of "hour",
// "day", "week", "month", "quarter", "year", "decade", "century"; "week" nests in none of
// the others, and days are no level over dates. Lower and Upper (ISO days) bound the
// domain, both included; they come from the policy, never from the data.
type Dates struct {
	Levels       []string
	Lower, Upper string
	Resolution   Resolution
}

// calendar orders the units and says how each cuts the line of time.
var calendar = map[string]struct {
	rank  int
	start func(time.Time) time.Time
	next  func(time.Time) time.Time
	label func(time.Time) string
}{
	"hour": {
		0,
		func(t time.Time) time.Time { return t.Truncate(time.Hour) },
		func(t time.Time) time.Time { return t.Add(time.Hour) },
		func(t time.Time) string { return t.Format("2006-01-02 15h") },
	},
	"day": {
		1, midnight,
		func(t time.Time) time.Time { return t.AddDate(0, 0, 1) },
		func(t time.Time) string { return t.Format(dayLayout) },
	},
	"week": {
		weekRank,
		func(t time.Time) time.Time { return midnight(t).AddDate(0, 0, -(int(t.Weekday())+6)%7) },
		func(t time.Time) time.Time { return t.AddDate(0, 0, 7) },
		func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprintf("%04d-W%02d", y, w) },
	},
	"month": {
		3, func(t time.Time) time.Time { return day(t.Year(), t.Month()) },
		func(t time.Time) time.Time { return t.AddDate(0, 1, 0) },
		func(t time.Time) string { return t.Format("2006-01") },
	},
	"quarter": {
		4, func(t time.Time) time.Time { return day(t.Year(), (t.Month()-1)/3*3+1) },
		func(t time.Time) time.Time { return t.AddDate(0, 3, 0) },
		func(t time.Time) string { return fmt.Sprintf("%04d-Q%d", t.Year(), (t.Month()-1)/3+1) },
	},
	"year": {
		5, func(t time.Time) time.Time { return day(t.Year(), 1) },
		func(t time.Time) time.Time { return t.AddDate(1, 0, 0) },
		func(t time.Time) string { return t.Format("2006") },
	},
	"decade": {
		6, func(t time.Time) time.Time { return day(t.Year()/10*10, 1) },
		func(t time.Time) time.Time { return t.AddDate(10, 0, 0) },
		func(t time.Time) string { return fmt.Sprintf("%ds", t.Year()) },
	},
	"century": {
		7, func(t time.Time) time.Time { return day(t.Year()/100*100, 1) },
		func(t time.Time) time.Time { return t.AddDate(100, 0, 0) },
		func(t time.Time) string { return fmt.Sprintf("%d-%d", t.Year(), t.Year()+99) },
	},
}

// weekRank is that of the unit which nests in none of the wider ones.
const weekRank = 2

func midnight(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}

func day(year int, month time.Month) time.Time {
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// Build makes the hierarchy over the given values, each as PostgreSQL prints it with
// DateStyle ISO. withNull adds a leaf for SQL NULL. It fails with a *[HierarchyError] on
// unknown or unordered levels, bad bounds, and values that are none within the bounds.
func (d Dates) Build(values []string, withNull bool) (*Hierarchy, error) {
	lower, upper, err := d.check()
	if err != nil {
		return nil, err
	}
	end := upper.AddDate(0, 0, 1)
	all := make([]placed, len(values))
	for i, text := range values {
		t, err := d.parse(text)
		if err != nil {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is not a date"}
		}
		if t.Before(lower) || !t.Before(end) {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is outside the bounds"}
		}
		all[i] = placed{text: text, at: d.units(t), nodes: make([]span, len(d.Levels))}
		for l, name := range d.Levels {
			unit := calendar[name]
			first := unit.start(t)
			next := unit.next(first)
			all[i].nodes[l] = span{
				low: d.units(first), high: d.units(next),
				label: unit.label(first), representative: d.middle(first, next),
			}
		}
	}
	root := span{low: d.units(lower), high: d.units(end), representative: d.middle(lower, end)}
	return newComputed(all, len(d.Levels), root, withNull,
		domain{step: d.step(), unit: 1, text: d.text})
}

// check validates the levels and the bounds.
func (d Dates) check() (lower, upper time.Time, err error) {
	last := -1
	for i, name := range d.Levels {
		unit, ok := calendar[name]
		if !ok {
			return lower, upper, &HierarchyError{Level: i + 1, Reason: fmt.Sprintf("unknown unit %q", name)}
		}
		if unit.rank <= last || last == weekRank {
			return lower, upper, &HierarchyError{Level: i + 1, Reason: fmt.Sprintf("%q does not nest in "+
				"the level before", name)}
		}
		if unit.rank < weekRank && d.Resolution == Days {
			return lower, upper, &HierarchyError{
				Level:  i + 1,
				Reason: fmt.Sprintf("%q is not wider than a date", name),
			}
		}
		last = unit.rank
	}
	if lower, err = time.Parse(dayLayout, d.Lower); err != nil {
		return lower, upper, &HierarchyError{Level: -1, Reason: "the lower bound is not a date"}
	}
	if upper, err = time.Parse(dayLayout, d.Upper); err != nil {
		return lower, upper, &HierarchyError{Level: -1, Reason: "the upper bound is not a date"}
	}
	if !lower.Before(upper) {
		return lower, upper, &HierarchyError{Level: -1, Reason: "the lower bound must be below the " +
			"upper bound"}
	}
	return lower, upper, nil
}

// layout is how PostgreSQL prints a value.
func (d Dates) layout() string {
	switch d.Resolution {
	case Instants:
		return instantLayout
	case ZonedInstants:
		return instantLayout + "-07"
	}
	return dayLayout
}

func (d Dates) parse(text string) (time.Time, error) {
	t, err := time.Parse(d.layout(), text)
	return t.UTC(), err
}

// step is what lies between two days, and between two instants that values are drawn
// from, in units: days, or microseconds.
func (d Dates) step() float64 {
	if d.Resolution == Days {
		return 1
	}
	return float64(time.Second / time.Microsecond)
}

// units counts days or microseconds since 1970-01-01, which a float64 does exactly.
func (d Dates) units(t time.Time) float64 {
	if d.Resolution == Days {
		return float64(t.Unix() / 86400)
	}
	return float64(t.UnixMicro())
}

// text is what [Dates.units] counts.
func (d Dates) text(at float64) string {
	if d.Resolution == Days {
		return time.Unix(int64(at)*86400, 0).UTC().Format(dayLayout)
	}
	return time.UnixMicro(int64(at)).UTC().Format(d.layout())
}

// middle is a value halfway between two, the second not included.
func (d Dates) middle(first, next time.Time) string {
	low, step := d.units(first), d.step()
	return d.text(low + step*math.Floor((d.units(next)-low-step)/2/step))
}
