package tests

import (
	"strings"
	"testing"
)

// staffTables are two tables of one subject. Town and pay are quasi-identifiers.
const staffTables = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE staff (id int PRIMARY KEY, town text, pay int);
INSERT INTO staff SELECT n, 't' || n % 8, n * 7919 % 100 FROM generate_series(1, 400) n;
CREATE TABLE leave (id int CONSTRAINT leave_of REFERENCES staff, day int);
INSERT INTO leave SELECT id, d FROM staff, generate_series(1, 2) d;`

const townPayPolicy = `
CALL tailor.define_hierarchy('pay', 'interval', '{"widths": [10], "lower": 0, "upper": 99}');
CALL tailor.define_hierarchy('town', 'prefix', '{"keep": [1]}');
CALL tailor.protect('staff', 'id', 5); CALL tailor.protect('leave', 'id', 5);
CALL tailor.classify('staff', 'town', 'quasi_identifier', hierarchy => 'town');
CALL tailor.classify('staff', 'pay', 'quasi_identifier', hierarchy => 'pay');
CALL tailor.classify('leave', 'day', 'non_sensitive');
CALL tailor.activate('staff');`

// shownByMeans makes of the policy in force what an earlier version stored of one
// that shows pay by means of blocks.
const shownByMeans = `
ALTER TABLE tailor.classification ADD representative text NOT NULL DEFAULT 'middle' CHECK
    (representative IN ('middle', 'mean'));
ALTER TABLE tailor.chain ADD means bytea;
UPDATE tailor.classification SET representative = 'mean' WHERE column_name = 'pay';
UPDATE tailor.chain SET means = '\x01', layout = 7 WHERE relation = 'staff'::regclass;
UPDATE tailor.policy_version SET policy = jsonb_set(policy, '{columns}', (
    SELECT jsonb_agg(CASE WHEN c ->> 'name' = 'pay' THEN c || '{"representative": "mean"}'
        ELSE c END)
    FROM jsonb_array_elements(policy -> 'columns') c)) WHERE relation = 'staff'::regclass;
