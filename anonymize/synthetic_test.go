package anonymize_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// synthetic is a seeded table: columns of given numbers of values, each drawn
// with a bias to the first ones (0 none, 1 only those), under hierarchies that
// halve the number of groups at each level.
func synthetic(t testing.TB, rows int, values []int, bias float64) *anonymize.Table {
	t.Helper()
	random := rand.New(rand.NewPCG(11, uint64(rows)))
	columns := make([]anonymize.Column, len(values))
	leaves := make([][]uint32, len(values))
	for c, n := range values {
		var paths [][]string
		for v := range n {
			path := []string{fmt.Sprint(v)}
			for size := 2; size < n; size *= 2 {
				path = append(path, fmt.Sprint(size, "/", v/size))
			}
			paths = append(paths, append(path, anonymize.Top))
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		columns[c] = anonymize.Column{Name: fmt.Sprint("c", c), Hierarchy: h}
		leaves[c] = make([]uint32, rows)
		for r := range leaves[c] {
			v := random.IntN(n)
			for v > 0 && random.Float64() < bias {
				v /= 2
			}
			leaves[c][r] = uint32(v)
		}
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}
