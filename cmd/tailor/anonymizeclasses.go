package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// columnNames are the values of a flag that lists columns and may be repeated.
// A list is a line of CSV, so that a name with a comma can stand in quotes.
type columnNames []string

func (n *columnNames) String() string { return "" }

func (n *columnNames) Set(value string) error {
	r := csv.NewReader(strings.NewReader(value))
	names, err := r.Read()
	if err != nil || slices.Contains(names, "") {
		return errors.New(`wants COL,…; a name with a comma stands in quotes`)
	}
	if _, err := r.Read(); !errors.Is(err, io.EOF) {
		return errors.New("wants one line")
	}
	*n = append(*n, names...)
	return nil
}

// columnClass says what anonymize does with a column.
type columnClass string

const (
	unclassed columnClass = "" // nothing was said of it: left out
	quasi     columnClass = "a quasi-identifier"
	sensitive columnClass = "sensitive"
	kept      columnClass = "kept"
	dropped   columnClass = "dropped"
	whoseRow  columnClass = "the subject"
)

const classedHint = "each column has one class of --qid, --sensitive, --keep, --drop and --subject"

// shown says that a class is written to the output.
func (c columnClass) shown() bool { return c == quasi || c == sensitive || c == kept }

// columnClasses are the classes by the names of the columns.
type columnClasses map[string]columnClass

// add gives columns a class. It fails on a column that has one.
func (c columnClasses) add(class columnClass, names ...string) error {
	for _, name := range names {
		if has := c[name]; has != unclassed {
			what := fmt.Sprintf("column %q is %s and %s", name, has, class)
			if has == class {
				what = fmt.Sprintf("column %q is named twice as %s", name, class)
			}
			return &anonymize.ProblemError{What: what, Remedy: classedHint}
		}
		c[name] = class
	}
	return nil
}

// classifyColumns gathers what the flags say. A hierarchy makes a column a
// quasi-identifier, and a model of privacy makes the column that it is about
// sensitive.
func (o *anonymizeOptions) classifyColumns() (columnClasses, error) {
	c := columnClasses{}
	quasiNames := slices.Clone(o.qid)
	for name := range o.hierarchies {
		if !slices.Contains(quasiNames, name) {
			quasiNames = append(quasiNames, name)
		}
	}
	sensitiveNames := slices.Clone(o.sensitive)
	for _, name := range o.require.sensitive() {
		if !slices.Contains(sensitiveNames, name) {
			sensitiveNames = append(sensitiveNames, name)
		}
	}
	var subject []string
	if o.subject != "" {
		subject = append(subject, o.subject)
	}
	return c, errors.Join(c.add(quasi, quasiNames...), c.add(sensitive, sensitiveNames...),
		c.add(kept, o.keep...), c.add(dropped, o.drop...), c.add(whoseRow, subject...))
}

// choose says which columns of a file have to be read. It fails on a column
// that the file does not have.
func (o *anonymizeOptions) choose(header []string) ([]bool, error) {
	names := []string{}
	for name := range o.classes {
		names = append(names, name)
	}
	if o.base != "" {
		names = append(names, o.base)
	}
	slices.Sort(names) // so that the same fault is told every time
	position := make(map[string]int, len(header))
	for i, name := range header {
		position[name] = i
	}
	chosen := make([]bool, len(header))
	for _, name := range names {
		i, ok := position[name]
		if !ok {
			return nil, &anonymize.ProblemError{
				What: fmt.Sprintf(
					"the file has no column %q", name,
				), Remedy: "name a column of its first line",
			}
		}
		chosen[i] = o.classes[name] != dropped || name == o.base
	}
	return chosen, nil
}

// flatHierarchy shows a value or withholds it.
func flatHierarchy(cells []string) (*anonymize.Hierarchy, error) {
	values := slices.Clone(cells)
	slices.Sort(values)
	var paths [][]string
	for _, v := range slices.Compact(values) {
		if v != "" { // NULL, for which encoding adds a leaf
			paths = append(paths, []string{v, anonymize.Top})
		}
	}
	if paths == nil {
		paths = [][]string{{"", anonymize.Top}}
	}
	return anonymize.NewHierarchy(paths)
}

// quasiIdentifiers are the columns to recode, in the order of the file.
func (o *anonymizeOptions) quasiIdentifiers(sheet *anonymize.Sheet) ([]anonymize.Column, error) {
	var columns []anonymize.Column
	for i, name := range sheet.Header() {
		if o.classes[name] != quasi {
			continue
		}
		read := func() (*anonymize.Hierarchy, error) { return flatHierarchy(sheet.Cells(i)) }
		if file, ok := o.hierarchies[name]; ok {
			read = func() (*anonymize.Hierarchy, error) { return openHierarchy(file, o.delimiterRune) }
		}
		h, err := read()
		if err != nil {
			return nil, err
		}
		columns = append(columns, anonymize.Column{Name: name, Hierarchy: h})
	}
	return columns, nil
}

// writeAnonymized writes the columns that have a class which is shown. A
// suppressed row shows nothing in any of them: what it keeps would be about
// fewer people than k.
func (o *anonymizeOptions) writeAnonymized(
	w io.Writer, sheet *anonymize.Sheet, table *anonymize.Table, r *recoded,
) error {
	out := csv.NewWriter(w)
	out.Comma = sheet.Delimiter()
	var header []string
	var cell []func(row int) string
	for c, name := range sheet.Header() {
		class := o.classes[name]
		if !class.shown() {
			continue
		}
		header = append(header, name)
		if class == quasi {
			q := table.Column(name)
			cell = append(cell, func(row int) string { return r.label(row, q) })
		} else {
			cell = append(cell, func(row int) string { return sheet.Cells(c)[row] })
		}
	}
	if err := out.Write(header); err != nil {
		return err
	}
	record := make([]string, len(header))
	for row := range sheet.Rows() {
		hidden := r.suppressed != nil && r.suppressed(row)
		for i := range record {
			if record[i] = anonymize.Top; !hidden {
				record[i] = cell[i](row)
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// leftOut lists the columns that are not in the output, and of those the ones
// of which nothing was said.
func (o *anonymizeOptions) leftOut(header []string) (all, unnamed []string) {
	all, unnamed = []string{}, []string{}
	for _, name := range header {
		switch class := o.classes[name]; {
		case class.shown():
		case class == unclassed:
			unnamed = append(unnamed, name)
			fallthrough
		default:
			all = append(all, name)
		}
	}
	return all, unnamed
}

// namedAtMost is how many columns a message lists.
const namedAtMost = 20

// tellUnnamed says which columns are left out because nobody named them.
func tellUnnamed(w io.Writer, unnamed []string) {
	if len(unnamed) == 0 {
		return
	}
	var quoted []string
	for _, name := range unnamed[:min(len(unnamed), namedAtMost)] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	list := strings.Join(quoted, ", ")
	if more := len(unnamed) - namedAtMost; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(w, "tailor anonymize: left out, since no flag names them: %s; "+
		"--sensitive and --keep show columns, --drop says that they are to go\n", list)
}
