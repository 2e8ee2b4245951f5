package verify_test

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// soak multiplies random trials when TAILOR_SOAK=1.
func soak(trials int) int {
	if os.Getenv("TAILOR_SOAK") == "1" {
		return 30 * trials
	}
	return trials
}

// randomData makes a few records over a few codes. mayBeEmpty says that some have none.
func randomData(
	t testing.TB, rng *rand.Rand, records, codes int, mayBeEmpty bool,
) *disassociate.Dataset {
	t.Helper()
	b := disassociate.Builder{MayBeEmpty: mayBeEmpty}
	for range records {
		var record []string
		for again := true; again; again = len(record) == 0 && !mayBeEmpty {
			record = nil
			for c := range codes {
				if (!mayBeEmpty || rng.IntN(3) > 0) && (rng.IntN(codes) < 2 || rng.IntN(codes) > 2*c) {
					record = append(record, string(rune('a'+c)))
				}
			}
		}
		if err := b.Add(record...); err != nil {
			t.Fatal(err)
		}
	}
	return b.Dataset()
}

// keepsGuarantee checks Guarantee 1 for every record and every set of at most
// m of its codes by enumeration.
func keepsGuarantee(f *published.Form, d *disassociate.Dataset, clusterOf []int32) bool {
	r := newReadings(f)
	for i := range d.Len() {
		if !everySet(d.Items(i), nil, f.Promise.M, func(set []published.Item) bool {
			return r.allow(int(clusterOf[i]), set)
		}) {
			return false
		}
	}
	return true
}

func everySet(items, set []published.Item, left int, holds func([]published.Item) bool) bool {
	if len(set) > 0 && !holds(set) {
		return false
	}
	if left == 0 {
		return true
	}
	for i, it := range items {
		if !everySet(items[i+1:], append(slices.Clip(set), it), left-1, holds) {
			return false
		}
	}
	return true
}

func TestRandomDataMeetsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for trial := range soak(300) {
		mayBeEmpty := rng.IntN(2) == 0
		d := randomData(t, rng, 4+rng.IntN(6), 3+rng.IntN(4), mayBeEmpty)
		k, m := 2, 1+rng.IntN(3)
		if rng.IntN(4) == 0 && d.Len() >= 6 {
			k = 3
		}
		for _, refine := range []disassociate.Refinement{
			disassociate.RefineNone, disassociate.RefineJoint, disassociate.RefineScoped,
		} {
			cfg := disassociate.Default(k, m)
			cfg.Refine, cfg.MayBeEmpty = refine, mayBeEmpty
			if d.Len() >= 2*k && rng.IntN(2) == 0 {
				cfg.Groups = twoGroups(rng, d.Len(), k)
			}
			cfg.Constraints = []disassociate.Constraint{{Name: "u", Codes: []string{"b", "d"}}}
			res, err := disassociate.Disassociate(t.Context(), d, cfg, rng, nil)
			if err != nil {
				t.Fatalf("trial %d, %s: %v", trial, refine, err)
			}
			for _, group := range cfg.Groups {
				for cluster := range int32(len(res.Form.Clusters)) {
					inside := func(r int32) bool { return slices.Contains(group, r) }
					members := membersOf(res.ClusterOf, cluster)
					if slices.ContainsFunc(members, inside) && !allOf(members, inside) {
						t.Fatalf("trial %d, %s: a cluster has records of two groups", trial, refine)
					}
				}
			}
			if !keepsGuarantee(res.Form, d, res.ClusterOf) {
				t.Fatalf("trial %d, k=%d m=%d %s: guarantee broken: %+v", trial, k, m, refine, res.Form)
			}
		}
	}
}

// twoGroups parts records into two groups of k or more.
func twoGroups(rng *rand.Rand, records, k int) [][]int32 {
	var all []int32
	for _, r := range rng.Perm(records) {
		all = append(all, int32(r))
	}
	cut := k + rng.IntN(records-2*k+1)
	return [][]int32{all[:cut], all[cut:]}
}

func membersOf(clusterOf []int32, cluster int32) (out []int32) {
	for r, of := range clusterOf {
		if of == cluster {
			out = append(out, int32(r))
		}
	}
	return out
}

func allOf(list []int32, is func(int32) bool) bool {
	return !slices.ContainsFunc(list, func(r int32) bool { return !is(r) })
}

