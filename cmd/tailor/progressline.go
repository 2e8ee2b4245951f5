package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
)

// progressLine shows progress in one line that it writes over, on a terminal
// only.
type progressLine struct {
	w     io.Writer // nil: not a terminal
	shown time.Time
}

// progressInterval is how often the line changes at most.
const progressInterval = 100 * time.Millisecond

func newProgressLine(w io.Writer) *progressLine {
	file, ok := w.(*os.File)
	if !ok {
		return &progressLine{}
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return &progressLine{}
	}
	return &progressLine{w: w, shown: time.Now()}
}

// show is a disassociate.Progress.
func (p *progressLine) show(stage disassociate.Stage, done, total int) {
	if p.w == nil || time.Since(p.shown) < progressInterval {
		return
	}
	p.shown = time.Now()
	fmt.Fprintf(p.w, "\r\033[K%s %d %%", stage, 100*done/max(total, 1))
}

func (p *progressLine) clear() {
	if p.w != nil {
		fmt.Fprint(p.w, "\r\033[K")
	}
}
