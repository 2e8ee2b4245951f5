package anonymize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
)

// The first byte of an encoded partition; before merged blocks were kept it was
// codecWithoutMerged, and nothing follows the refinements.
const (
	codecVersion       = 2
	codecWithoutMerged = 1
)

// ErrPartitionData says that encoded bytes are not a partition of the table.
var ErrPartitionData = errors.New("not a partition of this table")

// MarshalBinary encodes the partition: version, checksum of the tuples, the
// block of each tuple in lexicographic order of leaves, the refinements that were
// carried to their end, and the blocks that are not cut any more. Two tables with the same rows in different
// order have the same encoding. It never fails.
func (p *Partition) MarshalBinary() ([]byte, error) {
	out := []byte{codecVersion}
	out = binary.LittleEndian.AppendUint64(out, p.ground.checksum())
	out = binary.AppendUvarint(out, uint64(len(p.blockOf)))
	out = binary.AppendUvarint(out, uint64(p.Blocks()))
	for _, tuple := range p.ground.tupleAt {
		out = binary.AppendUvarint(out, uint64(p.blockOf[tuple]))
	}
	out = binary.AppendUvarint(out, uint64(len(p.finished)))
	for _, f := range p.finished {
		out = binary.AppendUvarint(out, uint64(len(f.columns)))
		for _, c := range f.columns {
			out = binary.AppendUvarint(out, uint64(c))
		}
		out = binary.AppendUvarint(out, uint64(len(f.requirements)))
		out = append(out, f.requirements...)
	}
	out = binary.AppendUvarint(out, uint64(len(p.merged)))
	for _, pos := range p.merged {
		out = binary.AppendUvarint(out, uint64(pos))
	}
	return out, nil
}

// UnmarshalPartition decodes a partition of the table. It fails with an error
// that wraps [ErrPartitionData] unless the bytes are exactly what
// MarshalBinary wrote for a table with the same tuples. It does not check
// privacy models: the next [Partition.Refine] does.
func UnmarshalPartition(t *Table, data []byte) (*Partition, error) {
	g := newGround(t)
	d := &decoder{data: data}
	version := d.take(1)
	if d.err == nil && version[0] != codecVersion && version[0] != codecWithoutMerged {
		d.fail("unknown version")
	}
	if sum := d.take(8); d.err == nil && binary.LittleEndian.Uint64(sum) != g.checksum() {
		d.fail("made for other tuples")
	}
	if n := d.number(uint64(t.Tuples())); d.err == nil && n != uint64(t.Tuples()) {
		d.fail("made for another number of tuples")
	}
	blocks := d.number(uint64(t.Tuples()))
	blockAt := make([]uint32, t.Tuples())
	next := uint64(0)
	for pos := range blockAt {
		b := d.number(min(next, max(blocks, 1)-1))
		if b == next {
			next++
		}
		blockAt[pos] = uint32(b)
	}
	if d.err == nil && next != blocks {
		d.fail("blocks are not numbered in order")
	}
	done := d.finished(len(t.columns))
	var merged []uint32
	if d.err == nil && version[0] == codecVersion {
		merged = d.merged(t.Tuples())
	}
	if d.err == nil && len(d.data) > 0 {
		d.fail("bytes left over")
	}
	if d.err != nil {
		return nil, d.err
	}
	return assemble(g, blockAt, int(blocks), done, merged), nil
}

// checksum tells tables with different tuples apart. It guards against
// mistakes, not against forgery.
func (g *ground) checksum() uint64 {
	h := fnv.New64a()
	var word [4]byte
	for c := range g.table.columns {
		binary.LittleEndian.PutUint32(word[:], uint32(g.table.columns[c].Hierarchy.Leaves()))
		_, _ = h.Write(word[:])
		for pos := range uint32(len(g.tupleAt)) {
			binary.LittleEndian.PutUint32(word[:], g.leaf(c, pos))
			_, _ = h.Write(word[:])
		}
	}
	return h.Sum64()
}

// decoder reads bytes until the first fault.
type decoder struct {
	data []byte
	err  error
}

func (d *decoder) fail(reason string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", ErrPartitionData, reason)
	}
}

// take returns the next n bytes, nil after a fault.
func (d *decoder) take(n int) []byte {
	if d.err != nil || len(d.data) < n {
		d.fail("too short")
		return nil
	}
	out := d.data[:n]
	d.data = d.data[n:]
	return out
}

// number reads a number of at most limit, 0 after a fault.
func (d *decoder) number(limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.data)
	if n <= 0 || v > limit {
		d.fail("a number is out of range")
		return 0
	}
	d.data = d.data[n:]
	return v
}

// merged reads the first positions of blocks that are not cut any more.
func (d *decoder) merged(tuples int) []uint32 {
	var out []uint32
	least := uint64(0)
	for n := d.number(uint64(tuples)); n > 0 && d.err == nil; n-- {
		pos := d.number(uint64(tuples) - 1)
		if pos < least {
			d.fail("merged blocks are not in order")
		}
		least = pos + 1
		out = append(out, uint32(pos))
	}
	return out
}

// finished reads the refinements that were carried to their end.
func (d *decoder) finished(columns int) []finished {
	n := d.number(uint64(len(d.data)))
	var done []finished
	for i := uint64(0); i < n && d.err == nil; i++ {
		f := finished{columns: make([]int, 0, columns)}
		least := uint64(0)
		for range d.number(uint64(columns)) {
			c := d.number(uint64(columns) - 1)
			if c < least {
				d.fail("columns are not in order")
			}
			least = c + 1
			f.columns = append(f.columns, int(c))
		}
		f.requirements = string(d.take(int(d.number(uint64(len(d.data))))))
		done = append(done, f)
	}
	return done
}
