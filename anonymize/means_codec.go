package anonymize

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrMeansData says that encoded bytes are not means of the partition.
var ErrMeansData = errors.New("not means of this partition")

// MarshalBinary encodes the group of each block and what has been told of each
// group. It never fails.
func (m *Means) MarshalBinary() ([]byte, error) {
	out := binary.AppendUvarint(nil, uint64(len(m.groups)))
	for i := range m.groups {
		g := &m.groups[i]
		if !g.shown {
			out = binary.AppendUvarint(out, 0)
		} else {
			state := uint64(1)
			if g.closed {
				state = 2
			}
			out = binary.AppendUvarint(out, state)
			for _, v := range []float64{g.told.sum, g.told.slack, g.told.people} {
				out = binary.BigEndian.AppendUint64(out, math.Float64bits(v))
			}
		}
	}
	for _, g := range m.groupOf {
		out = binary.AppendUvarint(out, uint64(g))
	}
	return out, nil
}

// UnmarshalMeans decodes what MarshalBinary wrote for an equal partition. The
// other arguments are those of [NewMeans]. It fails with an error that wraps
// [ErrMeansData].
func UnmarshalMeans(p *Partition, values Measured, k int, integer bool, data []byte) (*Means, error) {
	m := &Means{partition: p, values: values, k: k, unit: unitOf(integer), groupOf: make([]uint32, p.Blocks())}
	d := &decoder{data: data}
	groups := make([]meanGroup, d.number(uint64(p.Blocks())))
	for i := range groups {
		groups[i] = d.group()
	}
	parts := make([][]uint32, len(groups))
	for b := range uint32(p.Blocks()) {
		if g := d.number(max(uint64(len(groups)), 1) - 1); d.err == nil && len(groups) > 0 {
			parts[g] = append(parts[g], b)
		}
	}
	if d.err == nil && len(d.data) > 0 {
		d.fail("bytes left over")
	}
	for g, blocks := range parts {
		if len(blocks) == 0 {
			d.fail("a group is empty")
		}
		if d.err != nil {
			break
		}
		groups[g].label = m.cover(blocks)
		m.add(blocks, groups[g])
	}
	if d.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMeansData, d.err)
	}
	return m, nil
}

// group reads what has been told of a group.
func (d *decoder) group() (g meanGroup) {
	state := d.number(2)
	g.shown, g.closed = state > 0, state == 2
	if g.shown {
		g.told = told{sum: d.float(), slack: d.float(), people: d.float()}
		if !(g.told.people > 0) || !(g.told.slack > 0) || math.IsInf(g.told.people+g.told.slack, 0) {
			d.fail("no sum of people")
		}
	}
	return g
}

// float reads a finite number, 0 after a fault.
func (d *decoder) float() float64 {
	word := d.take(8)
	if word == nil {
		return 0
	}
	v := math.Float64frombits(binary.BigEndian.Uint64(word))
	if math.IsNaN(v) || math.IsInf(v, 0) {
		d.fail("a number is not finite")
	}
	return v
}
