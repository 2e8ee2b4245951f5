package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// verifyTable checks a CSV file.
func (o *verifyOptions) verifyTable() (*verifyReport, error) {
	sheet, err := openSheet(o.published, o.delimiterRune)
	if err != nil {
		return nil, err
	}
	classes, err := o.classes(sheet.Header())
	if err != nil {
		return nil, err
	}
	subjects, err := o.subjects(sheet.Rows())
	if err != nil {
		return nil, err
	}
	if sheet.Rows() == 0 {
		return nil, &anonymize.ProblemError{
			What:   "the file has no rows",
			Remedy: "give a table with at least one row",
		}
	}
	v := &publishedTable{sheet: sheet, classes: classes}
	v.keepShown(subjects)
	r := &verifyReport{
		Published:      o.published,
		Rows:           sheet.Rows(),
		SuppressedRows: sheet.Rows() - len(v.rows),
		Holds:          true,
	}
	for _, name := range sheet.Header() {
		if classes[name] == quasi {
			r.QuasiIdentifiers = append(r.QuasiIdentifiers, name)
		}
	}
	k := max(o.k, 2)
	failing := 0
	r.Classes, r.K, failing = v.count(k)
	r.add(fmt.Sprintf("k = %d", k), failing, "rows")
	if len(v.rows) == 0 {
		return r, nil
	}
	table, err := v.table()
	if err != nil {
		return nil, err
	}
	for i, model := range o.require.models {
		failing, err := v.failing(table, model, o.require.sensitive())
		if err != nil {
			return nil, err
		}
		r.add(o.require.given[i], failing, "rows")
	}
	return r, nil
}

// classes says what each column of the header is: a quasi-identifier, if
// nothing else is said.
func (o *verifyOptions) classes(header []string) (columnClasses, error) {
	c := columnClasses{}
	sensitiveNames := slices.Clone(o.sensitive)
	for _, name := range o.require.sensitive() {
		if !slices.Contains(sensitiveNames, name) {
			sensitiveNames = append(sensitiveNames, name)
		}
	}
	for _, add := range []struct {
		class columnClass
		names []string
	}{{quasi, o.qid}, {sensitive, sensitiveNames}, {kept, o.keep}} {
		if err := c.add(add.class, add.names...); err != nil {
			return nil, err
		}
		for _, name := range add.names {
			if !slices.Contains(header, name) {
				return nil, &anonymize.ProblemError{
					What: fmt.Sprintf(
						"the file has no column %q", name,
					), Remedy: "name a column of its first line",
				}
			}
		}
	}
	quasis := len(o.qid)
	for _, name := range header {
		if len(o.qid) == 0 && c[name] == unclassed {
			c[name] = quasi
			quasis++
		}
	}
	if quasis == 0 {
		return nil, &anonymize.ProblemError{
			What:   "no quasi-identifiers",
			Remedy: "leave out a flag, or name them in --qid",
		}
	}
	return c, nil
}

// subjects numbers the subject of each row by the original, nil for a subject a
// row.
func (o *verifyOptions) subjects(rows int) ([]uint32, error) {
	if o.subject == "" {
		return nil, nil
	}
	original, err := openColumns(o.original, o.delimiterRune, []string{o.subject})
	if err != nil {
		return nil, err
	}
	if original.Rows() != rows {
		return nil, &anonymize.ProblemError{
			What: fmt.Sprintf(
				"the original has %d rows, the published file %d", original.Rows(), rows,
			), Remedy: "give the same rows in the same order",
		}
	}
	return original.Number(o.subject)
}

// publishedTable is a table as its readers see it.
type publishedTable struct {
	sheet    *anonymize.Sheet
	classes  columnClasses
	rows     []int // those that are not suppressed
	subjects []uint32
}

// keepShown leaves out rows that show nothing, and numbers the subjects of the
// others densely.
func (v *publishedTable) keepShown(subjects []uint32) {
	dense := make(map[uint32]uint32)
	for row := range v.sheet.Rows() {
		shown := false
		for c := range v.sheet.Header() {
			shown = shown || v.sheet.Cells(c)[row] != anonymize.Top
		}
		if !shown {
			continue
		}
		v.rows = append(v.rows, row)
		if subjects != nil {
			number, known := dense[subjects[row]]
			if !known {
				number = uint32(len(dense))
				dense[subjects[row]] = number
			}
			v.subjects = append(v.subjects, number)
		}
	}
}

// count groups the rows by what they show and counts the subjects of each
// group, by nothing but the cells: the engine has no part in it.
func (v *publishedTable) count(k int) (classes, smallest, failingRows int) {
	type class struct {
		rows     int
		subjects map[uint32]bool
	}
	groups := make(map[string]*class)
	var key strings.Builder
	for i, row := range v.rows {
		key.Reset()
		for c, name := range v.sheet.Header() {
			if cell := v.sheet.Cells(c)[row]; v.classes[name] == quasi {
				fmt.Fprintf(&key, "%d:%s", len(cell), cell)
			}
		}
		g := groups[key.String()]
		if g == nil {
			g = &class{subjects: make(map[uint32]bool)}
			groups[key.String()] = g
		}
		g.rows++
		if v.subjects != nil {
			g.subjects[v.subjects[i]] = true
		}
	}
	for _, g := range groups {
		size := g.rows
		if v.subjects != nil {
			size = len(g.subjects)
		}
		if smallest == 0 || size < smallest {
			smallest = size
		}
		if size < k {
			failingRows += g.rows
		}
	}
	return len(groups), smallest, failingRows
}

// cells are those of a column in the rows that are shown.
func (v *publishedTable) cells(column int) []string {
	out := make([]string, len(v.rows))
	for i, row := range v.rows {
		out[i] = v.sheet.Cells(column)[row]
	}
	return out
}

// table has labels as values: nothing is recoded.
func (v *publishedTable) table() (*anonymize.Table, error) {
	var columns []anonymize.Column
	var leaves [][]uint32
	for c, name := range v.sheet.Header() {
		if v.classes[name] != quasi {
			continue
		}
		cells := v.cells(c)
		distinct := slices.Clone(cells)
		slices.Sort(distinct)
		var paths [][]string
		for _, label := range slices.Compact(distinct) {
			paths = append(paths, []string{label})
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			return nil, err
		}
		codes := make([]uint32, len(cells))
		for i, cell := range cells {
			codes[i], _ = h.Code(cell) // every cell is listed
		}
		columns, leaves = append(columns, anonymize.Column{Name: name, Hierarchy: h}), append(
			leaves, codes,
		)
	}
	return anonymize.NewTable(columns, leaves, v.subjects)
}

// failing counts the rows of classes that fail a model.
func (v *publishedTable) failing(
	table *anonymize.Table, model anonymize.Privacy, sensitive []string,
) (int, error) {
	p := &anonymize.Problem{
		Table:   table,
		Privacy: []anonymize.Privacy{model},
		Quality: anonymize.AverageClassSize{},
	}
	for _, name := range sensitive {
		c, err := v.sheet.Find(name)
		if err != nil {
			return 0, err
		}
		p.Sensitive = append(p.Sensitive, anonymize.NewSensitiveAttribute(name, v.cells(c)))
	}
	t, err := anonymize.Transform(p, make([]int, len(table.Columns())))
	if err != nil {
		return 0, err
	}
	if t.Admissible {
		return 0, nil
	}
	return max(t.SuppressedRows, 1), nil
}
