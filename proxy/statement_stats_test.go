package proxy

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

func TestRunsBeyondTheFirstAreCountedByShape(t *testing.T) {
	tl := statementStats{seed: maphash.MakeSeed()}
	now := time.Now()
	texts := []string{"SELECT  1", "SELECT 22", "SELECT\n3.5"}
	var counted *fingerprint
	for i := range recordsOfAShape + 7 {
		s := tl.counts(&statementInfo{text: texts[i%3]}, now)
		if (s != nil) != (i >= recordsOfAShape) {
			t.Fatalf("run %d: counted %t", i, s != nil)
		}
		if s != nil {
			counted = s
			tl.ended(s, i != recordsOfAShape, 2, time.Millisecond)
		}
	}
	if counted == nil || tl.counts(&statementInfo{text: "SELECT a1"}, now) != nil ||
		tl.counts(&statementInfo{text: "SELECT 'it''s', 1"}, now) != nil {
		t.Error("statements of another shape are counted with it")
	}
	records := tl.take(now, func(at time.Time, text string) *audit.Record {
		return audit.NewRecord(at, text)
	})
	if len(records) != 1 || records[0].record.Runs != 6 || records[0].outcome.Rows != 12 ||
		records[0].outcome.Duration != 6*time.Millisecond {
		t.Errorf("%d records, the first %+v", len(records), records[0])
	}
	if records := tl.take(now, nil); len(records) != 0 {
		t.Error("counted twice")
	}
}

func TestShapesDifferInAllButLiterals(t *testing.T) {
	tl := statementStats{seed: maphash.MakeSeed()}
	cases := []struct {
		a, b string
		same bool
	}{
		{"SELECT * FROM t WHERE n = 1", "SELECT * FROM t WHERE n =  2", true},
		{"SELECT 'a'", "SELECT 'bcd'", true},
		{"SELECT t1", "SELECT t2", false},
		{`SELECT "1"`, `SELECT "2"`, false},
		{`SELECT E'\'', x`, `SELECT E'\'', y`, false},
		{"SELECT $$'$$, a, $$'$$", "SELECT $$'$$, b, $$'$$", false},
		{"SELECT 1 -- '\n, a -- '", "SELECT 1 -- '\n, b -- '", false},
		{"SELECT 1 /* ' */, a /* ' */", "SELECT 1 /* ' */, b /* ' */", false},
		{"SELECT 'open", "SELECT 'other", false},
	}
	for _, c := range cases {
		if got := tl.key(c.a) == tl.key(c.b); got != c.same {
			t.Errorf("%q and %q: the same %t", c.a, c.b, got)
		}
	}
}
