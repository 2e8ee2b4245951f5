package planner_test

import (
	"fmt"
	"strings"
	"testing"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/planner"
)

// Planning by phase. "new" holds scanning and parsing, which are given apart;
// the rest of it is binding and editing.
func BenchmarkPlanning(b *testing.B) {
	snapshot := hospitalSnapshot()
	for name, statement := range map[string]string{
		"small": "SELECT age, zip FROM patients WHERE age > 30",
		"large": `WITH old AS (SELECT age, zip, sex, cost FROM patients WHERE age > 60
			AND diagnosis LIKE 'flu%'),
			areas AS (SELECT zip, count(*) AS n, avg(cost) AS mean FROM old GROUP BY zip HAVING count(*) > 3)
			SELECT a.zip, z.city, a.n, a.mean, (SELECT count(*) FROM patients p WHERE p.zip = a.zip
				AND p.sex = 'male') AS men,
			rank() OVER (PARTITION BY z.city ORDER BY a.mean DESC)
			FROM areas a JOIN zip_city z ON z.zip = a.zip WHERE EXISTS (SELECT FROM old
				WHERE old.zip = a.zip)
			UNION ALL SELECT zip, 'all', 0, 0, 0, 0 FROM patients ORDER BY 1, 2 LIMIT 100`,
		// As tools write it for a choice out of a long list, and for groups made by hand.
		"long": "SELECT CASE" + repeated(200, " WHEN zip = '1%04d' THEN 'north'", "") +
			" ELSE zip END AS region, count(*) FROM patients WHERE zip IN (" +
			repeated(1000, "'2%04d'", ", ") + ") AND " + repeated(200, "age <> %d", " AND ") + " GROUP BY 1",
	} {
		plan, err := planner.Make(statement, session, snapshot)
		if err != nil {
			b.Fatal(err)
		}
		cache := planner.NewCache()
		plain := session
		if _, err := cache.Make(statement, plain, snapshot); err != nil {
			b.Fatal(err)
		}
		phases := []struct {
			name string
			run  func()
		}{
			{"concern", func() { snapshot.MayConcern(statement) }},
			{"scan", func() { _, _ = pg.Scan(statement) }},
			{"parse", func() { _, _ = pg.Parse(statement) }},
			{"new", func() { _, _ = planner.Make(statement, plain, snapshot) }},
			{"cached", func() { _, _ = cache.Make(statement, plain, snapshot) }},
			{"rewrite", func() { plan.Rewrite(release) }},
		}
		for _, phase := range phases {
			b.Run(name+"/"+phase.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					phase.run()
				}
			})
		}
	}
}

// repeated writes a form with the numbers from 1.
func repeated(n int, form, separator string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(form, i+1)
	}
	return strings.Join(parts, separator)
}
