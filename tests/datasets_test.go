package tests

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// staysOf is a data set of the ward's people: how often each was there, and whether again soon.
const staysOf = `CALL tailor.define_dataset('public.stays_of', $$
	SELECT p.id, p.age, p.zip, count(s.day) AS stays, coalesce(bool_or(s.soon), false) AS again
	FROM public.people p LEFT JOIN (
		SELECT person, day, day - lag(day) OVER (PARTITION BY person ORDER BY day) <= 30 AS soon
		FROM public.stays) s ON s.person = p.id
	GROUP BY p.id $$, subject => 'id');
CALL tailor.classify('stays_of', 'id', 'direct_identifier');
CALL tailor.classify('stays_of', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.classify('stays_of', 'zip', 'quasi_identifier', hierarchy => 'zip');
CALL tailor.classify('stays_of', 'stays', 'non_sensitive');
CALL tailor.classify('stays_of', 'again', 'sensitive');
CALL tailor.activate('stays_of');`

// datasetWard is the ward with stays of its people, of whom the older have more.
func datasetWard(t *testing.T, name, more string) (direct *pgx.Conn, p *testProxy) {
	t.Helper()
	direct, p = wardOf(t, name, more)
	mustExec(t, direct, `CREATE TABLE stays (person int NOT NULL REFERENCES people, day date NOT NULL);
		CREATE INDEX ON stays (person);
		INSERT INTO stays SELECT p.id, date '2025-01-01' + (p.id * 7919 + n * 104729) % 365
			FROM people p, generate_series(1, 8) n WHERE n * 12 <= coalesce(p.age, 0) / 2 + p.id * 31 % 50;`)
	return direct, p
}

