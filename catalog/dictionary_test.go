package catalog

import (
	"testing"

	"github.com/hiatus-tailor/tailor/ecg"
)

// TestLabelsOfSeveralNodesAreExactIfAllAre has a label that is a value to one part of a table and
// covers several to the next, before and after it has been stored.
func TestLabelsOfSeveralNodesAreExactIfAllAre(t *testing.T) {
	for _, stored := range []bool{false, true} {
		d := &dictionary{column: &Column{}, numbers: make(map[entry]uint32)}
		exact := entry{label: "E11", lost: ecg.Label{Exact: true}}
		group := entry{label: "E11", lost: ecg.Label{Share: 0.5}}
		d.add([]entry{exact})
		if stored {
			d.stored = len(d.entries)
		}
		d.add([]entry{exact})
		if d.revised {
			t.Error("what is lost no more is revised")
		}
		d.add([]entry{group})
		d.add([]entry{exact})
		if len(d.entries) != 1 || d.entries[0].lost != group.lost || d.revised != stored {
			t.Errorf("stored %t: %+v, revised %t", stored, d.entries, d.revised)
		}
	}
}
