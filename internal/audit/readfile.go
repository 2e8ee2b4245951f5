package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"
)

// ReadFile calls a function with the statements in a log's files, the oldest
// first, each with the outcome of its answer. Lines that cannot be read are
// passed over: to judge them is Verify's task.
func ReadFile(path string, f Filter, do func(Entry) error) error {
	names, err := files(path)
	if err != nil {
		return err
	}
	outcomes := make(map[string]*ended)
	durations := make(map[string]float64)
	walk := func(each func(line []byte) error) error {
		for _, name := range names {
			if _, err := eachLine(name, func(_ int, line []byte) error { return each(line) }); err != nil {
				return err
			}
		}
		return nil
	}
	if err := walk(func(line []byte) error {
		var c completion
		if json.Unmarshal(line, &c) != nil || c.Event != Completion {
			return nil
		}
		e := outcomes[c.Completes]
		if e == nil {
			e = &ended{}
			outcomes[c.Completes] = e
		}
		e.add(c)
		durations[c.Completes] += c.DurationMS
		return nil
	}); err != nil {
		return err
	}
	return walk(func(line []byte) error {
		var e Entry
		if json.Unmarshal(line, &e.Record) != nil || e.Event == Completion {
			return nil
		}
		if o := outcomes[e.ID]; o != nil {
			e.end(o)
			e.DurationMS += durations[e.ID]
		}
		if !f.matches(&e) {
			return nil
		}
		return do(e)
	})
}

// end adds what the completions say.
func (e *Entry) end(o *ended) {
	rows := o.rows
	if e.Rows != nil {
		rows += *e.Rows
	}
	e.Rows = &rows
	if o.verdict != "" {
		e.Verdict, e.SQLState = o.verdict, o.sqlstate
	}
}

// Tail is what will be written to a log's file.
type Tail struct {
	path string
	file *os.File
}

// OpenTail begins with what is written from now on.
func OpenTail(path string) (*Tail, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		_ = file.Close()
		return nil, err
	}
	return &Tail{path, file}, nil
}

// Follow calls a function with each statement as it is written, until the
// context ends. Those up to an entry that was read after the tail was opened
// are passed over; nil for none. It goes on with the new file when the log sets
// one aside, and closes the tail at its end.
func (t *Tail) Follow(ctx context.Context, f Filter, after *Entry, do func(Entry) error) error {
	file, path := t.file, t.path
	defer func() { _ = file.Close() }()
	known := func(e *Entry) bool {
		return after != nil && e.Log == after.Log && e.Sequence <= after.Sequence
	}
	lines := bufio.NewReader(file)
	var next *os.File
	var partial []byte
	for {
		piece, err := lines.ReadBytes('\n')
		partial = append(partial, piece...)
		if err == nil {
			var e Entry
			if json.Unmarshal(partial, &e.Record) == nil && e.Event != Completion && f.matches(&e) &&
				!known(&e) {
				if err := do(e); err != nil {
					return err
				}
			}
			partial = nil
			continue
		}
		if !errors.Is(err, io.EOF) {
			return err
		}
		if next != nil { // all of the old one has been read since it was replaced
			_ = file.Close()
			file, next, partial = next, nil, nil
			lines.Reset(file)
			continue
		}
		if next, err = successor(file, path); err != nil {
			return err
		}
		if next != nil {
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}

// followPause is how often a follower looks for news.
const followPause = 200 * time.Millisecond

// successor is the file that the log began after this one, nil while there is
// none.
func successor(file *os.File, path string) (*os.File, error) {
	here, err := file.Stat()
	if err != nil {
		return nil, err
	}
	names, err := setAside(path)
	if err != nil {
		return nil, err
	}
	names = append(names, path)
	for i, name := range names {
		there, err := os.Stat(name)
		if err != nil || !os.SameFile(here, there) {
			continue
		}
		if i == len(names)-1 {
			return nil, nil // it has its name still
		}
		return openIfThere(names[i+1])
	}
	return openIfThere(path) // it was moved away
}

// openIfThere gives nil where there is no file.
func openIfThere(name string) (*os.File, error) {
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return file, err
}
