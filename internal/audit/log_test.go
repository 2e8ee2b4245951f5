package audit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAConfigurationSaysAllItsFaults(t *testing.T) {
	err := Config{SQL: "some", FileBytes: 10, TotalBytes: 5}.Validate()
	for _, want := range []string{
		"neither a file nor the table", "audit.sql", "audit.file_bytes",
		"audit.total_bytes",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
}

func TestRefusedLoginsThatComeTooFastAreCounted(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "audit.jsonl"))
	now := time.Unix(1000, 0)
	l.clock = func() time.Time { return now }
	const attempts = 5 * loginBurst
	for range attempts {
		l.RefusedLogin(NewLogin(now, "somebody", "hospital", "127.0.0.1:1", "28P01"))
	}
	now = now.Add(time.Minute)
	l.RefusedLogin(NewLogin(now, "somebody", "hospital", "127.0.0.1:1", "28P01"))
	l.Close()
	var kept, leftOut int64
	if err := ReadFile(l.config.File, Filter{}, func(e Entry) error {
		kept++
		leftOut += e.LeftOut
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if kept != loginBurst+1 || kept+leftOut != attempts+1 {
		t.Errorf("%d kept, %d left out, of %d", kept, leftOut, attempts+1)
	}
}

func TestAFileHasOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	first := openLog(t, path)
	config := first.config
	if _, err := Open(t.Context(), "", config, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("a second writer: %v", err)
	}
	first.Close()
	if err := first.Append(t.Context(), NewRecord(time.Now(), "SELECT 1")); !errors.Is(err,
		ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	openLog(t, path).Close()
}

// TestLinesThatWereGivenTheirPlacesTooEarlyGetOthers tidies before a batch that
// cannot be written, and before one that can.
func TestLinesThatWereGivenTheirPlacesTooEarlyGetOthers(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "audit.jsonl"))
	within := func(do func()) { // the one who has the turn
		l.turn <- struct{}{}
		do()
		<-l.turn
	}
	answer := func() *Record {
		r := NewRecord(time.Now(), "SELECT 1")
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		l.Finish(r, Outcome{Verdict: Passed, Rows: 1})
		return r
	}
	l.leftOut.Store(1)
	within(func() {
		if err := l.seal(); err != nil { // which is of nothing
			t.Error(err)
		}
	})
	first := answer()
	l.leftOut.Store(2)
	l.SealPending()
	within(func() {
		if len(l.sealed.lines) != 1 {
			t.Errorf("%d lines have places, want the completion", len(l.sealed.lines))
		}
		l.file.total = 1
	})
	if err := l.Append(t.Context(), NewRecord(time.Now(), "SELECT 2")); !errors.Is(err, errFull) {
		t.Errorf("appended to what is full: %v", err)
	}
	within(func() { l.file.total = 0 })
	second := answer()
	l.SealPending()
	l.Close()
	text, err := os.ReadFile(l.config.File)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	var leftOut int64
	for line := range bytes.Lines(text) {
		var c completion
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		lines, leftOut = append(lines, cmp.Or(c.Completes, c.ID)), leftOut+c.LeftOut
	}
	if want := []string{first.ID, first.ID, second.ID, second.ID}; !slices.Equal(lines, want) ||
		leftOut != 3 {
		t.Errorf("the log is about %q, and %d lines were left out, want %q and 3", lines, leftOut, want)
	}
	report, err := Verify(t.Context(), Source{File: l.config.File})
	if err != nil || len(report.Faults) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// openLog starts a log with a file alone, which ends with the test.
func openLog(t *testing.T, path string) *Log {
	t.Helper()
	config := DefaultConfig()
	config.File, config.Table = path, false
	l, err := Open(t.Context(), "", config, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}
