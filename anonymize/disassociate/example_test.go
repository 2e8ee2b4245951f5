package disassociate_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// paperExample is the worked example of [Loukides2014] §5.
type paperExample struct {
	Dataset     map[string][]string `json:"dataset"`
	Constraints map[string][]string `json:"utility_constraints"`
	Horpart     struct{ D1, D2 []string }
	Vertical    map[string]struct {
		RecordChunks []paperChunk `json:"record_chunks"`
		ItemChunk    []string     `json:"item_chunk"`
	} `json:"vertical_partitioning"`
	Refining struct {
		SharedChunks []paperChunk        `json:"shared_chunks"`
		ItemChunks   map[string][]string `json:"item_chunks_after"`
	}
	ExpectedCounts struct {
		Queries []struct {
			Codes          []string
			True, Expected float64
		}
	} `json:"expected_counts"`
	Matching struct {
		Constraints map[string]struct {
			True, Disassociated float64
			MRE                 float64 `json:"mre_percent"`
		}
	}
}

type paperChunk struct {
	Codes      []string
	Subrecords [][]string
}

func readExample(t testing.TB) (*paperExample, *disassociate.Dataset, disassociate.Config) {
	t.Helper()
	raw, err := os.ReadFile(refdata.Path(t, "setvalued/paper_example.json"))
	if err != nil {
		t.Fatal(err)
	}
	var ex paperExample
	if err := json.Unmarshal(raw, &ex); err != nil {
		t.Fatal(err)
	}
	var b disassociate.Builder
	for _, name := range ex.records() {
		if err := b.Add(ex.Dataset[name]...); err != nil {
			t.Fatal(err)
		}
	}
	cfg := disassociate.Default(3, 2)
	for _, name := range []string{"u1", "u2", "u3", "u4", "u5"} {
		cfg.Constraints = append(cfg.Constraints,
			disassociate.Constraint{Name: name, Codes: ex.Constraints[name]})
	}
	return &ex, b.Dataset(), cfg
}

// records lists the names of the records in order, r1 to r10.
func (ex *paperExample) records() []string {
	names := make([]string, 0, len(ex.Dataset))
	for name := range ex.Dataset {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		if len(names[i]) != len(names[j]) {
			return len(names[i]) < len(names[j])
		}
		return names[i] < names[j]
	})
	return names
}

func run(t testing.TB, d *disassociate.Dataset, cfg disassociate.Config) *disassociate.Result {
	t.Helper()
	res, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestWorkedExampleIsClusteredAsInThePaper(t *testing.T) {
	ex, d, cfg := readExample(t)
	res := run(t, d, cfg)
	for i, name := range ex.records() {
		want := res.ClusterOf[0] // r1 is in P1
		if slices.Contains(ex.Horpart.D2, name) {
			want = 1 - want
		}
		if res.ClusterOf[i] != want {
			t.Errorf("%s is in cluster %d, want %d", name, res.ClusterOf[i], want)
		}
	}
	if len(res.Form.Clusters) != 2 {
		t.Errorf("%d clusters, want 2", len(res.Form.Clusters))
	}
}

func TestWorkedExampleWithoutRefinementIsCutAsInThePaper(t *testing.T) {
	ex, d, cfg := readExample(t)
	cfg.Refine = disassociate.RefineNone
	res := run(t, d, cfg)
	p1 := res.ClusterOf[0]
	for name, at := range map[string]int32{"P1": p1, "P2": 1 - p1} {
		got := &res.Form.Clusters[at]
		want := ex.Vertical[name]
		wantItems(t, name+" item chunk", res.Form, got.Items, want.ItemChunk)
		if len(got.Record) != len(want.RecordChunks) {
			t.Fatalf("%s has %d record chunks, want %d", name, len(got.Record), len(want.RecordChunks))
		}
		for i := range want.RecordChunks {
			wantChunk(t, name, res.Form, &got.Record[i], want.RecordChunks[i])
		}
	}
	if len(res.Form.Shared) != 0 {
		t.Errorf("%d shared chunks without refinement", len(res.Form.Shared))
	}
}

func TestWorkedExampleIsRefinedAsInThePaper(t *testing.T) {
	ex, d, cfg := readExample(t)
	cfg.Refine = disassociate.RefineJoint
	res := run(t, d, cfg)
	if len(res.Form.Shared) != 1 {
		t.Fatalf("%d shared chunks, want 1", len(res.Form.Shared))
	}
	wantChunk(t, "shared chunk", res.Form, &res.Form.Shared[0].Chunk, ex.Refining.SharedChunks[0])
	if !slices.Equal(res.Form.Shared[0].Scope, []int32{0, 1}) {
		t.Errorf("scope %v, want both clusters", res.Form.Shared[0].Scope)
	}
	p1 := res.ClusterOf[0]
	wantItems(t, "P1 item chunk", res.Form, res.Form.Clusters[p1].Items, ex.Refining.ItemChunks["P1"])
	wantItems(t, "P2 item chunk", res.Form, res.Form.Clusters[1-p1].Items,
		ex.Refining.ItemChunks["P2"])
}

func TestWorkedExampleRefinedByScopeSharesEachCodeAlone(t *testing.T) {
	ex, d, cfg := readExample(t)
	res := run(t, d, cfg)
	if len(res.Form.Shared) != 2 {
		t.Fatalf("%d shared chunks, want one for 834.0 and one for 944.01", len(res.Form.Shared))
	}
	for i, code := range []string{"834.0", "944.01"} {
		s := &res.Form.Shared[i]
		wantItems(t, "shared chunk", res.Form, s.Codes, []string{code})
		if s.NonEmpty() != 4 || len(s.Scope) != 2 {
			t.Errorf("%s: %d sub-records over %d clusters, want 4 over 2", code, s.NonEmpty(), len(s.Scope))
		}
	}
	p1 := res.ClusterOf[0]
	wantItems(t, "P1 item chunk", res.Form, res.Form.Clusters[p1].Items, ex.Refining.ItemChunks["P1"])
}

func names(f *published.Form, items []published.Item) []string {
	out := []string{}
	for _, it := range items {
		out = append(out, f.Codes[it].Text)
	}
	return out
}

func wantItems(t *testing.T, what string, f *published.Form, got []published.Item, want []string) {
	t.Helper()
	if !slices.Equal(names(f, got), want) {
		t.Errorf("%s: %v, want %v", what, names(f, got), want)
	}
}

// wantChunk compares codes and the multiset of sub-records.
func wantChunk(
	t *testing.T, what string, f *published.Form, got *published.Chunk, want paperChunk,
) {
	t.Helper()
	wantItems(t, what+" codes", f, got.Codes, want.Codes)
	var expanded [][]string
	for range got.Empty {
		expanded = append(expanded, nil)
	}
	for i := range got.Sub {
		for range got.Sub[i].Count {
			expanded = append(expanded, names(f, got.Sub[i].Items))
		}
	}
	slices.SortFunc(want.Subrecords, slices.Compare)
	if !slices.EqualFunc(expanded, want.Subrecords, slices.Equal) {
		t.Errorf("%s sub-records: %v, want %v", what, expanded, want.Subrecords)
	}
}
