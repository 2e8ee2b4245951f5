package anonymize_test

import (
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// blockCSV reads a ';'-separated reference file.
func blockCSV(t testing.TB, name string) [][]string {
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

// blockData is a reference data set, encoded against its hierarchies.
type blockData struct {
	columns []anonymize.Column
	leaves  [][]uint32
	others  map[string][]uint32 // every column of the file, dictionary-encoded
}

func (e *blockData) table(t testing.TB) *anonymize.Table {
	t.Helper()
	table, err := anonymize.NewTable(e.columns, e.leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// loadBlockData encodes the first n columns of a data set, such as "arx/adult".
func loadBlockData(t testing.TB, dir, set string, n int) *blockData {
	t.Helper()
	records := blockCSV(t, dir+"/"+set+".csv")
	e := &blockData{others: make(map[string][]uint32)}
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
		h, err := anonymize.NewHierarchy(blockCSV(t, dir+"/"+set+"_hierarchy_"+name+".csv"))
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

// blockWorkload reads a reference workload.
func blockWorkload(t testing.TB, table *anonymize.Table, name string) anonymize.Workload {
	t.Helper()
	f, err := os.Open(refdata.Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w, err := anonymize.ReadWorkload(f, table)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// adultWorkloads are the four reference workloads on adult.
func adultWorkloads(t testing.TB, table *anonymize.Table) []anonymize.Workload {
	t.Helper()
	var all []anonymize.Workload
	for i := range 4 {
		all = append(all, blockWorkload(t, table, fmt.Sprintf("workloads/adult7-%d.txt", i)))
	}
	return all
}

func blockK(k int) []anonymize.Requirement {
	return []anonymize.Requirement{anonymize.BlockK{K: k}}
}

func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// refined refines or fails the test.
func refined(t testing.TB, p *anonymize.Partition, r anonymize.Refinement) *anonymize.Partition {
	t.Helper()
	next, err := p.Refine(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return next
}