// TestDataSetsAnswerAcrossTables asks what no release of a single table tells: of each
// person something that is computed from rows of another table.
func TestDataSetsAnswerAcrossTables(t *testing.T) {
	direct, p := datasetWard(t, "datasets", "")
	mustExec(t, direct, staysOf)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	for _, sql := range []string{
		"SELECT count(*) FROM stays_of",
		"SELECT count(*) FROM stays_of WHERE again",
		"SELECT stays, count(*) FROM stays_of GROUP BY 1",
		"SELECT age / 20, sum(stays)::bigint FROM stays_of WHERE age IS NOT NULL GROUP BY 1",
		"SELECT age / 20, count(*) FROM stays_of WHERE again AND age IS NOT NULL GROUP BY 1",
	} {
		truth := numbersBy(t, direct, sql)
		for key, n := range numbersBy(t, conn, sql) {
			if off := math.Abs(n - truth[key]); off > max(10, 0.1*truth[key]) {
				t.Errorf("%s\n%s: %g, in truth %g", sql, key, n, truth[key])
			}
		}
	}
	for sql, code := range map[string]string{
		"SELECT id FROM stays_of":                                  "42501",
		"SELECT * FROM stays_of s JOIN people p ON p.cost = s.age": "42703",
		"SELECT * FROM public.stays":                               "42501",
		"REFRESH MATERIALIZED VIEW stays_of":                       "42501",
	} {
		if _, err := conn.Exec(t.Context(), sql); codeIn(err) != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
	plan := strings.Join(rowsOf(t, conn,
		"EXPLAIN (TAILOR) SELECT zip, count(*) FROM stays_of WHERE age > 40 GROUP BY zip"), "\n")
	if !strings.Contains(plan, "stays_of") || !strings.Contains(plan, "age") {
		t.Error(plan)
	}
	// The table goes on showing what it did, and nothing of its data sets.
	if rows := rowsOf(t, conn, "SELECT * FROM people LIMIT 1"); strings.Count(rows[0], "|") != 5 {
		t.Errorf("people has other columns: %v", rows)
	}
}

// TestDataSetsAreFilledWhenTheirTableIsCopied: what is shown of a data set has what its
// tables had when its parent was last copied, as far as the rules of epochs let it be seen.
func TestDataSetsAreFilledWhenTheirTableIsCopied(t *testing.T) {
	direct, p := datasetWard(t, "datasets_filled", "")
	mustExec(t, direct, staysOf)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	stays := func() int64 {
		return answered(t, conn, "SELECT sum(stays)::bigint FROM stays_of")[0][0].(int64)
	}
	count := func(of string) int64 {
		return answered(t, conn, "SELECT count(*) FROM "+of)[0][0].(int64)
	}
	copies := one[int](t, direct,
		`SELECT min(epoch) FROM tailor.chains WHERE relation = 'stays_of'::regclass`)
	taken := func() {
		t.Helper()
		waitFor(t, func() bool {
			now := one[int](t, direct, `SELECT min(epoch) FROM tailor.chains`)
			defer func() { copies = now }()
			return now > copies && one[bool](t, direct, `SELECT min(epoch) = max(epoch) FROM tailor.chains`)
		})
	}
	before := stays()
	// One person's figures change: that waits until enough of the block have changed.
	mustExec(t, direct, `INSERT INTO stays VALUES (7, '2025-12-01'); CALL tailor.refresh('stays_of')`)
	taken()
	if n := stays(); n != before {
		t.Errorf("%d stays, %d before: one person's has been shown", n, before)
	}
	if waiting := one[int](t, direct,
		`SELECT changes::int FROM tailor.epochs WHERE relation = 'stays_of'::regclass`); waiting != 1 {
		t.Errorf("%d changes wait", waiting)
	}
	// Everybody's do, and newcomers come.
	mustExec(t, direct, `INSERT INTO stays SELECT id, '2025-12-02' FROM people WHERE id <> 7;
		INSERT INTO people SELECT id + 10000, age, zip, born, weight, member, diagnosis FROM people
			WHERE id <= 600;
		CALL tailor.refresh('people')`)
	taken()
	if n := stays(); n != before+3000 {
		t.Errorf("%d stays, want %d", n, before+3000)
	}
	if n, of := count("stays_of"), count("people"); n != 3600 || of != n {
		t.Errorf("%d in the data set, %d in the table", n, of)
	}
	scheduled := connect(t, shared.cluster.ServiceDSN("datasets_filled"))
	_, err := direct.Exec(t.Context(), `CALL tailor.schedule('stays_of', '1 hour')`)
	assertState(t, err, "0A000", "people")
	mustExec(t, direct, `INSERT INTO stays SELECT id, '2025-12-03' FROM people;
		CALL tailor.schedule('people', '1 hour');
			UPDATE tailor.schedule SET due = now() - interval '1 minute'`)
	mustExec(t, scheduled, `CALL tailor.refresh_scheduled('public.people')`)
	taken()
	if n := stays(); n != before+3000+3600 {
		t.Errorf("%d stays, want %d", n, before+3000+3600)
	}
}

// TestWhoeverIsErasedIsGoneFromDataSets: with the block, at once, and from what is copied next.
func TestWhoeverIsErasedIsGoneFromDataSets(t *testing.T) {
	direct, p := tokenWard(t, "datasets_erased")
	mustExec(t, direct,
		`CALL tailor.define_dataset('part', 'SELECT id, age, zip, token FROM people WHERE id % 2 = 0', `+
			`subject => 'id');`+
			fmt.Sprintf(tokenPolicy, "part")+
			`CALL tailor.activate('part'); CALL tailor.forget_chains('people')`)
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM part")
	tokens := func(of string) map[string]bool {
		out := make(map[string]bool)
		for _, token := range rowsOf(t, conn, "SELECT token FROM "+of) {
			out[token] = true
		}
		return out
	}
	first := tokens("part")
	_, err := direct.Exec(t.Context(), `CALL tailor.erase('part', '8')`)
	assertState(t, err, "0A000", "people")
	mustExec(t, direct, `CALL tailor.erase('people', '8')`)
	within := func(when string) {
		t.Helper()
		// The data set is at all times a part of what the table shows: the block goes from both.
		part, all := tokens("part"), tokens("people")
		for token := range part {
			if !all[token] {
				t.Errorf("%s: the data set shows somebody whom the table does not", when)
			}
		}
		gone := 0
		for token := range first {
			if !part[token] {
				gone++
			}
			if !part[token] && all[token] && when == "erased" {
				t.Errorf("%s: the table shows somebody whom the data set does not", when)
			}
		}
		if gone == 0 || len(part) == len(first) {
			t.Errorf("%s: nobody is gone", when)
		}
	}
	within("erased")
	if erased := one[string](t, direct,
		`SELECT string_agg(DISTINCT relation::text, ' ' ORDER BY relation::text) `+
			`FROM tailor.erasures`); erased != "part people" {
		t.Errorf("erased from %q", erased)
	}
	mustExec(t, direct, `CALL tailor.erase('people', '10', departures => 'at_once')`)
	within("erased at once")
	mustExec(t, direct, `DELETE FROM people WHERE id = 8; CALL tailor.refresh('people')`)
	waitFor(t, func() bool {
		return one[bool](t, direct, `SELECT bool_and(NOT behind) FROM tailor.epochs`)
	})
	within("refreshed")
	mustExec(t, direct, `CALL tailor.forget_chains('people')`)
	answeredSoon(t, conn, "SELECT count(*) FROM part")
	if part := tokens("part"); len(part) < 1490 || len(part) > 1498 {
		t.Errorf("%d people in a release that was begun anew", len(part))
	}
	for _, id := range []int{8, 10} {
		if tokens("part")[one[string](t, direct, fmt.Sprintf(`SELECT md5('%dx')`, id))] {
			t.Errorf("%d is shown again", id)
		}
	}
}

// TestDataSetsGoOneByOne while the proxy makes what is shown of the others anew.
func TestDataSetsGoOneByOne(t *testing.T) {
	direct, p := datasetWard(t, "datasets_go", "")
	conn := connect(t, p.program("researcher"))
	for n := range 3 {
		set := fmt.Sprintf("set_%d", n)
		mustExec(t, direct, fmt.Sprintf(`CALL tailor.define_dataset('public.%[1]s', $$
				SELECT p.id, (SELECT count(*) FROM public.stays s WHERE s.person = p.id) + %[2]d AS stays
				FROM public.people p $$, subject => 'id');
			CALL tailor.classify('%[1]s', 'id', 'direct_identifier');
			CALL tailor.classify('%[1]s', 'stays', 'non_sensitive');
			CALL tailor.activate('%[1]s')`, set, n))
		answeredSoon(t, conn, "SELECT count(*) FROM "+set)
	}
	for n := range 3 {
		mustExec(t, direct, fmt.Sprintf("CALL tailor.unprotect('set_%d')", n))
	}
}

// TestDataSetsGoOutOfForce alone, and their table not before them.
func TestDataSetsGoOutOfForce(t *testing.T) {
	direct, p := datasetWard(t, "datasets_gone", "")
	mustExec(t, direct, staysOf)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	_, err := direct.Exec(t.Context(), `CALL tailor.unprotect('people')`)
	assertState(t, err, "2BP01", "stays_of")
	// Another policy of the table is one of the data set.
	mustExec(t, direct,
		`CALL tailor.protect('people', subject => 'id', k => 20); CALL tailor.activate('people')`)
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	waitFor(t, func() bool {
		return one[bool](t, direct,
			`SELECT bool_and(NOT behind) AND min(min_block) >= 20 FROM tailor.epochs`)
	})
	mustExec(t, direct, `CALL tailor.unprotect('stays_of')`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT count(*) FROM stays_of")
		return codeIn(err) == "0A000" || codeIn(err) == "42501"
	})
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	mustExec(t, direct, `DROP MATERIALIZED VIEW stays_of;
		CALL tailor.forget_chains('people');`+staysOf)
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	if n := answered(t, conn, "SELECT count(*) FROM stays_of")[0][0].(int64); n != 3000 {
		t.Errorf("%d people in a data set that was defined again", n)
	}
	// Where it is dropped with its policy, the table waits until somebody has said so.
	mustExec(t, direct, `DROP MATERIALIZED VIEW stays_of`)
	_, err = direct.Exec(t.Context(), `CALL tailor.refresh('people')`)
	assertState(t, err, "55000", "data sets")
	mustExec(t, direct,
		`CALL tailor.activate('people'); CALL tailor.refresh('people'); CALL tailor.drop_orphans()`)
	answeredSoon(t, conn, "SELECT count(*) FROM people")
}

