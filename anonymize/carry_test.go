package anonymize_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// team is a table of people by what they earn and where they belong to.
type team struct {
	pay      []int
	cut      []uint32
	subjects []uint32
	upper    float64
}

func (of team) table(t *testing.T) *anonymize.Table {
	t.Helper()
	iv := anonymize.Interval{Widths: []float64{1000, 5000}, Lower: 0, Upper: of.upper, Integer: true}
	return measuredWithin(t, iv, of.subjects, of.pay, of.cut)
}

// shuffled is the same people in another order.
func (of team) shuffled(seed uint64) team {
	out := team{upper: of.upper}
	for _, i := range rand.New(rand.NewPCG(seed, 2)).Perm(len(of.pay)) {
		out.pay, out.cut = append(out.pay, of.pay[i]), append(out.cut, of.cut[i])
	}
	return out
}

func manyPeople() team {
	people := team{upper: 19999}
	for i := range 160 {
		people.pay, people.cut = append(people.pay, 500+i/2*1613%18000), append(people.cut, uint32(i/2%4))
	}
	return people
}

func TestAPartitionIsCarriedAsItIsOrNotAtAll(t *testing.T) {
	people := manyPeople()
	p := anonymize.NewPartition(people.table(t))
	m := meansOf(p, 5)
	for _, columns := range [][]int{{1}, {0, 1}} {
		p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: blockK(5)})
		m = m.Refine(p)
	}
	if p.Blocks() < 6 {
		t.Fatalf("%d blocks", p.Blocks())
	}
	blocks, _ := p.MarshalBinary()
	means, _ := m.MarshalBinary()
	least := p.MinBlock()
	for _, c := range []struct {
		claim  string
		change func(*team)
		k      int
		ok     bool
	}{
		{"nothing has changed", func(*team) {}, 5, true},
		{"k has risen to the smallest block", func(*team) {}, least, true},
		{"k has risen above the smallest block", func(*team) {}, least + 1, false},
		{"two people have changed places", func(of *team) {
			of.pay[0], of.pay[9], of.cut[0], of.cut[9] = of.pay[9], of.pay[0], of.cut[9], of.cut[0]
		}, 5, true},
		{"one earns one more", func(of *team) { of.pay[3]++ }, 5, false},
		{"a whole combination earns one more", func(of *team) { of.pay[2]++; of.pay[3]++ }, 5, false},
		{"one has moved", func(of *team) { of.cut[3] = (of.cut[3] + 1) % 4 }, 5, false},
		{"one has left, and another has the same", func(of *team) { of.pay, of.cut = of.pay[1:], of.cut[1:] }, 5, false},
		{"two who have the same have left", func(of *team) { of.pay, of.cut = of.pay[2:], of.cut[2:] }, 5, false},
		{"one has come with what another has", func(of *team) { of.pay, of.cut = append(of.pay, of.pay[5]), append(of.cut, of.cut[5]) }, 5, false},
		{"one has come and one has left", func(of *team) { of.pay[1], of.cut[1] = of.pay[6], of.cut[6] }, 5, false},
		{"one has no value any more", func(of *team) { of.pay[7] = -1 }, 5, false},
		{"the domain has other bounds", func(of *team) { of.upper = 20999 }, 5, false},
		{"two rows are about one subject", func(of *team) {
			for i := range of.pay {
				of.subjects = append(of.subjects, uint32(i/2))
			}
		}, 5, false},
	} {
		after := people.shuffled(7)
		c.change(&after)
		q, ok, err := p.Carry(after.table(t), blockK(c.k))
		if err != nil || ok != c.ok {
			t.Errorf("%s: carried: %t, %v", c.claim, ok, err)
		}
		if err != nil || !ok {
			continue
		}
		if again, _ := q.MarshalBinary(); !bytes.Equal(again, blocks) {
			t.Errorf("%s: the partition is another", c.claim)
		}
		carried, err := anonymize.UnmarshalMeans(q, first(q.Table()), 5, true, means)
		if err != nil {
			t.Fatal(err)
		}
		for b := range uint32(p.Blocks()) {
			x, told := m.Mean(b)
			if y, ok := carried.Mean(b); x != y || told != ok || m.Label(b) != carried.Label(b) {
				t.Errorf("%s: %v shows %g, before %v %g", c.claim, carried.Label(b), y, m.Label(b), x)
			}
		}
	}
}

func TestAPartitionIsNotCarriedWherePayloadNoLongerMeetsARequirement(t *testing.T) {
	people := manyPeople()
	table := people.table(t)
	p := refined(t, anonymize.NewPartition(table), anonymize.Refinement{Columns: []int{0, 1}, Requirements: blockK(5)})
	codes := make([]uint32, len(people.pay))
	for i := range codes {
		codes[i] = uint32(i % 2)
	}
	diverse := func() []anonymize.Requirement {
		return append(blockK(5), anonymize.BlockDistinctL{L: 2, Of: anonymize.Sensitive{Name: "s", CodeOfRow: slices.Clone(codes)}})
	}
	if _, ok, err := p.Carry(people.table(t), diverse()); err != nil || !ok {
		t.Fatalf("carried: %t, %v", ok, err)
	}
	for row, tuple := range table.TupleOfRow() { // all of one block have the same
		if p.BlockOf()[tuple] == 1 {
			codes[row] = 1
		}
	}
	if _, ok, err := p.Carry(people.table(t), diverse()); err != nil || ok {
		t.Errorf("carried: %t, %v", ok, err)
	}
}