// TestWhatTheVerifierAcceptsMeetsTheDefinition makes forms at random, most of
// them bad, and asserts that the verifier accepts none that the definition
// does not.
func TestWhatTheVerifierAcceptsMeetsTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 11))
	accepted, rightlyRefused := 0, 0
	for range soak(4000) {
		d := randomData(t, rng, 4+rng.IntN(4), 3+rng.IntN(2), false)
		f, clusterOf := randomForm(d, rng)
		report, err := verify.Check(t.Context(), f, d, clusterOf)
		if err != nil {
			t.Fatal(err)
		}
		holds := keepsGuarantee(f, d, clusterOf)
		switch {
		case report.Err() == nil && !holds:
			t.Fatalf("accepted, but the guarantee is broken: %+v", f)
		case report.Err() == nil:
			accepted++
		case !holds:
			rightlyRefused++
		}
	}
	if accepted < 100 || rightlyRefused < 100 {
		t.Errorf("%d forms accepted, %d rightly refused: the test says little", accepted, rightlyRefused)
	}
}

// randomForm cuts data at random: two clusters, each code of each in one of
// two record chunks, the item chunk, or a chunk shared by both clusters.
func randomForm(d *disassociate.Dataset, rng *rand.Rand) (*published.Form, []int32) {
	f := &published.Form{
		Promise:  published.Promise{K: 2, M: 1 + rng.IntN(2), Diversity: 1},
		Codes:    d.Codes(),
		Clusters: make([]published.Cluster, 2),
	}
	clusterOf := make([]int32, d.Len())
	for i := range clusterOf {
		clusterOf[i] = int32(2 * i / d.Len())
		f.Clusters[clusterOf[i]].Size++
	}
	var together []published.Item
	for it := range d.Codes() {
		if rng.IntN(3) == 0 {
			together = append(together, published.Item(it))
		}
	}
	for p := range f.Clusters {
		chunks := make([][]published.Item, 2)
		for it := range d.Codes() {
			item := published.Item(it)
			if slices.Contains(together, item) || support(d, clusterOf, []int32{int32(p)}, item) == 0 {
				continue
			}
			if to := rng.IntN(5); to < 4 {
				chunks[to%2] = append(chunks[to%2], item)
			} else {
				f.Clusters[p].Items = append(f.Clusters[p].Items, item)
			}
		}
		for _, codes := range chunks {
			if len(codes) > 0 {
				f.Clusters[p].Record = append(f.Clusters[p].Record,
					chunkOf(d, clusterOf, []int32{int32(p)}, codes))
			}
		}
	}
	for part := range slices.Chunk(together, 2) {
		scope := []int32{0, 1}
		f.Shared = append(f.Shared, published.SharedChunk{
			Scope: scope,
			Chunk: chunkOf(d, clusterOf, scope, part),
		})
	}
	return f, clusterOf
}

func support(d *disassociate.Dataset, clusterOf, scope []int32, it published.Item) int {
	n := 0
	for r := range d.Len() {
		if slices.Contains(scope, clusterOf[r]) && slices.Contains(d.Items(r), it) {
			n++
		}
	}
	return n
}

// chunkOf projects the records of clusters on codes.
func chunkOf(
	d *disassociate.Dataset, clusterOf, scope []int32, codes []published.Item,
) published.Chunk {
	c := published.Chunk{Codes: codes}
	var rows [][]published.Item
	for r := range d.Len() {
		if !slices.Contains(scope, clusterOf[r]) {
			continue
		}
		var row []published.Item
		for _, it := range d.Items(r) {
			if slices.Contains(codes, it) {
				row = append(row, it)
			}
		}
		if len(row) == 0 {
			c.Empty++
		} else {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, slices.Compare)
	for i, row := range rows {
		if i > 0 && slices.Equal(row, rows[i-1]) {
			c.Sub[len(c.Sub)-1].Count++
		} else {
			c.Sub = append(c.Sub, published.SubRecord{Items: row, Count: 1})
		}
	}
	return c
}

// texts are records given as codes.
type texts [][]string

func (t texts) Len() int { return len(t) }

func (t texts) AppendCodes(dst []string, record int) []string { return append(dst, t[record]...) }

// codes makes the codes of a form from texts.
func codes(names ...string) []published.Code {
	var out []published.Code
	for _, n := range names {
		code := published.Code{Text: n, Nth: 1}
		if len(n) == 2 {
			nth, _ := strconv.Atoi(n[1:])
			code = published.Code{Text: n[:1], Nth: nth}
		}
		out = append(out, code)
	}
	return out
}
