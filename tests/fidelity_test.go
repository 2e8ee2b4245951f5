package tests

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// fidelityReport is what tests read of the JSON, by the keys of docs/policies.md.
type fidelityReport struct {
	Note             string
	Database, Reader string
	AtLeast          float64 `json:"at_least"`
	Releases         []struct {
		Table    string
		Subjects int
		Waiting  *int
	}
	Summary struct {
		Queries  int
		Outcomes map[string]int
		Groups   fidelityGroups
		Coverage *float64
		Large    fidelityCells
		Small    fidelityCells
	}
	Columns []struct {
		Table, Column              string
		Queries, Compared, Refused int
		Share                      float64
		Median, P90                *float64
		Missing                    int
	}
	Queries []fidelityQuery
}

type fidelityGroups struct {
	True, Matched, Missing, Extra int
	MissingSmall                  int `json:"missing_small"`
	ExtraSmall                    int `json:"extra_small"`
}

type fidelityCells struct {
	Cells                       int
	Mean, Median, P90, Max      *float64
	Undefined, Other, Differing int
	Worst                       []struct {
		Group                []string
		Measure              string
		True, Release, Error float64
	}
}

type fidelityQuery struct {
	Number, Line               int
	Name, SQL, Outcome, Reason string
	Uses                       []struct{ Table, Column, Place string }
	TrueError                  *fidelityFailure `json:"true_error"`
	ReleaseError               *fidelityFailure `json:"release_error"`
	Comparison                 *struct {
		Keys, Measures []string
		People         string
		Groups         fidelityGroups
		Large, Small   fidelityCells
	}
}

type fidelityFailure struct{ SQLState, Message, Hint string }

// fidelityArgs are those of a run as the dba and a reader of the test's own.
func fidelityArgs(t *testing.T, p *testProxy, more ...string) []string {
	t.Helper()
	dba := fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", p.cluster.Address())
	return append([]string{"fidelity", "--dsn", dba, "--proxy", p.dsn(p.reader(t))}, more...)
}

