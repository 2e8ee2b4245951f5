package anonymize_test

import (
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func TestLabelsDependOnTheNodeAlone(t *testing.T) {
	r := anonymize.Refinement{Columns: []int{0}, Requirements: blockK(3)}
	p := refined(t, anonymize.NewPartition(steps(t, 1, 2, 3, 71, 72, 73)), r)
	q := refined(t, anonymize.NewPartition(steps(t, 5, 7, 8, 70, 75, 79)), r)
	for b := range uint32(2) {
		if p.Label(b, 0) != q.Label(b, 0) {
			t.Errorf("block %d is shown as %q and %q", b, p.Label(b, 0), q.Label(b, 0))
		}
		v, ok := p.Representative(b, 0)
		w, also := q.Representative(b, 0)
		if v != w || ok != also {
			t.Errorf("block %d is represented by %q and %q", b, v, w)
		}
	}
}