// TestDataSetsShowWhatTheirTableMay refuses data sets that are no part of what their table
// may show, or tell what another root shows.
func TestDataSetsShowWhatTheirTableMay(t *testing.T) {
	direct, _ := datasetWard(t, "datasets_refused", "")
	mustExec(t, direct, `CREATE TABLE plain (id int PRIMARY KEY, note text);
		CALL tailor.protect('stays', subject => 'person', k => 5);
		CALL tailor.classify('stays', 'person', 'direct_identifier');
		CALL tailor.classify('stays', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.activate('stays')`)
	const age = `CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age');`
	for _, c := range []struct{ name, query, policy, code, names string }{
		{"no_subject", `SELECT age FROM people`, age, "42703", "id"},
		{"nobody", `SELECT id, note FROM plain`, ``, "22023", "parent"},
		{"rows", `SELECT person AS id, day FROM stays`, ``, "0A000", "several rows"},
		{
			"an_age", `SELECT id, zip, age AS years FROM people`,
			`CALL tailor.classify('$', 'years', 'non_sensitive');`, "0A000", "age",
		},
		{
			"by_name", `SELECT id, age::text AS age FROM people`,
			`CALL tailor.classify('$', 'age', 'non_sensitive');`, "22023", "age",
		},
		{
			"of_its_own", `SELECT id, id % 90 AS lot FROM people`,
			`CALL tailor.classify('$', 'lot', 'quasi_identifier', hierarchy => 'age');`, "0A000", "lot",
		},
		{"other_type", `SELECT id, age::bigint AS age FROM people`, age, "0A000", "age"},
		{
			"known", `SELECT id, age FROM people`,
			`CALL tailor.classify('$', 'id', 'direct_identifier', action => 'pseudonym');`, "0A000",
			"pseudonym",
		},
		{
			"stricter", `SELECT id, age FROM people`, `CALL tailor.protect('$', subject => 'id', k => 6);`,
			"22023", "k",
		},
		{"settings", `SELECT id, age FROM people`, `CALL tailor.cohort('$', 500);`, "0A000", "people"},
		// What a table with a root of its own shows by labels, or as it is.
		{
			"of_stays", `SELECT person AS id, min(day) AS first FROM stays GROUP BY 1`,
			`CALL tailor.classify('$', 'first', 'sensitive');`, "0A000", "first",
		},
		{
			"anybody", `SELECT id, age, id * 7919 % 11 AS lot FROM people WHERE id % 3 > 0`,
			age + `CALL tailor.classify('$', 'lot', 'non_sensitive');`, "", "",
		},
		{
			"as_the_table", `SELECT id, diagnosis FROM people`,
			`CALL tailor.classify('$', 'diagnosis', 'sensitive');`, "", "",
		},
	} {
		_, err := direct.Exec(t.Context(), fmt.Sprintf(
			`CALL tailor.define_dataset('public.%s', $$%s$$, subject => 'id');`, c.name, c.query)+
			strings.ReplaceAll(c.policy+` CALL tailor.activate('$')`, "$", c.name))
		if c.code == "" && err != nil {
			t.Errorf("%s: %v", c.name, errorText(err))
		} else if c.code != "" {
			assertState(t, err, c.code, c.names)
		}
	}
	_, err := direct.Exec(t.Context(),
		`CALL tailor.rows('people', false); CALL tailor.activate('people')`)
	assertState(t, err, "0A000", "data set")
}

