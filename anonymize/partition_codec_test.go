package anonymize_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestPartitionSurvivesEncoding(t *testing.T) {
	everyChain(t, func(t *testing.T, _ *randomRows, _, p *anonymize.Partition, r anonymize.Refinement) {
		data, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		q, err := anonymize.UnmarshalPartition(p.Table(), data)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(p.BlockOf(), q.BlockOf()) || p.MinBlock() != q.MinBlock() {
			t.Fatal("blocks differ after decoding")
		}
		if refined(t, q, r) != q {
			t.Fatal("finished refinements are forgotten")
		}
	})
}

func TestDamagedPartitionsAreRefused(t *testing.T) {
	d := newRandomRows(t, 4, false)
	p := refined(t, anonymize.NewPartition(d.table(t, nil)),
		anonymize.Refinement{Columns: upTo(len(d.columns)), Requirements: blockK(3)})
	data, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	other := newRandomRows(t, 6, false).table(t, nil)
	if _, err := anonymize.UnmarshalPartition(other, data); !errors.Is(err, anonymize.ErrPartitionData) {
		t.Errorf("accepted for another table: %v", err)
	}
	for n := range data {
		if _, err := anonymize.UnmarshalPartition(p.Table(), data[:n]); !errors.Is(err, anonymize.ErrPartitionData) {
			t.Fatalf("accepted when cut to %d of %d bytes: %v", n, len(data), err)
		}
	}
	if _, err := anonymize.UnmarshalPartition(p.Table(), append(data, 0)); !errors.Is(err, anonymize.ErrPartitionData) {
		t.Errorf("accepted with a byte too many: %v", err)
	}
}

func FuzzUnmarshalPartition(f *testing.F) {
	d := newRandomRows(f, 4, false)
	table := d.table(f, nil)
	p := anonymize.NewPartition(table)
	for _, columns := range [][]int{{0}, {0, 1}} {
		p = refined(f, p, anonymize.Refinement{Columns: columns, Requirements: blockK(3)})
		data, err := p.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := anonymize.UnmarshalPartition(table, data)
		if err != nil {
			if !errors.Is(err, anonymize.ErrPartitionData) {
				t.Fatalf("untyped error: %v", err)
			}
			return
		}
		seen := make([]bool, p.Blocks())
		for _, b := range p.BlockOf() {
			seen[b] = true
		}
		if slices.Contains(seen, false) {
			t.Fatal("an empty block was accepted")
		}
		if again, err := p.MarshalBinary(); err != nil || len(again) > len(data) {
			t.Fatal("decoding and encoding again makes it longer")
		}
	})
}
