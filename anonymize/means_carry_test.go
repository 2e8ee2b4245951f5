package anonymize_test

import (
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestGroupsStayTogetherFromEpochToEpoch(t *testing.T) {
	values, cuts := skewed(8, 400)
	p := anonymize.NewPartition(measured(t, values, cuts...))
	m := anonymize.NewMeans(p, 0, 5, true)
	for _, columns := range [][]int{{1}, {1, 2, 3}} {
		p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
		m = m.Refine(p)
	}
	// A third of the people leaves.
	kept := func(list []uint32) []uint32 { return list[:270] }
	after := measured(t, values[:270], kept(cuts[0]), kept(cuts[1]), kept(cuts[2]))
	next, report, err := anonymize.Refit(p, after, blockK(5))
	if err != nil {
		t.Fatal(err)
	}
	carried := m.Refit(next, report.From, 5)
	if report.Joined == 0 {
		t.Error("no blocks have joined")
	}
	now := make(map[uint32]uint32)
	for row := range 270 {
		was, is := p.BlockOf()[p.Table().TupleOfRow()[row]], next.BlockOf()[after.TupleOfRow()[row]]
		if _, ok := m.Mean(was); !ok {
			continue
		}
		if known, ok := now[m.Group(was)]; ok && known != carried.Group(is) {
			t.Fatal("people of one group are in two after a refresh")
		}
		now[m.Group(was)] = carried.Group(is)
	}
	if len(now) < 2 {
		t.Errorf("%d groups", len(now))
	}
}

// People all over the range, of two kinds, and people close together.
var (
	wages  = []int{1000, 3000, 6000, 9000, 12000, 15000, 18000, 19500}
	spread = []int{400, 700, 900, 1500, 3000, 5200}
	tight  = []int{4000, 4011, 4022, 4033, 4044, 4055, 4066, 4077}
)

// year is an epoch of people who are told apart by a cut: teams of values.
func year(t *testing.T, teams ...[]int) *anonymize.Table {
	t.Helper()
	var values []int
	var cut []uint32
	for team, of := range teams {
		for _, v := range of {
			values, cut = append(values, v), append(cut, uint32(team))
		}
	}
	return measuredWithin(t, anonymize.Interval{Widths: []float64{100, 1000, 5000}, Lower: 0, Upper: 19999, Integer: true}, nil, values, cut)
}

// next is the epoch after one.
func next(t *testing.T, p *anonymize.Partition, m *anonymize.Means, after *anonymize.Table) (*anonymize.Partition, *anonymize.Means) {
	t.Helper()
	q, report, err := anonymize.Refit(p, after, blockK(5))
	if err != nil {
		t.Fatal(err)
	}
	return q, m.Refit(q, report.From, 5)
}

func cutOff(t *testing.T, p *anonymize.Partition, m *anonymize.Means) (*anonymize.Partition, *anonymize.Means) {
	t.Helper()
	q := refined(t, p, anonymize.Refinement{Columns: []int{1}, Requirements: blockK(5)})
	if q.Blocks() < 2 {
		t.Fatal("the teams are not cut apart")
	}
	return q, m.Refine(q)
}

func begun(table *anonymize.Table) (*anonymize.Partition, *anonymize.Means) {
	p := anonymize.NewPartition(table)
	return p, anonymize.NewMeans(p, 0, 5, true)
}

func TestAGroupThatHasChangedTellsNothingNew(t *testing.T) {
	p, m := begun(year(t, spread, tight))
	first, ok := m.Mean(0)
	if !ok {
		t.Fatal("no mean is shown")
	}
	// The team that lies close together grows: each year would tell another
	// threshold on the sum of the others.
	team := slices.Clone(tight)
	for i := range 14 {
		team = append(team, 4000+i*37%100)
		p, m = next(t, p, m, year(t, spread, team))
		if mean, ok := m.Mean(0); !ok || mean != first {
			t.Fatalf("year %d shows %g, the first %g", i, mean, first)
		}
	}
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = anonymize.UnmarshalMeans(p, 0, 5, true, data); err != nil {
		t.Fatal(err)
	}
	root := m.Label(0)
	p, m = cutOff(t, p, m)
	for b := range uint32(p.Blocks()) {
		if mean, ok := m.Mean(b); !ok || mean != first || m.Label(b) != root {
			t.Errorf("a part shows %g under %v", mean, m.Label(b))
		}
	}
	// A label that got narrower would tell where those who stay have been.
	p, m = next(t, p, m, year(t, []int{3000, 4002, 4003, 4004, 4005}, team))
	for b := range uint32(p.Blocks()) {
		if m.Label(b).Level < root.Level {
			t.Errorf("the label is of level %d, and was of %d", m.Label(b).Level, root.Level)
		}
	}
}

func TestAGroupThatHasChangedStaysWhole(t *testing.T) {
	for _, changed := range []bool{false, true} {
		a, b := slices.Clone(wages), slices.Clone(wages[:6])
		p, m := begun(year(t, a, b))
		first, _ := m.Mean(0)
		if changed {
			a[2] += 100
		}
		p, m = next(t, p, m, year(t, a, b))
		_, m = cutOff(t, p, m)
		if mean, ok := m.Mean(1); !ok || (mean == first) != changed {
			t.Errorf("changed: %t; of %g, a part shows %g", changed, first, mean)
		}
	}
}

func TestAGroupThatIsTheSameTellsTheSameAndMaySplit(t *testing.T) {
	other := []int{2000, 4500, 9000, 12000, 11000, 13000, 14000, 500}
	p, m := begun(year(t, wages, other))
	first, _ := m.Mean(0)
	p, m = next(t, p, m, year(t, wages, other))
	if mean, ok := m.Mean(0); !ok || mean != first {
		t.Errorf("%g is shown again as %g", first, mean)
	}
	p, m = cutOff(t, p, m)
	a, _ := m.Mean(0)
	b, ok := m.Mean(1)
	if !ok || a == b {
		t.Fatal("the group did not split")
	}
	// One part changes: the other is told of as before, and neither anew.
	p, m = next(t, p, m, year(t, append(slices.Clone(wages), 12000), other))
	x, _ := m.Mean(0)
	y, ok := m.Mean(1)
	if !ok || x != a || y != b {
		t.Errorf("the parts show %g and %g, before %g and %g", x, y, a, b)
	}
	if p.Blocks() != 2 {
		t.Errorf("%d blocks", p.Blocks())
	}
}

func TestNewcomersOutsideAllLabelsShowNoMean(t *testing.T) {
	p, m := begun(year(t, tight))
	p, m = next(t, p, m, year(t, tight, []int{9000, 11000, 13000, 15000, 17000, 19000}))
	if p.Blocks() != 2 {
		t.Fatalf("%d blocks", p.Blocks())
	}
	for b := range uint32(p.Blocks()) {
		low, _, _ := p.Table().Columns()[0].Hierarchy.Ends(m.Label(b))
		if mean, ok := m.Mean(b); ok != (low == 4000) {
			t.Errorf("%g is shown from %g on: %t", mean, low, ok)
		}
	}
}

func TestAMeanOutsideOfWhatItsPeopleHaveNowIsNotShown(t *testing.T) {
	p, m := begun(year(t, []int{100, 900, 1700, 2500, 3300, 4100}))
	if mean, ok := m.Mean(0); !ok || mean > 4000 {
		t.Fatalf("%g is shown: %t", mean, ok)
	}
	// Nodes of another hierarchy need not cover what those of the old one did.
	other := anonymize.Interval{Widths: []float64{100, 200, 600}, Lower: 4000, Upper: 19999, Integer: true}
	_, m = next(t, p, m, measuredWithin(t, other, nil, []int{4100, 4100, 4150, 4150, 4220, 4330}, make([]uint32, 6)))
	if mean, ok := m.Mean(0); ok {
		t.Errorf("%g is shown", mean)
	}
}

func TestAGroupThatHasChangedBeforeItToldAMeanShowsNone(t *testing.T) {
	// One person far out holds the mean of all back.
	out := []int{1000, 1100, 1200, 1300, 1400, 1500, 19900}
	p, m := begun(year(t, out, out[:6]))
	if _, ok := m.Mean(0); ok {
		t.Fatal("a mean is shown")
	}
	p, m = next(t, p, m, year(t, out[:6], wages))
	data, err := m.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = anonymize.UnmarshalMeans(p, 0, 5, true, data); err != nil {
		t.Fatal(err)
	}
	p, m = next(t, p, m, p.Table()) // once more, and nothing has changed
	p, m = cutOff(t, p, m)
	for b := range uint32(p.Blocks()) {
		if mean, ok := m.Mean(b); ok || m.Label(b) != p.Cover(b, 0) {
			t.Errorf("a block shows %g: %t, or the label of another", mean, ok)
		}
	}
}

func TestMeansThatStartLateAreOfBlocksThatHaveNotChanged(t *testing.T) {
	for _, changed := range []bool{false, true} {
		p := anonymize.NewPartition(year(t, wages))
		m := anonymize.UntoldMeans(p, 0, 5, true)
		if _, ok := m.Mean(0); ok {
			t.Fatal("a mean is shown before they start")
		}
		after := slices.Clone(wages)
		if changed {
			after[3] += 100
		}
		_, m = next(t, p, m, year(t, after))
		if mean, ok := m.Mean(0); ok == changed {
			t.Errorf("changed: %t; %g is shown: %t", changed, mean, ok)
		}
	}
}
