package verify_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// TestRareSetsAreThoseOfTheDefinition compares the search within a chunk with
// counting every set of at most m codes of every record, both ways.
func TestRareSetsAreThoseOfTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 21))
	clean := 0
	for range soak(200) {
		const codesInChunk = 8
		records := 5 + rng.IntN(90)
		share := 0.5 + rng.Float64()/2
		data := make(texts, records)
		var rows [][]published.Item
		for r := range data {
			var row []published.Item
			for it := range codesInChunk {
				if rng.Float64() < share || it == 0 {
					row = append(row, published.Item(it))
					data[r] = append(data[r], string(rune('a'+it)))
				}
			}
			rows = append(rows, row)
		}
		k, m := 2+rng.IntN(records/3+1), 1+rng.IntN(5)
		chunk := published.Chunk{}
		for it := range codesInChunk {
			if slices.ContainsFunc(rows, func(row []published.Item) bool {
				return slices.Contains(row, published.Item(it))
			}) {
				chunk.Codes = append(chunk.Codes, published.Item(it))
			}
		}
		counted := slices.Clone(rows)
		slices.SortFunc(counted, slices.Compare)
		for i, row := range counted {
			if i > 0 && slices.Equal(row, counted[i-1]) {
				chunk.Sub[len(chunk.Sub)-1].Count++
			} else {
				chunk.Sub = append(chunk.Sub, published.SubRecord{Items: row, Count: 1})
			}
		}
		f := &published.Form{
			Promise:  published.Promise{K: k, M: m, Diversity: 1},
			Codes:    codes("a", "b", "c", "d", "e", "f", "g", "h"),
			Clusters: []published.Cluster{{Size: records, Record: []published.Chunk{chunk}}},
		}
		report, err := verify.Check(t.Context(), f, data, make([]int32, records))
		if err != nil {
			t.Fatal(err)
		}
		rare := false
		for _, row := range rows {
			rare = rare || !everySet(row, nil, m, func(set []published.Item) bool {
				return count(rows, set) >= k
			})
		}
		found := slices.ContainsFunc(report.Violations, func(v verify.Violation) bool {
			return v.Rule == verify.RareSet
		})
		if found != rare {
			t.Fatalf("k=%d m=%d, %d records: found a rare set %t, there is one %t", k, m, records,
				found, rare)
		}
		if !rare {
			clean++
		}
	}
	if clean < 50 {
		t.Errorf("only %d chunks without a rare set: the test says little", clean)
	}
}

// count is the number of rows that hold all of a set.
func count(rows [][]published.Item, set []published.Item) int {
	n := 0
	for _, row := range rows {
		if !slices.ContainsFunc(set, func(it published.Item) bool { return !slices.Contains(row, it) }) {
			n++
		}
	}
	return n
}
