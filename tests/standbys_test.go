package tests

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
)

// replicated is a stand with hot standbys, at which readers' sessions are.
type replicated struct {
	*testCluster
	standbys []*testCluster
	admin    *pgx.Conn // of the primary, who owns the tables
	user     string
}

const (
	atStandby  = "SELECT pg_catalog.pg_is_in_recovery()"
	askPrimary = "&options=-c%20tailor.upstream%3Dprimary"
)

func newReplicated(t *testing.T, name string, standbys int) *replicated {
	t.Helper()
	s, admin := ownStand(t, name)
	r := &replicated{testCluster: s, admin: admin, user: s.reader(t)}
	for i := range standbys {
		r.standbys = append(r.standbys, s.standby(t, name+string(rune('a'+i))))
	}
	return r
}

// addresses are those of the standbys, as a flag has them.
func (r *replicated) addresses() (list string) {
	for i, standby := range r.standbys {
		if i > 0 {
			list += ","
		}
		list += standby.cluster.Address()
	}
	return list
}

// serve starts a proxy that makes the release of the patients.
func (r *replicated) serve(t *testing.T, flags ...string) *testProxy {
	t.Helper()
	p := r.testCluster.serve(t, append(flags, "--upstream-readers", r.addresses())...)
	mustExec(t, connect(t, p.dsn(r.user)), "SELECT count(*) FROM patients")
	return p
}