// fidelityOf runs a workload and reads its report.
func fidelityOf(
	t *testing.T,
	p *testProxy,
	workload string,
	more ...string,
) (fidelityReport, string) {
	t.Helper()
	code, stdout, stderr := tool(
		t,
		fidelityArgs(t, p, append([]string{"--workload", workload, "--format", "json"}, more...)...)...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var r fidelityReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	return r, stdout
}

// workloadFile writes a workload.
func workloadFile(t *testing.T, sql string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workload.sql")
	if err := os.WriteFile(path, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const hospitalWorkload = "../docs/examples/hospital.sql"

func TestFidelityComparesReleasesWithTables(t *testing.T) {
	p := shared.serve(t)
	r, _ := fidelityOf(t, p, hospitalWorkload)
	if r.Database != "hospital" || r.Reader != p.reader(t) || r.AtLeast != 50 ||
		!strings.Contains(r.Note, "holds true figures") {
		t.Errorf("the head of the report: %+v", r)
	}
	people := 0
	for _, release := range r.Releases {
		if release.Table == "public.patients" && release.Waiting != nil {
			people = release.Subjects
		}
	}
	if people != patients {
		t.Errorf("releases %+v", r.Releases)
	}
	if o := r.Summary.Outcomes; r.Summary.Queries != 13 || o["compared"] != 10 || o["refused"] != 3 ||
		o["failed"] != 0 {
		t.Errorf("%d queries: %v", r.Summary.Queries, o)
	}
	named := make(map[string]fidelityQuery)
	for _, q := range r.Queries {
		named[q.Name] = q
	}
	// Payload by payload is exact, and so is the number of people.
	exact := named["Cost by ward"]
	if c := exact.Comparison; c == nil || c.Groups.Missing+c.Groups.Extra != 0 ||
		c.Large.Cells+c.Small.Cells != 2*c.Groups.True ||
		*c.Large.Max != 0 ||
		len(exact.Uses) != 0 {
		t.Errorf("cost by ward: %+v", exact)
	}
	everybody := named["Everybody"].Comparison
	if everybody.Groups.True != 1 || everybody.Large.Cells != 3 || *everybody.Large.Max > 0.05 ||
		everybody.People != "people" {
		t.Errorf("everybody: %+v", everybody)
	}
	// Of single combinations of age, sex and area hardly any is shown as it is.
	fine := named["Age, sex and area together: most groups are small"]
	if g := fine.Comparison.Groups; g.Missing == 0 || g.MissingSmall == 0 || g.Extra == 0 ||
		g.Matched+g.Missing != g.True {
		t.Errorf("age, sex and zip: %+v", g)
	}
	if len(fine.Uses) != 3 || fine.Uses[0].Table != "public.patients" ||
		fine.Uses[0].Place != "group" {
		t.Errorf("age, sex and zip use %+v", fine.Uses)
	}
	for _, name := range []string{
		"Refused: names are direct identifiers",
		"Refused: a join shows quasi-identifiers of the parent only",
	} {
		q := named[name]
		if q.Outcome != "refused" || q.TrueError != nil || q.ReleaseError == nil ||
			q.ReleaseError.SQLState != "42501" ||
			q.Comparison != nil ||
			q.Reason == "" {
			t.Errorf("%s: %+v", name, q)
		}
	}
	if q := named["Refused: a join shows quasi-identifiers of the parent only"]; len(q.Uses) != 1 ||
		q.Uses[0].Column != "sex" {
		t.Errorf("the refused join uses %+v", q.Uses)
	}
	sumsAgree(t, r)
	agesAgree(t, p, named["Single years of age"])
}

// sumsAgree asserts what is over all queries.
func sumsAgree(t *testing.T, r fidelityReport) {
	t.Helper()
	cells, groups, share := 0, 0, 0.0
	for _, q := range r.Queries {
		if q.Comparison != nil {
			cells += q.Comparison.Large.Cells
			groups += q.Comparison.Groups.True
		}
	}
	if r.Summary.Large.Cells != cells || r.Summary.Groups.True != groups ||
		r.Summary.Coverage == nil ||
		*r.Summary.Coverage <= 0 ||
		*r.Summary.Coverage >= 1 {
		t.Errorf("summary %+v, want %d cells and %d groups", r.Summary, cells, groups)
	}
	if s := r.Summary.Large; *s.Median > *s.P90 || *s.P90 > *s.Max {
		t.Errorf("median %g, 90th percentile %g, max %g", *s.Median, *s.P90, *s.Max)
	}
	for i, c := range r.Columns {
		share += c.Share
		if i > 0 && c.Share > r.Columns[i-1].Share {
			t.Errorf("the columns are not in the order of their shares: %+v", r.Columns)
		}
		if c.Column == "age" && (c.Queries != 6 || c.Compared != 6) ||
			c.Column == "sex" && (c.Refused != 1 || c.Compared != 3) {
			t.Errorf("of a column: %+v", c)
		}
	}
	if math.Abs(share-1) > 1e-9 {
		t.Errorf("the shares of the columns are %g together", share)
	}
}

// agesAgree computes the figures of a query that counts people by age once more.
func agesAgree(t *testing.T, p *testProxy, q fidelityQuery) {
	t.Helper()
	ages := func(conn *pgx.Conn) map[int]float64 {
		out := make(map[int]float64)
		rows, err := conn.Query(t.Context(), q.SQL)
		if err != nil {
			t.Fatal(err)
		}
		var age int
		var people float64
		keep := func() error { out[age] = people; return nil }
		if _, err := pgx.ForEachRow(rows, []any{&age, &people}, keep); err != nil {
			t.Fatal(err)
		}
		return out
	}
	reader := connect(t, p.dsn(p.reader(t)))
	mustExec(t, reader, `SET tailor.representation = 'value'`)
	truth, release := ages(p.superuser(t)), ages(reader)
	var groups fidelityGroups
	var errors []float64
	for age, people := range truth {
		groups.True++
		shown, ok := release[age]
		switch {
		case !ok && people < 50:
			groups.Missing, groups.MissingSmall = groups.Missing+1, groups.MissingSmall+1
		case !ok:
			groups.Missing++
		default:
			groups.Matched++
			if people >= 50 {
				errors = append(errors, math.Abs(shown-people)/people)
			}
		}
	}
	for age, people := range release {
		if _, ok := truth[age]; !ok {
			groups.Extra++
			if people < 50 {
				groups.ExtraSmall++
			}
		}
	}
	slices.Sort(errors)
	c := q.Comparison
	if c.Groups != groups || c.Large.Cells != len(errors) {
		t.Fatalf(
			"groups %+v and %d large cells, want %+v and %d",
			c.Groups,
			c.Large.Cells,
			groups,
			len(errors),
		)
	}
	if len(errors) > 0 && math.Abs(*c.Large.Max-errors[len(errors)-1]) > 1e-9 {
		t.Errorf("max %g, want %g", *c.Large.Max, errors[len(errors)-1])
	}
	if n := len(errors); n%2 == 1 && math.Abs(*c.Large.Median-errors[n/2]) > 1e-9 {
		t.Errorf("median %g, want %g", *c.Large.Median, errors[n/2])
	}
}

func TestFidelityGoesOnBehindAQueryThatFails(t *testing.T) {
	p := shared.serve(t)
	direct := p.superuser(t)
	mustExec(
		t,
		direct,
		`CREATE SEQUENCE public.fidelity_untouched; GRANT ALL ON public.fidelity_untouched TO dba`,
	)
	t.Cleanup(func() { dropAfter(t, `DROP SEQUENCE public.fidelity_untouched`) })
	r, text := fidelityOf(t, p, workloadFile(t, `
		SELECT count(*) AS n FROM patients WHERE diagnosis = 'asthma';
		SELECT count(* FROM patients;
		DELETE FROM patients;
		SELECT count(*) / (count(*) - count(*)) FROM patients;
		SELECT nobody FROM patients;
		SELECT count(*) FROM patients WHERE name::integer > 0;
		SELECT n FROM numbers;
		SELECT age, zip FROM patients;
		SELECT nextval('fidelity_untouched'), count(*) FROM patients;
		SELECT count(*) FROM patients, generate_series(1, 1000000000);
		SELECT diagnosis, repeat('x', 1000000) FROM patients;
		SELECT ward, count(*) FROM patients GROUP BY ward`), "--statement-timeout", "3s")
	want := []struct{ outcome, onTable, onRelease, reason string }{
		{"compared", "", "", ""},
		{"syntax_error", "", "", "syntax error"},
		{"no_query", "", "", "not a query"},
		{"failed", "22012", "22012", "on both sides"},
		{"failed", "42703", "42703", "on both sides"},
		{"failed", "22P02", "42501", "on both sides"},
		{"unprotected", "", "", "no protected table"},
		{"not_comparable", "", "", "GROUP BY"},
		{"failed", "25006", "42501", "on both sides"},
		{"failed", "57014", "57014", "within 3s"},
		{"failed", "", "", "larger than 64 MB"},
		{"compared", "", "", ""},
	}
	if len(r.Queries) != len(want) {
		t.Fatalf("%d queries", len(r.Queries))
	}
	code := func(f *fidelityFailure) string {
		if f == nil {
			return ""
		}
		return f.SQLState
	}
	for i, w := range want {
		q := r.Queries[i]
		if q.Outcome != w.outcome || code(q.TrueError) != w.onTable ||
			w.onRelease != "" && code(q.ReleaseError) != w.onRelease ||
			!strings.Contains(q.Reason, w.reason) {
			t.Errorf(
				"query %d, %s: %s, %+v, %+v, %q",
				i+1,
				q.SQL,
				q.Outcome,
				q.TrueError,
				q.ReleaseError,
				q.Reason,
			)
		}
		if q.Outcome == "compared" && (q.Comparison.Large.Max == nil || *q.Comparison.Large.Max != 0) {
			t.Errorf("query %d is exact, and is compared as %+v", i+1, q.Comparison)
		}
	}
	if one[bool](t, direct, `SELECT is_called FROM public.fidelity_untouched`) {
		t.Error("a query of the workload has written")
	}
	if one[int](t, direct, `SELECT count(*) FROM patients`) != patients {
		t.Error("patients are gone")
	}
	for _, name := range []string{demodata.CanaryName, "invalid input syntax"} {
		if strings.Contains(text, name) {
			t.Errorf("the report quotes what PostgreSQL said of a value: %s", name)
		}
	}
}
