package tests

import "testing"

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
