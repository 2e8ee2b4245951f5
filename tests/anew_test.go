package tests

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// members makes a table of 600 people. Whoever gives the same first number gets
// the same people, in another order each time, as a nightly load does.
func members(table string, first int) string {
	return fmt.Sprintf(`CREATE TABLE %[1]s AS
		SELECT %[2]d + 13 * n AS id, md5((%[2]d + n)::text)::uuid AS token, 20 + n * 7919 %% 60 AS age,
			lpad((n * 104729 %% 900)::text, 5, '1') AS zip
		FROM generate_series(1, 600) n ORDER BY random()`, table, first)
}

// protectMembers writes the policy of such a table and puts it into force.
func protectMembers(t *testing.T, conn *pgx.Conn, table string) error {
	t.Helper()
	mustExec(t, conn, fmt.Sprintf(`CALL tailor.protect('%[1]s', subject => 'id', k => 5);
		CALL tailor.classify('%[1]s', 'id', 'direct_identifier');
		CALL tailor.classify('%[1]s', 'token', 'non_sensitive');
		CALL tailor.classify('%[1]s', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('%[1]s', 'zip', 'quasi_identifier', hierarchy => 'zip')`, table))
	_, err := conn.Exec(t.Context(), fmt.Sprintf(`CALL tailor.activate('%s')`, table))
	return err
}

