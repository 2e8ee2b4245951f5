package verify_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// sound is a form for k = 2, m = 2 over two clusters: a and b in record
// chunks, c and d in the item chunks, e shared.
//
//	cluster 0: {a b e} {a b c} {a d}    cluster 1: {a e} {a c d}
func sound() (*published.Form, texts, []int32) {
	const a, b, c, d, e = 0, 1, 2, 3, 4
	sub := func(count int, items ...published.Item) published.SubRecord {
		return published.SubRecord{Items: items, Count: count}
	}
	f := &published.Form{
		Promise: published.Promise{K: 2, M: 2, Diversity: 2, Sensitive: []published.Item{d}},
		Codes:   codes("a", "b", "c", "d", "e"),
		Clusters: []published.Cluster{
			{Size: 3, Record: []published.Chunk{
				{Codes: []published.Item{a, b}, Sub: []published.SubRecord{sub(1, a), sub(2, a, b)}},
			}, Items: []published.Item{c, d}},
			{Size: 2, Record: []published.Chunk{
				{Codes: []published.Item{a}, Sub: []published.SubRecord{sub(2, a)}},
			}, Items: []published.Item{c, d}},
		},
		Shared: []published.SharedChunk{{
			Scope: []int32{0, 1},
			Chunk: published.Chunk{
				Codes: []published.Item{e}, Sub: []published.SubRecord{sub(2, e)},
				Empty: 3,
			},
		}},
	}
	records := texts{{"a", "b", "e"}, {"c", "b", "a"}, {"a", "d"}, {"e", "a"}, {"a", "c", "d"}}
	return f, records, []int32{0, 0, 0, 1, 1}
}

func TestASoundFormHasNoViolations(t *testing.T) {
	f, records, clusterOf := sound()
	report, err := verify.Check(t.Context(), f, records, clusterOf)
	if err != nil {
		t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		t.Error(err)
	}
}

func TestABrokenFormIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		breakIt func(f *published.Form, records texts)
		want    verify.Rule
	}{
		"a cluster below k records": {func(f *published.Form, _ texts) {
			f.Promise.K = 3
		}, verify.ClusterTooSmall},
		"a pair of codes in one sub-record only": {func(f *published.Form, records texts) {
			f.Clusters[0].Record[0].Sub[0].Count = 2
			f.Clusters[0].Record[0].Sub[1].Count = 1
			records[1] = []string{"a", "c"}
		}, verify.RareSet},
		"a code in one sub-record of a shared chunk": {func(f *published.Form, records texts) {
			f.Shared[0].Sub[0].Count, f.Shared[0].Empty = 1, 4
			records[3] = []string{"a"}
		}, verify.RareSharedSet},
		"a code in a record chunk and the item chunk": {func(f *published.Form, _ texts) {
			f.Clusters[0].Items = []published.Item{0, 2, 3}
		}, verify.CodeTwice},
		"a shared code that is in a record chunk as well": {func(f *published.Form, _ texts) {
			f.Clusters[1].Record = append(f.Clusters[1].Record,
				published.Chunk{Codes: []published.Item{4}, Empty: 2})
		}, verify.CodeTwice},
		"no item chunk, and too few sub-records for all records": {func(f *published.Form,
			records texts,
		) {
			// b alone: {b} {b} and a record that could only be empty.
			f.Clusters[0].Record[0] = published.Chunk{
				Codes: []published.Item{1}, Sub: []published.SubRecord{{Items: []published.Item{1}, Count: 2}},
				Empty: 1,
			}
			f.Clusters[0].Items = nil
			records[0], records[1], records[2] = []string{"b", "e"}, []string{"b"}, []string{"e"}
			f.Shared[0].Sub[0].Count, f.Shared[0].Empty = 3, 2
		}, verify.EmptyRecords},
		"no item chunk, and a pair whose k records would leave one empty": {func(f *published.Form,
			records texts,
		) {
			f.Clusters[0].Record = []published.Chunk{
				{
					Codes: []published.Item{0}, Sub: []published.SubRecord{{Items: []published.Item{0}, Count: 2}},
					Empty: 1,
				},
				{
					Codes: []published.Item{1}, Sub: []published.SubRecord{{Items: []published.Item{1}, Count: 2}},
					Empty: 1,
				},
			}
			f.Clusters[0].Items = nil
			records[0], records[1], records[2] = []string{"a", "b", "e"}, []string{"a"}, []string{"b"}
		}, verify.EmptyRecords},
		"a sensitive code with a count": {func(f *published.Form, _ texts) {
			f.Promise.Sensitive = []published.Item{3, 4}
		}, verify.SensitiveExposed},
		"a cluster below the diversity": {func(f *published.Form, _ texts) {
			f.Promise.Diversity = 3
		}, verify.ClusterTooSmall},
		"a sensitive code that too many records hold, strictly": {func(f *published.Form, records texts) {
			f.Promise.StrictDiversity = true
			records[3] = []string{"a", "d", "e"}
		}, verify.ClusterTooSmall},
		"a record that its cluster does not count": {func(f *published.Form, _ texts) {
			f.Clusters[1].Size, f.Clusters[1].Record[0].Empty, f.Shared[0].Empty = 3, 1, 4
		}, verify.WrongSize},
		"a sub-record that no record has": {func(f *published.Form, _ texts) {
			f.Clusters[0].Record[0].Sub = []published.SubRecord{{Items: []published.Item{0, 1}, Count: 3}}
		}, verify.ChunkDiffers},
		"a shared sub-record that no record has": {func(f *published.Form, _ texts) {
			f.Shared[0].Sub[0].Count, f.Shared[0].Empty = 4, 1
		}, verify.ChunkDiffers},
		"a code of a record that is nowhere": {func(f *published.Form, _ texts) {
			f.Clusters[0].Items = []published.Item{3}
		}, verify.CodeMissing},
		"a code that the form does not know": {func(_ *published.Form, records texts) {
			records[0] = append(records[0], "z")
		}, verify.CodeMissing},
		"a repeated code that the form has once": {func(_ *published.Form, records texts) {
			records[0] = append(records[0], "a")
		}, verify.CodeMissing},
		"an item chunk with a code that nobody has": {func(_ *published.Form, records texts) {
			records[1] = []string{"a", "b"}
		}, verify.CodeMissing},
	} {
		t.Run(name, func(t *testing.T) {
			f, records, clusterOf := sound()
			c.breakIt(f, records)
			report, err := verify.Check(t.Context(), f, records, clusterOf)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Violations, func(v verify.Violation) bool {
				return v.Rule == c.want
			}) {
				t.Errorf("found %v, want %q", report.Violations, c.want)
			}
			var broken *verify.Error
			if !errors.As(report.Err(), &broken) {
				t.Errorf("the report's error is %v", report.Err())
			}
		})
	}
}

func TestWhatCannotBeCheckedIsAnError(t *testing.T) {
	f, records, clusterOf := sound()
	if _, err := verify.Check(t.Context(), f, records, clusterOf[1:]); err == nil {
		t.Error("a record without a cluster was accepted")
	}
	if _, err := verify.Check(t.Context(), f, records, []int32{0, 0, 0, 1, 2}); err == nil {
		t.Error("a record of a cluster that does not exist was accepted")
	}
	f.Clusters[0].Record[0].Empty = 7
	var malformed *published.MalformedError
	if _, err := verify.Check(t.Context(), f, records, clusterOf); !errors.As(err, &malformed) {
		t.Errorf("a malformed form gives %v", err)
	}
	f, _, _ = sound()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := verify.Check(ctx, f, records, clusterOf); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled check gives %v", err)
	}
}
