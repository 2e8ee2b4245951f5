package fidelity_test

import (
	"errors"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/fidelity"
)

func TestAWorkloadIsSplitAtSemicolonsWithItsComments(t *testing.T) {
	const file = `-- Queries of the registry
-- in two lines.

-- Everybody
-- (all wards)
SELECT count(*) FROM patients;;
 ;
SELECT ';' AS "a;b" -- not a name; not an end
FROM patients /* nor; this */;

/* By sex */
SELECT 1 WHERE 'ä' <> $$;$$; SELECT 2; -- not the next one's name
SELECT 3;
SELECT 'no end`
	want := []fidelity.Query{
		{1, 6, "Everybody", "SELECT count(*) FROM patients"},
		{
			2,
			8,
			`SELECT ';' AS "a;b" -- not a name; not an end FROM patients /* nor; this */`,
			"SELECT ';' AS \"a;b\" -- not a name; not an end\nFROM patients /* nor; this */",
		},
		{3, 12, "By sex", "SELECT 1 WHERE 'ä' <> $$;$$"},
		{4, 12, "SELECT 2", "SELECT 2"},
		{5, 13, "SELECT 3", "SELECT 3"},
		{6, 14, "SELECT 'no end", "SELECT 'no end"},
	}
	got := fidelity.ReadWorkload(file)
	if len(got) != len(want) {
		t.Fatalf("%d queries: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v\nwant %+v", got[i], want[i])
		}
	}
	if empty := fidelity.ReadWorkload(" ;\n-- nothing\n; /* at all */"); len(empty) != 0 {
		t.Errorf("an empty workload: %+v", empty)
	}
}

func TestOnlyQueriesAreRun(t *testing.T) {
	for _, sql := range []string{
		"DELETE FROM t", "SELECT 1; SELECT 2", "SELECT 1 INTO t",
		"CREATE TABLE u AS SELECT 1", "EXPLAIN ANALYZE SELECT 1",
		"WITH gone AS (DELETE FROM t RETURNING *) SELECT count(*) FROM gone", "DO 'x'", "SET a.b = 1",
		"SELECT * FROM (SELECT 1 INTO t) x",
	} {
		if _, err := fidelity.ReadStatement(sql, isAggregate); !errors.Is(err, fidelity.ErrNoQuery) {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if _, err := fidelity.ReadStatement("SELECT count(*", isAggregate); err == nil ||
		errors.Is(err, fidelity.ErrNoQuery) {
		t.Errorf("a syntax error: %v", err)
	}
}
