package published

import (
	"math/rand/v2"
	"slices"
)

// Record is a record of a reconstructed data set: items of the form,
// ascending.
type Record []Item

// Reconstruct draws one data set that the form can be read as: the sub-records
// of each chunk go to the records of its clusters at random, independent of
// other chunks; each code of an item chunk goes to one record of the cluster,
// an empty one if there is; records that are still empty then take a
// sub-record from one that has several. Records are listed by cluster, in
// random order within it; none is empty, unless the form says that some may be.
//
// A code that is shared alone goes to each cluster of its scope before it goes to one of
// them twice: that is a reading like others, and the likeliest.
//
// How often a code of an item chunk occurs is not published. Drawing it
// uniformly from what is possible would overstate it several times, so it is
// taken once, the least there can be, and again only to fill a record.
//
// The same form and state of rng give the same result.
func (f *Form) Reconstruct(rng *rand.Rand) []Record {
	d := &dealing{form: f, rng: rng, begin: make([]int, len(f.Clusters)+1)}
	for p := range f.Clusters {
		d.begin[p+1] = d.begin[p] + f.Clusters[p].Size
	}
	d.hands = make([][]hand, d.begin[len(f.Clusters)])
	for s := range f.Shared {
		d.dealShared(&f.Shared[s])
	}
	for p := range f.Clusters {
		own := d.scope([]int32{int32(p)})
		for i := range f.Clusters[p].Record {
			d.deal(&f.Clusters[p].Record[i], own, i)
		}
		d.dealItems(p, own)
		if !f.Promise.MayBeEmpty {
			d.fillEmpty(p, own)
		}
	}
	records := make([]Record, len(d.hands))
	for slot, hands := range d.hands {
		for _, h := range hands {
			records[slot] = append(records[slot], h.items...)
		}
		slices.Sort(records[slot])
	}
	return records
}

// dealing is a reconstruction under way.
type dealing struct {
	form  *Form
	rng   *rand.Rand
	begin []int    // cluster -> first of its slots
	hands [][]hand // slot -> what it got
}

// hand is a sub-record dealt to a slot. chunk is the record chunk it comes
// from; -1 for a shared chunk and -2 for the item chunk, whose codes stay where
// they are.
type hand struct {
	chunk int
	items []Item
}

// scope lists the slots of clusters.
func (d *dealing) scope(clusters []int32) []int {
	var slots []int
	for _, p := range clusters {
		for s := d.begin[p]; s < d.begin[p+1]; s++ {
			slots = append(slots, s)
		}
	}
	return slots
}

// deal gives each non-empty sub-record of a chunk to a slot of its own.
func (d *dealing) deal(c *Chunk, slots []int, chunk int) {
	at := 0
	for i := range c.Sub {
		for range c.Sub[i].Count {
			j := at + d.rng.IntN(len(slots)-at)
			slots[at], slots[j] = slots[j], slots[at]
			slot := slots[at]
			d.hands[slot] = append(d.hands[slot], hand{chunk, c.Sub[i].Items})
			at++
		}
	}
}

// dealShared gives the sub-records of a shared chunk to slots of their own.
func (d *dealing) dealShared(s *SharedChunk) {
	slots := d.scope(s.Scope)
	if !s.spreads() {
		d.deal(&s.Chunk, slots, -1)
		return
	}
	var chosen []int
	rest := slots[:0]
	at := 0
	for _, p := range s.Scope {
		own := slots[at : at+d.form.Clusters[p].Size]
		at += len(own)
		one := d.rng.IntN(len(own))
		chosen = append(chosen, own[one])
		own[one] = own[0]
		rest = append(rest, own[1:]...)
	}
	for i := range s.NonEmpty() - len(s.Scope) {
		j := i + d.rng.IntN(len(rest)-i)
		rest[i], rest[j] = rest[j], rest[i]
		chosen = append(chosen, rest[i])
	}
	for _, slot := range chosen {
		d.hands[slot] = append(d.hands[slot], hand{-1, s.Sub[0].Items})
	}
}

// dealItems gives each code of an item chunk to one slot.
func (d *dealing) dealItems(p int, own []int) {
	items := d.form.Clusters[p].Items
	for i := range items {
		slot, empty := 0, false
		if !d.form.Promise.MayBeEmpty {
			slot, empty = d.emptySlot(own)
		}
		if !empty {
			slot = own[d.rng.IntN(len(own))]
		}
		d.hands[slot] = append(d.hands[slot], hand{-2, items[i : i+1]})
	}
}

func (d *dealing) emptySlot(own []int) (slot int, ok bool) {
	for _, s := range own {
		if len(d.hands[s]) == 0 {
			return s, true
		}
	}
	return 0, false
}

// fillEmpty moves sub-records of record chunks from slots with several hands
// to empty ones. Where there are none to move, an item chunk fills the slot: a
// form has one or the other (see package verify).
func (d *dealing) fillEmpty(p int, own []int) {
	for {
		slot, empty := d.emptySlot(own)
		if !empty {
			return
		}
		if d.move(own, slot) {
			continue
		}
		items := d.form.Clusters[p].Items
		if len(items) == 0 {
			return // not a verified form
		}
		i := d.rng.IntN(len(items))
		d.hands[slot] = append(d.hands[slot], hand{-2, items[i : i+1]})
	}
}

// move gives a slot a sub-record of a random slot that has several hands.
func (d *dealing) move(own []int, to int) bool {
	start := d.rng.IntN(len(own))
	for i := range own {
		from := own[(start+i)%len(own)]
		if len(d.hands[from]) < 2 {
			continue
		}
		for j, h := range d.hands[from] {
			if h.chunk >= 0 {
				d.hands[from] = slices.Delete(d.hands[from], j, j+1)
				d.hands[to] = append(d.hands[to], h)
				return true
			}
		}
	}
	return false
}
