package tests

import (
	"encoding/json"
	"regexp"
	"strconv"
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
	text := account(t, owner, "EXPLAIN (TAILOR) SELECT zip, avg(cost) FROM patients WHERE age >= 37 "+
		"GROUP BY zip ORDER BY birth_date")
	for _, claim := range []string{
		`S1 +age .* generalize`, `scan: age >= \?`, `S2 +age, zip `, `group: zip`,
		`S3 +age, zip, birth_date`,
		`\* .*local`, `of 1 ways worked out`, `risk from age`,
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
	if err := json.Unmarshal([]byte(account(t, owner,
		"EXPLAIN (TAILOR, FORMAT JSON) SELECT age, zip FROM patients")), &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Tables) != 1 || len(document.Tables[0].Stages) != 1 ||
		document.Tables[0].Stages[0].RiskBefore == nil {
		t.Errorf("the document lacks its figures: %+v", document)
	}
	if text := account(t, owner,
		"EXPLAIN (TAILOR, FORMAT MERMAID) SELECT age FROM patients"); !strings.HasPrefix(text,
		"flowchart LR\n") {
		t.Errorf("no diagram: %s", text)
	}
	if text := account(t, owner,
		"EXPLAIN (TAILOR, FORMAT DOT) SELECT age FROM patients"); !strings.HasPrefix(text, "digraph") {
		t.Errorf("no graph: %s", text)
	}
}

// TestExplainTellsWhatWillBeAnswered has readers told the figures before they have
// asked for anything, and no other ones afterwards.
func TestExplainTellsWhatWillBeAnswered(t *testing.T) {
	p := shared.serve(t)
	reader := connect(t, p.dsn(shared.reader(t)))
	const query = "SELECT age, zip FROM patients"
	before := account(t, reader, "EXPLAIN (TAILOR) "+query)
	if !regexp.MustCompile(`S1 +age, zip +- +0\.2000 +\d+\.\d %  generalize`).MatchString(before) ||
		strings.Contains(before, "risk from") {
		t.Errorf("the loss, and nothing of the table as it is, is expected:\n%s", before)
	}
	mustExec(t, reader, query)
	mustExec(t, reader, "SELECT * FROM patients")
	if after := account(t, reader, "EXPLAIN (TAILOR) "+query); after != before {
		t.Errorf("after an answer the account is another one:\n%s\n%s", before, after)
	}
	if others := account(t, connect(t, p.dsn("researcher")),
		"EXPLAIN (TAILOR) "+query); others != before {
		t.Errorf("another reader's account is another one:\n%s\n%s", before, others)
	}
	if plain := account(t, reader, "EXPLAIN (TAILOR) SELECT 1"); !strings.Contains(plain,
		"No protected table") {
		t.Errorf("of an unprotected query: %s", plain)
	}
	// Nothing of a hidden column, nothing run.
	for _, refused := range []string{
		"EXPLAIN (TAILOR) SELECT name FROM patients",
		"EXPLAIN (TAILOR, ANALYZE) SELECT age FROM patients",
		"EXPLAIN (TAILOR, FORMAT XML) SELECT age FROM patients", "EXPLAIN (TAILOR) DELETE FROM patients",
		"EXPLAIN (TAILOR) SELECT age FROM patients; SELECT 1",
	} {
		if _, err := reader.Exec(t.Context(), refused, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("answered: %s", refused)
		}
	}
}

func TestDeclarationsThatMakeNoSenseAreRefused(t *testing.T) {
	owner := connect(t, shared.serve(t).dsn("dba"))
	for _, wrong := range []string{
		`CALL tailor.project('x', 'public.patients', '[["name"]]')`,
		`CALL tailor.project('', 'public.patients', '[["age"]]')`,
		`CALL tailor.project('x', 'public.patients', '{"age": 1}')`,
		`CALL tailor.seed('public.patients', '[[]]')`,
		`CALL tailor.gate('public.patients', 'marketer', 0.1)`,
		`CALL tailor.gate('public.patients', 'average', 0)`,
		`CALL tailor.join_project('no such project', 'researcher')`,
		`CALL tailor.chain_scope('public.patients', 'principal')`,
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
	mustExec(t, owner, `CREATE TABLE public.gated AS SELECT n AS id, (n * 7) % 90 `+
		`AS age, (n * 13) % 50 AS years FROM generate_series(1, 900) n`)
	mustExec(t, owner, `CALL tailor.protect('public.gated', subject => 'id', k => 5)`)
	mustExec(t, owner, `CALL tailor.classify('public.gated', 'age', 'quasi_identifier', `+
		`hierarchy => 'age')`)
	mustExec(t, owner, `CALL tailor.classify('public.gated', 'years', 'quasi_identifier', `+
		`hierarchy => 'age')`)
	mustExec(t, owner, `CALL tailor.gate('public.gated', measure => 'highest', max_risk => 0.1)`)
	mustExec(t, owner, `CALL tailor.seed('public.gated', '[["years"]]')`)
	mustExec(t, owner, `CALL tailor.activate('public.gated')`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT count(*) FROM gated`)
		return err == nil
	})
	chain := func(column string) int {
		return one[int](t, direct, `SELECT `+column+
			` FROM tailor.chain WHERE relation = 'public.gated'::regclass`)
	}
	if chain("min_block") < 10 || chain("blocks") < 2 {
		t.Errorf("blocks of %d, %d of them: the risk is to be 0.1 at most, and years are seeded",
			chain("min_block"), chain("blocks"))
	}
	mustExec(t, reader, `SELECT age FROM gated`)
	waitFor(t, func() bool {
		return one[bool](t, direct,
			`SELECT EXISTS (SELECT FROM tailor.graphs WHERE relation = 'public.gated'::regclass `+
				`AND qids = '{age}' AND action <> '')`)
	})
	mustExec(t, owner, `CALL tailor.recode('public.gated', 'full_domain')`)
	mustExec(t, owner, `CALL tailor.forget_chains('public.gated')`)
	mustExec(t, owner, `CALL tailor.activate('public.gated')`)
	mustExec(t, reader, `SET tailor.recoding = 'full_domain'; SET tailor.representation = 'label'`)
	waitFor(t, func() bool {
		widths, err := widthsOf(t, reader, `SELECT DISTINCT age FROM gated`)
		return err == nil && len(widths) == 1
	})
	mustExec(t, reader, `SET tailor.recoding = 'local'`)
	refusedAs(t, reader, `SELECT age FROM gated`, "22023")
	fails(t, reader, `SET tailor.recoding = 'cell'`, "22023", "full_domain")
}

// widthsOf are the widths of the labels of ages that a query shows.
func widthsOf(t *testing.T, conn *pgx.Conn, sql string) (map[int]bool, error) {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	widths := make(map[int]bool)
	for rows.Next() {
		low, high, ranged := strings.Cut(string(rows.RawValues()[0]), "-")
		first, _ := strconv.Atoi(low)
		last, _ := strconv.Atoi(high)
		if !ranged {
			last = first
		}
		widths[last-first] = true
	}
	return widths, rows.Err()
}
