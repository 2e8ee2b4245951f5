package planner_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/planner"
)

// BenchmarkPlanningTheCorpus gives for each phase the median, the 95th percentile
// and the maximum over the statements of the corpus, in microseconds. What a
// statement takes is the least of its rounds, so that other work on the machine
// shows little. "own" is what Make takes besides scanning and parsing.
func BenchmarkPlanningTheCorpus(b *testing.B) {
	files, err := filepath.Glob("testdata/release/*.sql")
	if err != nil || len(files) == 0 {
		b.Fatalf("no statements: %v", err)
	}
	snapshot, cache := hospitalSnapshot(), planner.NewCache()
	phases := []struct {
		name string
		run  func(statement string)
	}{
		{"scan", func(s string) { _, _ = pg.Scan(s) }},
		{"parse", func(s string) { _, _ = pg.Parse(s) }},
		{"new", func(s string) { _, _ = planner.Make(s, session, snapshot) }},
		{"cached", func(s string) { _, _ = cache.Make(s, session, snapshot) }},
	}
	least := make([]map[string]time.Duration, len(files))
	for b.Loop() {
		for i, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				b.Fatal(err)
			}
			if least[i] == nil {
				least[i] = make(map[string]time.Duration)
				_, _ = cache.Make(string(text), session, snapshot)
			}
			for _, phase := range phases {
				start := time.Now()
				phase.run(string(text))
				took := time.Since(start)
				if known, ok := least[i][phase.name]; !ok || took < known {
					least[i][phase.name] = took
				}
			}
		}
	}
	for i := range least {
		least[i]["own"] = least[i]["new"] - least[i]["scan"] - least[i]["parse"]
	}
	for _, phase := range []string{"scan", "parse", "own", "new", "cached"} {
		slices.SortFunc(least, func(x, y map[string]time.Duration) int {
			return int(x[phase] - y[phase])
		})
		at := func(i int) float64 { return float64(least[i][phase].Nanoseconds()) / 1000 }
		b.ReportMetric(at(len(least)/2), phase+"-median-µs")
		b.ReportMetric(at(len(least)*95/100), phase+"-p95-µs")
		b.ReportMetric(at(len(least)-1), phase+"-max-µs")
	}
}
