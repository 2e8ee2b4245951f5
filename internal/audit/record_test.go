package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestLiteralsAreRemoved(t *testing.T) {
	cases := []struct{ statement, want string }{
		{
			"SELECT * FROM p WHERE name = 'Smith' AND age > 42",
			"SELECT * FROM p WHERE name = $1 AND age > $2",
		},
		{"DO $$ BEGIN RAISE 'Smith'; END $$", "DO $1"},
		{"not SQL about Smith", unreadable},
		{"SELECT 'Smith' -- Smith " + strings.Repeat("x", maxReadable), unreadable},
		{"", ""},
	}
	for _, c := range cases {
		r := NewRecord(time.Unix(0, 0), c.statement)
		r.redact(SQLRedacted, &texts{})
		if r.SQL != c.want {
			t.Errorf("%.40s: %q, want %q", c.statement, r.SQL, c.want)
		}
	}
}

func TestTheConfigurationSaysWhatIsKeptOfAStatement(t *testing.T) {
	const statement = "SELECT * FROM p WHERE name = 'Smith'"
	for mode, want := range map[SQL]string{
		SQLRedacted: "SELECT * FROM p WHERE name = $1", SQLFull: statement, SQLNone: "",
	} {
		r := NewRecord(time.Unix(0, 0), statement)
		r.redact(mode, &texts{})
		if r.SQL != want || r.Fingerprint == "" || r.statement != "" {
			t.Errorf("%s keeps %q, fingerprint %q, text %q", mode, r.SQL, r.Fingerprint, r.statement)
		}
	}
}

func TestRecordsAreLinkedByTheirHashes(t *testing.T) {
	chain := newChain()
	previous := ""
	for i := range 3 {
		line, err := chain.seal(NewRecord(time.Unix(0, 0), "SELECT 1"))
		if err != nil {
			t.Fatal(err)
		}
		l, err := unseal(line)
		if err != nil || l.PreviousHash != previous || l.Sequence != int64(i+1) {
			t.Errorf("record %d: %+v, %v", i, l, err)
		}
		previous = l.Hash
		for at := range line {
			altered := bytes.Clone(line)
			altered[at] ^= 1
			if _, err := unseal(altered); err == nil {
				t.Fatalf("byte %d changed and nobody noticed: %s", at, altered)
			}
		}
	}
}

// TestALineWithMeasuresIsRead reads a line as versions wrote it that could show
// columns by means of blocks.
func TestALineWithMeasuresIsRead(t *testing.T) {
	chain := newChain()
	line, err := chain.seal(&struct {
		*Record
		Measures []string `json:"measures"`
	}{NewRecord(time.Unix(0, 0), "SELECT 1"), []string{"public.payroll.pay"}})
	if err != nil || !bytes.Contains(line, []byte(`"measures":["public.payroll.pay"]`)) {
		t.Fatalf("%s, %v", line, err)
	}
	if _, err := unseal(line); err != nil {
		t.Error(err)
	}
	var r Record
	if err := json.Unmarshal(line, &r); err != nil || r.ID == "" {
		t.Errorf("%+v, %v", r, err)
	}
}
