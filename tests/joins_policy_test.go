package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// joined are the rows of a join, with all that can be shown, in an order of
// their own.
func joined(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(),
		`SELECT e.note, p.age, p.zip, e.day FROM patients p JOIN encounters e ON p.id = e.patient_id`,
		pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (string, error) {
		return fmt.Sprintf("%q", row.RawValues()), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

// refusedSoon waits until a statement fails with a code, which news of a policy
// take a moment to bring about.
func refusedSoon(t *testing.T, conn *pgx.Conn, sql, code string) *pgconn.PgError {
	t.Helper()
	var refused *pgconn.PgError
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		return errors.As(err, &refused) && refused.Code == code
	})
	return refused
}

// countNow is a count, or -1 where a statement is told to come again.
func countNow(conn *pgx.Conn, sql string) int {
	n := -1
	_ = conn.QueryRow(context.Background(), sql).Scan(&n)
	return n
}

func answeredSoon(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		return err == nil
	})
}

const aJoin = "SELECT p.age, e.kind FROM patients p JOIN encounters e ON p.id = e.patient_id"

// TestJoinsFollowTheCopyOfTheChild: a parent's new rows are in joins once the child's
// copy is renewed, new values of those who are shown once its release starts anew, and
// every chain keeps its k throughout.
func TestJoinsFollowTheCopyOfTheChild(t *testing.T) {
	c := newClinic(t, "joins_epochs", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	before := joined(t, conn)
	allPeople, allRows := "SELECT count(*) FROM patients",
		"SELECT count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id"
	people, rows := one[int](t, conn, allPeople), len(before)
	mustExec(t, c.direct, `UPDATE patients SET age = 119, zip = '99999' WHERE id % 3 = 0;
		INSERT INTO patients SELECT id + 1000, name, birth_date, age, sex, zip, diagnosis || ' again',
			cost, "Odd Name" FROM patients WHERE id % 3 = 1;
		INSERT INTO encounters SELECT id + 100000, patient_id + 1000, day, kind, fee, note || ' again'
			FROM encounters WHERE patient_id % 3 = 1`)
	moved := `SELECT count(*) FROM patients p JOIN encounters e ON p.id = e.patient_id ` +
		`WHERE p.zip >= '9'`
	newRows := one[int](t, c.direct, `SELECT count(*) FROM encounters WHERE patient_id > 1000`)

	mustExec(t, c.direct, `CALL tailor.refresh('public.patients')`)
	awaitTakenIn(t, c.direct, "patients", conn)
	if n := one[int](t, conn, allPeople); n != people+200 {
		t.Errorf("%d people are shown, want %d", n, people+200)
	}
	if !slices.Equal(joined(t, conn), before) {
		t.Error("a refresh of the parent changed the joins: they are of the child's copy")
	}
	mustExec(t, c.direct, `CALL tailor.refresh('public.encounters')`)
	awaitTakenIn(t, c.direct, "encounters", conn)
	after := joined(t, conn)
	if len(after) != rows+newRows {
		t.Errorf("%d rows of joins, want %d", len(after), rows+newRows)
	}
	if kept := slices.DeleteFunc(after, func(row string) bool {
		return strings.Contains(row, " again")
	}); !slices.Equal(kept, before) {
		t.Error("who was shown in joins is shown otherwise after a refresh")
	}
	if n := one[int](t, conn, moved); n != 0 {
		t.Errorf("%d rows of people who were shown before they moved are shown where they are", n)
	}
	mustExec(t, c.direct,
		`BEGIN; CALL tailor.forget_chains('public.patients'); `+
			`CALL tailor.forget_chains('public.encounters'); COMMIT`)
	answeredSoon(t, conn, allRows)
	// A few share a block with people who live elsewhere.
	if got, all := one[int](t, conn, moved), one[int](t, c.direct, moved); got < all*9/10 ||
		got > all {
		t.Errorf("%d rows of people who moved, of %d", got, all)
	}
	awaitTakenIn(t, c.direct, "patients", conn)

	// Another proxy, and one after a crash, see the same chain.
	mine := joined(t, conn)
	blocks := one[int](t, c.direct,
		`SELECT blocks FROM tailor.chain WHERE relation = 'encounters'::regclass`)
	second := serveDatabase(t, "joins_epochs")
	if !slices.Equal(joined(t, connect(t, second.dsn("researcher"))), mine) {
		t.Error("a second proxy answers differently")
	}
	second.kill()
	third := serveDatabase(t, "joins_epochs")
	if !slices.Equal(joined(t, connect(t, third.dsn("researcher"))), mine) {
		t.Error("after a crash answers are others")
	}
	if now := one[int](t, c.direct,
		`SELECT blocks FROM tailor.chain WHERE relation = 'encounters'::regclass`); now != blocks {
		t.Errorf("%d blocks, then %d", blocks, now)
	}
	if least := one[int](t, c.direct, `SELECT min(min_block) FROM tailor.chain`); least < 5 {
		t.Errorf("a block of %d subjects", least)
	}
}

// TestJoinsWaitForTheParentsPolicy: while a child holds something else than its
// parent's policy lends, joins are refused and say what to call; the child by
// itself is answered.
func TestJoinsWaitForTheParentsPolicy(t *testing.T) {
	c := newClinic(t, "joins_policy", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	answeredSoon(t, conn, aJoin)

	mustExec(t, c.direct,
		`CALL tailor.define_hierarchy('age', 'interval', `+
			`'{"widths": [20, 40], "lower": 0, "upper": 119}')`)
	answeredSoon(t, conn, aJoin) // a hierarchy is in force once it has been activated
	mustExec(t, c.direct,
		`CALL tailor.protect('public.patients', subject => 'id', k => 9); `+
			`CALL tailor.activate('public.patients')`)
	refused := refusedSoon(t, conn, aJoin, "KA004")
	if !strings.Contains(refused.Hint, "tailor.activate('public.encounters')") {
		t.Errorf("the hint does not say what to call: %s", refused.Hint)
	}
	answeredSoon(t, conn, "SELECT day, kind FROM encounters")
	refusedAs(t, c.direct, `CALL tailor.refresh('public.encounters')`, "55000")
	mustExec(t, c.direct, `CALL tailor.activate('public.encounters')`)
	answeredSoon(t, conn, aJoin)
	if least := one[int](t, c.direct,
		`SELECT min_block FROM tailor.chain WHERE relation = 'encounters'::regclass`); least < 9 {
		t.Errorf("a join has blocks of %d subjects, and its parent k = 9", least)
	}

	mustExec(t, c.direct, `ALTER TABLE patients RENAME zip TO postcode`)
	refusedSoon(t, conn, aJoin, "KA004")
	answeredSoon(t, conn, "SELECT day, kind FROM encounters")
	refusedAs(t, c.direct, `CALL tailor.refresh('public.encounters')`, "55000")
	mustExec(t, c.direct, `ALTER TABLE patients RENAME postcode TO zip`)
	answeredSoon(t, conn, aJoin)
	// A statement that was prepared before is not run under the new policy.
	mustExec(t, connect(t, c.dsn("researcher")), aJoin)
	if _, err := conn.Prepare(t.Context(), "kept", aJoin); err != nil {
		t.Fatal(err)
	}
	mustExec(t, c.direct,
		`CALL tailor.seed('public.patients', '[["age"]]'); CALL tailor.activate('public.patients')`)
	refusedSoon(t, conn, "kept", "0A000")
	answeredSoon(t, conn, aJoin) // it lends the same as before

	mustExec(t, c.direct, `CALL tailor.forget_chains('public.encounters')`)
	answeredSoon(t, conn, aJoin)
	mustExec(t, c.direct,
		`DELETE FROM tailor.protection WHERE relation = 'patients'::regclass; `+
			`SELECT nextval('tailor.catalog_version'); SELECT pg_notify('tailor', 'policies')`)
	refusedSoon(t, conn, aJoin, "42501")
	answeredSoon(t, conn, "SELECT day, kind FROM encounters")
}

// TestWhatLendsMustBeWhole: rows that refer to nobody end a refresh, and the
// copy that there was goes on being shown.
func TestWhatLendsMustBeWhole(t *testing.T) {
	c := newClinic(t, "joins_dangling", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	before := joined(t, conn)
	mustExec(t, c.direct, `ALTER TABLE encounters DROP CONSTRAINT encounters_patient_id_fkey;
		INSERT INTO encounters VALUES (1000000, -1, '2020-01-01', 'ward', 1, 'dangling');
		ALTER TABLE encounters ADD FOREIGN KEY (patient_id) REFERENCES patients NOT VALID`)
	refusedAs(t, c.direct, `CALL tailor.refresh('public.encounters')`, "23503")
	refusedAs(t, c.direct, `CALL tailor.activate('public.encounters')`, "23503")
	if !slices.Equal(joined(t, conn), before) {
		t.Error("what was refused changed answers")
	}
	mustExec(t, c.direct, `DELETE FROM encounters WHERE patient_id = -1`)
	mustExec(t, c.direct, `CALL tailor.refresh('public.encounters')`)
	waitFor(t, func() bool { return countNow(conn, "SELECT count(*) FROM encounters") == len(before) })

	// A schedule's refresh reads, and therefore locks, the parent too.
	epoch := one[int](t, c.direct,
		`SELECT epoch FROM tailor.protection WHERE relation = 'encounters'::regclass`)
	mustExec(t, c.direct,
		`CALL tailor.schedule('public.encounters', '24 hours'); UPDATE tailor.schedule SET due = now()`)
	waitFor(t, func() bool {
		return one[int](t, c.direct,
			`SELECT epoch FROM tailor.protection WHERE relation = 'encounters'::regclass`) > epoch
	})
}

// TestWhoLends: the parent has to be active before its child, and to belong to
// who activates the child; without it the child is answered and joins say why not.
func TestWhoLends(t *testing.T) {
	conn := makeDatabase(t, "joins_owners",
		`CREATE TABLE people (id int PRIMARY KEY, age int, UNIQUE (id, age));
		CREATE TABLE events (person int NOT NULL REFERENCES people, day int);
		INSERT INTO people SELECT g, g % 90 FROM generate_series(1, 200) g;
			INSERT INTO events SELECT g % 200 + 1, g % 28 FROM generate_series(1, 600) g`)
	if err := shared.install(t.Context(), "joins_owners"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `CREATE ROLE joins_clerk LOGIN PASSWORD 'clerk';
		GRANT tailor_admin TO joins_clerk;
		GRANT CREATE ON SCHEMA public TO joins_clerk; ALTER TABLE events OWNER TO joins_clerk;
		CALL tailor.define_hierarchy('years', 'interval',
			'{"widths": [10, 30], "lower": 0, "upper": 119}');
		CALL tailor.protect('public.people', subject => 'id', k => 5);
			CALL tailor.classify('public.people', 'age', 'quasi_identifier', hierarchy => 'years');
		CALL tailor.protect('public.events', subject => 'person', k => 5);
			CALL tailor.classify('public.events', 'day', 'quasi_identifier', hierarchy => 'years');
		CALL tailor.grant_reader('researcher'); CALL tailor.activate('public.events');
			CALL tailor.activate('public.people')`)
	p := serveDatabase(t, "joins_owners")
	reader := connect(t, p.dsn("researcher"))
	join := `SELECT p.age, e.day FROM people p JOIN events e ON e.person = p.id`
	if hint := refusedAs(t, reader, join, "KA004").Hint; !strings.Contains(hint,
		"activate('public.events')") {
		t.Errorf("a child that was activated before its parent: %s", hint)
	}
	answeredSoon(t, reader, `SELECT day FROM events`)

	clerk := connect(t, shared.cluster.SuperuserDSN("joins_owners"))
	mustExec(t, clerk, `SET SESSION AUTHORIZATION joins_clerk`)
	mustExec(t, clerk, `CALL tailor.activate('public.events')`)
	refusedSoon(t, reader, join, "KA004")
	if lent := one[bool](t, conn,
		`SELECT policy ? 'parent' FROM tailor.policies WHERE relation = 'events'::regclass`); lent {
		t.Error("a table was lent to somebody who does not own it")
	}
	// it had no dimensions of its parent
	mustExec(t, conn, `CALL tailor.forget_chains('public.events')`)
	mustExec(t, conn, `CALL tailor.activate('public.events')`)
	answeredSoon(t, reader, join)
	if refused := refusedAs(t, clerk, `CALL tailor.refresh('public.events')`,
		"42501"); !strings.Contains(refused.Message, "people") {
		t.Errorf("a refresh by somebody else: %s", refused.Message)
	}

	mustExec(t, conn, `CREATE TABLE heirs () INHERITS (people)`) // whose rows the key does not cover
	refusedSoon(t, reader, join, "0A000")
	mustExec(t, conn, `DROP TABLE heirs`)
	answeredSoon(t, reader, join)
	mustExec(t, conn, `ALTER TABLE events ADD "people.age" int`)
	refusedAs(t, conn, `CALL tailor.activate('public.events')`, "42701")
	mustExec(t, conn, `ALTER TABLE events DROP "people.age"`)

	mustExec(t, conn, `CALL tailor.chain_scope('public.events', 'project'); `+
		`CALL tailor.forget_chains('public.events'); CALL tailor.activate('public.events')`)
	refusedSoon(t, reader, join, "0A000")
}

// TestOtherLinksBetweenQuasiIdentifiersAreRefused: along anything but the
// subjects' keys a join would be of a relation that no chain has.
func TestOtherLinksBetweenQuasiIdentifiersAreRefused(t *testing.T) {
	conn := makeDatabase(t, "joins_links",
		`CREATE TABLE people (id int PRIMARY KEY, age int, code int UNIQUE, UNIQUE (id, age));
		CREATE TABLE pairs (person int, age int, day int, FOREIGN KEY (person, age) REFERENCES people
			(id, age));
		CREATE TABLE doctors (id int PRIMARY KEY, person int REFERENCES people, day int);
		CREATE TABLE codes (id int PRIMARY KEY REFERENCES people (code), day int);`)
	if err := shared.install(t.Context(), "joins_links"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, conn, `CALL tailor.define_hierarchy('years', 'interval',
		'{"widths": [10, 30], "lower": 0, "upper": 119}');
		CALL tailor.protect('public.people', subject => 'id', k => 2);
			CALL tailor.classify('public.people', 'age', 'quasi_identifier', hierarchy => 'years');
		CALL tailor.activate('public.people')`)
	for table, subject := range map[string]string{"pairs": "person", "doctors": "id", "codes": "id"} {
		mustExec(t, conn, fmt.Sprintf(`CALL tailor.protect('public.%[1]s', subject => '%[2]s', k => 2);
			CALL tailor.classify('public.%[1]s', 'day', 'quasi_identifier', hierarchy => 'years')`, table,
			subject))
		refusedAs(t, conn, fmt.Sprintf(`CALL tailor.activate('public.%s')`, table), "0A000")
	}
}

// TestJoinsAreRecorded: the record and EXPLAIN (TAILOR) name both tables, and
// the parent's quasi-identifiers as the child's.
func TestJoinsAreRecorded(t *testing.T) {
	c := newClinic(t, "joins_audit", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	answeredSoon(t, conn, "SELECT p.age, e.kind FROM patients p JOIN encounters e ON p.id = "+
		"e.patient_id WHERE p.sex = 'male'")
	var last struct {
		Relations []string
		Stages    []struct {
			Table, Condition string
			Qids             []string
		}
	}
	written, err := os.ReadFile(c.auditTo)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(written)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if slices.Sort(last.Relations); !slices.Equal(last.Relations, []string{
		"public.encounters",
		"public.patients",
	}) {
		t.Errorf("relations: %q", last.Relations)
	}
	final := last.Stages[len(last.Stages)-1]
	if final.Table != "public.encounters" || !slices.Contains(final.Qids, "patients.sex") ||
		!slices.Contains(final.Qids, "patients.age") || !slices.Contains(final.Qids, "kind") {
		t.Errorf("the last stage: %+v", final)
	}
	text := answerOf(t, conn, "", "EXPLAIN (TAILOR) "+aJoin, false)
	if !strings.Contains(text, "patients.age") || !strings.Contains(text, "public.encounters") {
		t.Errorf("EXPLAIN (TAILOR) does not say what is joined:\n%s", text)
	}
	dsn, file := shared.cluster.SuperuserDSN("joins_audit"), filepath.Join(t.TempDir(), "policy.yaml")
	for _, args := range [][]string{
		{"policy", "export", "--dsn", dsn, file},
		{"policy", "plan", "--dsn", dsn, file},
		{"policy", "apply", "--dsn", dsn, file},
		{"doctor", "--dsn", dsn}, // finds a test server's pg_hba.conf wanting
	} {
		out, errs, code := tailor(t, args...)
		if (code != 0 && args[0] != "doctor") ||
			strings.Contains(out, "checks not made") && !strings.Contains(out, " 0 checks not made") ||
			strings.Contains(out+errs, "patients.age") {
			t.Errorf("tailor %s: %d\n%s%s", args[:2], code, out, errs)
		}
	}
	exported, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(exported), "patients.age") {
		t.Errorf("an exported policy classifies what is borrowed: %v", err)
	}
	// The file names the child before the parent; both are in step in the end.
	makeDatabase(t, "joins_applied", clinicTables+crowd)
	if err := shared.install(t.Context(), "joins_applied"); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := tailor(t, "policy", "apply", "--dsn",
		shared.cluster.SuperuserDSN("joins_applied"), file); code != 0 {
		t.Fatalf("apply: %s%s", out, errs)
	}
	answeredSoon(t, connect(t, serveDatabase(t, "joins_applied").dsn("researcher")), aJoin)
}

// TestRefusedJoinsAreRefused sends what the planner refuses: nothing is answered
// and no chain is refined.
func TestRefusedJoinsAreRefused(t *testing.T) {
	c := newClinic(t, "joins_refused", 5, 5, crowd)
	conn := connect(t, c.dsn("researcher"))
	answeredSoon(t, conn, aJoin)
	generation := one[int](t, c.direct, `SELECT sum(generation) FROM tailor.chain`)
	for name, text := range joinCorpus(t, "refuse") {
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err == nil {
			t.Errorf("%s was answered: %s", name, text)
		}
	}
	if now := one[int](t, c.direct, `SELECT sum(generation) FROM tailor.chain`); now != generation {
		t.Error("a refused statement changed a chain")
	}
	// The views behind a join answer nothing without a ticket.
	direct := connect(t,
		fmt.Sprintf("postgres://researcher:researcher@%s/joins_refused?sslmode=disable",
			shared.cluster.Address()))
	for _, view := range rowsOf(t, c.direct,
		`SELECT 'tailor_release.' || quote_ident(viewname) FROM pg_views `+
			`WHERE schemaname = 'tailor_release'`) {
		refusedAs(t, direct, "SELECT * FROM "+view, "42501")
	}
}
