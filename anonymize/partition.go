package anonymize

import "slices"

// Partition is an immutable set of blocks over the tuples of a [Table]: every
// tuple is in exactly one block. It starts as one block ([NewPartition]) and
// only ever gets finer ([Partition.Refine]); no call merges or regroups the
// blocks of a partition that was handed out.
//
// Guarantee. Attacker: knows every quasi-identifier of every subject, and all
// answers that were ever given from this partition and the ones it refines.
// Precondition: each answer was a function of labels of blocks
// ([Partition.Cover]) and of what rows hold beside quasi-identifiers. Then a
// subject cannot be told apart from the others of the same block of the latest
// partition, and each block meets the requirements of each refinement.
// TestRefineNeverMerges, TestEveryBlockMeetsItsRequirements and
// TestCommonRefinementOfReleasedLabels check it.
//
// Blocks are numbered by the first of their tuples in lexicographic order of
// leaves, so that the numbering says nothing about the order of rows. A
// Partition is safe for concurrent use.
type Partition struct {
	ground   *ground
	blockOf  []uint32 // tuple -> block
	members  csr      // block -> positions, ascending
	subjects []uint32 // block -> distinct subjects
	rows     []uint32 // block -> rows
	minBlock uint32   // of subjects
	lo, hi   [][]uint32
	finished []finished
}

// NewPartition is the coarsest partition: one block that holds everybody. A
// table without rows has no blocks. It sorts the tuples, in time linear in
// their number times that of the columns.
func NewPartition(t *Table) *Partition {
	g := newGround(t)
	return assemble(g, make([]uint32, t.Tuples()), min(1, t.Tuples()), nil)
}

// assemble numbers blocks canonically and counts what they hold. blockAt maps
// positions to blocks 0..blocks-1 in any numbering; none is empty. It is
// overwritten.
func assemble(g *ground, blockAt []uint32, blocks int, done []finished) *Partition {
	p := &Partition{ground: g, finished: done, blockOf: make([]uint32, len(blockAt))}
	const unnamed = ^uint32(0)
	name := make([]uint32, blocks)
	for i := range name {
		name[i] = unnamed
	}
	next := uint32(0)
	p.members.start = make([]uint32, blocks+1)
	for pos, b := range blockAt {
		if name[b] == unnamed {
			name[b] = next
			next++
		}
		blockAt[pos] = name[b]
		p.members.start[name[b]+1]++
		p.blockOf[g.tupleAt[pos]] = name[b]
	}
	for b := range blocks {
		p.members.start[b+1] += p.members.start[b]
	}
	fill := append([]uint32(nil), p.members.start[:blocks]...)
	p.members.items = make([]uint32, len(blockAt))
	for pos, b := range blockAt {
		p.members.items[fill[b]] = uint32(pos)
		fill[b]++
	}
	p.count(blocks)
	return p
}

// count fills in subjects, rows and covered leaves of every block.
func (p *Partition) count(blocks int) {
	g := p.ground
	p.rows = make([]uint32, blocks)
	for b := range p.rows {
		for _, pos := range p.members.of(uint32(b)) {
			p.rows[b] += g.rows[pos]
		}
	}
	p.subjects = p.rows
	if !g.table.RowPerSubject() {
		p.subjects = make([]uint32, blocks)
		census := newCensus(g)
		for b := range p.subjects {
			p.subjects[b] = uint32(census.count(p.members.of(uint32(b))))
		}
	}
	if blocks > 0 {
		p.minBlock = slices.Min(p.subjects)
	}
	p.lo = make([][]uint32, len(g.table.columns))
	p.hi = make([][]uint32, len(g.table.columns))
	for c := range g.table.columns {
		p.lo[c] = make([]uint32, blocks)
		p.hi[c] = make([]uint32, blocks)
		for b := range blocks {
			p.lo[c][b], p.hi[c][b] = g.bounds(c, p.members.of(uint32(b)))
		}
	}
}

// Table is the table that is partitioned.
func (p *Partition) Table() *Table { return p.ground.table }

// Blocks is the number of blocks. None is empty.
func (p *Partition) Blocks() int { return len(p.rows) }

// BlockOf maps each tuple of the table to its block. Not to be changed.
func (p *Partition) BlockOf() []uint32 { return p.blockOf }

// Tuples lists the tuples of a block, in lexicographic order of their leaves.
// The slice is the caller's.
func (p *Partition) Tuples(block uint32) []uint32 {
	positions := p.members.of(block)
	return p.ground.tuplesAt(make([]uint32, 0, len(positions)), positions)
}

// Subjects is the number of distinct subjects with a row in the block.
func (p *Partition) Subjects(block uint32) int { return int(p.subjects[block]) }

// Rows is the number of rows of a block.
func (p *Partition) Rows(block uint32) int { return int(p.rows[block]) }

// MinBlock is the number of subjects of the smallest block, 0 without blocks.
func (p *Partition) MinBlock() int { return int(p.minBlock) }

// Cover is the narrowest node of the column's hierarchy that covers the values
// of the block.
func (p *Partition) Cover(block uint32, column int) Node {
	return p.ground.table.columns[column].Hierarchy.Cover(p.lo[column][block], p.hi[column][block])
}

// Loss is the mean over the columns and over all rows of the share of the
// hierarchy that a row's label covers ([Iyengar2002]): 0 if every value is
// shown, 1 if none. It is 0 without rows or columns.
func (p *Partition) Loss(columns []int) float64 {
	return p.meanOverRows(columns, (*Hierarchy).Share)
}
