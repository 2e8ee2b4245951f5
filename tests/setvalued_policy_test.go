package tests

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func guardsRefresh(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	drawCodes(1000).fill(t, owner, "renewed", "")
	mustExec(t, owner, `CALL tailor.activate('renewed')`)
	// Before anybody was shown anything, which a proxy would do at once, anything may change.
	mustExec(t, owner, `INSERT INTO renewed (person, code) VALUES (1, '240.00')`)
	mustExec(t, owner, `CALL tailor.refresh('renewed')`)
	conn := connect(t, s.serve(t).dsn(s.reader(t)))
	waitFor(t, func() bool {
		return again[int](t, conn, "SELECT count(DISTINCT person) FROM renewed") == 1001
	})

	shown := sets(shownRows(t, conn, "renewed"))
	mustExec(t, owner, `INSERT INTO renewed (person, code) VALUES (2, '241.10'), (2, '299.30'), (3,
		'240.00');
DELETE FROM renewed WHERE person = 1; INSERT INTO renewed (person, code) VALUES (1000000,
	'299.30')`)
	waiting := func() []int64 {
		t.Helper()
		awaitTakenIn(t, s.superuser(t), "renewed")
		return one[[]int64](t, owner, `SELECT ARRAY[arrivals, departures, changes]
			FROM tailor.epochs WHERE relation = 'renewed'::regclass`)
	}
	for _, call := range []string{"refresh", "activate"} {
		mustExec(t, owner, fmt.Sprintf(`CALL tailor.%s('renewed')`, call))
		if found := waiting(); !slices.Equal(found, []int64{2, 1, 1}) {
			t.Errorf("%v wait to come, to go and to change after %s, want 2, 1 and 1", found, call)
		}
	}
	conn = connect(t, conn.Config().ConnString()) // which has nothing prepared under the policy before
	mustExec(t, owner, `INSERT INTO renewed (person, code) SELECT n, '242.20'
		FROM generate_series(10, 107) n; CALL tailor.refresh('renewed')`)
	if found := waiting(); !slices.Equal(found, []int64{0, 1, 1}) {
		t.Errorf("%v wait to come, to go and to change, want 0, 1 and 1", found)
	}
	waitFor(t, func() bool {
		return again[int](t, conn,
			"SELECT count(DISTINCT person) FROM renewed") == 1101
	})
	now := sets(shownRows(t, conn, "renewed"))
	for person, codes := range shown {
		if !slices.Equal(now[person], codes) {
			t.Fatalf("%s was shown with %v and is shown with %v", person, codes, now[person])
		}
	}

	// Another k, m or constraint would be a second publication of the same.
	for _, draft := range []string{
		`CALL tailor.set_valued('renewed', column_name => 'code', m => 3)`,
		`CALL tailor.protect('renewed', subject => 'person', k => 6)`,
		`CALL tailor.set_valued('renewed', column_name => 'code', ` +
			`constraints => '{"u": ["240.00", "241.10"]}')`,
		`CALL tailor.set_valued('renewed', column_name => NULL)`,
	} {
		tx, err := owner.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, owner, draft)
		refused(t, owner, "55000", `CALL tailor.activate('renewed')`)
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	mustExec(t, owner, `CALL tailor.set_valued('renewed', column_name => 'code', `+
		`constraints => '{"u": ["240.00", "241.10"]}')`)
	mustExec(t, owner, `CALL tailor.forget_chains('renewed')`)
	mustExec(t, owner, `CALL tailor.activate('renewed')`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT count(*) FROM renewed")
		return err == nil
	})
}

func dropsUnpublished(t *testing.T, s *testCluster) {
	owner, db := s.as(t, "dba"), s.superuser(t)
	drawCodes(200).fill(t, owner, "unasked", "")
	mustExec(t, owner, `CALL tailor.activate('unasked')`)
	first := one[int](t, db,
		`SELECT epoch FROM tailor.protection WHERE relation = 'unasked'::regclass`)
	mustExec(t, owner, `CALL tailor.refresh('unasked')`)
	if n := one[int](t, db,
		fmt.Sprintf(`SELECT count(*) FROM pg_class WHERE relnamespace = 'tailor_store'::regnamespace `+
			`AND relname ~ '_%d$'`, first)); n != 0 {
		t.Errorf("%d tables are left of an epoch that nobody asked for", n)
	}
	// What a publication was made from is gone with it.
	conn := connect(t, s.serve(t).dsn(s.reader(t)))
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM unasked"); n != 200 {
		t.Errorf("%d subjects, want 200", n)
	}
	if n := one[int](t, db,
		`SELECT count(*) FROM pg_class JOIN tailor.protection p ON relname = 'records_' || p.epoch `+
			`WHERE p.relation = 'unasked'::regclass`); n != 0 {
		t.Error("the codes of subjects are still stored after they have been published")
	}
}

