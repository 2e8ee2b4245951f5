package audit

import (
	"bufio"
	"bytes"
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

// FollowFile calls a function with each statement that is written to the file
// from now on, as it is written, until the context ends. It goes on with the
// new file when the log sets one aside.
func FollowFile(ctx context.Context, path string, f Filter, do func(Entry) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	lines := bufio.NewReader(file)
	var partial []byte
	for {
		piece, err := lines.ReadBytes('\n')
		partial = append(partial, piece...)
		if err == nil {
			var e Entry
			if json.Unmarshal(partial, &e.Record) == nil && e.Event != Completion && f.matches(&e) {
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
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
		next, err := successor(file, path)
		if err != nil {
			return err
		}
		if next != nil {
			// What came between the last read and the change of files is in the old one.
			rest, err := io.ReadAll(lines)
			_ = file.Close()
			if err != nil {
				return err
			}
			file = next
			lines = bufio.NewReader(io.MultiReader(bytes.NewReader(rest), file))
		}
	}
}

// followPause is how often a follower looks for news.
const followPause = 200 * time.Millisecond

// successor is the file that now has the path, nil where it is the same.
func successor(file *os.File, path string) (*os.File, error) {
	here, err := file.Stat()
	if err != nil {
		return nil, err
	}
	there, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil || os.SameFile(here, there) {
		return nil, err
	}
	return os.Open(path)
}

// Follow calls a function with each statement that comes to the table from now
// on, until the context ends.
func Follow(ctx context.Context, q Querier, f Filter, do func(Entry) error) error {
	last, err := List(ctx, q, Filter{}, Page{Most: 1})
	if err != nil {
		return err
	}
	after := int64(0)
	if len(last) > 0 {
		after = last[0].Position
	}
	for {
		news, err := List(ctx, q, f, Page{OldestFirst: true, Position: after, Most: batchLength})
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		for _, e := range news {
			if err := do(e); err != nil {
				return err
			}
			after = e.Position
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followPause):
		}
	}
}
