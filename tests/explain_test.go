package tests

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// account is what EXPLAIN (TAILOR) says.
func account(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return strings.Join(lines, "\n")
}

func TestExplainShowsTheStagesToTheOwner(t *testing.T) {
	p := shared.serve(t)
	owner := connect(t, p.dsn("dba"))
	text := account(t, owner, "EXPLAIN (TAILOR) SELECT zip, avg(cost) FROM patients WHERE age >= 37 GROUP BY zip ORDER BY birth_date")
	for _, claim := range []string{
		`S1 +age .* generalize`, `scan: age >= \?`, `S2 +age, zip `, `group: zip`, `S3 +age, zip, birth_date`,
		`\* .*local`, `of 7 ways worked out`, `risk from age`, `saved`,
	} {
		if !regexp.MustCompile(claim).MatchString(text) {
			t.Errorf("no %s in\n%s", claim, text)
		}
	}
	for line := range strings.Lines(text) {
		if len(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("a line is wider than a terminal: %q", line)
		}
	}
	if strings.Contains(text, "37") {
		t.Errorf("a literal of the query is shown:\n%s", text)
	}
	var document ecg.Explanation
	if err := json.Unmarshal([]byte(account(t, owner, "EXPLAIN (TAILOR, FORMAT JSON) SELECT age, zip FROM patients")), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Tables) != 1 || len(document.Tables[0].Stages) != 1 || document.Tables[0].Stages[0].RiskBefore == nil {
		t.Errorf("the document lacks its figures: %+v", document)
	}
	if text := account(t, owner, "EXPLAIN (TAILOR, FORMAT MERMAID) SELECT age FROM patients"); !strings.HasPrefix(text, "flowchart LR\n") {
		t.Errorf("no diagram: %s", text)
	}
	if text := account(t, owner, "EXPLAIN (TAILOR, FORMAT DOT) SELECT age FROM patients"); !strings.HasPrefix(text, "digraph") {
		t.Errorf("no graph: %s", text)
	}
}

func TestExplainFollowsTheChain(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	reader := connect(t, p.dsn(user))
	direct := shared.superuser(t)
	const query = "SELECT age, zip FROM patients"
	before := account(t, reader, "EXPLAIN (TAILOR) "+query)
	if !strings.Contains(before, "refine") || !strings.Contains(before, "<100.0 %") {
		t.Errorf("bounds are expected before the first answer:\n%s", before)
	}
	chain := func() string {
		return one[string](t, direct, `SELECT format('%s %s %s', generation, blocks, md5(partition)) FROM tailor.chain WHERE audience = $1 AND relation = 'public.patients'::regclass`, "principal "+user)
	}
	state := chain()
	for _, q := range []string{query, "SELECT birth_date, sex FROM patients", "SELECT race, zip FROM patients WHERE age = 3"} {
		account(t, reader, "EXPLAIN (TAILOR) "+q)
	}
	if now := chain(); now != state {
		t.Errorf("EXPLAIN changed the chain from %s to %s", state, now)
	}
	exec1(t, reader, query)
	after := account(t, reader, "EXPLAIN (TAILOR) "+query)
	if !strings.Contains(after, "as shown") || strings.Contains(after, "<") {
		t.Errorf("figures are expected after the answer:\n%s", after)
	}
	if plain := account(t, reader, "EXPLAIN (TAILOR) SELECT 1"); !strings.Contains(plain, "No protected table") {
		t.Errorf("of an unprotected query: %s", plain)
	}
	// Nothing of a hidden column, nothing run.
	for _, refused := range []string{
		"EXPLAIN (TAILOR) SELECT name FROM patients", "EXPLAIN (TAILOR, ANALYZE) SELECT age FROM patients",
		"EXPLAIN (TAILOR, FORMAT XML) SELECT age FROM patients", "EXPLAIN (TAILOR) DELETE FROM patients",
		"EXPLAIN (TAILOR) SELECT age FROM patients; SELECT 1",
	} {
		if _, err := reader.Exec(t.Context(), refused, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("answered: %s", refused)
		}
	}
}

// TestExplainTellsNothingNew compares two tables with as many people, the same
// extremes and nothing else in common: to those who have had no answer, the accounts of
// all queries are the same.
func TestExplainTellsNothingNew(t *testing.T) {
	p := shared.serve(t)
	owner := connect(t, p.dsn("dba"))
	reader := connect(t, p.dsn(shared.reader(t)))
	for name, age := range map[string]string{"twin_a": "CASE n WHEN 1 THEN 89 ELSE n % 7 END", "twin_b": "n % 90"} {
		table := "public." + name
		exec1(t, owner, fmt.Sprintf(`CREATE TABLE %s AS SELECT n AS id, %s AS age, 9 + %[2]s AS years FROM generate_series(1, 200) n`, table, age))
		exec1(t, owner, `CALL tailor.protect($1::text::regclass, subject => 'id', k => 5)`, table)
		for _, column := range []string{"age", "years"} {
			exec1(t, owner, `CALL tailor.classify($1::text::regclass, $2::text::name, 'quasi_identifier', hierarchy => 'age')`, table, column)
		}
		exec1(t, owner, `CALL tailor.activate($1::text::regclass)`, table)
		waitFor(t, func() bool {
			_, err := reader.Exec(t.Context(), "SELECT count(*) FROM "+table)
			return err == nil
		})
	}
	chain := regexp.MustCompile(`chain \d+`)
	for _, query := range []string{
		"SELECT age FROM %s", "SELECT count(*) FROM %s WHERE age > 5 AND years < 60", "SELECT years FROM %s ORDER BY age",
	} {
		var told [2]string
		for i, name := range []string{"twin_a", "twin_b"} {
			text := account(t, reader, "EXPLAIN (TAILOR, FORMAT JSON) "+fmt.Sprintf(query, name))
			told[i] = chain.ReplaceAllString(strings.ReplaceAll(text, name, "twin"), "chain")
		}
		if told[0] != told[1] {
			t.Errorf("%s: the accounts tell the tables apart:\n%s\n%s", query, told[0], told[1])
		}
	}
}

