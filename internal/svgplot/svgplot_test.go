package svgplot_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/svgplot"
)

func TestAChartIsWellFormedAndHasALinePerSeries(t *testing.T) {
	c := svgplot.Chart{
		Title: "a < b", X: "k", Y: "ARE", LogY: true,
		Lines: []svgplot.Line{
			{Name: "one", Points: [][2]float64{{2, 0.01}, {25, 0.5}}},
			{Name: "two", Points: [][2]float64{{2, 0.02}, {25, 0.02}}},
			{Name: "three", Points: [][2]float64{{2, 0.03}, {25, 0.03}}, Dots: true},
		},
	}
	var b strings.Builder
	if err := c.Write(&b); err != nil {
		t.Fatal(err)
	}
	in := xml.NewDecoder(strings.NewReader(b.String()))
	lines, circles := 0, 0
	for {
		token, err := in.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		} else if ok && e.Name.Local == "circle" {
			circles++
		}
	}
	// The circles of the first and the third series, each with one in the legend.
	if lines != 2 || circles != 6 || strings.Contains(b.String(), "NaN") {
		t.Errorf("%d lines and %d circles in %s", lines, circles, b.String())
	}
}