// TestDataSetsInFiles: a file makes a data set that there is not, changes its policy, and is
// what is exported.
func TestDataSetsInFiles(t *testing.T) {
	direct, p := datasetWard(t, "datasets_files", "")
	dsn := shared.cluster.SuperuserDSN("datasets_files")
	run := func(want int, args ...string) string {
		t.Helper()
		stdout, stderr, code := tailor(t, args...)
		if code != want {
			t.Fatalf("tailor %s: exit %d\n%s%s", strings.Join(args, " "), code, stdout, stderr)
		}
		return stdout + stderr
	}
	export := func() string { t.Helper(); return run(0, "policy", "export", "--dsn", dsn, "-") }
	readers, _, _ := strings.Cut(export()[strings.Index(export(), "    readers: "):], "\n")
	dataSet := `  public.again:
    subject: id
    k: 5
    recoding: auto
    chain: {scope: table}
` + readers + `
    data_set:
      of: public.people
      query: |
        SELECT p.id, p.age, count(s.day) AS stays
        FROM people p
        LEFT JOIN stays s ON s.person = p.id
        GROUP BY p.id
    columns:
      id: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: age}
      stays: {class: sensitive}
`
	// The file names it before the table that it is of.
	file := policyFile(t, strings.Replace(export(), "tables:\n", "tables:\n"+dataSet, 1))
	run(0, "policy", "lint", file)
	if plan := run(0, "policy", "plan", "--dsn", dsn, file); !strings.Contains(plan,
		"public.again: to be made of its query") ||
		!strings.Contains(plan, "Plan: 1 tables to protect, 0 to change, 1 as they are.") {
		t.Error(plan)
	}
	run(0, "policy", "apply", "--dsn", dsn, file)
	if out := run(0, "policy", "plan", "--dsn", dsn, file); !strings.Contains(out,
		"0 tables to protect, 0 to change, 2 as they are") {
		t.Error(out)
	}
	exported := export()
	if !strings.Contains(exported, strings.TrimPrefix(dataSet, "  public.again:\n")) {
		t.Errorf("exported:\n%s", exported)
	}
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT sum(stays) FROM again")
	// A change of its class, and of the table's k.
	changed := policyFile(t, strings.NewReplacer("k: 5", "k: 8", "stays: {class: sensitive}",
		"stays: {class: non_sensitive}").Replace(exported))
	if out := run(0, "policy", "apply", "--dsn", dsn, changed); !strings.Contains(out,
		"2 of 2 tables activated: public.people, public.again") {
		t.Error(out)
	}
	if k := one[int](t, direct, `SELECT min(k) FROM tailor.policies`); k != 8 {
		t.Errorf("k is %d", k)
	}
	answeredSoon(t, conn, "SELECT sum(stays) FROM again")
	if out := run(1, "policy", "plan", "--dsn", dsn, policyFile(t, strings.Replace(export(),
		"count(s.day)", "count(*)", 1))); !strings.Contains(out, "another query") {
		t.Error(out)
	}
	run(0, "policy", "apply", "--dsn", dsn, file)
	if export() != exported {
		t.Errorf("exported:\n%s", export())
	}
}

