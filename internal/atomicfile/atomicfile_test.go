package atomicfile_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

func TestAFailedWriteLeavesTheOldFileAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := atomicfile.Write(path, 0o600, text("first")); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := atomicfile.Write(path, 0o600, func(w io.Writer) error {
		_ = text("half")(w)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "first" {
		t.Errorf("the file holds %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
	if err := atomicfile.Write(path, 0o600, text("second")); err != nil {
		t.Fatal(err)
	}
	if got, _ = os.ReadFile(path); string(got) != "second" {
		t.Errorf("the file holds %q", got)
	}
}
