package audit

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAConfigurationSaysAllItsFaults(t *testing.T) {
	err := Config{SQL: "some", FileBytes: 10, TotalBytes: 5}.Validate()
	for _, want := range []string{"neither a file nor the table", "audit.sql", "audit.file_bytes", "audit.total_bytes"} {
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
	if _, err := Open(t.Context(), "", config, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("a second writer: %v", err)
	}
	first.Close()
	if err := first.Append(t.Context(), NewRecord(time.Now(), "SELECT 1")); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
	openLog(t, path).Close()
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
