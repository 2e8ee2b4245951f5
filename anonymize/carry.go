package anonymize

import (
	"reflect"
	"slices"
)

// Carry is the partition over the table of a new epoch, exactly as it is: each
// tuple in the block, of the same number, that it was in. ok is false unless the
// tables have the same columns, hierarchies that are equal node by node, and the
// same tuples, each with as many rows, every row being a subject of its own; and
// unless every block meets the requirements. It costs one look at every tuple and
// node.
//
// Guarantee. Whether ok is true, and nothing else, is an answer of the new table;
// a carried partition has the labels, the sizes and, encoded, the bytes of the
// old one. TestAPartitionIsCarriedAsItIsOrNotAtAll checks it.
func (p *Partition) Carry(t *Table, rs []Requirement) (carried *Partition, ok bool, err error) {
	must, err := bind(t, rs)
	if err != nil {
		return nil, false, err
	}
	g := newGround(t)
	if !p.ground.equal(g) {
		return nil, false, nil
	}
	blockAt := make([]uint32, len(g.tupleAt))
	for pos, tuple := range p.ground.tupleAt {
		blockAt[pos] = p.blockOf[tuple]
	}
	carried = assemble(g, blockAt, p.Blocks(), slices.Clone(p.finished), slices.Clone(p.merged))
	return carried, carried.unmet(must) == nil, nil
}

// SameRows says whether two tables differ in nothing but the order of rows: they
// have the same columns, hierarchies that are equal node by node, and the same
// tuples, each with as many rows, every row being a subject of its own.
func SameRows(a, b *Table) bool { return newGround(a).equal(newGround(b)) }

// equal says whether two tables differ in nothing but the order of rows.
func (g *ground) equal(other *ground) bool {
	a, b := g.table, other.table
	if !a.RowPerSubject() || !b.RowPerSubject() || !slices.Equal(g.rows, other.rows) || !reflect.DeepEqual(a.columns, b.columns) {
		return false
	}
	for c := range a.columns {
		for pos := range uint32(len(g.tupleAt)) {
			if g.leaf(c, pos) != other.leaf(c, pos) {
				return false
			}
		}
	}
	return true
}
