package tests

import (
	"os"
	"regexp"
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
		answeredSoon(t, first, "SELECT FROM "+table+" LIMIT 0")
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
