package tests

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/hospital"
)

// TestAnalysesComeOutAsInTheTables runs what an epidemiologist would ask of the demo's
// hospital over its releases and its tables. With TAILOR_SOAK=1 the hospital is as large
// as the demo's.
func TestAnalysesComeOutAsInTheTables(t *testing.T) {
	people, most := 8000, 0.35
	if os.Getenv("TAILOR_SOAK") != "" {
		people, most = 50000, 0.25
	}
	conn := makeDatabase(t, "analyses", hospital.Schema)
	if err := hospital.Fill(t.Context(), conn, people); err != nil {
		t.Fatal(err)
	}
	if err := shared.install(t.Context(), "analyses"); err != nil {
		t.Fatal(err)
	}
	exec1(t, conn, hospital.Policy+"; GRANT SELECT ON zip_city TO PUBLIC")
	p := serveDatabase(t, "analyses")
	code, stdout, stderr := tool(t, "fidelity", "--dsn", shared.cluster.SuperuserDSN("analyses"), "--proxy", p.dsn("researcher"),
		"--workload", "testdata/analyses.sql", "--format", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var r fidelityReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	large := r.Summary.Large
	if r.Summary.Outcomes["compared"] != r.Summary.Queries || r.Summary.Queries < 35 || large.Cells < 500 {
		t.Fatalf("%d queries: %v, %d cells", r.Summary.Queries, r.Summary.Outcomes, large.Cells)
	}
	t.Logf("%d people: %d cells of at least 50, relative error: median %.4f, 90 %% below %.4f, at most %.3f", people, large.Cells, *large.Median, *large.P90, *large.Max)
	if *large.Median > 0.005 || *large.P90 > 0.1 || *large.Max > most {
		t.Errorf("the errors are too large:\n%s", stdout[:min(len(stdout), 20000)])
	}
}
