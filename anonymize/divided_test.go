package anonymize_test

import (
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// TestAPartitionByPartsIsThatOfItsBlocks divides a table by blocks of its rows, and refuses
// blocks that part people who are alike.
func TestAPartitionByPartsIsThatOfItsBlocks(t *testing.T) {
	h, err := anonymize.NewHierarchy([][]string{
		{"1", "low"},
		{"2", "low"},
		{"3", "high"},
		{"4", "high"},
	})
	if err != nil {
		t.Fatal(err)
	}
	leaves := []uint32{0, 1, 1, 2, 3, 3}
	table, err := anonymize.NewTable([]anonymize.Column{{Name: "n", Hierarchy: h}},
		[][]uint32{leaves}, nil)
	if err != nil {
		t.Fatal(err)
	}
	blocks := []uint32{1, 1, 1, 0, 0, 0}
	p, err := anonymize.Divided(table, blocks, 2)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{p.Rows(0), p.Rows(1)}
	if p.Blocks() != 2 || !slices.Equal(sizes, []int{3, 3}) || p.MinBlock() != 3 {
		t.Errorf("%d blocks of %v", p.Blocks(), sizes)
	}
	for row, tuple := range table.TupleOfRow() {
		if (blocks[row] == blocks[0]) != (p.BlockOf()[tuple] == p.BlockOf()[table.TupleOfRow()[0]]) {
			t.Errorf("row %d is in another block", row)
		}
	}
	if _, err := anonymize.Divided(table, []uint32{1, 1, 0, 0, 0, 0}, 2); err == nil {
		t.Error("rows that are alike are in two blocks")
	}
	if _, err := anonymize.Divided(table, blocks[:5], 2); err == nil {
		t.Error("a row is in no block")
	}
}
