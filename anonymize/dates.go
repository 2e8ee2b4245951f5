package anonymize

import (
	"fmt"
	"time"
)

// dayLayout is a date as PostgreSQL prints it with DateStyle ISO.
const dayLayout = "2006-01-02"

// Dates describes a hierarchy over calendar days. Levels, from narrow to wide,
// are out of "week", "month", "quarter", "year", "decade", "century"; "week"
// nests in none of the others and stands alone. Lower and Upper (ISO days)
// bound the domain; they come from the policy, never from the data.
type Dates struct {
	Levels       []string
	Lower, Upper string
}

// calendar orders the units and says how each cuts the line of days.
var calendar = map[string]struct {
	rank  int
	start func(time.Time) time.Time
	next  func(time.Time) time.Time
	label func(time.Time) string
}{
	"week": {
		0,
		func(t time.Time) time.Time { return t.AddDate(0, 0, -(int(t.Weekday())+6)%7) },
		func(t time.Time) time.Time { return t.AddDate(0, 0, 7) },
		func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprintf("%04d-W%02d", y, w) },
	},
	"month": {
		1, func(t time.Time) time.Time { return day(t.Year(), t.Month()) },
		func(t time.Time) time.Time { return t.AddDate(0, 1, 0) },
		func(t time.Time) string { return t.Format("2006-01") },
	},
	"quarter": {
		2, func(t time.Time) time.Time { return day(t.Year(), (t.Month()-1)/3*3+1) },
		func(t time.Time) time.Time { return t.AddDate(0, 3, 0) },
		func(t time.Time) string { return fmt.Sprintf("%04d-Q%d", t.Year(), (t.Month()-1)/3+1) },
	},
	"year": {
		3, func(t time.Time) time.Time { return day(t.Year(), 1) },
		func(t time.Time) time.Time { return t.AddDate(1, 0, 0) },
		func(t time.Time) string { return t.Format("2006") },
	},
	"decade": {
		4, func(t time.Time) time.Time { return day(t.Year()/10*10, 1) },
		func(t time.Time) time.Time { return t.AddDate(10, 0, 0) },
		func(t time.Time) string { return fmt.Sprintf("%ds", t.Year()) },
	},
	"century": {
		5, func(t time.Time) time.Time { return day(t.Year()/100*100, 1) },
		func(t time.Time) time.Time { return t.AddDate(100, 0, 0) },
		func(t time.Time) string { return fmt.Sprintf("%d-%d", t.Year(), t.Year()+99) },
	},
}

func day(year int, month time.Month) time.Time {
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
}

// Build makes the hierarchy over the given ISO days. withNull adds a leaf for
// SQL NULL. It fails with a *[HierarchyError] on unknown or unordered levels,
// bad bounds, and values that are not days within the bounds.
func (d Dates) Build(values []string, withNull bool) (*Hierarchy, error) {
	lower, upper, err := d.check()
	if err != nil {
		return nil, err
	}
	all := make([]placed, len(values))
	for i, text := range values {
		t, err := time.Parse(dayLayout, text)
		if err != nil {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is not a date"}
		}
		if t.Before(lower) || t.After(upper) {
			return nil, &HierarchyError{Line: i + 1, Level: 0, Reason: "a value is outside the bounds"}
		}
		all[i] = placed{text: text, at: days(t), nodes: make([]span, len(d.Levels))}
		for l, name := range d.Levels {
			unit := calendar[name]
			first := unit.start(t)
			next := unit.next(first)
			all[i].nodes[l] = span{
				low: days(first), high: days(next),
				label: unit.label(first), representative: middleDay(first, next),
			}
		}
	}
	end := upper.AddDate(0, 0, 1)
	root := span{low: days(lower), high: days(end), representative: middleDay(lower, end)}
	return newComputed(all, len(d.Levels), root, withNull, domain{step: 1, text: dayText})
}

// check validates the levels and the bounds.
func (d Dates) check() (lower, upper time.Time, err error) {
	last := -1
	for i, name := range d.Levels {
		unit, ok := calendar[name]
		if !ok {
			return lower, upper, &HierarchyError{Level: i + 1, Reason: fmt.Sprintf("unknown unit %q", name)}
		}
		if unit.rank <= last || (i > 0 && last == 0) {
			return lower, upper, &HierarchyError{Level: i + 1, Reason: fmt.Sprintf("%q does not nest in the level before", name)}
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
		return lower, upper, &HierarchyError{Level: -1, Reason: "the lower bound must be below the upper bound"}
	}
	return lower, upper, nil
}

// days counts days since 1970-01-01.
func days(t time.Time) float64 { return float64(t.Unix() / 86400) }

// dayText is the day that [days] counts.
func dayText(at float64) string { return time.Unix(int64(at)*86400, 0).UTC().Format(dayLayout) }

func middleDay(first, next time.Time) string {
	return first.AddDate(0, 0, int(days(next)-days(first)-1)/2).Format(dayLayout)
}
