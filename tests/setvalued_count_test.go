package tests

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// boundsEveryPair asks tailor.case_count about every pair of codes that some
// subject has: what a reader is told must hold of the table, and at least k
// subjects must fit whoever is known by two codes.
func boundsEveryPair(t *testing.T, s *testCluster) {
	c := drawCodes(800)
	p := s.published(t, "bounded", c)
	conn := connect(t, p.dsn(s.reader(t)))
	truth := c.pairs()
	var first, second []string
	for pair := range truth {
		first, second = append(first, pair[0]), append(second, pair[1])
	}
	mustExec(t, conn, "SELECT FROM bounded LIMIT 1")
	form := storedForm(t, s, "bounded")
	decoded, err := published.Decode(strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	index := published.NewIndex(decoded)

	rows, err := conn.Query(t.Context(), `SELECT q.a, q.b, c.expected, c.lower, c.upper
		FROM unnest($1::text[], $2::text[]) q (a, b), tailor.case_count('public.bounded', ARRAY[q.a,
			q.b]) c`, first, second)
	if err != nil {
		t.Fatal(err)
	}
	var a, b string
	var e published.Estimate
	var width, n, off float64
	_, err = pgx.ForEachRow(rows, []any{&a, &b, &e.Expected, &e.Lower, &e.Upper}, func() error {
		count := truth[[2]string{a, b}]
		if count < e.Lower || count > e.Upper {
			t.Errorf("%q and %q: %d subjects, told %d to %d", a, b, count, e.Lower, e.Upper)
		}
		if e.Upper < k {
			t.Errorf("%q and %q: at most %d subjects fit, want at least %d", a, b, e.Upper, k)
		}
		if want := index.Count([]string{a, b}); want.Lower != e.Lower || want.Upper != e.Upper ||
			math.Abs(want.Expected-e.Expected) > 1e-9 {
			t.Errorf("%q and %q: %v, the form says %v", a, b, e, want)
		}
		n++
		width += float64(e.Upper - e.Lower)
		off += math.Abs(e.Expected-float64(count)) / float64(count)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if int(n) != len(truth) {
		t.Errorf("%g answers to %d questions", n, len(truth))
	}
	t.Logf("%d pairs: mean relative error %.3f, mean width of bounds %.1f subjects", len(truth), off/n,
		width/n)

	// Sets of other sizes, with codes that nobody has, that stand twice, or none.
	for _, codes := range [][]string{
		{},
		{"240.00"},
		{"240.00", "nobody"},
		{"240.00", "240.00"},
		{"240.00", "241.10", "242.20", "243.30"},
	} {
		if err := conn.QueryRow(t.Context(), `SELECT * FROM tailor.case_count('bounded', $1)`, codes).
			Scan(&e.Expected, &e.Lower, &e.Upper); err != nil {
			t.Fatal(err)
		}
		if want := index.Count(codes); want.Lower != e.Lower || want.Upper != e.Upper ||
			math.Abs(want.Expected-e.Expected) > 1e-9 {
			t.Errorf("%d codes: %v, the form says %v", len(codes), e, want)
		}
	}
	refused(t, conn, "22004", `SELECT * FROM tailor.case_count('bounded', ARRAY['240.00', NULL])`)
	refused(t, conn, "22004", `SELECT * FROM tailor.case_count('bounded', NULL)`)
}

// storedForm is what is published of a table, as it was encoded.
func storedForm(t *testing.T, s *testCluster, table string) string {
	t.Helper()
	return one[string](t, s.superuser(t), `SELECT form FROM tailor.publication
		WHERE epoch = tailor.publication_of($1::text::regclass)`, table)
}

// isAnonymousByDefinition reads the stored form by itself, without the package
// that made it, and counts every pair of codes of every chunk.
func isAnonymousByDefinition(t *testing.T, s *testCluster) {
	c := drawCodes(2500)
	p := s.published(t, "defined", c)
	conn := connect(t, p.dsn(s.reader(t)))
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM defined"); n != len(c) {
		t.Fatalf("%d subjects, want %d", n, len(c))
	}
	type chunk struct {
		Clusters []int    `json:"clusters"`
		Codes    []string `json:"codes"`
		Sub      []struct {
			Codes []string `json:"codes"`
			Count int      `json:"count"`
		} `json:"subrecords"`
		Empty int `json:"empty"`
	}
	var form struct {
		Clusters []struct {
			Size   int      `json:"size"`
			Record []chunk  `json:"record_chunks"`
			Items  []string `json:"item_chunk"`
		} `json:"clusters"`
		Shared []chunk `json:"shared_chunks"`
	}
	if err := json.Unmarshal([]byte(storedForm(t, s, "defined")), &form); err != nil {
		t.Fatal(err)
	}
	checked := 0
	assertSets := func(c chunk, records int) {
		seen := c.Empty
		sets := make(map[[2]string]int)
		for _, sub := range c.Sub {
			seen += sub.Count
			for i, a := range sub.Codes {
				if !slices.Contains(c.Codes, a) {
					t.Errorf("a sub-record has a code of another chunk")
				}
				sets[[2]string{a}] += sub.Count
				for _, b := range sub.Codes[i+1:] {
					sets[[2]string{a, b}] += sub.Count
				}
			}
		}
		for _, n := range sets {
			checked++
			if n < k {
				t.Errorf("a set of codes stands in %d sub-records of a chunk, want at least %d", n, k)
			}
		}
		if seen != records {
			t.Errorf("a chunk of %d sub-records for %d records", seen, records)
		}
	}
	records := 0
	places := make([]map[string]int, len(form.Clusters))
	for i, cluster := range form.Clusters {
		records += cluster.Size
		places[i] = make(map[string]int)
		if cluster.Size < k {
			t.Errorf("a cluster of %d", cluster.Size)
		}
		filled := 0
		for _, chunk := range cluster.Record {
			assertSets(chunk, cluster.Size)
			filled += cluster.Size - chunk.Empty
			for _, code := range chunk.Codes {
				places[i][code]++
			}
		}
		for _, code := range cluster.Items {
			places[i][code]++
		}
		if least := cluster.Size + k*(min(2, len(cluster.Record))-1); len(cluster.Items) == 0 &&
			filled < least {
			t.Errorf("a cluster of %d without an item chunk has %d sub-records, want %d: some record "+
				"would be empty", cluster.Size, filled, least)
		}
	}
	for _, shared := range form.Shared {
		scope := 0
		for _, i := range shared.Clusters {
			scope += form.Clusters[i].Size
			for _, code := range shared.Codes {
				places[i][code]++
			}
		}
		assertSets(shared, scope)
	}
	for i := range places {
		for _, n := range places[i] {
			if n > 1 {
				t.Errorf("a code stands in %d places of cluster %d", n, i)
			}
		}
	}
	if records != len(c) || checked < 500 {
		t.Errorf("%d records and %d sets of codes were checked, want %d and many", records, checked,
			len(c))
	}
}
