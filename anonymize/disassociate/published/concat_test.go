package published_test

import (
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// TestConcatKeepsBothForms puts cohorts together whose codes are others, in part: each
// cluster says what it did, and counts add up.
func TestConcatKeepsBothForms(t *testing.T) {
	promise := published.Promise{K: 2, M: 1, Diversity: 1}
	first := &published.Form{
		Promise: promise,
		Codes:   []published.Code{{Text: "b", Nth: 1}, {Text: "d", Nth: 1}},
		Clusters: []published.Cluster{
			{Size: 2, Record: []published.Chunk{{
				Codes: []published.Item{0},
				Sub:   []published.SubRecord{{Items: []published.Item{0}, Count: 2}},
			}}},
			{Size: 3, Record: []published.Chunk{{
				Codes: []published.Item{0},
				Sub:   []published.SubRecord{{Items: []published.Item{0}, Count: 3}},
			}}},
		},
		Shared: []published.SharedChunk{{Scope: []int32{0, 1}, Chunk: published.Chunk{
			Codes: []published.Item{1}, Sub: []published.SubRecord{{
				Items: []published.Item{1},
				Count: 3,
			}}, Empty: 2,
		}}},
	}
	second := &published.Form{
		Promise: published.Promise{K: 2, M: 1, Diversity: 2, Sensitive: []published.Item{0}},
		Codes:   []published.Code{{Text: "a", Nth: 1}, {Text: "d", Nth: 1}},
		Clusters: []published.Cluster{
			{Size: 2, Record: []published.Chunk{{
				Codes: []published.Item{1},
				Sub: []published.SubRecord{{
					Items: []published.Item{1},
					Count: 2,
				}},
			}}, Items: []published.Item{0}},
		},
	}
	both := published.Concat(first, second)
	if err := both.Check(); err != nil {
		t.Fatal(err)
	}
	if both.Records() != 7 || len(both.Clusters) != 3 || len(both.Codes) != 3 {
		t.Errorf("%d records, %d clusters, %d codes; want 7, 3, 3", both.Records(),
			len(both.Clusters), len(both.Codes))
	}
	if s := both.Promise.Sensitive; len(s) != 1 || both.Codes[s[0]].Text != "a" {
		t.Errorf("sensitive codes are %v", s)
	}
	index := published.NewIndex(both)
	for code, want := range map[string]int{"b": 5, "d": 5} {
		if got := index.Count([]string{code}); got.Lower != want || got.Upper != want {
			t.Errorf("%s: %d to %d records, want %d", code, got.Lower, got.Upper, want)
		}
	}
	if got := index.Count([]string{"a"}); got.Lower != 1 || got.Upper != 2 {
		t.Errorf("a: %d to %d records, want 1 to 2", got.Lower, got.Upper)
	}
}
