package audit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTamperingIsFoundAcrossFilesThatWereSetAside tampers with a log that two
// proxies wrote, one after the other, over several files.
func TestTamperingIsFoundAcrossFilesThatWereSetAside(t *testing.T) {
	alter := func(name string, change func(text []byte) []byte) error {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, change(text), 0o600)
	}
	withoutLine := func(n int) func([]byte) []byte {
		return func(text []byte) []byte {
			lines := bytes.SplitAfter(text, []byte("\n"))
			return bytes.Join(append(lines[:n:n], lines[n+1:]...), nil)
		}
	}
	cases := []struct {
		claim  string
		tamper func(path string) error
		anchor int    // the line whose hash somebody noted; 0 for none
		want   string // in a fault; empty for none
	}{
		{"nothing", func(string) error { return nil }, 0, ""},
		{"a byte in a file set aside", func(path string) error {
			return alter(path+".00000002", func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
		}, 0, "audit.jsonl.00000002:"},
		{"a record from a file set aside", func(path string) error {
			return alter(path+".00000001", withoutLine(1))
		}, 0, "record 2 of chain"},
		{"the last record of a file set aside", func(path string) error {
			return alter(path+".00000001", withoutLine(2))
		}, 0, "record 3 of chain"},
		{"a file from between", func(path string) error {
			return os.Remove(path + ".00000002")
		}, 0, "records 4 to 6 of chain"},
		{"the oldest file", func(path string) error {
			return os.Remove(path + ".00000001")
		}, 0, "records 1 to 3 of chain"},
		{"the oldest file, moved away with its last hash noted", func(path string) error {
			return os.Remove(path + ".00000001")
		}, 3, ""},
		{"the current file", os.Remove, 8, "noted earlier, is missing"},
		{"the tail of the current file", func(path string) error {
			return alter(path, withoutLine(1))
		}, 8, "noted earlier, is missing"},
		{"files that changed places", func(path string) error {
			return os.Rename(path+".00000001", path+".00000004")
		}, 0, "comes again"},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			chain := newChain()
			hashes := []string{""}
			for part := range 2 {
				f, last, err := openFile(path, 1<<20, 0)
				if err != nil {
					t.Fatal(err)
				}
				if part > 0 && last != chain {
					t.Fatalf("the second proxy goes on after %+v, want %+v", last, chain)
				}
				if _, _, err := openFile(path, 1<<20, 0); err == nil {
					t.Fatal("two proxies write one file at the same time")
				}
				for range 4 { // three records fill a file
					if err := f.write(sealed(t, &chain, 330<<10)); err != nil {
						t.Fatal(err)
					}
					hashes = append(hashes, chain.Hash)
				}
				f.close()
			}
			if err := c.tamper(path); err != nil {
				t.Fatal(err)
			}
			source := Source{File: path, Now: time.Unix(1, 0)}
			if c.anchor > 0 {
				source.Anchors = []string{hashes[c.anchor]}
			}
			report, err := Verify(t.Context(), source)
			if err != nil {
				t.Fatal(err)
			}
			faults := strings.Join(report.Faults, "\n")
			if c.want == "" && faults != "" || c.want != "" && !strings.Contains(faults, c.want) {
				t.Errorf("faults %q, want %q", faults, c.want)
			}
		})
	}
}