// TestDataSetsKeepTheirModels in the blocks of their table: no block of theirs has one value.
// Where the table has been shown before, nothing is shown of blocks that would.
func TestDataSetsKeepTheirModels(t *testing.T) {
	direct, p := datasetWard(t, "datasets_models", "")
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	mustExec(t, direct, strings.Replace(staysOf, "CALL tailor.activate",
		"CALL tailor.require('stays_of', 'l_diversity', 'stays', 3);\nCALL tailor.activate", 1))
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	look := func(when string) {
		t.Helper()
		if n := one[int](t, direct,
			`SELECT subjects::int FROM tailor.epochs WHERE relation = 'stays_of'::regclass`); n != 3000 {
			t.Errorf("%s: %d people", when, n)
		}
		values, held := make(map[string]map[string]bool), 0
		for _, row := range rowsOf(t, conn,
			"SELECT stays, tailor.label(age), tailor.label(zip) FROM stays_of") {
			stays, labels, _ := strings.Cut(row, "|")
			if values[labels] == nil {
				values[labels] = make(map[string]bool)
			}
			values[labels][stays] = true
		}
		for labels, of := range values {
			if len(of) == 1 && of[""] {
				held++ // back: as the block was shown, it has too few
			} else if len(of) < 3 {
				t.Errorf("%s: %s has %d values", when, labels, len(of))
			}
		}
		if held*4 > len(values) {
			t.Errorf("%s: nothing is shown of %d blocks of %d", when, held, len(values))
		}
	}
	look("blocks that were there")
	mustExec(t, direct, `CALL tailor.forget_chains('people')`)
	answeredSoon(t, conn, "SELECT count(*) FROM stays_of")
	look("made anew")
	mustExec(t, direct, `CALL tailor.erase('people', '11', departures => 'at_once')`)
	if min := one[int](t, direct, `SELECT min(min_block)::int FROM tailor.epochs`); min < 5 {
		t.Errorf("a block of %d", min)
	}
}

