package tests

import (
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestPlansForetellWhatAChildLoses by the quasi-identifiers that it borrows, too.
func TestPlansForetellWhatAChildLoses(t *testing.T) {
	direct, p := datasetWard(t, "child_plan", "")
	mustExec(t, direct, `CALL tailor.define_hierarchy('stay', 'date', '{"levels": ["month", "quarter"],
		"lower": "2025-01-01", "upper": "2025-12-31"}');`+
		strings.Replace(staysPolicy, "hierarchy => 'day'", "hierarchy => 'stay'", 1))
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays")
	shown := 100 * one[float64](t, conn, `SELECT loss::float8 FROM research.tailor_columns
		WHERE table_name = 'stays' AND column_name = 'day'`)
	plan := filepath.Join(t.TempDir(), "policy.yaml")
	dsn := shared.cluster.SuperuserDSN("child_plan")
	if _, stderr, code := tailor(t, "policy", "export", "--dsn", dsn, plan); code != 0 {
		t.Fatal(stderr)
	}
	said, stderr, _ := tailor(t, "policy", "plan", "--dsn", dsn, plan)
	m := regexp.MustCompile(`\(day ([0-9.]+) %\), ([0-9.]+) % now`).FindStringSubmatch(said)
	if m == nil {
		t.Fatalf("%s%s", said, stderr)
	}
	for _, foretold := range m[1:] {
		if math.Abs(figure(foretold)-shown) > 3 {
			t.Errorf("%s %% are foretold, and %.1f %% shown", foretold, shown)
		}
	}
	t.Logf("%v, shown %.1f", m[1:], shown)
}
