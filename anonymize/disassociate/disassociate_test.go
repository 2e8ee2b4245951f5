package disassociate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/refdata"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// TestReferenceDataIsPublishedWithoutViolations relies on Disassociate running
// the verifier; the verifier has its own tests. The first records of each file
// by default, all of them with TAILOR_SOAK=1.
func TestReferenceDataIsPublishedWithoutViolations(t *testing.T) {
	for _, file := range []string{"nhds2010-631", "bms-webview-1"} {
		d, err := setdata.Load(refdata.Path(t, "setvalued/"+file+".txt.gz"))
		if err != nil {
			t.Fatal(err)
		}
		if os.Getenv("TAILOR_SOAK") != "1" {
			if d, err = setdata.Head(d, 4000); err != nil {
				t.Fatal(err)
			}
		}
		for _, k := range []int{2, 5, 10, 25} {
			for _, m := range []int{2, 3, 5} {
				for _, refine := range []disassociate.Refinement{
					disassociate.RefineNone, disassociate.RefineJoint, disassociate.RefineScoped,
				} {
					cfg := disassociate.Default(k, m)
					cfg.Refine = refine
					res, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)), nil)
					if err != nil {
						t.Errorf("%s k=%d m=%d %s: %v", file, k, m, refine, err)
						continue
					}
					if n := res.Form.Records(); n != d.Len() {
						t.Errorf("%s k=%d m=%d %s: %d records published of %d", file, k, m, refine, n, d.Len())
					}
				}
			}
		}
	}
}

