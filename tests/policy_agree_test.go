package tests

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// TestPlansRefuseWhatApplyRefuses: what activation refuses whatever the rows say is found by a
// plan, with a reason, and neither changes anything.
func TestPlansRefuseWhatApplyRefuses(t *testing.T) {
	direct := makeDatabase(t, "agree", `
CREATE TABLE people AS SELECT n AS id, 20 + n * 7919 % 60 AS age, (1000 + n % 7)::text AS zip,
	n % 4 AS illness FROM generate_series(1, 400) n;
ALTER TABLE people ADD PRIMARY KEY (id), ADD decade integer GENERATED ALWAYS AS (age / 10) STORED;
CREATE VIEW elders AS SELECT * FROM people WHERE age > 60;
CREATE ROLE agree_apart LOGIN NOINHERIT; CREATE ROLE agree_all LOGIN;
GRANT pg_read_all_data TO agree_all;
CREATE ROLE agree_plain LOGIN`)
	if err := shared.install(t.Context(), "agree"); err != nil {
		t.Fatal(err)
	}
	dsn := shared.cluster.SuperuserDSN("agree")
	const policy = `version: 1
hierarchies:
  age: {type: interval, widths: [10, 20], lower: 0, upper: 99}
  zip: {type: prefix, keep: [3, 2]}
tables:
  public.people:
    subject: id
    k: 5
    readers: [%s]
    columns:
      id: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: age}
      zip: {class: quasi_identifier, hierarchy: zip}
      %s
`
	plain := fmt.Sprintf(policy, "researcher", "illness: {class: sensitive}")
	run := func(want int, verb, text string, flags ...string) string {
		t.Helper()
		stdout, stderr, code := tailor(t, append([]string{
			"policy", verb, "--dsn", dsn,
			policyFile(t, text),
		}, flags...)...)
		if code != want {
			t.Errorf("tailor policy %s: exit %d, not %d\n%s%s", verb, code, want, stdout, stderr)
		}
		return strings.Join(strings.Fields(stdout+stderr), " ")
	}
	disagree := func(text, reason string) {
		t.Helper()
		before := state(t, direct)
		for _, verb := range []string{"plan", "apply"} {
			if said := run(1, verb, text); !strings.Contains(said, reason) {
				t.Errorf("tailor policy %s says\n%s\nwithout %q", verb, said, reason)
			}
		}
		if after := state(t, direct); after != before {
			t.Errorf("%q: it was changed from\n%s\nto\n%s", reason, before, after)
		}
	}
	disagree(fmt.Sprintf(policy, "researcher", "decade: {class: non_sensitive}"),
		`column "decade" is computed from the quasi-identifier "age"`)
	disagree(fmt.Sprintf(policy, "agree_apart", "illness: {class: sensitive}"), "agree_apart")
	disagree(fmt.Sprintf(policy, "agree_all", "illness: {class: sensitive}"), "agree_all")
	disagree(fmt.Sprintf(policy, "nobody_there", "illness: {class: sensitive}"), "nobody_there")
	disagree(strings.Replace(plain, "keep: [3, 2]", "keep: [2, 3]", 1), "zip")
	mustExec(t, direct, `GRANT SELECT ON elders TO agree_plain`)
	disagree(fmt.Sprintf(policy, "agree_plain", "illness: {class: sensitive}"),
		"through the view public.elders")
	mustExec(t, direct, `ALTER TABLE people ENABLE ROW LEVEL SECURITY`)
	disagree(plain, "has row-level security")
	mustExec(t, direct, `ALTER TABLE people DISABLE ROW LEVEL SECURITY`)

	run(0, "plan", plain)
	run(0, "apply", plain)
	answeredSoon(t, connect(t, serveDatabase(t, "agree").dsn("researcher")), "SELECT age FROM people")

	// Another column in place of one that was shown.
	mustExec(t, direct, `ALTER TABLE people ADD severity integer`)
	other := fmt.Sprintf(policy, "researcher", "severity: {class: sensitive}")
	disagree(other, `and column "severity" would be new`)
	const flag = "--forget-chains=public.people"
	if said := run(0, "plan", other, flag); !strings.Contains(said, "shown anew") {
		t.Error(said)
	}
	run(0, "apply", other, flag)

	// The policy taken away, and the table made anew.
	mustExec(t, direct, `CALL tailor.unprotect('people')`)
	disagree(plain, "under the policy that was taken away")
	run(0, "plan", plain, flag)
	run(0, "apply", plain, flag)
	mustExec(t, direct, `DROP VIEW elders; DROP TABLE people;
		CREATE TABLE people (id integer PRIMARY KEY, age integer, zip text, illness integer);
		INSERT INTO people SELECT n, 30, '1000', n % 4 FROM generate_series(1, 100) n;
		CREATE VIEW elders AS SELECT`)
	disagree(plain, "shown another table by the name")
	run(0, "plan", plain, flag)
	run(0, "apply", plain, flag)
	if said := run(1, "apply", plain, "--forget-chains=peoples"); !strings.Contains(said,
		"there is no table peoples in the file") {
		t.Error(said)
	}
	// A file says all: a schedule that was set in SQL ends by it.
	mustExec(t, direct, `CALL tailor.schedule('public.people', '1 day')`)
	if said := run(0, "plan", plain); !strings.Contains(said, "refresh: 24h -> never") ||
		!strings.Contains(said, "0 tables to protect, 1 to change") {
		t.Error(said)
	}
	if said := run(0, "apply", plain); !strings.Contains(said,
		"public.people: refresh: 24h -> never applied: 0 of 1 tables activated") {
		t.Error(said)
	}
	var fault *pgconn.PgError
	if _, err := direct.Exec(t.Context(), `CALL tailor.rehearse('people')`); !errors.As(err, &fault) ||
		fault.Code != "55000" || fault.Message != "what was rehearsed cannot be committed" {
		t.Error(err)
	}
}