func refusesPolicies(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := drawCodes(300)
	c.fill(t, owner, "drafted", "")
	for _, test := range []struct{ claim, code, sql string }{
		{"m of nobody", "22023", `CALL tailor.set_valued('drafted', 'code', m => 0)`},
		{"a column that is not there", "42703", `CALL tailor.set_valued('drafted', 'codes')`},
		{
			"constraints that are no lists", "22023",
			`CALL tailor.set_valued('drafted', 'code', constraints => '{"u": "240.00"}')`,
		},
		{
			"constraints without names", "22023",
			`CALL tailor.set_valued('drafted', 'code', constraints => '[["240.00"]]')`,
		},
		{
			"constraints of numbers", "22023",
			`CALL tailor.set_valued('drafted', 'code', constraints => '{"u": [240.00]}')`,
		},
		{
			"constraints that overlap", "22023",
			`CALL tailor.set_valued('drafted', 'code', constraints => '{"u": ["1", "2"], "v": ["2"]}')`,
		},
		{
			"sensitive codes without a bound", "22023",
			`CALL tailor.set_valued('drafted', 'code', sensitive => '{042}')`,
		},
		{
			"a bound of one", "22023",
			`CALL tailor.set_valued('drafted', 'code', sensitive => '{042}', diversity => 1)`,
		},
		{"a table without a policy", "55000", `CALL tailor.set_valued('zip_city', 'city')`},
	} {
		t.Run(test.claim, func(t *testing.T) { refused(t, owner, test.code, test.sql) })
	}
	for _, test := range []struct{ claim, code, draft string }{
		{"a column beside the codes", "0A000", `CALL tailor.classify('drafted', 'day', 'non_sensitive')`},
		{
			"a quasi-identifier beside the codes", "0A000",
			`CALL tailor.define_hierarchy('month', 'date', '{"levels": ["month"]}'); ` +
				`CALL tailor.classify('drafted', 'day', 'quasi_identifier', hierarchy => 'month')`,
		},
		{
			"codes that are not shown", "0A000",
			`CALL tailor.classify('drafted', 'code', 'direct_identifier')`,
		},
		{
			"codes that are dates", "42804",
			`CALL tailor.classify('drafted', 'code', 'direct_identifier'); ` +
				`CALL tailor.set_valued('drafted', 'day')`,
		},
		{"l-diversity of blocks", "0A000", `CALL tailor.require('drafted', 'l_diversity', 'code', 2)`},
		{"the subject as its own code", "0A000", `CALL tailor.set_valued('drafted', 'person')`},
	} {
		t.Run(test.claim, func(t *testing.T) {
			tx, err := owner.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			mustExec(t, owner, test.draft)
			refused(t, owner, test.code, `CALL tailor.activate('drafted')`)
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("several arrays of one subject", func(t *testing.T) {
		mustExec(t, owner,
			`CREATE TABLE several (id integer, codes text[]);
				INSERT INTO several VALUES (1, '{a}'), (1, '{b}');
CALL tailor.protect('several', subject => 'id', k => 5);
    CALL tailor.set_valued('several', 'codes')`)
		refused(t, owner, "23505", `CALL tailor.activate('several')`)
	})
	t.Run("tables of others", func(t *testing.T) {
		mustExec(t, s.superuser(t), `CREATE ROLE stranger LOGIN; GRANT tailor_admin TO stranger`)
		refused(t, s.as(t, "stranger"), "42501", `CALL tailor.set_valued('drafted', 'code')`)
	})
}

func refusesStatements(t *testing.T, s *testCluster) {
	p := s.published(t, "stated", drawCodes(500))
	user := s.reader(t)
	conn := connect(t, p.dsn(user))
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM stated"); n != 500 {
		t.Fatal(n)
	}
	direct := connect(t, fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user,
		s.cluster.Address()))
	db := s.superuser(t)
	chain := one[int](t, db, `SELECT chain FROM tailor.chain WHERE relation = 'stated'::regclass`)
	epoch := one[int](t, db, `SELECT epoch FROM tailor.chain WHERE relation = 'stated'::regclass`)
	for _, test := range []struct {
		claim, code, sql string
		conn             *pgx.Conn
	}{
		{
			"a join with quasi-identifiers", "0A000",
			"SELECT age, code FROM patients p JOIN stated s ON s.person = p.id", conn,
		},
		{
			"a count beside quasi-identifiers", "0A000",
			"SELECT age, (tailor.case_count('stated', ARRAY[diagnosis])).upper FROM patients", conn,
		},
		{"a hidden column", "42501", "SELECT code FROM stated WHERE day > '2020-01-01'", conn},
		{
			"a table that is named by a parameter", "0A000",
			"SELECT * FROM tailor.case_count($1::text::regclass, '{}')", conn,
		},
		{
			"a table that is not set-valued", "0A000",
			"SELECT * FROM tailor.case_count('patients', '{}')", conn,
		},
		{
			"a release by its own name", "42501",
			fmt.Sprintf("SELECT * FROM tailor.case_count('tailor_release.chain_%d', '{}')", chain), conn,
		},
		{"a count in a string", "42501", fmt.Sprintf(
			"SELECT query_to_xml('SELECT * FROM "+
				"tai'||'lor.case_co'||'unt(''tai'||'lor_release.ch'||'ain_%d'', ''{}'')', true, false, '')",
			chain), conn},
		{"a count past the proxy", "42501", fmt.Sprintf(
			"SELECT * FROM tailor.case_count('tailor_release.chain_%d', '{}')", chain), direct},
		{
			"a count of the table past the proxy", "42501",
			"SELECT * FROM tailor.case_count('stated', '{}')", direct,
		},
		{
			"a release past the proxy", "42501", fmt.Sprintf("SELECT * FROM tailor_release.chain_%d", chain),
			direct,
		},
		{"the stored form", "42501", "SELECT form FROM tailor.publication", direct},
		{"the stored rows", "42501", fmt.Sprintf("SELECT * FROM tailor_store.epoch_%d", epoch), direct},
		{
			"the stored digests", "42501", fmt.Sprintf("SELECT * FROM tailor_store.member_%d", epoch),
			direct,
		},
		{"the table itself", "42501", "SELECT * FROM public.stated", direct},
		{"its shape", "42501", "SELECT * FROM stated", direct},
		{"another's ticket", "42501", fmt.Sprintf(
			"SELECT * FROM tailor.case_count('tailor_release.chain_%[1]d', '{}')\n/* tailor %[1]d %064d */",
			chain, 0), direct},
	} {
		t.Run(test.claim, func(t *testing.T) {
			var args []any
			if test.conn == conn && test.claim == "a table that is named by a parameter" {
				args = []any{"stated"}
			}
			refused(t, test.conn, test.code, test.sql, args...)
		})
	}
}

func refusesTooFew(t *testing.T, s *testCluster) {
	p := s.published(t, "few", drawCodes(4))
	user := s.reader(t)
	conn := connect(t, p.dsn(user))
	refused(t, conn, "KA001", "SELECT code FROM few")
	refused(t, conn, "KA001", "SELECT * FROM tailor.case_count('few', '{}')")

	// Nobody has a code.
	owner := s.as(t, "dba")
	drawCodes(0).fill(t, owner, "fewer", "")
	mustExec(t, owner, `INSERT INTO fewer (person, code) SELECT n, NULL `+
		`FROM generate_series(1, 100) n; CALL tailor.activate('fewer')`)
	conn = connect(t, s.serve(t).dsn(user))
	refused(t, conn, "KA001", "SELECT code FROM fewer")
}

// hidesSensitive declares a code sensitive: it may only stand in item chunks,
// of clusters so large that a subject has it with at most one in four.
func hidesSensitive(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	c := drawCodes(2000)
	c.fill(t, owner, "secretive",
		`, sensitive => '{290.00,250.30}', diversity => 4, constraints => '{"u": ["240.00", "250.30"]}'`)
	mustExec(t, owner, `INSERT INTO secretive (person, code) VALUES (1, NULL); `+
		`CALL tailor.activate('secretive')`)
	conn := connect(t, s.serve(t).dsn(s.reader(t)))
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM secretive"); n != len(c) {
		t.Errorf("%d subjects, want %d: who has no code is not in the table", n, len(c))
	}
	db := s.superuser(t)
	epoch := one[int](t, db,
		`SELECT epoch FROM tailor.protection WHERE relation = 'secretive'::regclass`)
	bad := one[int](t, db,
		fmt.Sprintf(`SELECT count(*) FROM tailor_store.place_%[1]d JOIN tailor_store.item_%[1]d
			USING (item)
		WHERE code IN ('290.00', '250.30') AND (kind <> 'i' OR size < 4)`, epoch))
	all := one[int](t, db,
		fmt.Sprintf(`SELECT count(*) FROM tailor_store.place_%[1]d JOIN tailor_store.item_%[1]d
			USING (item)
		WHERE code IN ('290.00', '250.30')`, epoch))
	if bad != 0 || all == 0 {
		t.Errorf("%d of %d places of sensitive codes are counted or in a small cluster", bad, all)
	}
}
