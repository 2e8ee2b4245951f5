package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// townPolicy protects a table of two hundred people; tests break it.
const townPolicy = `version: 1
hierarchies:
  town_age: {type: interval, widths: [5, 10, 20], lower: 0, upper: 119}
  town_zip: {type: prefix, keep: [3, 2]}
tables:
  town.people:
    subject: id
    k: 5
    require: [{model: l_diversity, column: illness, parameter: 2}]
    recoding: auto
    chain: {scope: table, seed: [[age, zip]]}
    readers: [townreader]
    columns:
      id: {class: direct_identifier}
      name: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: town_age}
      zip: {class: quasi_identifier, hierarchy: town_zip}
      illness: {class: sensitive}
`

// town is a stand with the table, its owner and a role for the readers.
func town(t *testing.T) (s *testCluster, dsn string) {
	t.Helper()
	s, err := newStand(filepath.Join(stands, "town"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t), `
CREATE ROLE mayor LOGIN PASSWORD 'mayor'; GRANT tailor_admin TO mayor;
    CREATE SCHEMA town AUTHORIZATION mayor;
CREATE ROLE townreader LOGIN PASSWORD 'townreader'; CREATE ROLE gone LOGIN;
    CREATE ROLE boss SUPERUSER;
SET SESSION AUTHORIZATION mayor;
CREATE TABLE town.people (id integer PRIMARY KEY, name text, age integer, zip text,
    illness text, since timestamptz, gender text);
INSERT INTO town.people SELECT n, 'person ' || n, 20 + n % 60, (1000 + n % 7)::text,
    'illness ' || n % 4, now(), CASE n % 2 WHEN 0 THEN 'w' ELSE 'm' END
    FROM generate_series(1, 200) n;
CREATE TABLE town.strays AS SELECT CASE WHEN id > 3 THEN id END AS id, age FROM town.people;
CREATE VIEW town.elders AS SELECT * FROM town.people WHERE age > 60;
CREATE TABLE town.few AS SELECT * FROM town.people LIMIT 3;
CREATE TABLE town.codes (code text, label text);
    INSERT INTO town.codes VALUES ('1000', 'a'), (NULL, 'b');`)
	return s, fmt.Sprintf("postgres://mayor:mayor@%s/hospital?sslmode=disable", s.cluster.Address())
}

// policyFile writes a file.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// state is everything that a failed attempt must leave as it was.
func state(t *testing.T, conn *pgx.Conn) string {
	t.Helper()
	return one[string](t, conn, `SELECT jsonb_build_array(
		(SELECT jsonb_agg(p ORDER BY relation::text) FROM tailor.protection p), (SELECT jsonb_agg(h
		ORDER BY name) FROM tailor.hierarchy h),
		(SELECT jsonb_agg(c ORDER BY c::text) FROM tailor.classification c), (SELECT jsonb_agg(r
		ORDER BY r::text) FROM tailor.requirement r),
		(SELECT jsonb_agg(s ORDER BY relation::text) FROM tailor.set_valued s), (SELECT jsonb_agg(s
		ORDER BY relation::text) FROM tailor.schedule s),
		(SELECT jsonb_agg(j ORDER BY name) FROM tailor.project j), (SELECT count(*) FROM tailor.progress),
		(SELECT count(*) FROM tailor.policy_version), (SELECT count(*) FROM tailor.epoch),
		(SELECT jsonb_agg(relname ORDER BY relname) FROM pg_class
		WHERE relnamespace = 'tailor_store'::regnamespace),
		(SELECT jsonb_agg(m::text ORDER BY m::text) FROM pg_auth_members m),
		(SELECT jsonb_agg(relacl::text ORDER BY oid) FROM pg_class
		WHERE relnamespace IN (to_regnamespace('town'), to_regnamespace('public'))))::text`)
}

