package published_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// publish publishes made-up data in one of the ways.
func publish(
	t testing.TB, records int, refine disassociate.Refinement,
) (*disassociate.Dataset, *disassociate.Result) {
	t.Helper()
	d, err := setdata.Synthetic(records, 80, 5, 9)
	if err != nil {
		t.Fatal(err)
	}
	cfg := disassociate.Default(4, 2)
	cfg.Refine = refine
	res, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(3, 4)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return d, res
}

var refinements = []disassociate.Refinement{
	disassociate.RefineNone, disassociate.RefineJoint, disassociate.RefineScoped,
}

// count is the number of records that hold all of a query.
func count[R ~[]published.Item](records []R, query []published.Item) int {
	n := 0
	for _, r := range records {
		if !slices.ContainsFunc(query, func(it published.Item) bool { return !slices.Contains(r, it) }) {
			n++
		}
	}
	return n
}

func originals(d *disassociate.Dataset) [][]published.Item {
	var records [][]published.Item
	for r := range d.Len() {
		records = append(records, d.Items(r))
	}
	return records
}

// queries draws sets of one to three codes, half of them from records.
func queries(d *disassociate.Dataset, n int) [][]published.Item {
	rng := rand.New(rand.NewPCG(5, 6))
	var out [][]published.Item
	for i := range n {
		var q []published.Item
		for range 1 + rng.IntN(3) {
			it := published.Item(rng.IntN(len(d.Codes())))
			if i%2 == 0 {
				r := d.Items(i % d.Len())
				it = r[rng.IntN(len(r))]
			}
			q = append(q, it)
		}
		slices.Sort(q)
		out = append(out, slices.Compact(q))
	}
	return out
}

func TestBoundsHoldForTheOriginalData(t *testing.T) {
	for _, refine := range refinements {
		d, res := publish(t, 1500, refine)
		x := published.NewIndex(res.Form)
		exact := 0
		for _, q := range queries(d, 600) {
			e, n := x.CountItems(q), count(originals(d), q)
			if n < e.Lower || n > e.Upper {
				t.Errorf("%s %v: %d is not within [%d, %d]", refine, q, n, e.Lower, e.Upper)
			}
			if e.Expected < float64(e.Lower)-1e-9 || e.Expected > float64(e.Upper)+1e-9 {
				t.Errorf("%s %v: estimate %g is not within [%d, %d]", refine, q, e.Expected, e.Lower, e.Upper)
			}
			if e.Lower == e.Upper {
				exact++
			}
		}
		if exact == 0 {
			t.Errorf("%s: no query has an exact answer", refine)
		}
	}
}

// TestReconstructionsAverageToTheEstimate checks the closed form by its
// definition. Records that would be empty are filled in reconstructions only,
// so codes of item chunks may differ a little.
func TestReconstructionsAverageToTheEstimate(t *testing.T) {
	for _, refine := range refinements {
		d, res := publish(t, 400, refine)
		x := published.NewIndex(res.Form)
		rng := rand.New(rand.NewPCG(1, 1))
		const draws = 300
		qs := queries(d, 40)
		sum := make([]float64, len(qs))
		for range draws {
			records := res.Form.Reconstruct(rng)
			for i, q := range qs {
				sum[i] += float64(count(records, q))
			}
		}
		for i, q := range qs {
			want := x.CountItems(q).Expected
			if got := sum[i] / draws; math.Abs(got-want) > 0.35+0.05*want {
				t.Errorf("%s %v: mean of reconstructions %g, closed form %g", refine, q, got, want)
			}
		}
	}
}

