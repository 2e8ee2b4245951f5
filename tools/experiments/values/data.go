package main

import (
	"slices"
	"strconv"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/demodata"
	"github.com/hiatus-tailor/tailor/tools/experiments/adult"
)

// dataset is a table that is asked about.
type dataset struct {
	name, title string // of its plot, of its heading
	table       *anonymize.Table
	columns     []column
	truth       [][]int // [column][row], as positions
}

// column places the values of a column of a table on a line of whole numbers: numbers
// and days as themselves, others by their place in the hierarchy.
type column struct {
	*anonymize.Hierarchy
	parse func(string) int                     // nil: by place
	year  func(position int) (first, last int) // the unit that conditions range over; nil: none
}

// span are the positions that a node covers.
func (c *column) span(n anonymize.Node) [2]int {
	if low, high, measured := c.Bounds(n); measured && c.parse != nil {
		return [2]int{c.parse(low), c.parse(high)}
	}
	first, last := c.Range(n)
	return [2]int{int(first), int(last)}
}

// nowhere is the position of a value that equals none of the table.
const nowhere = -1

func (c *column) position(value string) int {
	if c.parse != nil {
		return c.parse(value)
	}
	if leaf, ok := c.Code(value); ok {
		return int(leaf)
	}
	return nowhere
}

func newDataset(name, title string, table *anonymize.Table, columns []column) *dataset {
	d := &dataset{
		name: name, title: title, table: table, columns: columns,
		truth: make([][]int, len(columns)),
	}
	for c := range columns {
		for _, tuple := range table.TupleOfRow() {
			d.truth[c] = append(d.truth[c], columns[c].span(anonymize.Node{Group: table.Leaf(c, tuple)})[0])
		}
	}
	return d
}

func itself(position int) (first, last int) { return position, position }

// adultDataset are seven columns of Adult, with the hierarchies that ARX tests with. data is
// the folder of the reference data.
func adultDataset(data string) (*dataset, error) {
	table, err := adult.Read(data, []string{
		"age", "sex", "race", "marital-status", "education", "native-country", "workclass",
	})
	if err != nil {
		return nil, err
	}
	var columns []column
	for _, c := range table.Columns() {
		columns = append(columns, column{Hierarchy: c.Hierarchy})
	}
	columns[0].year = itself
	return newDataset("adult", "Adult", table, columns), nil
}

// demo are the patients of the demo, with the hierarchies of its policy.
func demo() (*dataset, error) {
	rows := demodata.Demographics(demodata.DefaultPatients)
	values := func(c int) []string {
		var out []string
		for _, row := range rows {
			out = append(out, row[c])
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	listed := func(c int) (*anonymize.Hierarchy, error) {
		var paths [][]string
		for _, v := range values(c) {
			paths = append(paths, []string{v})
		}
		return anonymize.NewHierarchy(paths)
	}
	born, err := anonymize.Dates{
		Levels: []string{"month", "year", "decade"}, Lower: "1900-01-01",
		Upper: "2029-12-31",
	}.Build(values(0), false)
	if err != nil {
		return nil, err
	}
	age, err := anonymize.Interval{
		Widths: []float64{5, 10, 20, 40}, Upper: 119,
		Integer: true,
	}.Build(values(1), false)
	if err != nil {
		return nil, err
	}
	sex, err := listed(2)
	if err != nil {
		return nil, err
	}
	race, err := listed(3)
	if err != nil {
		return nil, err
	}
	zip, err := anonymize.Prefix{Keep: []int{4, 3, 2, 1}}.Build(values(4), false)
	if err != nil {
		return nil, err
	}
	columns := []column{
		{born, day, calendarYear},
		{age, number, itself},
		{Hierarchy: sex},
		{Hierarchy: race},
		{Hierarchy: zip},
	}
	var encoded []anonymize.Column
	leaves := make([][]uint32, len(columns))
	for c, name := range []string{"birth_date", "age", "sex", "race", "zip"} {
		encoded = append(encoded, anonymize.Column{Name: name, Hierarchy: columns[c].Hierarchy})
		for _, row := range rows {
			leaf, _ := columns[c].Code(row[c])
			leaves[c] = append(leaves[c], leaf)
		}
	}
	table, err := anonymize.NewTable(encoded, leaves, nil)
	if err != nil {
		return nil, err
	}
	return newDataset("demo", "The demo", table, columns), nil
}

func number(text string) int {
	n, _ := strconv.Atoi(text)
	return n
}

const secondsOfDay = 24 * 60 * 60

// day counts from 1970.
func day(text string) int {
	t, _ := time.Parse(time.DateOnly, text)
	return int(t.Unix() / secondsOfDay)
}

func calendarYear(position int) (first, last int) {
	year := time.Unix(int64(position)*secondsOfDay, 0).UTC().Year()
	start := func(year int) int {
		return int(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / secondsOfDay)
	}
	return start(year), start(year+1) - 1
}