func TestPolicyFiles(t *testing.T) {
	s, dsn := town(t)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster, dsn string)
	}{
		{"a faulty policy leaves everything as it was", appliesAllOrNothing},
		{"a wrong call of a procedure gives one clear error", refusesWrongCalls},
		{"two administrators at once do not mix", appliesAlone},
		{"two administrators who activate one table get a version each", activatesOneAfterTheOther},
		{"a plan shows what apply does", plansWhatIsApplied},
		{"an export is the policy that was applied", exportsRoundTrip},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s, dsn) })
	}
}

// appliesAllOrNothing applies files that lint cannot fault. Two tables are in
// each: the first would succeed.
func appliesAllOrNothing(t *testing.T, s *testCluster, dsn string) {
	super := s.superuser(t)
	mustExec(t, s.as(t, "mayor"),
		`CREATE TABLE town.sound AS SELECT id, age FROM town.people; `+
			`CREATE TABLE town.sets AS SELECT id, illness, since, age FROM town.people`)
	sound := "  town.sound:\n    subject: id\n    k: 5\n    columns:\n      age: {class: " +
		"quasi_identifier, hierarchy: town_age}\n"
	before := state(t, super)
	for _, c := range []struct{ claim, old, new, message string }{
		{"a table that does not exist", "town.people:", "town.nobody:", "there is no table town.nobody"},
		{
			"a schema that does not exist", "town.people:", "village.people:",
			"there is no table village.people",
		},
		{"a view", "town.people:", "town.elders:", "there is no table town.elders"},
		{
			"a table of somebody else", "town.people:\n    subject: id", "public.patients:\n    subject: id",
			"no column",
		},
		{"a column that does not exist", "      name:", "      nickname:", `no column "nickname"`},
		{
			"a subject that does not exist", "subject: id\n    k: 5\n    req",
			"subject: person\n    k: 5\n    req", `no column "person" to be the subject`,
		},
		{
			"a reader that does not exist", "[townreader]", "[nobody_at_all]",
			`role "nobody_at_all" does not exist`,
		},
		{"a reader who is a superuser", "[townreader]", "[boss]", "bypasses privileges"},
		{"the owner as a reader", "[townreader]", "[mayor]", "cannot be a reader"},
		{"an age beyond the bounds", "upper: 119", "upper: 59", "has no place for"},
		{
			"a code without a place in the list", "{type: prefix, keep: [3, 2]}",
			"{type: table, paths: [[\"1000\"]]}", "has no place for",
		},
		{
			"a source that does not exist", "{type: prefix, keep: [3, 2]}",
			"{type: table, source: town.nothing, columns: [code]}", "does not exist",
		},
		{
			"a source with NULL", "{type: prefix, keep: [3, 2]}",
			"{type: table, source: town.codes, columns: [code, label]}", "list of texts",
		},
		{
			"a source without the column", "{type: prefix, keep: [3, 2]}",
			"{type: table, source: town.codes, columns: [kode]}", "does not exist",
		},
		{
			"an interval of texts", "age: {class: quasi_identifier, hierarchy: town_age}\n      zip",
			"gender: {class: quasi_identifier, hierarchy: town_age}\n      age: {class: quasi_identifier, " +
				"hierarchy: town_age}\n      zip", "cannot have a hierarchy of kind interval",
		},
		{
			"prefixes of numbers", "age: {class: quasi_identifier, hierarchy: town_age}\n      zip",
			"age: {class: quasi_identifier, hierarchy: town_zip}\n      zip",
			"cannot have a hierarchy of kind prefix",
		},
		{"dates of text", "keep: [3, 2]}", "keep: [3, 2]}\n  town_day: {type: date, levels: [year]}", ""},
		{
			"a subject with NULL", "tables:",
			"tables:\n  town.strays: {subject: id, k: 5, columns: {age: {class: sensitive}}}",
			"is NULL in 3 rows",
		},
		{"codes that are times", "tables:", "tables:\n  town.sets: {subject: id, k: 5, set_valued: " +
			"{column: since, m: 2}, columns: {since: {class: sensitive}}}", "cannot be set-valued"},
		{
			"a set-valued column that does not exist", "tables:",
			"tables:\n  town.sets: {subject: id, k: 5, set_valued: {column: ills, m: 2}, columns: {ills: " +
				"{class: sensitive}}}", `no column "ills"`,
		},
		{
			"a built-in hierarchy of another type", "hierarchy: town_zip", "hierarchy: builtin.income",
			"cannot have a hierarchy of kind interval",
		},
		{
			"birthdays in a column of numbers", "hierarchy: town_age", "hierarchy: builtin.birth_date",
			"cannot have a hierarchy of kind date",
		},
		{
			"a table with a parent's privileges, refreshed by schedule", "    readers: [townreader]",
			"    refresh: 24h\n    readers: [nobody_else]", `role "nobody_else" does not exist`,
		},
		{"cell recoding", "recoding: auto", "recoding: cell", "cannot be kept safe"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			text := strings.Replace(townPolicy+sound, c.old, c.new, 1)
			if c.message == "" {
				text = strings.Replace(text, "zip: {class: quasi_identifier, hierarchy: town_zip}",
					"zip: {class: quasi_identifier, hierarchy: town_day}", 1)
				c.message = "cannot have a hierarchy of kind date"
			}
			file := policyFile(t, text)
			if code, _, stderr := tool(t, "policy", "lint", file); code != 0 {
				t.Fatalf("lint: %s", stderr)
			}
			code, stdout, stderr := tool(t, "policy", "apply", "--dsn", dsn, file)
			last := stderr[strings.LastIndex(strings.TrimSuffix(stderr, "\n"), "\n")+1:]
			if code != 1 || stdout != "" || !strings.Contains(last, c.message) || !strings.HasPrefix(last,
				"tailor policy apply: ") || !strings.Contains(last, "; ") {
				t.Errorf("exit %d, %q, %q; want %q with a hint", code, stdout, stderr, c.message)
			}
			if after := state(t, super); after != before {
				t.Errorf("something was applied:\n%s\nbefore\n%s", after, before)
			}
		})
	}
	mustExec(t, s.as(t, "mayor"), `DROP TABLE town.sound, town.sets`)
}

