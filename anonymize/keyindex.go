package anonymize

import "math/bits"

// keyIndex numbers distinct 64-bit keys in order of first appearance: an
// open-addressing hash with linear probing, at most half full.
type keyIndex struct {
	keys  []uint64
	ids   []uint32 // number + 1, 0 for a free slot
	shift uint
	count uint32
}

// newKeyIndex makes room for about n keys; it grows on demand.
func newKeyIndex(n int) *keyIndex {
	x := &keyIndex{}
	x.resize(n)
	return x
}

func (x *keyIndex) resize(n int) {
	width := uint(bits.Len(uint(max(n, 8)*2 - 1)))
	x.keys = make([]uint64, 1<<width)
	x.ids = make([]uint32, 1<<width)
	x.shift = 64 - width
}

// reset forgets all keys and makes room for n. It keeps its memory where that
// is neither too small nor far too large, so clearing stays in proportion.
func (x *keyIndex) reset(n int) {
	x.count = 0
	if size := len(x.ids); size < 2*n || size > 64*max(n, 64) {
		x.resize(n)
		return
	}
	clear(x.ids)
}

// number returns the number of a key and whether it is new.
func (x *keyIndex) number(key uint64) (id uint32, fresh bool) {
	mask := uint64(len(x.ids) - 1)
	slot := (key * 0x9E3779B97F4A7C15) >> x.shift
	for {
		stored := x.ids[slot]
		if stored == 0 {
			break
		}
		if x.keys[slot] == key {
			return stored - 1, false
		}
		slot = (slot + 1) & mask
	}
	x.keys[slot] = key
	x.count++
	x.ids[slot] = x.count
	if int(x.count)*2 > len(x.ids) {
		x.grow()
	}
	return x.count - 1, true
}

func (x *keyIndex) grow() {
	keys, ids := x.keys, x.ids
	x.resize(len(ids))
	mask := uint64(len(x.ids) - 1)
	for i, id := range ids {
		if id == 0 {
			continue
		}
		slot := (keys[i] * 0x9E3779B97F4A7C15) >> x.shift
		for x.ids[slot] != 0 {
			slot = (slot + 1) & mask
		}
		x.keys[slot], x.ids[slot] = keys[i], id
	}
}