// TestARefusalsDataSetAnswers declares what a refusal along the key proposes.
func TestARefusalsDataSetAnswers(t *testing.T) {
	direct, p := datasetWard(t, "datasets_hint", "")
	mustExec(t, direct, `CALL tailor.protect('stays', subject => 'person', k => 5);
		CALL tailor.classify('stays', 'person', 'direct_identifier');
		CALL tailor.classify('stays', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.activate('stays')`)
	conn := connect(t, p.program("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM stays s JOIN people p ON p.id = s.person")
	for _, sql := range []string{
		"SELECT count(*) FROM people p LEFT JOIN stays s ON s.person = p.id WHERE s.person IS NULL",
		"SELECT day, row_number() OVER (PARTITION BY person ORDER BY day) FROM stays",
		"SELECT person, count(*) FROM stays GROUP BY person",
	} {
		var answer *pgconn.PgError
		waitFor(t, func() bool { // the one before is known to be gone
			_, err := conn.Exec(t.Context(), sql)
			return errors.As(err, &answer) &&
				strings.Contains(answer.Hint, "CALL tailor.define_dataset('public.people_stays'")
		})
		_, call, _ := strings.Cut(answer.Hint, "declares: ")
		call, _, _ = strings.Cut(call, " Then ")
		mustExec(t, direct, call) // it activates, too
		answeredSoon(t, conn, "SELECT count(*) FROM people_stays")
		if _, err := conn.Exec(t.Context(), sql); errors.As(err, &answer) && // no more to be had
			strings.Contains(call, "count(*)") && strings.Contains(answer.Hint, "define_dataset") {
			t.Errorf("%s: the hint leads to %s", sql, answer.Hint)
		}
		without := "SELECT count(*) FROM people_stays WHERE stays = 0"
		if strings.Contains(call, "any_stays") {
			without = "SELECT count(*) FROM people_stays WHERE NOT any_stays"
		}
		if n, truth := answered(t, conn, without)[0][0], answered(t, direct, without)[0][0]; n != truth {
			t.Errorf("%v have no stay, in truth %v", n, truth)
		}
		mustExec(t, direct, `CALL tailor.unprotect('people_stays'); DROP MATERIALIZED VIEW people_stays;
			CALL tailor.forget_chains('people')`)
	}
}
