package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// attributes are those of the experiment, in the order of its stages. The
// paper's "address" is taken for REGION.
var attributes = []string{"AGE", "REGION", "INCOME"}

// readDemodata reads the records of the paper's experiment: fixed-width lines,
// described by lines of the form NAME start width. A value is shown or
// withheld: the data come without hierarchies.
func readDemodata(folder string) (*anonymize.Table, error) {
	layout, err := os.ReadFile(filepath.Join(folder, "Demodata.rda"))
	if err != nil {
		return nil, err
	}
	records, err := os.Open(filepath.Join(folder, "Demodata.asc"))
	if err != nil {
		return nil, err
	}
	defer records.Close()
	values := make([][]string, len(attributes))
	lines := bufio.NewScanner(records)
	spans := make([][2]int, len(attributes))
	for i, name := range attributes {
		if spans[i], err = span(string(layout), name); err != nil {
			return nil, err
		}
	}
	for lines.Scan() {
		for i, s := range spans {
			if len(lines.Text()) < s[1] {
				return nil, fmt.Errorf("record %d is too short", len(values[i])+1)
			}
			values[i] = append(values[i], strings.TrimSpace(lines.Text()[s[0]:s[1]]))
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return encode(values)
}

// span is where a variable stands in a line.
func span(layout, name string) ([2]int, error) {
	for line := range strings.Lines(layout) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != name {
			continue
		}
		start, err1 := strconv.Atoi(fields[1])
		width, err2 := strconv.Atoi(fields[2])
		if err1 == nil && err2 == nil {
			return [2]int{start - 1, start - 1 + width}, nil
		}
	}
	return [2]int{}, fmt.Errorf("the layout does not describe %s", name)
}

// encode makes a table in which a value is covered by the top alone.
func encode(values [][]string) (*anonymize.Table, error) {
	var columns []anonymize.Column
	leaves := make([][]uint32, len(values))
	for i := range values {
		var paths [][]string
		known := make(map[string]bool)
		for _, v := range values[i] {
			if !known[v] {
				known[v] = true
				paths = append(paths, []string{v})
			}
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			return nil, err
		}
		for _, v := range values[i] {
			leaf, _ := h.Code(v)
			leaves[i] = append(leaves[i], leaf)
		}
		columns = append(columns, anonymize.Column{Name: attributes[i], Hierarchy: h})
	}
	return anonymize.NewTable(columns, leaves, nil)
}
