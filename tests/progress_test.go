package tests

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// large is a table that takes a second or so to copy, with its policy as a
// draft.
const large = `CREATE TABLE large AS SELECT n AS id, n % 97 AS age, (10000 + n % 211 * 37)::text
	AS zip, 'd' || n % 41 AS diagnosis FROM generate_series(1, 120000) n;
ALTER TABLE large ADD PRIMARY KEY (id);
CALL tailor.define_hierarchy('large_age', 'interval',
    '{"widths": [5, 10, 20], "lower": 0, "upper": 119}');
CALL tailor.define_hierarchy('large_zip', 'prefix', '{"keep": [4, 3, 2]}');
CALL tailor.protect('large', 'id', 5);
CALL tailor.classify('large', 'age', 'quasi_identifier', hierarchy => 'large_age');
CALL tailor.classify('large', 'zip', 'quasi_identifier', hierarchy => 'large_zip');
CALL tailor.classify('large', 'diagnosis', 'sensitive')`

func TestAnActivationShowsToOthersHowFarItIs(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "progress"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	mustExec(t, super, `CREATE ROLE head LOGIN; GRANT tailor_admin TO head; `+
		`GRANT CREATE ON SCHEMA public TO head`)
	config, err := pgx.ParseConfig(s.cluster.SuperuserDSN("hospital"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var notices []string
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		mu.Lock()
		defer mu.Unlock()
		notices = append(notices, n.Message)
	}
	head, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = head.Close(context.Background()) })
	mustExec(t, head, `SET SESSION AUTHORIZATION head`)
	mustExec(t, head, large)

	watch := connect(t, s.cluster.SuperuserDSN("hospital"))
	mustExec(t, watch, `SET SESSION AUTHORIZATION head`)
	for _, call := range []string{
		`CALL tailor.activate('large')`, `CALL tailor.refresh('large')`,
		`CALL tailor.activate('large'); SELECT 1 / 0`,
	} {
		t.Run(call, func(t *testing.T) {
			mu.Lock()
			notices = nil
			mu.Unlock()
			done := make(chan error, 1)
			go func() {
				_, err := head.Exec(t.Context(), call)
				done <- err
			}()
			phases := make(map[string]int64)
			for running := true; running; {
				rows, err := watch.Query(t.Context(),
					`SELECT phase, coalesce(rows, 0), coalesce(of_rows, 0), since <= clock_timestamp(), `+
						`role::text FROM tailor.progress WHERE relation = 'large'::regclass`)
				if err != nil {
					t.Fatal(err)
				}
				var phase, role string
				var n, of int64
				var past bool
				if _, err = pgx.ForEachRow(rows, []any{&phase, &n, &of, &past, &role}, func() error {
					if phase != "counting rows" && of != 120000 || n > of || !past ||
						role != "postgres" && role != "head" {
						return fmt.Errorf("%s: %d of %d rows, by %s", phase, n, of, role)
					}
					if n < phases[phase] {
						return fmt.Errorf("%s: %d rows after %d", phase, n, phases[phase])
					}
					phases[phase] = n
					return nil
				}); err != nil {
					t.Error(err)
				}
				select {
				case err := <-done:
					if failed := strings.Contains(call, "1 / 0"); (err != nil) != failed {
						t.Fatal(err)
					}
					running = false
				case <-time.After(time.Millisecond):
				}
			}
			if phases["reading rows"] == 0 || phases["storing rows"] == 0 || len(phases) < 4 {
				t.Errorf("seen from another session: %v", phases)
			}
			if n := one[int](t, watch, `SELECT count(*) FROM tailor.progress`); n != 0 {
				t.Errorf("%d copies are in progress although none is", n)
			}
			mu.Lock()
			defer mu.Unlock()
			told := strings.Join(notices, "\n")
			for _, want := range []string{
				"read 100000 of 120000 rows", "stored 100000 of 120000 rows",
				"stored 120000 rows of 120000 subjects",
			} {
				if !strings.Contains(told, want) {
					t.Errorf("notices lack %q:\n%s", want, told)
				}
			}
		})
	}
}

