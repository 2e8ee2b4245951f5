package anonymize_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// builder is any description of a computed hierarchy.
type builder interface {
	Build(values []string, withNull bool) (*anonymize.Hierarchy, error)
}

// path is the labels of a value from the leaf to the root.
func path(t *testing.T, h *anonymize.Hierarchy, value string) string {
	t.Helper()
	leaf, ok := h.Code(value)
	if value == anonymize.Null {
		leaf, ok = h.NullCode()
	}
	if !ok {
		t.Fatalf("the hierarchy does not know %q", value)
	}
	var labels []string
	for l := range h.Height() {
		labels = append(labels, h.Label(anonymize.Node{Level: l, Group: h.Generalize(leaf, l)}))
	}
	return strings.Join(labels, " ")
}

var (
	ages  = anonymize.Interval{Widths: []float64{5, 10, 20}, Lower: 0, Upper: 119, Integer: true}
	costs = anonymize.Interval{Widths: []float64{0.5, 10}, Lower: -10, Upper: 90}
	zips  = anonymize.Prefix{Keep: []int{4, 2}}
	days  = anonymize.Dates{
		Levels: []string{"month", "quarter", "year", "decade", "century"},
		Lower:  "1900-01-01", Upper: "2029-12-31",
	}
	times = anonymize.Dates{
		Levels: []string{"hour", "day", "month"}, Lower: "1900-01-01",
		Upper: "2029-12-31", Resolution: anonymize.Instants,
	}
	zoned = anonymize.Dates{
		Levels: []string{"day", "week"}, Lower: "1900-01-01", Upper: "2029-12-31",
		Resolution: anonymize.ZonedInstants,
	}
	weeks = anonymize.Dates{Levels: []string{"week"}, Lower: "2000-01-01", Upper: "2029-12-31"}
)

