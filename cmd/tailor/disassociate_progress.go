package main

import (
	"fmt"
	"io"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// disassociateProgress shows progress in one line that it writes over, on a terminal
// only.
type disassociateProgress struct {
	w     io.Writer // nil: not a terminal
	shown time.Time
}

// disassociateRefresh is how often the line changes at most.
const disassociateRefresh = 100 * time.Millisecond

func newDisassociateProgress(w io.Writer) *disassociateProgress {
	if _, ok := terminal(w); !ok {
		return &disassociateProgress{}
	}
	return &disassociateProgress{w: w, shown: time.Now()}
}

// show is a disassociate.Progress.
func (p *disassociateProgress) show(stage disassociate.Stage, done, total int) {
	if p.w == nil || time.Since(p.shown) < disassociateRefresh {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.w, "\r\033[K%s %d %%", stage, 100*done/max(total, 1))
}

func (p *disassociateProgress) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
