package tests

import (
	"strings"
	"testing"
)

// TestNoFunctionReadsCodesBesideARecordedStatement has a function of the reader's own read
// publications of codes under the ticket of a statement that reads something else of them.
// Attacker: a reader with a schema of its own. Property: a release is read by what was
// planned and recorded, and a count of cases is asked for by the statement itself.
func TestNoFunctionReadsCodesBesideARecordedStatement(t *testing.T) {
	direct := makeDatabase(t, "peeking", fenced)
	if err := shared.install(t.Context(), "peeking"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	mustExec(t, direct, `CREATE SCHEMA own AUTHORIZATION researcher`)
	reader := connect(t, serveDatabase(t, "peeking").dsn("researcher"))
	mustExec(t, reader, `SET search_path = public, own`)
	for _, function := range []string{
		`CREATE FUNCTION own.peek(text) RETURNS text LANGUAGE plpgsql AS $f$
DECLARE r text; BEGIN EXECUTE $1 INTO r; RETURN r; END $f$`,
		`CREATE FUNCTION own.cased(text) RETURNS text LANGUAGE plpgsql AS $f$
BEGIN RETURN tailor.case_count($1::regclass, ARRAY['1'])::text; END $f$`,
	} {
		mustExec(t, reader, function)
	}
	mustExec(t, reader, `SELECT count(*) FROM codes`)
	mustExec(t, reader, `SELECT count(*) FROM people p JOIN drugs d ON d.person = p.id`)
	view := func(table string) string {
		return one[string](t, direct, `SELECT c.oid::regclass::text FROM tailor.chain h JOIN pg_class c
ON c.relname ~ format('^chain_%s(_g[0-9]+)?$', h.chain) AND c.relkind = 'v'
WHERE h.relation = $1::text::regclass`, table)
	}
	codes, drugs := view("codes"), view("drugs")
	// What the planner would take for a release stands in a string that is computed.
	hide := func(s string) string {
		return "'" + strings.Replace(s, "release.", "rel' || 'ease.", 1) + "'"
	}
	for _, attempt := range []string{
		`SELECT count(*), peek(` + hide(`SELECT string_agg(code, '','') FROM `+codes) + `) FROM codes`,
		`SELECT count(*), cased(` + hide(codes) + `) FROM codes`,
		`SELECT count(*), peek(` + hide(`SELECT string_agg(drug, '','') FROM `+drugs) + `) FROM drugs`,
		`SELECT count(*), cased(` + hide(drugs) + `) FROM drugs`,
		`SELECT count(*), peek(` + hide(`SELECT string_agg(age::text, '','') FROM `+drugs+`_parent`) +
			`) FROM people p JOIN drugs d ON d.person = p.id`,
		`SELECT * FROM tailor.case_count('codes', ARRAY[peek(` +
			hide(`SELECT max(code) FROM `+codes) + `)])`,
	} {
		if rows, err := simply(t, reader, attempt); codeIn(err) != "42501" {
			t.Errorf("%s: %.80q, %v", attempt, rows, err)
		}
	}
	for _, honest := range []string{
		`SELECT expected, lower, upper FROM tailor.case_count('codes', ARRAY['1'])`,
		`SELECT c, (SELECT lower FROM tailor.case_count('drugs', ARRAY[c]))
FROM unnest(ARRAY['drug 1', 'drug 2']) c`,
	} {
		rowsOf(t, reader, honest)
	}
}

// TestNoCursorReadsCodesUnderAnotherRecord opens cursors over publications of codes by SQL
// that no proxy sees, and has recorded texts end their transactions or fetch from them.
func TestNoCursorReadsCodesUnderAnotherRecord(t *testing.T) {
	direct := makeDatabase(t, "peeking_cursors", fenced)
	if err := shared.install(t.Context(), "peeking_cursors"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fencedPolicy)
	p := serveDatabase(t, "peeking_cursors")
	reader := connect(t, p.dsn("researcher"))
	const recorded = `SELECT count(*) FROM people p JOIN drugs d ON d.person = p.id`
	mustExec(t, reader, recorded)
	mustExec(t, reader, `SELECT count(*) FROM codes`)
	release := func(table string) string {
		return one[string](t, direct, `SELECT c.oid::regclass::text FROM tailor.chain h JOIN pg_class c
ON c.relname ~ format('^chain_%s(_g[0-9]+)?$', h.chain) AND c.relkind = 'v'
WHERE h.relation = $1::text::regclass`, table)
	}
	drugs, codes := release("drugs"), release("codes")
	for name, over := range map[string]string{
		"codes":  `SELECT code FROM ` + codes,
		"joint":  `SELECT drug FROM ` + drugs,
		"people": `SELECT age FROM ` + drugs + `_parent`,
		"cases":  `SELECT * FROM tailor.case_count('` + codes + `', ARRAY['1'])`,
	} {
		declare := func(hold string) string {
			return `EXECUTE $q$DECLARE leak CURSOR ` + hold + ` FOR ` + over + `$q$`
		}
		do := func(body string) string { return `DO $x$ DECLARE r record; BEGIN ` + body + `; END $x$` }
		for _, texts := range [][]string{
			{do(`FOR r IN EXECUTE $q$` + over + `$q$ LOOP COMMIT; RAISE NOTICE '%', r; END LOOP`)},
			{`BEGIN`, do(declare("WITH HOLD")), recorded, `COMMIT`},
			{`BEGIN`, do(declare("WITH HOLD")), `SELECT count(*) FROM codes; COMMIT`},
			{do(`COMMIT; ` + declare("WITH HOLD")), recorded},
			{`BEGIN`, do(declare("")), `DECLARE c CURSOR FOR ` + recorded, `FETCH c; FETCH leak`},
			{
				`BEGIN`, `DECLARE leak CURSOR WITH HOLD FOR ` + recorded, `SAVEPOINT s`,
				do(`CLOSE leak; ` + declare("WITH HOLD")), `COMMIT`,
			},
			{
				`BEGIN`, `DECLARE leak CURSOR WITH HOLD FOR SELECT 1`,
				do(`MOVE leak; CLOSE leak; ` + declare("WITH HOLD")), recorded, `COMMIT AND CHAIN`,
			},
		} {
			conn := connect(t, p.dsn("researcher"))
			for _, text := range append(texts, `FETCH ALL FROM leak`) {
				rows, err := simply(t, conn, text)
				if len(rows) > 1 || name == "cases" && len(rows) > 0 && text == `FETCH ALL FROM leak` {
					t.Errorf("%s: %q: %s: %.100q, %v", name, texts, text, rows, err)
				}
			}
		}
	}
}
