package anonymize_test

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// TestLargeBlocksLeaveOutWhatOthersTake has areas of the old shown by blocks of their own, of
// several ages each, and the rest of the old and all of the young as of any area. Ages and areas
// are independent: values of both together are about right, and are not if blocks count as small.
func TestLargeBlocksLeaveOutWhatOthersTake(t *testing.T) {
	var ages []string
	for v := range 80 {
		ages = append(ages, strconv.Itoa(v))
	}
	byAge, err := anonymize.Interval{Widths: []float64{20, 40}, Upper: 79, Integer: true}.
		Build(ages, false)
	if err != nil {
		t.Fatal(err)
	}
	var paths [][]string
	for _, area := range []string{"1", "2", "3", "4", "5"} {
		paths = append(paths, []string{area, "*"})
	}
	byArea, err := anonymize.NewHierarchy(paths)
	if err != nil {
		t.Fatal(err)
	}
	columns := []anonymize.Column{{Name: "age", Hierarchy: byAge}, {Name: "area", Hierarchy: byArea}}
	leaves := make([][]uint32, len(columns))
	random, truth := chance(3), make(map[[2]int]float64)
	anywhere := byArea.Root()
	s := &anonymize.Sketch{Hierarchies: []*anonymize.Hierarchy{byAge, byArea}, Rows: make([]int, 6)}
	old := func(level int, group uint32) anonymize.Node {
		return anonymize.Node{Level: level, Group: group}
	}
	s.Labels = [][]anonymize.Node{
		{old(2, 0), anywhere},   // the young
		{old(2, 1), {Group: 0}}, // the old of two areas
		{old(2, 1), {Group: 1}},
		{old(1, 2), anywhere}, // and the others, by twenty years
		{old(1, 3), anywhere},
		{old(1, 3), {Group: 4}}, // of one area
	}
	for range 20000 {
		age, area := random.IntN(80), min(random.IntN(6), 4)
		block := 0
		switch {
		case age < 40:
		case area < 2:
			block = 1 + area
		case age >= 60 && area == 4:
			block = 5
		default:
			block = 1 + age/20
		}
		s.Rows[block]++
		truth[[2]int{age / 20, area}]++
		leaves[0], leaves[1] = append(leaves[0], uint32(age)), append(leaves[1], uint32(area))
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	worst := func(large bool) (worst float64) {
		s.Large = large
		margins := map[int]*anonymize.Margin{0: table.Margin(0, 5, 1), 1: table.Margin(1, 5, 1)}
		values := s.DrawAll(margins, func() *rand.Rand { return chance(7) })
		drawn := make(map[[2]int]float64)
		for block, of := range values[0].Of {
			for row, place := range of {
				age, _ := strconv.Atoi(values[0].Texts[place])
				area, _ := strconv.Atoi(values[1].Texts[values[1].Of[block][row]])
				drawn[[2]int{age / 20, area - 1}]++
			}
		}
		for cell, n := range truth {
			worst = max(worst, math.Abs(drawn[cell]-n)/n)
		}
		return worst
	}
	if large, small := worst(true), worst(false); large > 0.2 || small < 2*large {
		t.Errorf("counts are off by %.2f, by %.2f if blocks count as small", large, small)
	} else {
		t.Logf("counts are off by %.2f, by %.2f if blocks count as small", large, small)
	}
}
