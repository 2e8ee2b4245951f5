package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestWhatTakesAFilesNameIsNotTakenForIt puts other files of the same size in
// place of the log and of its journal.
func TestWhatTakesAFilesNameIsNotTakenForIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	chain := newChain()
	f, _ := reopen(t, path)
	t.Cleanup(f.close)
	add := func() []byte {
		t.Helper()
		line := sealed(t, &chain, 100)
		if err := f.write(line); err != nil {
			t.Fatal(err)
		}
		return line
	}
	replace := func(path string) (other []byte) {
		t.Helper()
		held, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		other = bytes.Repeat([]byte{' '}, len(held))
		if err := os.WriteFile(path+".other", other, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".other", path); err != nil {
			t.Fatal(err)
		}
		return other
	}
	wantHeld := func(path string, want []byte) {
		t.Helper()
		if held, err := os.ReadFile(path); err != nil || !bytes.Equal(held, want) {
			t.Errorf("%s holds %q, want %q; %v", path, held, want, err)
		}
	}

	add()
	if !f.journal.named() {
		t.Error("the journal is not known by its name")
	}
	other := replace(path)
	second := add()
	wantHeld(path+".00000001", other)
	wantHeld(path, second)

	replace(journalPath(path))
	if f.journal.named() {
		t.Error("another file is taken for the journal")
	}
	third := add()
	wantHeld(path, append(second, third...))
	if f.journal != nil && f.journal.used > 0 && !f.journal.named() {
		t.Error("a line is durable in a journal that nobody would find")
	}
}
