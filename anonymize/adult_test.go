package anonymize_test

import (
	"encoding/csv"
	"os"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// readCSV reads a ';'-separated reference file.
func readCSV(t testing.TB, name string) [][]string {
	t.Helper()
	f, err := os.Open(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = ';'
	records, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// encoded is a reference data set encoded against its hierarchies.
type encoded struct {
	columns []anonymize.Column
	leaves  [][]uint32
	others  map[string][]uint32 // every column of the file, dictionary-encoded
}

func (e *encoded) table(t testing.TB) *anonymize.Table {
	t.Helper()
	table, err := anonymize.NewTable(e.columns, e.leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// loadReference encodes the first n columns of a data set, such as "arx/adult".
func loadReference(t testing.TB, dir, set string, n int) *encoded {
	t.Helper()
	records := readCSV(t, dir+"/"+set+".csv")
	e := &encoded{others: make(map[string][]uint32)}
	for c, name := range records[0] {
		codes, column := make(map[string]uint32), make([]uint32, len(records)-1)
		for r, rec := range records[1:] {
			if _, ok := codes[rec[c]]; !ok {
				codes[rec[c]] = uint32(len(codes))
			}
			column[r] = codes[rec[c]]
		}
		e.others[name] = column
		if c >= n {
			continue
		}
		h, err := anonymize.NewHierarchy(readCSV(t, dir+"/"+set+"_hierarchy_"+name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		leaves := make([]uint32, len(records)-1)
		for r, rec := range records[1:] {
			leaf, ok := h.Code(rec[c])
			if !ok {
				t.Fatalf("column %s, row %d: value is not in the hierarchy", name, r+1)
			}
			leaves[r] = leaf
		}
		e.columns = append(e.columns, anonymize.Column{Name: name, Hierarchy: h})
		e.leaves = append(e.leaves, leaves)
	}
	return e
}

// readWorkload reads sets of columns, one a line.
func readWorkload(t testing.TB, table *anonymize.Table, name string) [][]int {
	t.Helper()
	data, err := os.ReadFile(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	var queries [][]int
	for line := range strings.Lines(string(data)) {
		var q []int
		for _, column := range strings.Split(strings.TrimSpace(line), ",") {
			q = append(q, table.Column(column))
		}
		queries = append(queries, q)
	}
	return queries
}
