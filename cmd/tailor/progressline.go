package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// terminal is what is written to or read from, if it is one.
func terminal(side any) (*os.File, bool) {
	f, ok := side.(*os.File)
	if !ok {
		return nil, false
	}
	info, err := f.Stat()
	return f, err == nil && info.Mode()&os.ModeCharDevice != 0
}

// statusLine returns what keeps one line on a terminal, and what clears it. Elsewhere it does
// nothing.
func statusLine(stderr io.Writer) (show func(string), done func()) {
	f, is := terminal(stderr)
	if !is {
		return func(string) {}, func() {}
	}
	shown := false
	show = func(text string) {
		shown = true
		fmt.Fprintf(f, "\r\x1b[K%.100s", text)
	}
	return show, func() {
		if shown {
			fmt.Fprint(f, "\r\x1b[K")
		}
		shown = false
	}
}

// progressLine returns a callback that keeps one line on a terminal up to date,
// and what clears it. Where stderr is no terminal the callback is nil.
func progressLine(stderr io.Writer) (progress func(anonymize.Progress), done func()) {
	show, done := statusLine(stderr)
	if _, ok := terminal(stderr); !ok {
		return nil, done
	}
	const every = 100 * time.Millisecond
	next := time.Now().Add(every)
	return func(p anonymize.Progress) {
		now := time.Now()
		if now.Before(next) {
			return
		}
		next = now.Add(every)
		best := "nothing found yet"
		if p.Found {
			best = fmt.Sprintf("best %.6g", p.Score)
		}
		show(fmt.Sprintf("%d nodes checked, %s", p.Checked, best))
	}, done
}
