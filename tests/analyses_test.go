package tests

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// TestAnalysesComeOutAsInTheTables runs what an epidemiologist would ask of the demo's
// hospital over its releases and its tables. With TAILOR_SOAK=1 the hospital is as large
// as the demo's.
func TestAnalysesComeOutAsInTheTables(t *testing.T) {
	people, most := 8000, 0.5 // a prevalence of 19 in 178: a few people are much of it
	if os.Getenv("TAILOR_SOAK") != "" {
		people, most = 50000, 0.25
	}
	conn := makeDatabase(t, "analyses", demodata.Schema)
	if err := demodata.Fill(t.Context(), conn, people); err != nil {
		t.Fatal(err)
	}
	if err := shared.install(t.Context(), "analyses"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, demodata.Policy+"; GRANT SELECT ON zip_city TO PUBLIC")
	p := serveDatabase(t, "analyses")
	code, stdout, stderr := tool(t, "fidelity", "--dsn", shared.cluster.SuperuserDSN("analyses"),
		"--proxy", p.dsn("researcher"),
		"--workload", "testdata/analyses.sql", "--format", "json")
	if code != 0 {
		t.Fatal(stderr)
	}
	var r fidelityReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	large := r.Summary.Large
	if r.Summary.Outcomes["compared"] != r.Summary.Queries || r.Summary.Queries < 35 ||
		large.Cells < 500 {
		t.Fatalf("%d queries: %v, %d cells", r.Summary.Queries, r.Summary.Outcomes, large.Cells)
	}
	tenth := 0 // cells off by more than a tenth, of the three worst of each query
	for _, q := range r.Queries {
		for _, w := range q.Comparison.Large.Worst {
			if w.Error > 0.1 {
				tenth++
			}
		}
	}
	t.Logf("%d people: %d cells of at least 50, relative error: median %.4f, 90 %% below %.4f, at "+
		"most %.3f; %d cells above 0.1",
		people, large.Cells, *large.Median, *large.P90, *large.Max, tenth)
	if *large.Median > 0.005 || *large.P90 > 0.05 || *large.Max > most || tenth > 10 {
		t.Errorf("the errors are too large:\n%s", stdout[:min(len(stdout), 20000)])
	}
}

// madeBefore is in recipes that read a table which another recipe makes.
var madeBefore = regexp.MustCompile(`\b(elderly|cohort)\b`)

// TestAnalysesComeOutTheSameInAnyOrder asks the analyses and the recipes of the researchers' page
// in three orders, by readers of their own, one of them behind the probes of drivers: each has the
// same answer every time, byte for byte but for the order of rows.
func TestAnalysesComeOutTheSameInAnyOrder(t *testing.T) {
	file, err := os.ReadFile("testdata/analyses.sql")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/researchers.md")
	if err != nil {
		t.Fatal(err)
	}
	queries := strings.Split(strings.TrimSpace(string(file)), ";\n")
	for _, block := range sqlBlock.FindAllStringSubmatch(string(page), -1) {
		if begin := strings.ToUpper(block[1][:6]); begin == "SELECT" || begin[:4] == "WITH" {
			if !madeBefore.MatchString(block[1]) {
				queries = append(queries, block[1])
			}
		}
	}
	if len(queries) < 55 {
		t.Fatalf("only %d queries", len(queries))
	}
	_, p := studyHospital(t, "analyses_in_orders", 2000)
	for _, table := range []string{"patients", "visits", "diagnoses", "readmissions"} {
		answeredSoon(t, connect(t, p.dsn("researcher")), "SELECT count(*) FROM "+table)
	}
	first := make(map[string]string)
	reversed, shuffled := slices.Clone(queries), slices.Clone(queries)
	slices.Reverse(reversed)
	random := rand.New(rand.NewPCG(5, 23))
	random.Shuffle(len(shuffled), func(i, j int) {
		shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
	})
	for name, order := range map[string][]string{
		"as written": queries, "backwards": reversed,
		"shuffled, after probes": shuffled,
	} {
		conn := connect(t, p.program("researcher"))
		if strings.Contains(name, "probes") {
			for _, table := range []string{"patients", "visits", "diagnoses"} {
				for _, probe := range []string{
					"SELECT * FROM " + table + " WHERE 1 = 0", "SELECT * FROM research." + table + " LIMIT 0",
					"SELECT count(*) FROM " + table, "SELECT * FROM " + table + " LIMIT 1",
				} {
					rowsOf(t, conn, probe)
				}
				if _, err := conn.Prepare(t.Context(), "probe_"+table, "SELECT * FROM "+table); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, sql := range order {
			rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			var lines []string
			for rows.Next() {
				line := ""
				for _, value := range rows.RawValues() {
					line += "|" + string(value)
				}
				lines = append(lines, line)
			}
			if rows.Err() != nil {
				t.Fatalf("%s: %v", sql, rows.Err())
			}
			slices.Sort(lines)
			answer := strings.Join(lines, "\n")
			if known, asked := first[sql]; asked && known != answer {
				t.Errorf("%s: another answer to %s\n%.500s\nbefore\n%.500s", name, sql, answer, known)
			}
			first[sql] = answer
		}
	}
}