// ownStand is a stand that the test may change, and a session of its
// administrator.
func ownStand(t *testing.T, name string) (*testCluster, *pgx.Conn) {
	t.Helper()
	s, err := newStand(filepath.Join(stands, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	conn := s.superuser(t)
	mustExec(t, conn, `GRANT CREATE ON DATABASE hospital TO dba; SET SESSION AUTHORIZATION dba`)
	return s, conn
}

// assertState asserts that a call failed with a SQLSTATE, and that the error
// names something.
func assertState(t *testing.T, err error, code, names string) {
	t.Helper()
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != code {
		t.Errorf("%v, want %s", err, code)
		return
	}
	if !strings.Contains(strings.Join([]string{answer.Message, answer.Detail, answer.Hint}, " "),
		names) {
		t.Errorf("%v (%s) does not name %s", err, answer.Hint, names)
	}
}

// TestATableMadeAnewDoesNotStartAnewInSilence drops what readers have been
// shown of people and shows the same people again: a second partition of them
// that knows nothing of the first.
func TestATableMadeAnewDoesNotStartAnewInSilence(t *testing.T) {
	_, owner := ownStand(t, "anew")
	for i, test := range []struct {
		name, table, again string
		change             func(people, others int) []string
	}{
		{
			"dropped and created under its name", "plain", "plain",
			func(people, _ int) []string { return []string{`DROP TABLE plain`, members("plain", people)} },
		},
		{
			"other people under its name", "others", "others",
			func(_, others int) []string { return []string{`DROP TABLE others`, members("others", others)} },
		},
		{
			"the same people under another name", "first", "second",
			func(people, _ int) []string { return []string{`DROP TABLE first`, members("second", people)} },
		},
		{
			"a fifth of the people under another name", "whole", "fifth",
			func(people, _ int) []string {
				return []string{
					`DROP TABLE whole`, members("fifth", people),
					`DELETE FROM fifth WHERE id % 5 > 0`,
				}
			},
		},
		{
			"among others, under another name", "few", "many",
			func(people, others int) []string {
				return []string{
					`DROP TABLE few`, members("many", people),
					`INSERT INTO many SELECT id + 500000, token, age, zip FROM many`,
				}
			},
		},
		{
			"with keys of another type", "numeric_keys", "text_keys",
			func(people, _ int) []string {
				return []string{
					`DROP TABLE numeric_keys`, members("text_keys", people),
					`ALTER TABLE text_keys ALTER id TYPE text`,
				}
			},
		},
		{
			"in another schema", "moved", "elsewhere.moved",
			func(people, _ int) []string {
				return []string{
					`CREATE SCHEMA elsewhere`, `DROP TABLE moved`,
					members("elsewhere.moved", people),
				}
			},
		},
		{
			"renamed away, with other people under the name", "swapped", "swapped",
			func(_, others int) []string {
				return []string{`ALTER TABLE swapped RENAME TO swapped_old`, members("swapped", others)}
			},
		},
		{
			"loaded beside it and renamed", "nightly", "nightly",
			func(people, _ int) []string {
				return []string{
					members("nightly_new", people), `DROP TABLE nightly`,
					`ALTER TABLE nightly_new RENAME TO nightly`,
				}
			},
		},
		{
			"renamed before it was dropped", "alias", "alias",
			func(_, others int) []string {
				return []string{
					`ALTER TABLE alias RENAME TO alias_old`, `CALL tailor.refresh('alias_old')`,
					`DROP TABLE alias_old`, members("alias", others),
				}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			people := 1_000_000 * (2*i + 1)
			mustExec(t, owner, members(test.table, people))
			if err := protectMembers(t, owner, test.table); err != nil {
				t.Fatal(err)
			}
			for _, sql := range test.change(people, people+1_000_000) {
				mustExec(t, owner, sql)
			}
			assertState(t, protectMembers(t, owner, test.again), "55000", "tailor.forget_chains")

			// Said once, it holds for what was shown until then, and for good.
			mustExec(t, owner, fmt.Sprintf(`CALL tailor.forget_chains('%s')`, test.again))
			for range 2 {
				if err := protectMembers(t, owner, test.again); err != nil {
					t.Fatal(err)
				}
			}
			mustExec(t, owner, fmt.Sprintf(`CALL tailor.refresh('%s')`, test.again))
			// What it gives up is remembered with the table that it was said of.
			mustExec(t, owner, fmt.Sprintf(`DROP TABLE %s`, test.again))
			mustExec(t, owner, `DROP TABLE IF EXISTS swapped_old`)
			last := fmt.Sprintf("last_%d", i)
			mustExec(t, owner, members(last, people))
			assertState(t, protectMembers(t, owner, last), "55000", "tailor.forget_chains")
		})
	}
}

// TestARefreshWithPeopleOfADroppedTableIsRefused loads them into a table that
// has a policy already.
func TestARefreshWithPeopleOfADroppedTableIsRefused(t *testing.T) {
	_, owner := ownStand(t, "anewrefresh")
	mustExec(t, owner, members("gone", 1_000_000))
	mustExec(t, owner, members("kept", 2_000_000))
	for _, table := range []string{"gone", "kept"} {
		if err := protectMembers(t, owner, table); err != nil {
			t.Fatal(err)
		}
	}
	// Both at once are two tables of their own policies.
	mustExec(t, owner, `DROP TABLE gone; TRUNCATE kept`)
	mustExec(t, owner, strings.Replace(members("kept", 1_000_000), "CREATE TABLE kept AS",
		"INSERT INTO kept", 1))
	_, err := owner.Exec(t.Context(), `CALL tailor.refresh('kept')`)
	assertState(t, err, "55000", "tailor.forget_chains")
	mustExec(t, owner, `CALL tailor.forget_chains('kept'); CALL tailor.refresh('kept')`)
}

// TestWhatGoesOnIsNotRefused is what happens to tables that readers are shown
// one and the same partition of.
func TestWhatGoesOnIsNotRefused(t *testing.T) {
	s, owner := ownStand(t, "anewgoeson")
	mustExec(t, owner, members("club", 1_000_000))
	if err := protectMembers(t, owner, "club"); err != nil {
		t.Fatal(err)
	}
	load := strings.Replace(members("club", 1_000_000), "CREATE TABLE club AS", "INSERT INTO club", 1)
	for _, test := range []struct{ name, sql, table string }{
		{"loaded anew every night", `TRUNCATE club;` + load + `; CALL tailor.refresh('club')`, "club"},
		{"deleted and loaded", `DELETE FROM club;` + load, "club"},
		{"other people", `TRUNCATE club;` + strings.ReplaceAll(load, "1000000", "2000000"), "club"},
		{"renamed", `ALTER TABLE club RENAME TO society`, "society"},
		{
			"moved to another schema", `CREATE SCHEMA town; ALTER TABLE society SET SCHEMA town`,
			"town.society",
		},
		{
			"its first name again",
			`ALTER TABLE town.society SET SCHEMA public; ALTER TABLE society RENAME TO club`, "club",
		},
	} {
		mustExec(t, owner, test.sql)
		if err := protectMembers(t, owner, test.table); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
	}

	// Another administrator who guesses learns of nobody in a table that is gone.
	mustExec(t, owner, `DROP TABLE club`)
	mayor := s.superuser(t)
	mustExec(t, mayor, `CREATE ROLE mayor LOGIN; GRANT tailor_admin TO mayor;
		GRANT CREATE ON SCHEMA public TO mayor;
		SET SESSION AUTHORIZATION mayor`)
	mustExec(t, mayor, members("guesses", 2_000_000)+` LIMIT 200`)
	if err := protectMembers(t, mayor, "guesses"); err != nil {
		t.Errorf("guesses: %v", err)
	}
	mustExec(t, mayor, members("everybody", 2_000_000))
	assertState(t, protectMembers(t, mayor, "everybody"), "55000", "tailor.forget_chains")
	if _, err := mayor.Exec(t.Context(), `SELECT * FROM tailor.subject_key`); err == nil {
		t.Error("an administrator reads the key of digests")
	}
}

// TestAPolicyTakenAwayIsRemembered protects a table whose policy is gone with
// all that was stored of it.
func TestAPolicyTakenAwayIsRemembered(t *testing.T) {
	s, owner := ownStand(t, "anewpolicy")
	mustExec(t, owner, members("club", 1_000_000))
	if err := protectMembers(t, owner, "club"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, s.superuser(t),
		`DELETE FROM tailor.chain WHERE relation = 'club'::regclass; `+
			`DELETE FROM tailor.protection WHERE relation = 'club'::regclass`)
	assertState(t, protectMembers(t, owner, "club"), "55000", "tailor.forget_chains")
}