CREATE PROCEDURE tailor.assert_means(relation regclass, policy jsonb) LANGUAGE sql AS '';`

// TestAnUpgradeShowsNothingOfATableThatWasShownByMeans activates the policy before
// the chains are forgotten: neither by itself is enough.
func TestAnUpgradeShowsNothingOfATableThatWasShownByMeans(t *testing.T) {
	const database = "upgrade_means"
	const query, join = `SELECT town, pay FROM staff`,
		`SELECT pay FROM leave l JOIN staff s ON l.id = s.id`
	direct := makeDatabase(t, database, staffTables)
	if err := shared.install(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, townPayPolicy)
	name := shared.reader(t)
	p := serveDatabase(t, database)
	rowsOf(t, connect(t, p.dsn(name)), query)
	p.stop(t)
	mustExec(t, direct, shownByMeans)

	dsn := shared.cluster.SuperuserDSN(database)
	for range 2 {
		if code, _, stderr := tool(t, "install", "--dsn", dsn); code != 0 {
			t.Fatal(stderr)
		}
	}
	if left := one[int](t, direct,
		`SELECT count(*) FROM pg_attribute WHERE attname IN ('means', 'representative')
			AND NOT attisdropped
		AND attrelid IN ('tailor.chain'::regclass, 'tailor.classification'::regclass)`); left > 0 {
		t.Errorf("%d columns are left", left)
	}
	if one[bool](t, direct,
		`SELECT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'tailor'::regnamespace `+
			`AND proname = 'assert_means')`) {
		t.Error("a procedure is left")
	}
	if code, stdout, _ := tool(t, "doctor", "--dsn", dsn); code != 1 || !strings.Contains(stdout,
		"by means of blocks") ||
		!strings.Contains(stdout, "tailor.forget_chains('public.staff')") {
		t.Errorf("doctor: exit %d, %s", code, stdout)
	}

	reader := connect(t, serveDatabase(t, database).dsn(name))
	refused := func(when string, calls ...string) {
		t.Helper()
		for _, sql := range []string{
			query, `SELECT count(*) FROM staff`,
			`EXPLAIN (TAILOR) SELECT town FROM staff`,
		} {
			hint := refusedAs(t, reader, sql, "KA004").Hint
			for _, call := range calls {
				if !strings.Contains(hint, call+"('public.staff')") {
					t.Errorf("%s: %s: %s", when, sql, hint)
				}
			}
		}
	}
	refused("after the upgrade", "tailor.activate", "tailor.forget_chains")
	mustExec(t, direct, `CALL tailor.refresh('staff')`)
	refused("after a refresh", "tailor.activate", "tailor.forget_chains")

	// What is exported asks for no means, and is not yet in force.
	code, exported, stderr := tool(t, "policy", "export", "--dsn", dsn, "-")
	if code != 0 || strings.Contains(exported, "representative") {
		t.Fatalf("export: exit %d, %s%s", code, exported, stderr)
	}
	if code, _, stderr := tool(t, "policy", "apply", "--dsn", dsn,
		policyFile(t, exported)); code != 0 {
		t.Fatal(stderr)
	}
	mustExec(t, direct, `CALL tailor.activate('leave')`)
	if one[bool](t, direct,
		`SELECT policy @? '$.columns[*].representative' FROM tailor.policies `+
			`WHERE relation = 'staff'::regclass`) {
		t.Error("the policy was not activated anew")
	}
	refused("after an activation", "tailor.forget_chains")
	// The child borrows nothing from what was shown so, and is shown by itself.
	answeredSoon(t, reader, `SELECT day FROM leave`)
	if hint := refusedSoon(t, reader, join, "KA004").Hint; !strings.Contains(hint,
		"tailor.forget_chains('public.staff')") {
		t.Errorf("a join: %s", hint)
	}

	mustExec(t, direct, `CALL tailor.forget_chains('staff'); CALL tailor.activate('leave')`)
	answeredSoon(t, reader, query)
	if hint := refusedSoon(t, reader, join, "KA004").Hint; !strings.Contains(hint,
		"tailor.forget_chains") {
		t.Errorf("a join with a child that was shown without: %s", hint)
	}
	mustExec(t, direct, `CALL tailor.forget_chains('leave')`)
	answeredSoon(t, reader, join)
}

func TestChainsThatAreForgottenFirstWaitForTheActivation(t *testing.T) {
	const database = "upgrade_means_forgotten"
	const query = `SELECT town, pay FROM staff`
	direct := makeDatabase(t, database, staffTables)
	if err := shared.install(t.Context(), database); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, townPayPolicy+shownByMeans)
	if code, _, stderr := tool(t, "install", "--dsn",
		shared.cluster.SuperuserDSN(database)); code != 0 {
		t.Fatal(stderr)
	}
	reader := connect(t, serveDatabase(t, database).dsn(shared.reader(t)))
	refusedAs(t, reader, query, "KA004")
	mustExec(t, direct, `CALL tailor.forget_chains('staff')`)
	refusedAs(t, reader, query, "KA004")
	mustExec(t, direct, `CALL tailor.activate('staff')`)
	answeredSoon(t, reader, query)
}

func TestARepresentativeIsTheMiddle(t *testing.T) {
	direct := makeDatabase(t, "representatives", staffTables)
	if err := shared.install(t.Context(), "representatives"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, townPayPolicy)
	for _, c := range []struct{ call, code, names string }{
		{`CALL tailor.represent('staff', 'pay', 'mean')`, "0A000", "representative: mean is gone"},
		{
			`CALL tailor.represent('staff', 'pay', 'mean')`, "0A000",
			"Leave it out: values are then raked.",
		},
		{`CALL tailor.represent('staff', 'pay', 'median')`, "22023", "unknown representative"},
		{`CALL tailor.represent('staff', 'pay', NULL)`, "22023", "unknown representative"},
		{
			`CALL tailor.represent('leave', 'day', 'middle')`, "22023",
			"not classified as quasi_identifier",
		},
		{`CALL tailor.represent('staff', 'id', 'middle')`, "22023", "not classified as quasi_identifier"},
	} {
		_, err := direct.Exec(t.Context(), c.call)
		assertState(t, err, c.code, c.names)
	}
	mustExec(t, direct,
		`CALL tailor.represent('staff', 'pay', 'middle'); CALL tailor.activate('staff')`)
}

func TestAChildWithoutItsKeyIsRefusedUntilItsChainsAreForgotten(t *testing.T) {
	direct := makeDatabase(t, "key_dropped", staffTables)
	if err := shared.install(t.Context(), "key_dropped"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, townPayPolicy+`CALL tailor.activate('leave')`)
	reader := connect(t, serveDatabase(t, "key_dropped").dsn(shared.reader(t)))
	rowsOf(t, reader, `SELECT pay FROM leave l JOIN staff s ON l.id = s.id`)
	// It has no quasi-identifiers any more; its chains have shown some.
	mustExec(t, direct, `ALTER TABLE leave DROP CONSTRAINT leave_of; CALL tailor.activate('leave')`)
	refusedSoon(t, reader, `SELECT day FROM leave`, "KA004")
	mustExec(t, direct, `CALL tailor.forget_chains('leave')`)
	answeredSoon(t, reader, `SELECT day FROM leave`)
}