func TestATableIsRefreshedBySchedule(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "schedule"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	dba := connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
		s.cluster.Address()))
	mustExec(t, dba, `CALL tailor.schedule('patients', '1 hour')`)
	late := func(hours int) {
		t.Helper()
		mustExec(t, super,
			fmt.Sprintf(`UPDATE tailor.schedule SET due = now() - interval '%d hours 10 minutes'`, hours))
	}
	epoch := func() int {
		return one[int](t, super,
			`SELECT epoch FROM tailor.policies WHERE relation = 'patients'::regclass`)
	}
	epochs := func() int {
		return one[int](t, super,
			`SELECT count(*) FROM tailor.epoch WHERE relation = 'patients'::regclass`)
	}
	// What two proxies take for due at once is refreshed once.
	proxyOne, proxyTwo := s.as(t, "tailor_owner"), s.as(t, "tailor_owner")
	late(0)
	mustExec(t, proxyOne, `BEGIN; CALL tailor.refresh_scheduled('public.patients')`)
	done := make(chan error, 1)
	go func() {
		_, err := proxyTwo.Exec(t.Context(), `CALL tailor.refresh_scheduled('public.patients')`)
		done <- err
	}()
	waitFor(t, func() bool {
		return one[bool](t, super,
			`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'patients'::regclass)`)
	})
	mustExec(t, proxyOne, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := epochs(); n != 2 {
		t.Errorf("%d copies after two proxies found one refresh due, want one beside the first", n)
	}
	first := epoch()
	late(5) // runs were missed
	var proxies []*testProxy
	for range 2 {
		p := s.serve(t) // two proxies at once
		proxies = append(proxies, p)
		t.Cleanup(func() {
			if t.Failed() {
				t.Log(p.log)
			}
		})
	}
	waitFor(t, func() bool { return epoch() != first })
	waitFor(t, func() bool {
		return one[bool](t, super,
			`SELECT due BETWEEN now() AND now() + interval '1 hour' AND failed = 0 AND tried IS NOT NULL `+
				`FROM tailor.schedules`)
	})
	if n := epochs(); n != 3 {
		t.Errorf("%d copies were made for five missed runs and two proxies, want one beside the "+
			"two before", n-2)
	}

	// A failure is kept, found, and gone once it is mended.
	mustExec(t, dba, `ALTER TABLE patients ENABLE ROW LEVEL SECURITY`)
	late(0)
	waitFor(t, func() bool { return one[int](t, super, `SELECT failed FROM tailor.schedules`) > 0 })
	reason := one[string](t, super, `SELECT failure FROM tailor.schedules`)
	if !strings.Contains(reason, "row-level security") {
		t.Errorf("the reason is %q", reason)
	}
	_, findings := doctor(t, s)
	found := false
	for _, f := range findings {
		found = found || f.Check == "schedules" && f.Object == "public.patients" &&
			strings.Contains(f.Message, "row-level security") && strings.Contains(f.Mend, "tailor.refresh")
	}
	if !found {
		t.Errorf("tailor doctor does not find the failure: %+v", findings)
	}
	mustExec(t, dba, `ALTER TABLE patients DISABLE ROW LEVEL SECURITY; `+
		`CALL tailor.refresh('patients')`)
	if n := one[int](t, super, `SELECT failed FROM tailor.schedules`); n != 0 {
		t.Errorf("%d failures after a refresh by hand", n)
	}

	// What nobody takes in does not pile up, and what has been taken in is not kept.
	upToDate := func() {
		t.Helper()
		waitFor(t, func() bool {
			return one[bool](t, super,
				`SELECT chains = 1 AND behind = 0 FROM tailor.storage WHERE relation = 'patients'::regclass`)
		})
	}
	upToDate()
	for _, p := range proxies {
		p.stop(t)
	}
	copies := func() int {
		return one[int](t, super,
			`SELECT count(*) FROM tailor.epoch e JOIN pg_class c ON c.relname = 'epoch_' || e.epoch
			WHERE c.relnamespace = 'tailor_store'::regnamespace AND e.relation = 'patients'::regclass`)
	}
	const stored = `SELECT table_bytes > 0 AND (copy_bytes > 0) = $1 AND chain_bytes > 0 ` +
		`AND behind = $1::int AND chains = 1 FROM tailor.storage WHERE relation = 'patients'::regclass`
	if n := copies(); n != 0 {
		t.Errorf("%d copies are kept that have been taken in", n)
	}
	if !one[bool](t, dba, stored, false) {
		t.Error("tailor.storage is wrong about a table whose copy has been taken in")
	}
	for range 4 {
		mustExec(t, dba, `CALL tailor.refresh('patients')`)
	}
	if n := copies(); n != 1 {
		t.Errorf("%d copies wait to be taken in, want the last of four", n)
	}
	if !one[bool](t, dba, stored, true) {
		t.Error("tailor.storage is wrong about a table with a copy that waits")
	}
	s.serve(t)
	upToDate()
	if n := copies(); n != 0 {
		t.Errorf("%d copies are kept after a proxy has come", n)
	}
	mustExec(t, dba, `CALL tailor.schedule('patients', NULL)`)
	if n := one[int](t, super, `SELECT count(*) FROM tailor.schedules`); n != 0 {
		t.Errorf("%d schedules after the only one ended", n)
	}
}

