package audit

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sealed is the next line of a chain, as long as given or a little longer.
func sealed(t *testing.T, chain *head, length int) []byte {
	t.Helper()
	r := NewRecord(time.Unix(0, 0), "")
	r.SQL = strings.Repeat("x", length)
	line, err := chain.seal(r)
	if err != nil {
		t.Fatal(err)
	}
	return append(line, '\n')
}

// crash leaves the files as a process does that is killed.
func (f *file) crash() {
	for _, open := range []*os.File{f.current, f.lock, f.journal.file} {
		_ = open.Close()
	}
}

func reopen(t *testing.T, path string) (*file, head) {
	t.Helper()
	f, h, err := openFile(path, 1<<20, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f, h
}

// TestWhatTheMachineLosesIsGivenBack writes batches of all sizes, and lets the
// machine crash again and again: of the file only what was flushed is sure to be
// left, and of what came after it any part may be there, or may be zeros.
func TestWhatTheMachineLosesIsGivenBack(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	chain := newChain()
	var want []byte
	f, _ := reopen(t, path)
	losses := 0
	for range 80 {
		settled := f.size
		for range random.IntN(40) {
			length := random.IntN(3000)
			if random.IntN(30) == 0 {
				length = journalBytes // which the journal has no room for
			}
			batch := sealed(t, &chain, length)
			if random.IntN(3) == 0 {
				batch = append(batch, sealed(t, &chain, 10)...)
			}
			if err := f.write(batch); err != nil {
				t.Fatal(err)
			}
			want = append(want, batch...)
			if f.journal.used == 0 {
				settled = f.size
			}
			if f.size < settled { // another file was begun
				settled = 0
			}
		}
		// What the journal had no room for began its next round before it.
		settled = max(settled, f.size-f.journal.used)
		lost := f.size - settled
		f.crash()
		if lost > 0 {
			losses++
			left := settled + random.Int64N(lost+1)
			if err := os.Truncate(path, left); err != nil {
				t.Fatal(err)
			}
			if random.IntN(2) == 0 { // the size was written, the pages were not
				if err := os.Truncate(path, left+random.Int64N(2*lost)); err != nil {
					t.Fatal(err)
				}
			}
		}
		var h head
		if f, h = reopen(t, path); h.Sequence != chain.Sequence || chain.Sequence > 0 && h != chain {
			t.Fatalf("after a loss of %d bytes the last line is %+v, want %+v", lost, h, chain)
		}
		if (f.givenBack > 0) != (lost > 0) && f.givenBack > 0 {
			t.Errorf("%d lines given back where none were lost", f.givenBack)
		}
	}
	f.close()
	var got []byte
	names, err := files(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		piece, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, piece...)
	}
	if !bytes.Equal(got, want) || losses < 25 || len(names) < 3 {
		t.Errorf("%d bytes, want %d; %d losses, %d files", len(got), len(want), losses, len(names))
	}
	if _, err := os.Stat(journalPath(path)); err == nil {
		t.Error("the journal is left after the end")
	}
}

func TestRecordsOutliveTheirFileInTheJournal(t *testing.T) {
	for claim, change := range map[string]func(path string) error{
		"the file was moved away": func(path string) error { return os.Rename(path, path+".away") },
		"the file was removed":    os.Remove,
		"another took its place": func(path string) error {
			return os.Rename(path+".other", path)
		},
	} {
		t.Run(claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			if err := os.WriteFile(path+".other", nil, 0o600); err != nil {
				t.Fatal(err)
			}
			chain := newChain()
			f, _ := reopen(t, path)
			for range 3 {
				if err := f.write(sealed(t, &chain, 100)); err != nil {
					t.Fatal(err)
				}
			}
			f.crash()
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			for range 2 { // once is enough
				again, h := reopen(t, path)
				if h != chain {
					t.Errorf("the last record is %+v, want %+v", h, chain)
				}
				if again.journal.used != 0 || again.rescued.records+again.givenBack > 3 {
					t.Errorf("%+v, %d lines given back", again.rescued, again.givenBack)
				}
				again.crash()
				verified(t, path, chain.Log, 3)
			}
		})
	}
}

