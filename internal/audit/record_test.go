package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestLiteralsAreRemoved(t *testing.T) {
	cases := []struct{ statement, want string }{
		{"SELECT * FROM p WHERE name = 'Smith' AND age > 42", "SELECT * FROM p WHERE name = $1 AND age > $2"},
		{"DO $$ BEGIN RAISE 'Smith'; END $$", "DO $1"},
		{"not SQL about Smith", unreadable},
		{"SELECT 'Smith' -- Smith " + strings.Repeat("x", maxReadable), unreadable},
		{"", ""},
	}
	for _, c := range cases {
		r := NewRecord(time.Unix(0, 0), c.statement)
		r.redact()
		if r.SQL != c.want {
			t.Errorf("%.40s: %q, want %q", c.statement, r.SQL, c.want)
		}
	}
}

func TestRecordsAreLinkedByTheirHashes(t *testing.T) {
	previous := ""
	var lines [][]byte
	for range 3 {
		r := NewRecord(time.Unix(0, 0), "SELECT 1")
		r.redact()
		line, err := r.seal(previous)
		if err != nil {
			t.Fatal(err)
		}
		previous = r.Hash
		lines = append(lines, line)
	}
	previous = ""
	for i, line := range lines {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.PreviousHash != previous {
			t.Errorf("record %d is not linked to the one before", i)
		}
		previous = r.Hash
		bare := strings.Replace(string(line), r.Hash, "", 1)
		if sum := sha256.Sum256([]byte(bare)); hex.EncodeToString(sum[:]) != r.Hash {
			t.Errorf("record %d: the hash is not that of the record", i)
		}
	}
}
