package tests

import (
	"strings"
	"testing"
)

// TestOwnersTakeDataSetsAway who are no superusers.
func TestOwnersTakeDataSetsAway(t *testing.T) {
	direct, reader := lately(t, "owners_sets")
	mustExec(t, direct, `CREATE ROLE sets_owner LOGIN; GRANT tailor_admin TO sets_owner;
		GRANT CREATE ON SCHEMA public TO sets_owner; SET SESSION AUTHORIZATION sets_owner;
		CREATE TABLE mine AS SELECT i AS id, 20 + i % 40 AS age, i AS cost, i % 3 AS visits
			FROM generate_series(1, 200) i; ALTER TABLE mine ADD PRIMARY KEY (id);`+activated("mine"))
	answeredSoon(t, reader, "SELECT cost FROM mine")
	mustExec(t, direct, `CALL tailor.define_dataset('counts', 'SELECT id, visits FROM mine',
			subject => 'id');
		CALL tailor.classify('counts', 'id', 'direct_identifier');
		CALL tailor.classify('counts', 'visits', 'sensitive'); CALL tailor.activate('counts')`)
	answeredSoon(t, reader, "SELECT visits FROM counts")
	mustExec(t, direct, `CALL tailor.unprotect('counts')`)
	answeredSoon(t, reader, "SELECT cost FROM mine")
}

// TestPlansTryDataSetsOut that are still to be made of their query.
func TestPlansTryDataSetsOut(t *testing.T) {
	direct, reader := lately(t, "sets_tried")
	mustExec(t, direct, `CREATE TABLE mine AS
			SELECT i AS id, 20 + i % 40 AS age, i AS cost, i % 3 AS visits FROM generate_series(1, 200) i;
		ALTER TABLE mine ADD PRIMARY KEY (id);`+activated("mine"))
	answeredSoon(t, reader, "SELECT cost FROM mine")
	dsn := shared.cluster.SuperuserDSN("sets_tried")
	file := func(query string) string {
		return policyFile(t, exportOf(t, dsn)+`  public.counts:
    data_set: {of: public.mine, query: "`+query+`"}
    subject: id
    k: 5
    columns:
      id: {class: direct_identifier}
      visits: {class: sensitive}
`)
	}
	missing := file("SELECT id, visits FROM minee")
	for _, verb := range []string{"plan", "apply"} {
		said, stderr, code := tailor(t, "policy", verb, "--dsn", dsn, missing)
		if code != 1 || !strings.Contains(said+stderr, `relation "minee" does not exist`) {
			t.Errorf("%s: exit %d\n%s%s", verb, code, said, stderr)
		}
	}
	good := file("SELECT id, visits FROM mine;")
	for _, verb := range []string{"plan", "apply"} {
		if said, stderr, code := tailor(t, "policy", verb, "--dsn", dsn, good); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", verb, code, said, stderr)
		}
	}
	answeredSoon(t, reader, "SELECT visits FROM counts")
	mustExec(t, direct, `CALL tailor.unprotect('counts'); DROP MATERIALIZED VIEW counts`)
	other := file("SELECT id, visits + 1 AS visits FROM mine")
	for _, verb := range []string{"plan", "apply"} {
		said, stderr, code := tailor(t, "policy", verb, "--dsn", dsn, other)
		if code != 1 || !strings.Contains(said+stderr, "would be new") {
			t.Errorf("%s: exit %d\n%s%s", verb, code, said, stderr)
		}
	}
}
