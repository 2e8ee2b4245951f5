package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// terminal is what is written to, if it is one.
func terminal(w io.Writer) (*os.File, bool) {
	f, ok := w.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progressLine returns a callback that keeps one line on a terminal up to date,
// and what clears it. Where stderr is no terminal the callback is nil.
func progressLine(stderr io.Writer) (progress func(anonymize.Progress), done func()) {
	f, ok := terminal(stderr)
	if !ok {
		return nil, func() {}
	}
	const every = 100 * time.Millisecond
	next := time.Now().Add(every)
	shown := false
	progress = func(p anonymize.Progress) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next, shown = now.Add(every), true
		best := "nothing found yet"
		if p.Found {
			best = fmt.Sprintf("best %.6g", p.Score)
		}
		fmt.Fprintf(f, "\r\x1b[K%d nodes checked, %s", p.Checked, best)
	}
	return progress, func() {
		if shown {
			fmt.Fprint(f, "\r\x1b[K")
		}
	}
}
