package proxy

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/proxy/internal/protocol"
)

// policies is a catalog whose snapshot can be replaced.
type policies struct {
	Catalog
	snapshot *catalog.Snapshot
}

func (p *policies) Snapshot() (*catalog.Snapshot, error) { return p.snapshot, nil }

func TestATextThatPassedIsLookedAtAgainWhenTheCatalogHasChanged(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	none := catalog.NewSnapshot(1, nil, nil)
	some := catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: "patients"}}, nil)
	present := &policies{snapshot: none}
	s.proxy.catalog, s.principal.Reader = present, true
	s.state = protocol.Pipeline // what would have to be planned is refused
	parse := framed('P', []byte("\x00SELECT * FROM patients\x00\x00\x00"))
	for i, step := range []struct {
		snapshot *catalog.Snapshot
		planned  bool
	}{{none, false}, {none, false}, {some, true}, {some, true}, {none, false}, {some, true}} {
		present.snapshot, s.state = step.snapshot, protocol.Pipeline
		if err := s.parse(t.Context(), parse); err != nil ||
			(s.state == protocol.Refused) != step.planned {
			t.Errorf("step %d: planned %v, %v, want %v", i, s.state, err, step.planned)
		}
	}
}

func TestTextsThatComeAgainHaveOneLook(t *testing.T) {
	var k looks
	first := k.at([]byte("SELECT 1"))
	if k.at([]byte("SELECT 2")) == first || k.at([]byte("SELECT 1")) != first {
		t.Error("texts and looks are mixed up")
	}
	for i := range k.kept {
		k.at([]byte("SELECT " + strings.Repeat("x", i+1)))
	}
	again := k.at([]byte("SELECT 1"))
	if again == first || again.text != first.text {
		t.Error("a text that was forgotten has not been looked at again")
	}
	long := []byte(strings.Repeat("x", longestLook+1))
	if kept := k.at(long); k.at(long) == kept {
		t.Error("a long text is kept")
	}
}

func TestALookTellsWhatTheTextTells(t *testing.T) {
	for _, text := range []string{
		"SELECT 1", "select f(1)", "SET search_path = x", "DISCARD ALL", "deallocate all",
		"EXPLAIN (TAILOR) SELECT 1", "COPY t FROM STDIN", "",
		"SECURITY LABEL FOR tailor ON COLUMN t.c IS 'insensitive'",
		"SECURITY LABEL FOR tailor ON TABLE t IS 'x'", "SECURITY",
	} {
		l := &statementInfo{text: text}
		for range 2 {
			for name, pair := range map[string][2]bool{
				"alike": {l.alike(), alike(text)}, "plain": {l.plain(), plain(text)},
				"settles":  {l.settles(), settlingKeywords.Within(text)},
				"discards": {l.discards(), discards(text)}, "explains": {l.explains(), explainsTailor(text)},
				"labels": {l.labels(), labels(text)},
			} {
				if pair[0] != pair[1] {
					t.Errorf("%q: %s %t, want %t", text, name, pair[0], pair[1])
				}
			}
		}
	}
}