// TestAReconstructionIsAReadingOfTheForm: dealt out and collected again, each
// chunk has its sub-records, and no record is empty.
func TestAReconstructionIsAReadingOfTheForm(t *testing.T) {
	for _, refine := range refinements {
		_, res := publish(t, 1000, refine)
		f := res.Form
		records := f.Reconstruct(rand.New(rand.NewPCG(8, 8)))
		if len(records) != f.Records() {
			t.Fatalf("%s: %d records, want %d", refine, len(records), f.Records())
		}
		for i, r := range records {
			if len(r) == 0 {
				t.Errorf("%s: record %d is empty", refine, i)
			}
			if !slices.IsSorted(r) || len(slices.Compact(slices.Clone(r))) != len(r) {
				t.Errorf("%s: record %d is not an ascending set: %v", refine, i, r)
			}
		}
		at := 0
		for p := range f.Clusters {
			own := records[at : at+f.Clusters[p].Size]
			at += f.Clusters[p].Size
			for i := range f.Clusters[p].Record {
				c := &f.Clusters[p].Record[i]
				for j := range c.Sub {
					if got := exactly(own, c.Codes, c.Sub[j].Items); got != c.Sub[j].Count {
						t.Fatalf("%s: cluster %d: %d copies of a sub-record, want %d", refine, p, got, c.Sub[j].Count)
					}
				}
			}
			for _, it := range f.Clusters[p].Items {
				if count(own, []published.Item{it}) == 0 {
					t.Errorf("%s: cluster %d misses a code of its item chunk", refine, p)
				}
			}
		}
		again := f.Reconstruct(rand.New(rand.NewPCG(8, 8)))
		if !reflect.DeepEqual(records, again) {
			t.Errorf("%s: the same seed gives another data set", refine)
		}
	}
}

// exactly counts records whose projection on codes is items.
func exactly(records []published.Record, codes, items []published.Item) int {
	n := 0
	for _, r := range records {
		var projection []published.Item
		for _, it := range r {
			if slices.Contains(codes, it) {
				projection = append(projection, it)
			}
		}
		if slices.Equal(projection, items) {
			n++
		}
	}
	return n
}

func TestAFormSurvivesWritingAndReading(t *testing.T) {
	for _, refine := range refinements {
		_, res := publish(t, 300, refine)
		var file bytes.Buffer
		if err := res.Form.Encode(&file); err != nil {
			t.Fatal(err)
		}
		text := file.String()
		back, err := published.Decode(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		var second bytes.Buffer
		if err := back.Encode(&second); err != nil {
			t.Fatal(err)
		}
		if text != second.String() {
			t.Errorf("%s: written and read, the form is another", refine)
		}
	}
}

func TestARepeatedCodeCannotBeConfusedWithAnother(t *testing.T) {
	var b disassociate.Builder
	for range 4 {
		if err := b.Add("c", "c", "c#2"); err != nil {
			t.Fatal(err)
		}
	}
	res, err := disassociate.Disassociate(t.Context(), b.Dataset(), disassociate.Default(2, 2),
		rand.New(rand.NewPCG(1, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := res.Form.Encode(&file); err != nil {
		t.Fatal(err)
	}
	back, err := published.Decode(&file)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Codes, res.Form.Codes) {
		t.Errorf("codes %v, want %v", back.Codes, res.Form.Codes)
	}
}

// FuzzDecode: whatever the input, reading ends in an error or in a form that
// can be queried and reconstructed.
func FuzzDecode(f *testing.F) {
	f.Add(`{"version":1,"k":2,"m":2,"diversity":1,"clusters":[{"size":2,"record_chunks":[` +
		`{"codes":["a"],"subrecords":[{"codes":["a"],"count":2}],"empty":0}],` +
		`"item_chunk":["b",{"code":"b","nth":2}]}],"shared_chunks":[]}`)
	f.Add(`{"version":1,"k":2,"m":2,"diversity":1,"clusters":[{"size":2,"item_chunk":["b"]}],` +
		`"shared_chunks":[{"clusters":[0],"codes":["c"],"subrecords":[],"empty":2}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		form, err := published.Decode(strings.NewReader(text))
		if err != nil || form.Records() > 1000 {
			return
		}
		x := published.NewIndex(form)
		for it := range form.Codes {
			x.CountItems([]published.Item{published.Item(it)})
		}
		form.Covered()
		form.Reconstruct(rand.New(rand.NewPCG(1, 1)))
	})
}