func TestComputedHierarchiesLabelTheirValues(t *testing.T) {
	cases := []struct {
		claim  string
		from   builder
		values []string
		value  string
		want   string
	}{
		{
			"whole numbers read as closed ranges", ages,
			[]string{"34", "0", "119"},
			"34",
			"34 30-34 30-39 20-39 *",
		},
		{"the first range starts at the lower bound", ages, []string{"34", "0"}, "0", "0 0-4 0-9 0-19 *"},
		{
			"the last range ends at the upper bound", ages,
			[]string{"119"},
			"119",
			"119 115-119 110-119 100-119 *",
		},
		{
			"other numbers read as half-open ranges", costs,
			[]string{"-9.75", "3.1"},
			"-9.75",
			"-9.75 [-10,-9.5) [-10,0) *",
		},
		{
			"a code is masked from its end", zips,
			[]string{"35233", "35901"},
			"35233",
			"35233 3523* 35*** *",
		},
		{"short codes keep their length", zips, []string{"352", "35233"}, "352", "352 352 35* *"},
		{"codes are counted in characters", zips, []string{"ÄÖÜäö"}, "ÄÖÜäö", "ÄÖÜäö ÄÖÜä* ÄÖ*** *"},
		{
			"a day lies in its calendar units", days,
			[]string{"1969-11-30"},
			"1969-11-30",
			"1969-11-30 1969-11 1969-Q4 1969 1960s 1900-1999 *",
		},
		{"a week starts on Monday", weeks, []string{"2026-01-01"}, "2026-01-01", "2026-01-01 2026-W01 *"},
		{
			"a time lies in its hour and day", times,
			[]string{"1969-11-30 23:59:59.999999"},
			"1969-11-30 23:59:59.999999", "1969-11-30 23:59:59.999999 1969-11-30 23h 1969-11-30 1969-11 *",
		},
		{
			"the last day is a whole one", times,
			[]string{"2029-12-31 23:59:59"},
			"2029-12-31 23:59:59",
			"2029-12-31 23:59:59 2029-12-31 23h 2029-12-31 2029-12 *",
		},
		{
			"times with a zone are those of UTC", zoned,
			[]string{"2026-01-01 00:30:00+00"},
			"2026-01-01 00:30:00+00", "2026-01-01 00:30:00+00 2026-01-01 2026-W01 *",
		},
		{"NULL shares only the root", ages, []string{"34"}, anonymize.Null, "NULL NULL NULL NULL *"},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			h, err := c.from.Build(c.values, true)
			if err != nil {
				t.Fatal(err)
			}
			if got := path(t, h, c.value); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestRepresentativesAreTheMiddleOfTheNode(t *testing.T) {
	cases := []struct {
		claim       string
		from        builder
		values      []string
		low, high   string
		label, want string
	}{
		{"whole numbers", ages, []string{"30", "39", "7"}, "30", "39", "30-39", "34"},
		{"the root of whole numbers", ages, []string{"30", "99"}, "30", "99", "*", "59"},
		{"other numbers", costs, []string{"1", "2"}, "1", "2", "[0,10)", "5"},
		{
			"a month", days,
			[]string{"2024-02-01", "2024-02-27"},
			"2024-02-01", "2024-02-27", "2024-02",
			"2024-02-15",
		},
		{
			"a value is its own", days,
			[]string{"2024-02-01", "2024-02-27"},
			"2024-02-01", "2024-02-01",
			"2024-02-01", "2024-02-01",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			h, err := c.from.Build(c.values, false)
			if err != nil {
				t.Fatal(err)
			}
			low, _ := h.Code(c.low)
			high, _ := h.Code(c.high)
			node := h.Cover(low, high)
			got, ok := h.Representative(node)
			if h.Label(node) != c.label || !ok || got != c.want {
				t.Errorf("%s with representative %s, want %s with %s", h.Label(node), got, c.label, c.want)
			}
		})
	}
}

func TestSharesMeasureTheDomainAndNotTheData(t *testing.T) {
	few, err := ages.Build([]string{"31", "38"}, false)
	if err != nil {
		t.Fatal(err)
	}
	low, _ := few.Code("31")
	high, _ := few.Code("38")
	if got := few.Share(few.Cover(low, high)); got != 10.0/120 {
		t.Errorf("30-39 covers %g of the domain, want %g", got, 10.0/120)
	}
	if got := few.Share(few.Cover(low, low)); got != 0 {
		t.Errorf("a value covers %g, want 0", got)
	}
}

func TestComputedHierarchiesRefuse(t *testing.T) {
	cases := []struct {
		claim  string
		from   builder
		values []string
	}{
		{"a value below the bounds", ages, []string{"-1"}},
		{"a value above the bounds", ages, []string{"120"}},
		{"text among numbers", ages, []string{"x"}},
		{"NaN", ages, []string{"NaN"}},
		{"a value twice", ages, []string{"3", "3"}},
		{
			"widths that do not nest",
			anonymize.Interval{Widths: []float64{5, 12}, Lower: 0, Upper: 9},
			[]string{"3"},
		},
		{"a width of zero", anonymize.Interval{Widths: []float64{0}, Lower: 0, Upper: 9}, []string{"3"}},
		{"bounds that are crossed", anonymize.Interval{Lower: 9, Upper: 0}, []string{"3"}},
		{"kept characters that grow", anonymize.Prefix{Keep: []int{2, 3}}, []string{"x"}},
		{"kept characters below zero", anonymize.Prefix{Keep: []int{-1}}, []string{"x"}},
		{"an unknown unit", anonymize.Dates{
			Levels: []string{"fortnight"}, Lower: "2000-01-01",
			Upper: "2001-01-01",
		}, []string{"2000-05-05"}},
		{"units out of order", anonymize.Dates{
			Levels: []string{"year", "month"}, Lower: "2000-01-01",
			Upper: "2001-01-01",
		}, []string{"2000-05-05"}},
		{"months over weeks", anonymize.Dates{
			Levels: []string{"week", "month"}, Lower: "2000-01-01",
			Upper: "2001-01-01",
		}, []string{"2000-05-05"}},
		{"hours of a day", anonymize.Dates{
			Levels: []string{"hour"}, Lower: "2000-01-01",
			Upper: "2001-01-01",
		}, []string{"2000-05-05"}},
		{"days of a day", anonymize.Dates{
			Levels: []string{"day"}, Lower: "2000-01-01",
			Upper: "2001-01-01",
		}, []string{"2000-05-05"}},
		{"a time without end", times, []string{"infinity"}},
		{"a time behind the bounds", times, []string{"2030-01-01 00:00:00"}},
		{"a day that is none", days, []string{"2000-02-30"}},
		{"a day outside the bounds", days, []string{"1899-12-31"}},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			_, err := c.from.Build(c.values, false)
			var fault *anonymize.HierarchyError
			if !errors.As(err, &fault) {
				t.Errorf("not refused: %v", err)
			}
		})
	}
}

func TestListedRefusesValuesOutsideTheList(t *testing.T) {
	paths := [][]string{{"a", "vowel"}, {"b", "consonant"}, {"e", "vowel"}}
	h, err := anonymize.Listed(paths, []string{"e", "a"}, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := path(t, h, "e"); got != "e vowel *" {
		t.Error(got)
	}
	if got := path(t, h, anonymize.Null); got != "NULL NULL *" {
		t.Error(got)
	}
	_, err = anonymize.Listed(paths, []string{"secret"}, false)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a value that is not listed: %v", err)
	}
}

// TestBoundsOfTimesHoldEveryTimeOfTheLabel: a label that ends a second early would make an
// answer certain that is not.
func TestBoundsOfTimesHoldEveryTimeOfTheLabel(t *testing.T) {
	for _, c := range []struct {
		from               anonymize.Dates
		value, first, last string
	}{
		{times, "1969-11-30 23:59:59.5", "1969-11-30 23:00:00", "1969-11-30 23:59:59.999999"},
		{zoned, "2000-02-29 12:00:00+00", "2000-02-29 00:00:00+00", "2000-02-29 23:59:59.999999+00"},
		{days, "1969-11-30", "1969-11-01", "1969-11-30"},
	} {
		h, err := c.from.Build([]string{c.value}, false)
		if err != nil {
			t.Fatal(err)
		}
		first, last, ok := h.Bounds(anonymize.Node{Level: 1})
		if !ok || first != c.first || last != c.last {
			t.Errorf("%s: from %s to %s, %t", c.value, first, last, ok)
		}
	}
}