// activatesOneAfterTheOther has two sessions activate one table at once: each
// gets a version of its own, and the last one is in force.
func activatesOneAfterTheOther(t *testing.T, s *testCluster, _ string) {
	first, second, super := s.as(t, "mayor"), s.as(t, "mayor"), s.superuser(t)
	mustExec(t, first, `CREATE TABLE town.shared AS SELECT id + 1000 AS id, illness
		FROM town.people; CALL tailor.protect('town.shared', 'id', 5);
CALL tailor.classify('town.shared', 'illness', 'sensitive')`)
	mustExec(t, first, `BEGIN; CALL tailor.activate('town.shared')`)
	done := make(chan error, 1)
	go func() {
		_, err := second.Exec(t.Context(), `CALL tailor.activate('town.shared')`)
		done <- err
	}()
	waitFor(t, func() bool {
		return one[bool](t, super,
			`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'town.shared'::regclass)`)
	})
	mustExec(t, first, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if versions := one[string](t, super,
		`SELECT string_agg(v.version::text, ',' ORDER BY v.version) || ' ' || p.active
			FROM tailor.policy_version v JOIN tailor.protection p USING (relation)
		WHERE relation = 'town.shared'::regclass GROUP BY p.active`); versions != "1,2 2" {
		t.Errorf("versions and the one in force: %s", versions)
	}
	mustExec(t, super, `DELETE FROM tailor.protection WHERE relation = 'town.shared'::regclass; `+
		`DROP VIEW research.shared; DROP TABLE town.shared`)
}

func appliesAlone(t *testing.T, s *testCluster, dsn string) {
	file := policyFile(t, townPolicy)
	first := s.superuser(t)
	mustExec(t, first, `BEGIN`)
	mustExec(t, first, `SELECT tailor.apply_alone()`)
	code, _, stderr := tool(t, "policy", "apply", "--dsn", dsn, file)
	if code != 1 || !strings.Contains(stderr, "another policy is being applied") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	mustExec(t, first, `ROLLBACK`)
}

func plansWhatIsApplied(t *testing.T, s *testCluster, dsn string) {
	file := policyFile(t, townPolicy)
	plan := func(name string, wants ...string) {
		t.Helper()
		code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, name)
		for _, want := range wants {
			if code != 0 || !strings.Contains(stdout, want) {
				t.Errorf("exit %d, %s\n%s\nwant %q", code, stderr, stdout, want)
			}
		}
	}
	mayor := s.as(t, "mayor")
	mustExec(t, mayor, `GRANT SELECT ON town.elders TO townreader`)
	if code, stdout, _ := tool(t, "policy", "plan", "--dsn", dsn, file); code != 1 ||
		!strings.Contains(stdout, `! reader "townreader" can still read table town.people `+
			"through the view town.elders") {
		t.Errorf("exit %d, %s", code, stdout)
	}
	mustExec(t, mayor, `REVOKE SELECT ON town.elders FROM townreader`)
	plan(file, "town.people: to be protected", "+ k: 5", "readers: + townreader",
		"without a class, hidden: since, gender", "200 rows, 200 subjects",
		"1/1 as stored", "1 tables to protect, 0 to change")
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", dsn, file); code != 0 ||
		!strings.Contains(stdout, "1 of 1 tables activated: town.people") {
		t.Fatalf("exit %d, %s %s", code, stdout, stderr)
	}
	plan(file, "town.people: as it is", "0 to change, 1 as they are")
	if code, stdout, _ := tool(t, "policy", "apply", "--dsn", dsn, file); code != 0 ||
		!strings.Contains(stdout, "0 of 1 tables activated") {
		t.Errorf("exit %d, %s: what is in force is not activated again", code, stdout)
	}
	changed := policyFile(t, strings.NewReplacer("k: 5", "k: 4",
		"      name: {class: direct_identifier}\n", "", "widths: [5, 10, 20]", "widths: [10, 20]").
		Replace(townPolicy))
	plan(changed, "~ k: 5 -> 4", "- name: {class: direct_identifier} (would be hidden)",
		"~ age: quasi_identifier by {type: interval, widths: [5, 10, 20]", " now", "1 to change")

	narrow := policyFile(t, strings.Replace(townPolicy, "upper: 119", "upper: 49", 1))
	code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, narrow)
	if code != 1 || !strings.Contains(stdout, "! age: ") || !strings.Contains(stdout,
		"outside the bounds") || !strings.Contains(stderr, "cannot be applied") {
		t.Errorf("exit %d, %s\n%s", code, stdout, stderr)
	}
	// Reading through the proxy is what all this is for.
	p := s.serve(t)
	if rows := one[int](t, connect(t, p.dsn("townreader")),
		`SELECT count(*) FROM town.people WHERE age IS NOT NULL`); rows != 200 {
		t.Errorf("%d rows", rows)
	}
}