// TestATableIsRefreshedOnceItHasChanged, and not while it has not, by the proxy that keeps
// the schedules.
func TestATableIsRefreshedOnceItHasChanged(t *testing.T) {
	direct := makeDatabase(t, "on_change", `CREATE TABLE people (id int PRIMARY KEY, age int NOT
		NULL);
		INSERT INTO people SELECT g, g % 80 FROM generate_series(1, 300) g`)
	if err := shared.install(t.Context(), "on_change"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20, 40],
		"lower": 0, "upper": 119}');
		CALL tailor.protect('people', subject => 'id', k => 5);
			CALL tailor.classify('people', 'id', 'direct_identifier');
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.activate('people'); CALL tailor.schedule('people', on_change => true)`)
	// The proxy looks every ten seconds; here the same calls are made at once.
	service := connect(t, shared.cluster.ServiceDSN("on_change"))
	due := func() bool {
		t.Helper()
		mustExec(t, direct, `UPDATE tailor.schedule SET due = now() - interval '1 second'`)
		return one[bool](t, service, `SELECT EXISTS (SELECT FROM tailor.due_schedules())`)
	}
	copies := func() int { return one[int](t, direct, `SELECT count(*)::int FROM tailor.epoch`) }
	settled := func() {
		t.Helper()
		waitFor(t, func() bool { // counts of the last statements may come late
			if due() {
				mustExec(t, service, `CALL tailor.refresh_scheduled('people')`)
				return false
			}
			return true
		})
	}
	settled()
	for _, change := range []string{
		`INSERT INTO people VALUES (1000, 30)`, `UPDATE people SET age = 31 WHERE id = 1000`,
		`DELETE FROM people WHERE id = 1000`, `TRUNCATE people`,
	} {
		before := copies()
		mustExec(t, service, `CALL tailor.refresh_scheduled('people')`)
		if n := copies(); n != before {
			t.Errorf("%d copies of a table that has not changed", n-before)
		}
		mustExec(t, connect(t, shared.cluster.SuperuserDSN("on_change")), change)
		waitFor(t, due)
		if change == `TRUNCATE people` {
			break
		}
		settled()
		if n := copies(); n == before {
			t.Errorf("no copy after %s", change)
		}
	}
	// What is not counted is taken in within a day.
	settled()
	mustExec(t, direct, `INSERT INTO people SELECT g, g % 80 FROM generate_series(1, 300) g`)
	settled()
	if due() {
		t.Error("a table that has not changed is due")
	}
	mustExec(t, direct, `UPDATE tailor.epoch SET created = now() - interval '1 day'`)
	if !due() {
		t.Error("a copy that is a day old is not made anew")
	}
	refused(t, direct, "22023", `CALL tailor.schedule('people')`)
	if one[bool](t, direct, `SELECT on_change FROM tailor.schedules`) != true {
		t.Error("tailor.schedules does not say so")
	}
}
