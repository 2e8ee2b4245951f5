package tests

import (
	"cmp"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sqlBlock is a block of SQL in Markdown.
var sqlBlock = regexp.MustCompile("(?ms)^```sql\n(.*?)^```$")

// TestTheRecipesOfTheResearchersPageAreAnswered runs each block of SQL in docs/researchers.md, one
// after the other in one session, as a reader through the proxy.
func TestTheRecipesOfTheResearchersPageAreAnswered(t *testing.T) {
	page, err := os.ReadFile("../docs/researchers.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := sqlBlock.FindAllStringSubmatch(string(page), -1)
	if opened := strings.Count(string(page), "```sql"); len(blocks) != opened || opened < 15 {
		t.Fatalf("%d blocks of SQL, %d of them whole", opened, len(blocks))
	}
	_, p := studyHospital(t, "recipes", 2000)
	first := connect(t, p.dsn("researcher"))
	for _, table := range []string{"patients", "visits", "diagnoses", "readmissions"} {
		answeredSoon(t, first, "SELECT count(*) FROM "+table)
	}
	conn := first.PgConn()
	for _, block := range blocks {
		sql := block[1]
		results, err := conn.Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Errorf("%v:\n%s", err, sql)
			continue
		}
		if len(results) != 1 {
			t.Errorf("%d results of one recipe:\n%s", len(results), sql)
			continue
		}
		tag := results[0].CommandTag
		if (tag.Select() || strings.HasPrefix(tag.String(), "COPY")) && tag.RowsAffected() == 0 {
			t.Errorf("no row:\n%s", sql)
		}
	}
}

// TestKaplanMeierComesOutAsInTheTable runs the recipe on the release and on the table.
func TestKaplanMeierComesOutAsInTheTable(t *testing.T) {
	page, err := os.ReadFile("../docs/researchers.md")
	if err != nil {
		t.Fatal(err)
	}
	var recipe string
	for _, block := range sqlBlock.FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], "free_of_stroke") {
			recipe = block[1]
		}
	}
	if recipe == "" {
		t.Fatal("there is no recipe")
	}
	curve := func(rows []string) map[string]float64 {
		out := make(map[string]float64)
		for _, row := range rows {
			f := strings.Split(row, "|")
			out[f[0]] = figure(f[3])
		}
		return out
	}
	truth := curve(rowsOf(t, shared.superuser(t), recipe))
	shown := curve(rowsOf(t, connect(t, shared.serve(t).program(shared.reader(t))), recipe))
	worst, last := 0.0, 1.0
	at := 1.0 // a curve stays as it is where nothing happens
	for _, age := range slices.SortedFunc(maps.Keys(truth), func(a, b string) int {
		return cmp.Compare(figure(a), figure(b))
	}) {
		if got, known := shown[age]; known {
			at = got
		}
		last, worst = min(last, truth[age]), max(worst, math.Abs(at-truth[age]))
	}
	t.Logf("%d ages, down to %.3f, off by at most %.4f", len(truth), last, worst)
	if len(truth) < 60 || last > 0.95 || worst > 0.05 {
		t.Errorf("%d ages, down to %.3f, off by at most %.4f", len(truth), last, worst)
	}
}
