package tests

import (
	"fmt"
	"maps"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// takingInSteps are where the proxy is stopped while it takes a copy in. Each statement
// that writes the release's rows waits for a lock of its own.
var takingInSteps = []step{
	{before: "the policy is checked", lock: `SELECT FROM tailor.protection FOR UPDATE`},
	{before: "the copy is locked", lock: `SELECT FROM tailor.epoch FOR UPDATE`},
	{before: "the copy is read", lock: lockCopy},
	{before: "who leaves goes", lock: `SELECT pg_advisory_xact_lock(4711, 1)`},
	{before: "a change is shown", lock: `SELECT pg_advisory_xact_lock(4711, 2)`},
	{before: "what has changed goes", lock: `SELECT pg_advisory_xact_lock(4711, 3)`},
	{before: "newcomers are shown", lock: `SELECT pg_advisory_xact_lock(4711, 4)`},
	{before: "the chain is noted", lock: `LOCK TABLE tailor.chain IN SHARE MODE`},
}

// waitsAtEachWrite makes the statements of a transaction that write a release's rows
// wait for the locks 1, 2, …, which nobody has but the test.
const waitsAtEachWrite = `
CREATE FUNCTION public.wait_at_write() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	PERFORM set_config('tests.write', (coalesce(nullif(current_setting('tests.write', true), ''),
	'0')::int + 1)::text, true);
	PERFORM pg_advisory_xact_lock_shared(4711, current_setting('tests.write')::int);
	RETURN NULL;
END $$`

// takenIn is a release that is brought up to date, one copy after another, all of
// each of which comes to be shown.
type takenIn struct {
	*testCluster
	direct, holder *pgx.Conn
	stages         []map[string]string // token -> cost, as each copy has it
}

func (s *takenIn) rows(t *testing.T) string {
	t.Helper()
	return one[string](t, s.direct,
		`SELECT 'tailor_store.chain_' || chain || CASE WHEN edition > 0 THEN '_g' || edition `+
			`ELSE '' END || '_row' FROM tailor.chain WHERE relation = 'patients'::regclass`)
}

// generation is how often the release has been written.
func (s *takenIn) generation(t *testing.T) int {
	t.Helper()
	return one[int](t, s.direct,
		`SELECT generation FROM tailor.chain WHERE relation = 'patients'::regclass`)
}

// changes has one block leave, other payloads in two, and two hundred come, and makes a copy.
func (s *takenIn) changes(t *testing.T) {
	t.Helper()
	rows := s.rows(t)
	mustExec(t, s.direct,
		fmt.Sprintf(`CREATE OR REPLACE TRIGGER waits BEFORE INSERT OR DELETE
			ON %[1]s FOR EACH STATEMENT EXECUTE FUNCTION public.wait_at_write();
		CREATE TEMP TABLE blocks AS SELECT b, row_number() OVER (ORDER BY b) AS nth
			FROM (SELECT DISTINCT "tailor block" AS b FROM %[1]s) d ORDER BY b LIMIT 3;
		CREATE TEMP TABLE leaving AS SELECT p.id FROM patients p JOIN %[1]s r USING (token)
			JOIN blocks ON b = "tailor block" WHERE nth = 1;
		UPDATE patients SET cost = cost + 10000 WHERE token IN (SELECT token FROM %[1]s JOIN blocks
			ON b = "tailor block" WHERE nth > 1);
		DELETE FROM visits WHERE patient_id IN (SELECT id FROM leaving);
			DELETE FROM diagnoses WHERE patient_id IN (SELECT id FROM leaving);
		DELETE FROM patients WHERE id IN (SELECT id FROM leaving);
		INSERT INTO patients SELECT id + %[2]d, name, ssn, birth_date, age, sex, race, zip, ward,
			diagnosis, cost FROM patients WHERE id <= %[3]d AND id %% 20 = 7;
		DROP TABLE blocks, leaving; CALL tailor.refresh('patients')`, rows, 100_000*len(s.stages),
			patients))
	s.note(t)
}

// note adds what the table has now.
func (s *takenIn) note(t *testing.T) {
	t.Helper()
	rows, err := s.direct.Query(t.Context(), `SELECT token::text, cost::text FROM patients`)
	if err != nil {
		t.Fatal(err)
	}
	stage := make(map[string]string)
	var token, cost string
	if _, err := pgx.ForEachRow(rows, []any{&token, &cost}, func() error {
		stage[token] = cost
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s.stages = append(s.stages, stage)
}

// isStage says whether an answer, or the part of it that came, is one of the last copy or
// of the one before.
func (s *takenIn) isStage(people map[string]string, complete bool) bool {
	for _, stage := range s.stages[max(0, len(s.stages)-2):] {
		whole := !complete || len(people) == len(stage)
		for token, cost := range people {
			whole = whole && stage[token] == cost
		}
		if whole {
			return true
		}
	}
	return false
}

// TestKillingTheProxyWhileItTakesACopyInShowsNoHalf kills it at each step of bringing a
// release up to date, where it is seen to wait, and at any moment, while somebody leaves,
// changes and comes with each copy. Readers are answered meanwhile, and see the release
// as it was or as it is. 25 times with TAILOR_SOAK=1.
func TestKillingTheProxyWhileItTakesACopyInShowsNoHalf(t *testing.T) {
	takingInEnds(t, "takenin", func(_ *takenIn, p *testProxy) { p.kill() })
}

// TestCrashesOfTheServerWhileACopyIsTakenInShowNoHalf stops PostgreSQL at once, at the same
// steps and while a copy is made.
func TestCrashesOfTheServerWhileACopyIsTakenInShowNoHalf(t *testing.T) {
	takingInEnds(t, "takencrash", func(s *takenIn, p *testProxy) {
		s.cluster.Crash()
		if err := s.cluster.Launch(t.Context(), "fsync=off", "max_connections=200"); err != nil {
			t.Fatal(err)
		}
		p.kill()
		s.direct, s.holder = s.superuser(t), s.superuser(t)
	})
}

// TestANewProxyAnswersWhileACopyIsTakenIn: a proxy that has let nobody read yet waits for
// nobody who has the release, where it has been let read before.
func TestANewProxyAnswersWhileACopyIsTakenIn(t *testing.T) {
	s := shared
	user := s.reader(t)
	ask := func(p *testProxy) error {
		_, _, err := attempt(t, p.dsn(user), `SELECT token, age FROM patients`)
		return err
	}
	if err := ask(s.serve(t)); err != nil {
		t.Fatal(err)
	}
	taker, err := s.superuser(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := taker.Exec(t.Context(), `SELECT FROM tailor.chain FOR UPDATE`); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := ask(s.serve(t)); err != nil || time.Since(began) > 10*time.Second {
		t.Errorf("answered after %s: %v", time.Since(began), err)
	}
	if err := taker.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// takingInEnds lets end happen while copies are taken in.
func takingInEnds(t *testing.T, folder string, end func(s *takenIn, p *testProxy)) {
	own, err := newStand(filepath.Join(stands, folder))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.cluster.Stop)
	s := &takenIn{testCluster: own, direct: own.superuser(t), holder: own.superuser(t)}
	mustExec(t, s.direct, waitsAtEachWrite)
	user := own.reader(t)
	const asked, labels = `SELECT token, cost FROM patients`,
		`SELECT token, age, zip, sex, race, birth_date FROM patients`
	p := own.serveBinary(t, binary)
	first := make(disclosed)
	first.answer(t, connect(t, p.dsn(user)), labels)
	s.note(t)
	look := func() (complete bool) {
		t.Helper()
		people, complete, err := attempt(t, p.dsn(user), asked)
		if !s.isStage(people, complete) {
			t.Errorf("copy %d: %d rows are neither of what was nor of what is: %v", len(s.stages),
				len(people), err)
		}
		return complete
	}
	times := len(takingInSteps) + 3
	if soaks() {
		times = 25
	}
	for i := range times {
		if i%3 > 0 && !soaks() {
			continue
		}
		at := step{before: "any moment"}
		if i%(len(takingInSteps)+2) < len(takingInSteps) {
			at = takingInSteps[i%(len(takingInSteps)+2)]
		}
		// It hears of the copy when the lock is held.
		signal := func(sig syscall.Signal) {
			if err := p.command.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		waitFor(t, func() bool {
			signal(syscall.SIGSTOP)
			idle := one[bool](t, s.direct,
				`SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE usename = 'tailor_owner' `+
					`AND state <> 'idle')`)
			if !idle {
				signal(syscall.SIGCONT)
			}
			return idle
		})
		generation := s.generation(t)
		s.changes(t)
		release := func() {}
		if at.lock != "" {
			release = at.hold(t, s.holder, 0)
		}
		signal(syscall.SIGCONT)
		if at.lock == "" {
			done := make(chan struct{})
			go func() {
				defer close(done)
				look()
			}()
			copying := make(chan struct{})
			another := own.superuser(t)
			go func() { // which comes to its end or does not
				defer close(copying)
				_, _ = another.Exec(t.Context(), `CALL tailor.refresh('patients')`)
			}()
			time.Sleep(time.Duration(i*53%400) * time.Millisecond)
			end(s, p)
			<-done
			<-copying
		} else {
			waitFor(t, func() bool {
				return one[bool](t, s.direct,
					`SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
					WHERE NOT l.granted AND a.usename = 'tailor_owner')`)
			})
			// A proxy that has been stopped for long may have lost its own connections, and
			// says so until it has others.
			until := time.Now().Add(20 * time.Second)
			for !look() {
				if time.Now().After(until) {
					_, _, err := attempt(t, p.dsn(user), asked)
					t.Fatalf("nobody is answered before %s: %v\n%s", at.before, err, p.log)
				}
			}
			end(s, p)
			if now := s.generation(t); now != generation {
				t.Errorf("before %s the release is written: %d, then %d", at.before, generation, now)
			}
		}
		release()
		p = own.serveBinary(t, binary)
		look()
		awaitTakenIn(t, s.direct, "patients")
		people, complete, err := attempt(t, p.dsn(user), asked)
		if last := s.stages[len(s.stages)-1]; !complete || !maps.Equal(people, last) {
			t.Fatalf("after it ended before %s: %d rows, want the %d of the copy: %v", at.before,
				len(people), len(last), err)
		}
	}
	last := make(disclosed)
	last.answer(t, connect(t, p.dsn(user)), labels)
	if least := last.smallestClass(); least < k {
		t.Errorf("a class of %d", least)
	}
	for token, shown := range first {
		if now, is := last[token]; is && now[0] != shown[0] {
			t.Fatalf("who was shown as %s is shown as %s", shown, now)
		}
	}
}