func TestProjectsPrepareTheChain(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	direct := shared.superuser(t)
	reader := connect(t, p.dsn(user))
	owner := connect(t, p.dsn("dba"))
	exec1(t, owner, `CALL tailor.project('asthma', 'public.patients', '[["age", "zip"], ["sex", "age"]]')`)
	t.Cleanup(func() {
		_, _ = direct.Exec(t.Context(), `DELETE FROM tailor.project`)
	})
	exec1(t, reader, `SET tailor.project = 'no such project'`)
	if _, err := reader.Exec(t.Context(), `SELECT count(*) FROM patients`); err == nil || !strings.Contains(err.Error(), "42704") {
		t.Errorf("an unknown project: %v", err)
	}
	exec1(t, reader, `SET tailor.project = 'asthma'`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT count(*) FROM patients`)
		return err == nil
	})
	state := func() (seeds []string, blocks int) {
		if err := direct.QueryRow(t.Context(), `SELECT seeds, blocks FROM tailor.chain WHERE audience = $1 AND relation = 'public.patients'::regclass`,
			"principal "+user).Scan(&seeds, &blocks); err != nil {
			t.Fatal(err)
		}
		return seeds, blocks
	}
	seeds, blocks := state()
	if len(seeds) != 1 || !strings.HasPrefix(seeds[0], "asthma ") || blocks < 100 {
		t.Errorf("seeds %v, %d blocks: the chain is not prepared", seeds, blocks)
	}
	// What was declared has its room already.
	exec1(t, reader, `SELECT age, zip FROM patients`)
	if _, now := state(); now != blocks {
		t.Errorf("a declared query still refines the chain, from %d to %d blocks", blocks, now)
	}
	for _, wrong := range []string{
		`CALL tailor.project('x', 'public.patients', '[["name"]]')`, `CALL tailor.project('', 'public.patients', '[["age"]]')`,
		`CALL tailor.project('x', 'public.patients', '{"age": 1}')`, `CALL tailor.seed('public.patients', '[[]]')`,
		`CALL tailor.gate('public.patients', 'marketer', 0.1)`, `CALL tailor.gate('public.patients', 'average', 0)`,
	} {
		if _, err := owner.Exec(t.Context(), wrong); err == nil {
			t.Errorf("accepted: %s", wrong)
		}
	}
}

// TestPoliciesChooseGateSeedAndRecoding protects a table of its own.
func TestPoliciesChooseGateSeedAndRecoding(t *testing.T) {
	p := shared.serve(t)
	owner := connect(t, p.dsn("dba"))
	user := shared.reader(t)
	reader := connect(t, p.dsn(user))
	direct := shared.superuser(t)
	exec1(t, owner, `CREATE TABLE public.gated AS SELECT n AS id, (n * 7) % 90 AS age, (n * 13) % 50 AS years FROM generate_series(1, 900) n`)
	exec1(t, owner, `CALL tailor.protect('public.gated', subject => 'id', k => 5)`)
	exec1(t, owner, `CALL tailor.classify('public.gated', 'age', 'quasi_identifier', hierarchy => 'age')`)
	exec1(t, owner, `CALL tailor.classify('public.gated', 'years', 'quasi_identifier', hierarchy => 'age')`)
	exec1(t, owner, `CALL tailor.gate('public.gated', measure => 'highest', max_risk => 0.1)`)
	exec1(t, owner, `CALL tailor.seed('public.gated', '[["years"]]')`)
	exec1(t, owner, `CALL tailor.activate('public.gated')`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT count(*) FROM gated`)
		return err == nil
	})
	chain := func(column string) int {
		return one[int](t, direct, `SELECT `+column+` FROM tailor.chain WHERE audience = $1 AND relation = 'public.gated'::regclass`, "principal "+user)
	}
	if chain("min_block") < 10 || chain("blocks") < 2 {
		t.Errorf("blocks of %d, %d of them: the risk is to be 0.1 at most, and years are seeded", chain("min_block"), chain("blocks"))
	}
	exec1(t, reader, `SET tailor.recoding = 'full_domain'`)
	exec1(t, reader, `SELECT age FROM gated`)
	if n := chain("min_block"); n < 10 {
		t.Errorf("a block of %d", n)
	}
	nodes := one[int](t, direct, `SELECT count(*)::int FROM tailor.graphs WHERE relation = 'public.gated'::regclass AND node ->> 'action' <> ''`)
	if nodes == 0 {
		t.Error("the graph of the chain is empty")
	}
	fails(t, reader, `SET tailor.recoding = 'cell'`, "22023", "full_domain")
}