// verified asserts how many records a verification finds of a chain, and which
// faults, by what they contain.
func verified(t *testing.T, path, log string, lines int64, faults ...string) {
	t.Helper()
	report, err := Verify(t.Context(), Source{File: path, Now: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	found := int64(0)
	for _, c := range report.Chains {
		if c.Log == log {
			found = c.Lines
		}
	}
	if found != lines || len(report.Faults) != len(faults) {
		t.Fatalf("%d records, want %d; faults %q, want %q", found, lines, report.Faults, faults)
	}
	for i, fault := range faults {
		if !strings.Contains(report.Faults[i], fault) {
			t.Errorf("fault %q, want %q", report.Faults[i], fault)
		}
	}
}

// TestACutBelowTheJournalIsFoundAlsoAfterAStart changes a file before where its
// journal begins, which proves what was there.
func TestACutBelowTheJournalIsFoundAlsoAfterAStart(t *testing.T) {
	for claim, c := range map[string]struct {
		change  func(t *testing.T, path string, lines [][]byte)
		found   int64 // before a start
		missing string
	}{
		"two records of four are cut off": {func(t *testing.T, path string, lines [][]byte) {
			replace(t, path, lines[:2])
		}, 2, "records 3 to 4"},
		"all are": {func(t *testing.T, path string, _ [][]byte) {
			replace(t, path, nil)
		}, 0, "records 1 to 4"},
		"an older copy takes its place": {func(t *testing.T, path string, lines [][]byte) {
			replace(t, path+".copy", lines[:3])
			if err := os.Rename(path+".copy", path); err != nil {
				t.Fatal(err)
			}
		}, 3, "4"},
		"the last two are written anew": {func(t *testing.T, path string, lines [][]byte) {
			l, err := unseal(bytes.TrimSpace(lines[1]))
			if err != nil {
				t.Fatal(err)
			}
			h := head{l.Log, l.Sequence, l.Hash}
			replace(t, path, append(lines[:2:2], sealed(t, &h, 90), sealed(t, &h, 110)))
		}, 4, "record"},
		"all that follow are written anew, and more": {func(t *testing.T, path string, lines [][]byte) {
			l, err := unseal(bytes.TrimSpace(lines[1]))
			if err != nil {
				t.Fatal(err)
			}
			h := head{l.Log, l.Sequence, l.Hash}
			anew := append(lines[:2:2], sealed(t, &h, 90), sealed(t, &h, 110))
			for range 3 {
				anew = append(anew, sealed(t, &h, 90))
			}
			replace(t, path, anew)
		}, 7, "record"},
	} {
		t.Run(claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			chain := newChain()
			f, _ := reopen(t, path)
			var lines [][]byte
			write := func() {
				lines = append(lines, sealed(t, &chain, 100))
				if err := f.write(lines[len(lines)-1]); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				write()
			}
			f.close()
			f, _ = reopen(t, path) // whose journal begins after the fourth
			write()
			write()
			f.crash()
			c.change(t, path, lines)
			verified(t, path, chain.Log, c.found, c.missing)
			for range 2 {
				f, h := reopen(t, path)
				if h != chain {
					t.Errorf("the chain goes on after %+v, want %+v", h, chain)
				}
				if err := f.write(sealed(t, &chain, 100)); err != nil {
					t.Fatal(err)
				}
				f.crash()
			}
			verified(t, path, chain.Log, c.found+4, c.missing)
		})
	}
}

// replace gives a file other lines; it stays the same file.
func replace(t *testing.T, path string, lines [][]byte) {
	t.Helper()
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestAJournalThatIsRemovedIsMadeAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	chain := newChain()
	f, _ := reopen(t, path)
	for i := range 4 {
		if err := f.write(sealed(t, &chain, 100)); err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			if err := os.Remove(journalPath(path)); err != nil {
				t.Fatal(err)
			}
		}
	}
	settled := f.size - f.journal.used
	f.crash()
	if settled == 0 {
		t.Error("the file was not flushed when its journal was gone")
	}
	if err := os.Truncate(path, settled); err != nil {
		t.Fatal(err)
	}
	f, h := reopen(t, path)
	defer f.close()
	if h != chain || f.givenBack != 1 {
		t.Errorf("%+v, want %+v; %d lines given back, want 1", h, chain, f.givenBack)
	}
}

// TestWhatFailedDoesNotComeBack has a write fail after its lines were in the
// journal, which nobody was promised.
func TestWhatFailedDoesNotComeBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	chain := newChain()
	f, _ := reopen(t, path)
	write := func(batch []byte) error { return f.write(batch) }
	if err := write(sealed(t, &chain, 100)); err != nil {
		t.Fatal(err)
	}
	before := chain
	failed := sealed(t, &chain, 200)
	if err := f.journal.add(failed, f.current, f.size); err != nil {
		t.Fatal(err)
	}
	f.journal.used -= int64(len(failed))
	f.doubt = true // as after an error
	chain = before
	if err := write(sealed(t, &chain, journalBytes)); err != nil {
		t.Fatal(err)
	}
	f.crash()
	f, h := reopen(t, path)
	defer f.close()
	if h != chain {
		t.Errorf("%+v, want %+v", h, chain)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, failed) || bytes.Count(text, []byte("\n")) != 2 {
		t.Errorf("%v, %d lines: %.300s", err, bytes.Count(text, []byte("\n")), fmt.Sprintf("%q", text))
	}
}

// TestALineWithoutItsStartIsNotGivenBack has the machine crash when the first
// lines of a round are on the disk, and the block before them is not.
func TestALineWithoutItsStartIsNotGivenBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	chain := newChain()
	f, _ := reopen(t, path)
	start := make([]byte, journalStartSize)
	for i, length := range []int{100, journalBytes, 100} {
		if err := f.write(sealed(t, &chain, length)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := f.journal.file.ReadAt(start, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := f.journal.file.WriteAt(start, 0); err != nil {
		t.Fatal(err)
	}
	f.crash()
	f, h := reopen(t, path)
	defer f.close()
	if h != chain || f.givenBack != 0 {
		t.Errorf("%+v, want %+v; %d lines given back, want none", h, chain, f.givenBack)
	}
}
