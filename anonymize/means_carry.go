package anonymize

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMeansData says that encoded bytes are not means of the partition.
var ErrMeansData = errors.New("not means of this partition")

// Refit carries means to the partition of a new epoch; from is
// [RefitReport.From]. Groups stay together, and those join whose blocks have
// joined, so that no group of the new epoch cuts across one of the old. Whether
// a group's mean is shown is decided anew.
//
// What changed is told by the difference of two sums. Each is told to within
// one width of its label: who knows nothing else of a group can rule out no
// value for one person who came or left, as long as the label is the same; who
// knows all the others' values learns of two parts of the range, once more.
// TestADifferenceOfEpochsRulesOutNoValue checks it.
func (m *Means) Refit(p *Partition, from [][]uint32, k int) *Means {
	next := &Means{partition: p, column: m.column, k: k, unit: m.unit, groupOf: make([]uint32, p.Blocks())}
	same := newUnion(len(m.groups) + p.Blocks())
	for b, olds := range from {
		for _, old := range olds {
			same.join(len(m.groups)+b, int(m.groupOf[old]))
		}
	}
	parts := make(map[int][]uint32)
	told := make(map[int]bool)
	for g := range m.groups {
		told[same.find(g)] = told[same.find(g)] || m.groups[g].told
	}
	var order []int
	for b := range p.Blocks() {
		root := same.find(len(m.groups) + b)
		if parts[root] == nil {
			order = append(order, root)
		}
		parts[root] = append(parts[root], uint32(b))
	}
	for _, root := range order {
		next.put(parts[root], next.add(parts[root], told[root]))
	}
	return next.weighed()
}

// union is a forest of sets that can be joined.
type union []int

func newUnion(n int) union {
	u := make(union, n)
	for i := range u {
		u[i] = i
	}
	return u
}

func (u union) find(i int) int {
	for u[i] != i {
		u[i] = u[u[i]]
		i = u[i]
	}
	return i
}

func (u union) join(i, j int) { u[u.find(i)] = u.find(j) }

// MarshalBinary encodes the group of each block and what has been told of each
// group. Means themselves are worked out again. It never fails.
func (m *Means) MarshalBinary() ([]byte, error) {
	out := binary.AppendUvarint(nil, uint64(len(m.groups)))
	for i := range m.groups {
		told := byte(0)
		if m.groups[i].told {
			told = 1
		}
		out = append(out, told)
	}
	for _, g := range m.groupOf {
		out = binary.AppendUvarint(out, uint64(g))
	}
	return out, nil
}

// UnmarshalMeans decodes what MarshalBinary wrote for an equal partition. The
// other arguments are those of [NewMeans]. It fails with an error that wraps
// [ErrMeansData].
func UnmarshalMeans(p *Partition, column, k int, integer bool, data []byte) (*Means, error) {
	d := &decoder{data: data}
	told := d.take(int(d.number(uint64(p.Blocks()))))
	parts := make([][]uint32, len(told))
	for b := range uint32(p.Blocks()) {
		if g := d.number(max(uint64(len(told)), 1) - 1); d.err == nil && len(told) > 0 {
			parts[g] = append(parts[g], b)
		}
	}
	if d.err == nil && len(d.data) > 0 {
		d.fail("bytes left over")
	}
	m := &Means{partition: p, column: column, k: k, unit: unitOf(integer), groupOf: make([]uint32, p.Blocks())}
	for g, blocks := range parts {
		if len(blocks) == 0 {
			d.fail("a group is empty")
		}
		if d.err != nil {
			break
		}
		m.put(blocks, m.add(blocks, told[g] != 0))
	}
	if d.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMeansData, d.err)
	}
	return m.weighed(), nil
}