func exportsRoundTrip(t *testing.T, s *testCluster, dsn string) {
	mayor := s.as(t, "mayor")
	mustExec(t, mayor, `CREATE TABLE town."Odd Table" (id integer, "on" text, day date);
INSERT INTO town."Odd Table" SELECT n, 'x', DATE '2020-01-01' + n FROM generate_series(1, 20) n;
CALL tailor.define_hierarchy('odd day', 'date',
    '{"levels": ["month", "year"], "lower": "2000-01-01", "upper": "2029-12-31"}');
CALL tailor.protect('town."Odd Table"', 'id', 3);
CALL tailor.classify('town."Odd Table"', 'on', 'non_sensitive');
CALL tailor.classify('town."Odd Table"', 'day', 'quasi_identifier', hierarchy => 'odd day');
CALL tailor.classify('town."Odd Table"', 'id', 'direct_identifier', action => 'pseudonym');
CALL tailor.chain_scope('town."Odd Table"', 'project');
CALL tailor.gate('town."Odd Table"', 'average', 0.125);
CALL tailor.activate('town."Odd Table"');
CALL tailor.schedule('town."Odd Table"', '36 hours');
CREATE TABLE town.sets AS SELECT id, illness, age FROM town.people;
CALL tailor.protect('town.sets', 'id', 5);
CALL tailor.set_valued('town.sets', 'illness', m => 2,
    constraints => '{"b": ["illness 2", "illness 1"], "aa": ["illness 3"]}',
    sensitive => ARRAY['illness 0'], diversity => 2);
CALL tailor.activate('town.sets'); CALL tailor.schedule('town.sets', on_change => true);
CREATE TABLE town.plain AS SELECT id, age FROM town.people;
CALL tailor.protect('town.plain', 'id', 5);
    CALL tailor.classify('town.plain', 'age', 'quasi_identifier', hierarchy => 'builtin.age');
        CALL tailor.represent('town.plain', 'age', 'middle'); CALL tailor.activate('town.plain')`)
	export := func() string {
		t.Helper()
		code, stdout, stderr := tool(t, "policy", "export", "--dsn", dsn, "-")
		if code != 0 {
			t.Fatal(stderr)
		}
		return stdout
	}
	first := export()
	for _, want := range []string{
		"seed: [[age, zip]]", `"town.\"Odd Table\"":`, `"on": {class: non_sensitive}`, "odd day",
		"action: pseudonym",
		"gate: {measure: average, max_risk: 0.125}", "refresh: 36h", "refresh: on_change",
		"age: {class: quasi_identifier, hierarchy: builtin.age, representative: middle}",
		"set_valued: {column: illness, m: 2, constraints: {aa: [illness 3], b: [illness 2, illness " +
			"1]}, sensitive: [illness 0], diversity: 2}",
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the export lacks %q:\n%s", want, first)
		}
	}
	file := policyFile(t, first)
	if code, _, stderr := tool(t, "policy", "lint", file); code != 0 {
		t.Fatalf("lint: %s", stderr)
	}
	super := s.cluster.SuperuserDSN("hospital") // owns all tables of the export
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", super, file); code != 0 ||
		!strings.Contains(stdout, "applied: 0 of ") {
		t.Errorf("exit %d, %s%s: what was exported is in force", code, stdout, stderr)
	}
	// In force again after something else was.
	mustExec(t, mayor, `CALL tailor.clear_draft('town.people'); `+
		`CALL tailor.forget_chains('town.people'); `+
		`CALL tailor.classify('town.people', 'age', 'sensitive'); CALL tailor.activate('town.people')`)
	if export() == first {
		t.Error("the export shows an older policy")
	}
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", super, file); code != 0 ||
		!strings.Contains(stdout, "1 of ") {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	if again := export(); again != first {
		t.Errorf("exported\n%s\nand after applying that\n%s", first, again)
	}
	// All that the file says is written anew after a draft was emptied.
	mustExec(t, mayor, `CALL tailor.clear_draft('town."Odd Table"');
		CALL tailor.classify('town."Odd Table"', 'on', 'non_sensitive');
			CALL tailor.activate('town."Odd Table"');
CALL tailor.schedule('town."Odd Table"', NULL); CALL tailor.forget_chains('town.sets');
    CALL tailor.set_valued('town.sets', 'illness', m => 3); CALL tailor.activate('town.sets')`)
	code, stdout, stderr := tool(t, "policy", "plan", "--dsn", super, file)
	for _, want := range []string{
		"+ gate: {measure: average, max_risk: 0.125}",
		"refresh: never -> 36h", "~ set_valued: {column: illness, m: 3} -> {column: illness, m: 2,",
		"2 to change",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit %d, the plan lacks %q: %s\n%s", code, want, stderr, stdout)
		}
	}
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", super, file); code != 0 ||
		!strings.Contains(stdout, "2 of ") {
		t.Fatalf("exit %d, %s%s", code, stdout, stderr)
	}
	if again := export(); again != first {
		t.Errorf("exported\n%s\nand after applying that\n%s", first, again)
	}
}