// caughtUp waits until all standbys have replayed what the primary has written.
func (r *replicated) caughtUp(t *testing.T) {
	t.Helper()
	written := one[string](t, r.admin, `SELECT pg_current_wal_flush_lsn()::text`)
	for _, standby := range r.standbys {
		conn := standby.superuser(t)
		waitFor(t, func() bool {
			return one[bool](t, conn, `SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, written)
		})
	}
}

// pause keeps standbys from replaying, until the function is called.
func (r *replicated) pause(t *testing.T) (resume func()) {
	t.Helper()
	var all []*pgx.Conn
	for _, standby := range r.standbys {
		conn := standby.superuser(t)
		mustExec(t, conn, `SELECT pg_wal_replay_pause()`)
		waitFor(t, func() bool {
			return one[string](t, conn, `SELECT pg_get_wal_replay_pause_state()`) == "paused"
		})
		all = append(all, conn)
	}
	return func() {
		for _, conn := range all {
			mustExec(t, conn, `SELECT pg_wal_replay_resume()`)
		}
	}
}

// grow brings the release of the patients to an edition of its own, with a policy of another k.
func (r *replicated) grow(t *testing.T, k int) {
	t.Helper()
	mustExec(t, r.admin, `CALL tailor.protect('patients', 'id', $1::integer)`, k)
	mustExec(t, r.admin, `CALL tailor.activate('patients')`)
}

// smallest is the number of people in the smallest class that a connection is shown; 0 while
// that is changing.
func smallest(t *testing.T, conn *pgx.Conn) (people int) {
	t.Helper()
	err := conn.QueryRow(t.Context(), `SELECT min(n)::integer FROM (SELECT count(*) AS n FROM patients
		GROUP BY tailor.label(age), tailor.label(sex), tailor.label(zip)) q`,
		pgx.QueryExecModeSimpleProtocol).Scan(&people)
	if err != nil && codeIn(err) != "40001" {
		t.Fatal(err)
	}
	return people
}

// portOf is where a session is.
func portOf(t *testing.T, conn *pgx.Conn) int {
	t.Helper()
	return one[int](t, conn, `SELECT pg_catalog.inet_server_port()`)
}

// waits says whether a statement is without an answer after a while. Its error comes later.
func waits(t *testing.T, conn *pgx.Conn, sql string) (answer chan error) {
	t.Helper()
	answer = make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.WithoutCancel(t.Context()), sql)
		answer <- err
	}()
	select {
	case err := <-answer:
		t.Fatalf("%s: answered ahead of what the standby has to replay: %v", sql, err)
	case <-time.After(300 * time.Millisecond):
	}
	return answer
}

// TestReadersAreAtStandbys: by turns, unless they ask for the primary, and with the answers
// that they would get there.
func TestReadersAreAtStandbys(t *testing.T) {
	r := newReplicated(t, "standbys", 2)
	p := r.serve(t)
	r.caughtUp(t)
	here := connect(t, p.dsn(r.user)+askPrimary)
	if one[bool](t, here, atStandby) || one[bool](t, connect(t, p.dsn("dba")), atStandby) {
		t.Error("a session is at a standby that was not to be")
	}
	used := make(map[int]bool)
	for range 4 {
		there := connect(t, p.dsn(r.user))
		if !one[bool](t, there, atStandby) {
			t.Fatalf("a reader is at the primary: %s", p.log)
		}
		used[portOf(t, there)] = true
		for _, sql := range []string{
			"SELECT sex, count(*), avg(cost) FROM patients GROUP BY sex ORDER BY sex",
			"SELECT * FROM patients WHERE age = 40 ORDER BY 1, 2, 3, 4, 5",
			"SELECT n FROM numbers ORDER BY n",
		} {
			want, got := rowsOf(t, here, sql), rowsOf(t, there, sql)
			if len(want) == 0 || len(want) != len(got) {
				t.Fatalf("%s: %d rows at a standby, %d at the primary", sql, len(got), len(want))
			}
			for i := range want {
				if want[i] != got[i] {
					t.Errorf("%s: %s at a standby, %s at the primary", sql, got[i], want[i])
				}
			}
		}
		for _, sql := range []string{
			"SET tailor.upstream = 'primary'", "SELECT set_config('tailor.upstream', 'primary', false)",
		} {
			if _, err := there.Exec(t.Context(), sql); codeIn(err) != "55P02" {
				t.Errorf("%s: %v, want 55P02", sql, err)
			}
		}
		if _, err := there.Exec(t.Context(), "CREATE TEMP TABLE mine (n int)"); codeIn(err) != "25006" {
			t.Errorf("a table at a standby: %v, want 25006", err)
		}
		soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := there.Exec(soon, "SELECT pg_sleep(60)"); err == nil {
			t.Error("no sleep")
		}
		cancel()
	}
	if len(used) != 2 {
		t.Errorf("%d servers were used, want both", len(used))
	}
	for _, standby := range r.standbys { // pgx has sent cancel requests
		conn := standby.superuser(t)
		waitFor(t, func() bool {
			return !one[bool](t, conn, `SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%')`)
		})
	}
}

// TestAStandbyShowsNothingOlder: a statement waits until its standby has what is in force at the
// primary; one that cannot wait is to be sent again.
func TestAStandbyShowsNothingOlder(t *testing.T) {
	for i, flags := range [][]string{nil, {"--pool", "transaction", "--max-upstream", "10"}} {
		name := "fresh"
		if flags != nil {
			name = "pooledfresh"
		}
		t.Run(name, func(t *testing.T) {
			oneIn(t, 2, i)
			r := newReplicated(t, name, 1)
			mustExec(t, r.admin, `CREATE TABLE open AS
				SELECT n AS id, n % 50 AS age FROM generate_series(1, 500) n;
				ALTER TABLE open ADD PRIMARY KEY (id); GRANT SELECT ON open TO `+r.user,
				pgx.QueryExecModeSimpleProtocol)
			p := r.serve(t, flags...)
			r.caughtUp(t)
			reader, prepared := connect(t, p.dsn(r.user)), connect(t, p.dsn(r.user))
			old := connect(t, p.dsn(r.user))
			for _, conn := range []*pgx.Conn{reader, prepared, old} {
				if !one[bool](t, conn, atStandby) {
					t.Fatalf("a reader is at the primary: %s", p.log)
				}
			}
			const raw = `DO $$ BEGIN PERFORM age FROM open; END $$`
			mustExec(t, reader, raw)
			before := smallest(t, reader)
			if _, err := prepared.Prepare(t.Context(), "raw", "SELECT age FROM open"); err != nil {
				t.Fatal(err)
			}
			mustExec(t, old, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT n FROM numbers")
			failed := connect(t, p.dsn(r.user))
			if _, err := failed.Exec(t.Context(), "BEGIN; SELECT 1 / 0"); codeIn(err) != "22012" {
				t.Fatal(err)
			}

			resume := r.pause(t)
			mustExec(t, r.admin, `CALL tailor.protect('open', 'id', 5);
				CALL tailor.classify('open', 'age', 'quasi_identifier', hierarchy => 'age');
				CALL tailor.activate('open')`, pgx.QueryExecModeSimpleProtocol)
			r.grow(t, 50)
			primary := connect(t, p.dsn(r.user)+askPrimary)
			waitFor(t, func() bool { return smallest(t, primary) > before })
			if _, err := failed.Exec(t.Context(), "ROLLBACK; "+raw); codeIn(err) != "40001" {
				t.Errorf("behind the end of a failed transaction: %v, want 40001", err)
			}
			mustExec(t, failed, "ROLLBACK")
			block, bound := waits(t, reader, raw), waits(t, prepared, "raw")
			inside := waits(t, old, "SELECT count(*) FROM patients")
			resume()
			if err := <-block; codeIn(err) != "42501" {
				t.Errorf("a table that is protected now, read in a block: %v, want 42501", err)
			}
			if err := <-bound; codeIn(err) != "42501" {
				t.Errorf("a table that is protected now, read by a prepared statement: %v, want 42501", err)
			}
			if err := <-inside; codeIn(err) != "40001" {
				t.Errorf("a release newer than the transaction: %v, want 40001", err)
			}
			mustExec(t, old, "ROLLBACK")
			if got := smallest(t, reader); got < 50 {
				t.Errorf("a class of %d is shown at the standby", got)
			}

			// A pipeline that has begun cannot be told to wait.
			w := dial(t, p.dsn(r.user))
			bind, execute, sync := &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}
			w.send(t, &pgproto3.Parse{Query: "BEGIN"}, bind, execute, &pgproto3.Flush{})
			var seen []string
			w.receive(t, &seen, func(last string) bool { return last[0] == 'C' })
			defer r.pause(t)()
			r.grow(t, 60)
			waitFor(t, func() bool { return smallest(t, primary) >= 60 })
			w.send(t, &pgproto3.Parse{Query: "SELECT count(*) FROM patients"}, bind, execute, sync,
				query("ROLLBACK"))
			if got := w.untilReady(t, 2); got != "E:40001 Z ROLLBACK Z" {
				t.Errorf("in a pipeline: %s", got)
			}
		})
	}
}

// TestStandbysThatDoNotServe: logins go on at another server; what is no standby of the
// database serves nobody.
func TestStandbysThatDoNotServe(t *testing.T) {
	r := newReplicated(t, "notserving", 2)
	stranger, err := newStand(stands + "/stranger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stranger.cluster.Stop)
	lone := r.testCluster.serve(t, "--upstream-readers", stranger.cluster.Address()+",127.0.0.1:1")
	if portOf(t, connect(t, lone.dsn(r.user))) != r.cluster.Port {
		t.Error("a server that is no standby serves a reader")
	}
	p := r.serve(t)
	r.caughtUp(t)
	open := connect(t, p.dsn(r.user))
	mustExec(t, open, "SELECT count(*) FROM patients")
	port := portOf(t, open)
	first, second := r.standbys[0], r.standbys[1]
	if port == second.cluster.Port {
		first, second = second, first
	}

	second.cluster.Crash()
	for range 4 {
		if got := portOf(t, connect(t, p.dsn(r.user))); got != port {
			t.Errorf("a reader is at %d, want %d", got, port)
		}
	}
	if !one[bool](t, first.superuser(t), `SELECT pg_promote()`) {
		t.Fatal("not promoted")
	}
	r.grow(t, 20)
	waitFor(t, func() bool {
		_, err := open.Exec(t.Context(), "SELECT count(*) FROM patients")
		return codeIn(err) == "57P03"
	})
	for range 4 {
		if portOf(t, connect(t, p.dsn(r.user))) != r.cluster.Port {
			t.Error("a promoted standby serves a reader")
		}
	}
	if err := second.cluster.Launch(t.Context(), r.following()...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		conn := connect(t, p.dsn(r.user))
		defer func() { _ = conn.Close(t.Context()) }()
		return one[bool](t, conn, atStandby)
	})
}

// TestAnImportedSnapshotOnAStandbyIsOld: nobody knows what was replayed when it was taken.
func TestAnImportedSnapshotOnAStandbyIsOld(t *testing.T) {
	r := newReplicated(t, "imported", 1)
	p := r.serve(t)
	r.caughtUp(t)
	exporter, importer := connect(t, p.dsn(r.user)), connect(t, p.dsn(r.user))
	mustExec(t, exporter, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	snapshot := one[string](t, exporter, "SELECT pg_catalog.pg_export_snapshot()")
	mustExec(t, importer, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	r.grow(t, 50)
	later := connect(t, p.dsn(r.user))
	waitFor(t, func() bool { return smallest(t, later) >= 50 })
	mustExec(t, importer, "SET TRANSACTION SNAPSHOT '"+snapshot+"'")
	if _, err := importer.Exec(t.Context(), "SELECT count(*) FROM patients"); codeIn(err) != "40001" {
		t.Errorf("a release newer than an imported snapshot: %v, want 40001", err)
	}
}

// TestACommitThatIsNotOnDiskCounts: whoever commits with synchronous_commit = off is seen before
// a standby can have that.
func TestACommitThatIsNotOnDiskCounts(t *testing.T) {
	s, _ := ownStand(t, "notondisk")
	admin := s.superuser(t)
	mustExec(t, admin, `ALTER SYSTEM SET wal_writer_delay = '10s'`)
	mustExec(t, admin, `SELECT pg_reload_conf()`)
	waitFor(t, func() bool { return one[string](t, admin, `SHOW wal_writer_delay`) == "10s" })
	mustExec(t, admin, `CREATE TABLE written (line text)`)
	mustExec(t, admin, `SET synchronous_commit = off`)
	for n := range 300 { // over the edges of pages, too
		mustExec(t, admin, `INSERT INTO written VALUES (repeat('x', $1))`, n)
		// The next record begins behind what was committed, and behind the header of its page.
		if !one[bool](t, admin, `SELECT ahead <= 0 OR ahead IN (24, 40)
			FROM (SELECT at - '0/0' - tailor.written() AS ahead
				FROM pg_current_wal_insert_lsn() at) q`) {
			t.Fatalf("after %d rows tailor.written is before a commit that is seen", n)
		}
	}
}