func synthetic(t testing.TB, records, codes int) *disassociate.Dataset {
	t.Helper()
	d, err := setdata.Synthetic(records, codes, 5, 3)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestTheResultDependsOnDataConfigurationAndSeedOnly(t *testing.T) {
	d := synthetic(t, 3000, 200)
	for _, refine := range []disassociate.Refinement{
		disassociate.RefineJoint,
		disassociate.RefineScoped,
	} {
		cfg := disassociate.Default(4, 2)
		cfg.Refine = refine
		many := run(t, d, cfg)
		before := runtime.GOMAXPROCS(1)
		one := run(t, d, cfg)
		runtime.GOMAXPROCS(before)
		if !reflect.DeepEqual(many, one) {
			t.Errorf("%s: the form depends on the number of processors", refine)
		}
	}
}

func TestClusterOrderIsDrawnAnew(t *testing.T) {
	d := synthetic(t, 500, 50)
	cfg := disassociate.Default(3, 2)
	first, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	second, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(2, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(first.ClusterOf, second.ClusterOf) {
		t.Error("two seeds give the same order of clusters")
	}
}

func TestSensitiveCodesStayInItemChunksOfLargeClusters(t *testing.T) {
	d := synthetic(t, 2000, 60)
	cfg := disassociate.Default(3, 2)
	cfg.Sensitive = []string{"C00000", "C00003"} // C00000 is the most frequent code
	cfg.Diversity = 8
	cfg.MaxCluster = 16
	form := run(t, d, cfg).Form
	if len(form.Promise.Sensitive) != 2 {
		t.Fatalf("%d sensitive codes in the promise, want 2", len(form.Promise.Sensitive))
	}
	for p := range form.Clusters {
		if form.Clusters[p].Size < cfg.Diversity {
			t.Errorf("cluster %d has %d records, want at least %d", p, form.Clusters[p].Size, cfg.Diversity)
		}
		for i := range form.Clusters[p].Record {
			for _, it := range form.Promise.Sensitive {
				if slices.Contains(form.Clusters[p].Record[i].Codes, it) {
					t.Errorf("cluster %d has a sensitive code in a record chunk", p)
				}
			}
		}
	}
	for i := range form.Shared {
		for _, it := range form.Promise.Sensitive {
			if slices.Contains(form.Shared[i].Codes, it) {
				t.Errorf("shared chunk %d has a sensitive code", i)
			}
		}
	}
}

func TestStrictDiversityBoundsTheTrueShareOfASensitiveCode(t *testing.T) {
	d := synthetic(t, 2000, 60)
	cfg := disassociate.Default(3, 2)
	cfg.Sensitive = []string{"C00009"}
	cfg.Diversity, cfg.StrictDiversity, cfg.MaxCluster = 4, true, 8
	res := run(t, d, cfg)
	held := make([]int, len(res.Form.Clusters))
	for r := range d.Len() {
		if slices.Contains(d.AppendCodes(nil, r), "C00009") {
			held[res.ClusterOf[r]]++
		}
	}
	for p, n := range held {
		if size := res.Form.Clusters[p].Size; size < cfg.Diversity*n {
			t.Errorf("cluster %d: %d of %d records hold the sensitive code", p, n, size)
		}
	}
}

func TestRepeatedCodesAreKeptAsOccurrences(t *testing.T) {
	var b disassociate.Builder
	for range 6 {
		if err := b.Add("x", "y", "x", "x"); err != nil {
			t.Fatal(err)
		}
	}
	d := b.Dataset()
	if got := d.AppendCodes(nil, 0); !slices.Equal(got, []string{"x", "x", "x", "y"}) {
		t.Errorf("the record reads %v", got)
	}
	cfg := disassociate.Default(2, 2)
	cfg.Constraints = []disassociate.Constraint{{Name: "u", Codes: []string{"x"}}}
	x := published.NewIndex(run(t, d, cfg).Form)
	for _, codes := range [][]string{{"x"}, {"x", "x"}, {"x", "x", "x", "y"}} {
		if e := x.Count(codes); e.Lower != 6 || e.Upper != 6 {
			t.Errorf("%v: %+v, want exactly 6", codes, e)
		}
	}
	if e := x.Count([]string{"y", "y"}); e.Upper != 0 {
		t.Errorf("y twice: %+v, want none", e)
	}
}

func TestIdenticalRecordsAreCutIntoClusters(t *testing.T) {
	var b disassociate.Builder
	for range 101 {
		if err := b.Add("a", "b"); err != nil {
			t.Fatal(err)
		}
	}
	form := run(t, b.Dataset(), disassociate.Default(5, 2)).Form
	for p := range form.Clusters {
		if n := form.Clusters[p].Size; n < 5 || n >= 10 {
			t.Errorf("cluster %d has %d records", p, n)
		}
	}
}

func TestFewerThanKRecordsAreRefused(t *testing.T) {
	var b disassociate.Builder
	for range 4 {
		if err := b.Add("a"); err != nil {
			t.Fatal(err)
		}
	}
	_, err := disassociate.Disassociate(t.Context(), b.Dataset(), disassociate.Default(5, 2),
		rand.New(rand.NewPCG(1, 2)), nil)
	var few *disassociate.TooFewError
	if !errors.As(err, &few) || few.Records != 4 || few.Needed != 5 {
		t.Errorf("got %v", err)
	}
	_, err = disassociate.Disassociate(t.Context(), new(disassociate.Builder).Dataset(),
		disassociate.Default(2, 1), rand.New(rand.NewPCG(1, 2)), nil)
	if !errors.As(err, &few) {
		t.Errorf("no records at all: %v", err)
	}
}

func TestCancelStopsEveryStage(t *testing.T) {
	d := synthetic(t, 4000, 200)
	for _, stage := range []disassociate.Stage{
		disassociate.Clustering, disassociate.Partitioning, disassociate.Refining,
		disassociate.Publishing, disassociate.Verifying,
	} {
		ctx, cancel := context.WithCancel(t.Context())
		reached := false
		_, err := disassociate.Disassociate(ctx, d, disassociate.Default(3, 2),
			rand.New(rand.NewPCG(1, 2)),
			func(s disassociate.Stage, done, total int) {
				if done > total {
					t.Errorf("%s: %d of %d", s, done, total)
				}
				if s == stage {
					reached = true
					cancel()
				}
			})
		cancel()
		if !reached || !errors.Is(err, context.Canceled) {
			t.Errorf("%s: reached %t, error %v", stage, reached, err)
		}
	}
}

func TestAFaultyConfigurationIsRefusedWithEveryFault(t *testing.T) {
	cfg := disassociate.Config{Sensitive: []string{"a"}}
	err := cfg.Validate()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, fault := range []string{
		"k must", "m must", "diversity must", "sensitive codes need",
		"refinement must",
	} {
		if !strings.Contains(err.Error(), fault) {
			t.Errorf("%q does not mention %q", err, fault)
		}
	}
	good := disassociate.Default(5, 2)
	if err := good.Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	good.MaxCluster = 9
	if err := good.Validate(); err == nil {
		t.Error("clusters below 9 records with k = 5 are accepted")
	}
}

func TestOverlappingConstraintsAreRefused(t *testing.T) {
	d := synthetic(t, 100, 20)
	cfg := disassociate.Default(3, 2)
	for range 2 {
		cfg.Constraints = append(cfg.Constraints, disassociate.Constraint{Codes: []string{"C00001"}})
	}
	_, err := disassociate.Disassociate(t.Context(), d, cfg, rand.New(rand.NewPCG(1, 2)), nil)
	var constraint *disassociate.ConstraintError
	if !errors.As(err, &constraint) || constraint.Constraint != 2 {
		t.Errorf("got %v", err)
	}
}

func TestDataAndConstraintFilesAreRead(t *testing.T) {
	d, blank, err := disassociate.ReadDataset(strings.NewReader("b a\n\n  \na\tc c\r\n"))
	if err != nil || d.Len() != 2 || blank != 2 || d.Occurrences() != 5 {
		t.Fatalf("%d records, %d blank lines, %v", d.Len(), blank, err)
	}
	got := fmt.Sprint(d.AppendCodes(nil, 0), d.AppendCodes(nil, 1))
	if got != "[a b] [a c c]" {
		t.Errorf("read %s", got)
	}
	list, err := disassociate.ReadConstraints(strings.NewReader("# comment\nu1: a b\n\nc d\n"))
	if err != nil || fmt.Sprint(list) != "[{u1 [a b]} {line 4 [c d]}]" {
		t.Errorf("read %v, %v", list, err)
	}
	if _, err := disassociate.ReadConstraints(strings.NewReader("u1:\n")); err == nil {
		t.Error("a constraint without codes is accepted")
	}
	var b disassociate.Builder
	if err := b.Add(); !errors.Is(err, disassociate.ErrEmptyRecord) {
		t.Errorf("an empty record gives %v", err)
	}
}

// TestASearchEndsWhereNothingRareCanBeLeft: 49 records with 49 codes, each of
// which one record lacks. Any 8 codes are in 41 records, but there are 450
// million such sets. One chunk holds all codes; a search that gave up would
// have made several, and one that did not would take hours.
func TestASearchEndsWhereNothingRareCanBeLeft(t *testing.T) {
	var b disassociate.Builder
	for lacking := range 49 {
		var record []string
		for c := range 49 {
			if c != lacking {
				record = append(record, fmt.Sprint("code", c))
			}
		}
		if err := b.Add(record...); err != nil {
			t.Fatal(err)
		}
	}
	form := run(t, b.Dataset(), disassociate.Default(25, 8)).Form
	if len(form.Clusters) != 1 || len(form.Clusters[0].Record) != 1 ||
		len(form.Clusters[0].Record[0].Codes) != 49 {
		t.Errorf("want one chunk of 49 codes in one cluster, got %d clusters", len(form.Clusters))
	}
}

// TestDenseRecordsArePublished: many frequent codes in each cluster, with m
// far below their number.
func TestDenseRecordsArePublished(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var b disassociate.Builder
	for range 2000 {
		share := rng.Float64()
		record := []string{"always"}
		for c := range 60 {
			if rng.Float64() < share {
				record = append(record, fmt.Sprint("code", c))
			}
		}
		if err := b.Add(record...); err != nil {
			t.Fatal(err)
		}
	}
	run(t, b.Dataset(), disassociate.Default(25, 5))
}
