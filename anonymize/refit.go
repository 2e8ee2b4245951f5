package anonymize

import (
	"fmt"
	"slices"
)

// RefitReport says what carrying a partition to a new table did.
type RefitReport struct {
	Known  int // tuples that the old table had too: they stay in their block
	Placed int // new tuples that fit the labels of an old block
	Beyond int // new tuples outside every old label
	Joined int // blocks that fell short of a requirement and joined another
}

// Refit carries a partition to the table of a new epoch. The tables have the
// same columns by name and order; hierarchies may have gained or lost values,
// which are matched by their text.
//
//   - A tuple that the old table had stays in its block.
//   - A new tuple joins the block with the narrowest labels that cover it.
//   - New tuples that no labels cover wait together in a block of their own
//     for the next refinement. If they do not meet the requirements together,
//     each joins the block whose loss grows the least, which widens its label:
//     that tells a reader of both epochs that a value from outside the old
//     label has appeared, and in which wider node.
//   - A block that does not meet the requirements any more joins the block for
//     which the loss of both together grows the least, until all do. It is not
//     cut any more: whoever has been shown the parts could tell people apart by
//     any other line, and the line between them leaves one that falls short.
//
// Refinements that were carried to their end stay so, that no block splits
// only because it has grown: the parts that old subjects would then be left in
// together could be smaller than k. A reader of two epochs who knows which
// rows changed learns what those rows changed; within an epoch nothing moves.
//
// It fails with an *[UnmetError] if the table as a whole does not meet the
// requirements. Cost: one look at every tuple; for each new tuple one at each
// combination of levels among the labels; for each block that falls short one
// at every block. TestRefit… check the rules.
func Refit(old *Partition, t *Table, rs []Requirement) (*Partition, RefitReport, error) {
	report := RefitReport{}
	if err := sameColumns(old.Table(), t); err != nil {
		return nil, report, fmt.Errorf("refit: %w", err)
	}
	must, err := bind(t, rs)
	if err != nil {
		return nil, report, fmt.Errorf("refit: %w", err)
	}
	whole := NewPartition(t)
	if err := whole.unmet(must); err != nil {
		return nil, report, err
	}
	f := &fitting{ground: whole.ground, must: must, census: newCensus(whole.ground)}
	f.adopt(old, &report)
	f.placeAll(&report)
	f.repairSmall(&report)
	blockAt := make([]uint32, t.Tuples())
	blocks := 0
	var merged []uint32
	for b, members := range f.members {
		if len(members) == 0 {
			continue
		}
		if f.merged[b] {
			merged = append(merged, slices.Min(members))
		}
		for _, pos := range members {
			blockAt[pos] = uint32(blocks)
		}
		blocks++
	}
	slices.Sort(merged)
	return assemble(whole.ground, blockAt, blocks, slices.Clone(old.finished), merged), report, nil
}

func sameColumns(a, b *Table) error {
	if len(a.columns) != len(b.columns) {
		return fmt.Errorf("the new table has %d columns, the old one %d", len(b.columns), len(a.columns))
	}
	for c := range a.columns {
		if a.columns[c].Name != b.columns[c].Name {
			return fmt.Errorf("column %d is %q in the new table and %q in the old one",
				c, b.columns[c].Name, a.columns[c].Name)
		}
	}
	return nil
}

// fitting is a partition of the new table in the making.
type fitting struct {
	ground  *ground
	must    *requirements
	census  *census
	members [][]uint32 // block -> positions
	merged  []bool     // block -> whether it is not cut any more
	lo, hi  [][]uint32 // block -> column -> bounds in the new hierarchies; nil: covers nothing
	strange []uint32   // positions that the old table did not have
}

// gone marks a leaf that the new hierarchy does not have.
const gone = ^uint32(0)

// adopt puts known tuples into their old blocks and translates the bounds of
// the old blocks into leaves of the new hierarchies.
func (f *fitting) adopt(old *Partition, report *RefitReport) {
	before, after := old.Table(), f.ground.table
	translate := make([][]uint32, len(after.columns))
	for c := range translate {
		translate[c] = translation(before.columns[c].Hierarchy, after.columns[c].Hierarchy)
	}
	f.members, f.merged = make([][]uint32, old.Blocks()), make([]bool, old.Blocks())
	for b := range f.merged {
		f.merged[b] = old.isMerged(uint32(b))
	}
	f.lo, f.hi = make([][]uint32, old.Blocks()), make([][]uint32, old.Blocks())
	index := make(map[string]uint32, before.Tuples())
	leaves := make([]uint32, len(after.columns))
	for tuple, b := range old.blockOf {
		whole := true
		for c := range leaves {
			leaves[c] = translate[c][before.tuples[c][tuple]]
			whole = whole && leaves[c] != gone
		}
		if whole {
			index[tupleKey(leaves)] = b
			f.widen(b, leaves)
		}
	}
	for pos := range f.ground.tupleAt {
		for c := range leaves {
			leaves[c] = f.ground.leaf(c, uint32(pos))
		}
		if b, ok := index[tupleKey(leaves)]; ok {
			f.members[b] = append(f.members[b], uint32(pos))
			report.Known++
		} else {
			f.strange = append(f.strange, uint32(pos))
		}
	}
}

// translation maps the leaves of one hierarchy to those of another.
func translation(from, to *Hierarchy) []uint32 {
	out := make([]uint32, from.Leaves())
	for leaf := range out {
		out[leaf] = gone
		if code, ok := to.Code(from.Label(Node{Group: uint32(leaf)})); ok {
			out[leaf] = code
		}
	}
	if a, ok := from.NullCode(); ok {
		if b, ok := to.NullCode(); ok {
			out[a] = b
		}
	}
	return out
}

// tupleKey is a map key for a tuple.
func tupleKey(leaves []uint32) string {
	key := make([]byte, 0, 4*len(leaves))
	for _, v := range leaves {
		key = append(key, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return string(key)
}

// widen extends the bounds of a block to cover leaves.
func (f *fitting) widen(b uint32, leaves []uint32) {
	if f.lo[b] == nil {
		f.lo[b], f.hi[b] = slices.Clone(leaves), slices.Clone(leaves)
		return
	}
	for c, v := range leaves {
		f.lo[b][c], f.hi[b][c] = min(f.lo[b][c], v), max(f.hi[b][c], v)
	}
}

// suits says whether positions meet all requirements as a block.
func (f *fitting) suits(positions []uint32) bool {
	tuples := f.ground.tuplesAt(nil, positions)
	return f.census.count(positions) >= f.must.k && f.must.meetsOthers(tuples)
}
