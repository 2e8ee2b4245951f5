package proxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
)

// recorded reads how each statement of a log has ended, in order.
func recorded(t *testing.T, file string) (all []string) {
	t.Helper()
	lines, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		r := audit.Record{Rows: new(int64)}
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %s %d", r.SQL, r.Verdict, r.SQLState, *r.Rows))
	}
	slices.Sort(all)
	return all
}

// TestEachStatementIsRecordedAsItsOwn runs pipelines of statements that end in
// every way, over and over on expectations that have served others.
func TestEachStatementIsRecordedAsItsOwn(t *testing.T) {
	var asked bytes.Buffer
	var answered [2]bytes.Buffer // also where all is sent before
	answer := func(frames ...[]byte) {
		for i := range answered {
			answered[i].Write(slices.Concat(frames...))
		}
	}
	var want []string
	failed := framed('E', []byte("SERROR\x00VERROR\x00C22012\x00Mdivision by zero\x00\x00"))
	add := func(name string, rows int, verdict, code string) {
		asked.Write(framed('P', []byte("\x00SELECT "+name+"\x00\x00\x00")))
		asked.Write(framed('B', []byte("\x00\x00\x00\x00\x00\x00\x00\x00")))
		asked.Write(framed('E', []byte("\x00\x00\x00\x00\x00")))
		want = append(want, fmt.Sprintf("SELECT %s %s %s %d", name, verdict, code, rows))
	}
	sync := func() {
		asked.Write(framed('S', nil))
		answer(framed('Z', []byte("I")))
	}
	tag := func(rows int) []byte { return framed('C', fmt.Appendf(nil, "SELECT %d\x00", rows)) }
	ok := slices.Concat(framed('1', nil), framed('2', nil))
	for i := range 40 {
		if i > 0 {
			answered[1].Write(framed('3', nil)) // the portal of the query before is dropped
		}
		add(fmt.Sprintf("good_%d", i), i, "passed", "")
		answer(ok, tag(i))
		add(fmt.Sprintf("bad_%d", i), 0, "failed", "22012")
		switch i % 3 { // where it fails
		case 0:
			answer(failed)
		case 1:
			answer(framed('1', nil), failed)
		case 2:
			answer(ok, failed)
		}
		if i%3 < 2 {
			want = append(want, fmt.Sprintf("SELECT bad_%d failed  0", i)) // its Execute is passed over
		}
		add(fmt.Sprintf("skipped_%d", i), 0, "failed", "")
		sync()
		query := fmt.Sprintf("SELECT simple_%d", i)
		asked.Write(framed('Q', []byte(query+"\x00")))
		answer(tag(2*i), framed('Z', []byte("I")))
		want = append(want, fmt.Sprintf("%s passed  %d", query, 2*i))
	}
	for i, ahead := range []bool{false, true} {
		t.Run(fmt.Sprintf("all is sent before the first answer: %v", ahead), func(t *testing.T) {
			s, _, _ := bareSession(bytes.NewReader(asked.Bytes()), bytes.NewReader(answered[i].Bytes()))
			config := audit.DefaultConfig()
			config.File, config.Table = filepath.Join(t.TempDir(), "audit.jsonl"), false
			records, err := audit.Open(t.Context(), "", config, s.proxy.log)
			if err != nil {
				t.Fatal(err)
			}
			s.proxy.audit = records
			s.proxy.catalog, s.principal.Reader = nothingProtected{snapshot: catalog.NewSnapshot(1, nil,
				nil)}, true
			for done := false; !done; {
				frame, err := s.in.next()
				if done = err != nil; !done {
					if err := s.pass(t.Context(), bytes.Clone(frame), false); err != nil {
						t.Fatal(err)
					}
				}
				for (done || !ahead && (frame[0] == 'S' || frame[0] == 'Q')) && s.expect.head() != nil {
					answer, err := s.server.frames.next()
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.passBack(answer, false); err != nil {
						t.Fatal(err)
					}
				}
			}
			records.Close()
			if got := recorded(t, config.File); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%d records, want %d\n%q\n%q", len(got), len(want), got,
					slices.Sorted(slices.Values(want)))
			}
		})
	}
}
