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
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ladder are queries that each ask a chain for more.
var ladder = []string{
	"SELECT token, sex, race FROM patients",
	"SELECT token, age, sex FROM patients",
	"SELECT token, zip, age, sex FROM patients",
	"SELECT token, birth_date, zip FROM patients",
}

// attempt asks a query on a connection of its own, which may break at any
// time, and returns what came before it did.
func attempt(t *testing.T, dsn, sql string) (people map[string]string, complete bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, false, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	people = make(map[string]string)
	rows, err := conn.Query(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, false, err
	}
	for rows.Next() {
		raw := rows.RawValues()
		var shown []string
		for _, v := range raw[1:] {
			shown = append(shown, string(v))
		}
		people[string(raw[0])] = strings.Join(shown, "|")
	}
	return people, rows.Err() == nil, rows.Err()
}

// witness keeps what one audience has seen through all crashes, whole answers
// and parts of some.
type witness struct {
	user    string
	answers []glimpse
}

// glimpse is an answer, or the part of it that came.
type glimpse struct {
	sql    string
	people map[string]string // token -> labels
}

func (w *witness) note(sql string, people map[string]string) {
	if len(people) > 0 {
		w.answers = append(w.answers, glimpse{sql, people})
	}
}

// assertSound checks what was seen against the guarantee. The last answers, one
// of each query and whole, make the blocks of the chain: they have at least k
// people, and no answer before has told two people of one block apart. Every
// query of which a row was seen is among the recorded ones.
func (w *witness) assertSound(t *testing.T, recorded map[question]bool) {
	t.Helper()
	whole := make(map[string]string)
	for _, last := range w.answers[len(w.answers)-len(ladder):] {
		for token, shown := range last.people {
			whole[token] += " ; " + shown
		}
	}
	block, number := make(map[string]int), make(map[string]int) // by token, by what was shown
	var size []int
	for token, shown := range whole {
		n, known := number[shown]
		if !known {
			n = len(size)
			number[shown], size = n, append(size, 0)
		}
		block[token] = n
		size[n]++
	}
	for _, n := range size {
		if n < k {
			t.Errorf("%s: a block of %d", w.user, n)
		}
	}
	for i, g := range w.answers {
		shownAs, seen := make([]string, len(size)), make([]bool, len(size))
		for token, shown := range g.people {
			n, known := block[token]
			if !known {
				t.Fatalf("%s: answer %d of %d shows somebody whom the last ones do not: %s", w.user, i+1,
					len(w.answers), g.sql)
			}
			if seen[n] && shownAs[n] != shown {
				t.Fatalf("%s: answer %d of %d tells people of one block apart: %s", w.user, i+1,
					len(w.answers), g.sql)
			}
			shownAs[n], seen[n] = shown, true
		}
	}
	for _, g := range w.answers {
		if !recorded[question{w.user, g.sql}] {
			t.Errorf("%s: rows came without a record: %s", w.user, g.sql)
		}
	}
}

// question is who asked what.
type question struct{ principal, sql string }

// released reads an audit file's questions that were answered from releases.
func released(t *testing.T, file string) map[question]bool {
	t.Helper()
	records, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[question]bool)
	for line := range strings.Lines(string(records)) {
		var r struct{ Principal, Verdict, SQL string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Verdict == "released" {
			out[question{r.Principal, r.SQL}] = true
		}
	}
	return out
}

// askAll asks every query once more and takes the whole answers.
func (w *witness) askAll(t *testing.T, dsn string) {
	t.Helper()
	for range 2 { // the second time, nothing is refined any more
		for _, sql := range ladder {
			people, complete, err := attempt(t, dsn, sql)
			if !complete || len(people) != patients {
				t.Errorf("%s, after the last crash: %d rows, %v", w.user, len(people), err)
				return
			}
			w.note(sql, people)
		}
	}
}

// step is where the proxy is stopped: a lock that somebody then waits for. %d is
// the number of the chain; opened says that the chain is there before.
type step struct {
	before, lock string
	opened       bool
	waiter       string // "" for the reader
}

var steps = []step{
	{"the policy is checked", `SELECT FROM tailor.protection FOR UPDATE`, false, "tailor_owner"},
	{"the epoch is locked", `SELECT FROM tailor.epoch FOR UPDATE`, false, "tailor_owner"},
	{
		"a chain is looked for", `LOCK TABLE tailor.chain IN ACCESS EXCLUSIVE MODE`, false,
		"tailor_owner",
	},
	{"the root is stored", `LOCK TABLE tailor.chain IN SHARE MODE`, false, "tailor_owner"},
	{"what is to be shown is checked", lockCopy, false, "tailor_owner"},
	{
		"the record is in the table", `LOCK TABLE tailor.audit_log IN ACCESS EXCLUSIVE MODE`, true,
		"tailor_owner",
	},
	{"the release is read", `LOCK TABLE tailor_store.chain_%d_row IN ACCESS EXCLUSIVE MODE`, true, ""},
}

// lockCopy locks the copy of the patients, which the maker of a release has read once
// before.
const lockCopy = `DO $$ BEGIN EXECUTE
	(SELECT format('LOCK TABLE tailor_store.epoch_%%s IN ACCESS EXCLUSIVE MODE', epoch)
	FROM tailor.protection WHERE relation = 'public.patients'::regclass); END $$`

// hold takes a step's lock for a chain and returns how to let it go.
func (s *step) hold(t *testing.T, conn *pgx.Conn, chain int) (release func()) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := s.lock
	if strings.Contains(lock, "%") {
		lock = strings.ReplaceAll(strings.ReplaceAll(lock, "%d", fmt.Sprint(chain)), "%%", "%")
	}
	if _, err := tx.Exec(t.Context(), lock); err != nil {
		t.Fatalf("before %s: %v", s.before, err)
	}
	return func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }
}

// TestKillingTheProxyAtAnyStepLosesNothing kills it at each step of publishing a release,
// where somebody is seen to wait, and at any moment; five times with TAILOR_SOAK=1. A proxy
// that is killed reports no race: it does without the detector.
func TestKillingTheProxyAtAnyStepLosesNothing(t *testing.T) {
	own, err := newStand(filepath.Join(stands, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.cluster.Stop)
	direct, holder := own.superuser(t), own.superuser(t)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	p := own.serveIn(t, binary, audit, nil)
	var witnesses []*witness
	rounds := 1
	if soaks() {
		rounds = 5
	}
	for i := range rounds*len(steps) + rounds {
		w := &witness{user: fmt.Sprintf("killed_%d", i+1)}
		mustExec(t, direct, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD '%[1]s'`, w.user))
		mustExec(t, direct, `CALL tailor.grant_reader($1)`, w.user)
		at := step{before: "any moment"}
		if i < rounds*len(steps) {
			at = steps[i%len(steps)]
		}
		chain := 0
		if at.opened {
			mustExec(t, connect(t, p.dsn(w.user)), `SELECT count(*) FROM patients`)
			waitFor(t, func() bool {
				return one[bool](t, direct,
					`SELECT EXISTS (SELECT FROM tailor.chain WHERE relation = 'patients'::regclass)`)
			})
			chain = one[int](t, direct,
				`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
		}
		release := func() {}
		if !at.opened {
			mustExec(t, direct, `CALL tailor.forget_chains('patients')`) // the same root is made again
		}
		if at.lock != "" {
			release = at.hold(t, holder, chain)
		}
		sql := ladder[i%len(ladder)]
		done := make(chan struct{})
		var people map[string]string
		var complete bool
		go func() {
			defer close(done)
			var err error
			for { // until it has heard that chains have been forgotten
				if people, complete, err = attempt(t, p.dsn(w.user), sql); codeIn(err) != "40001" {
					break
				}
			}
		}()
		if at.lock == "" {
			time.Sleep(time.Duration(i*13%150) * time.Millisecond)
		} else {
			waiter := at.waiter
			if waiter == "" {
				waiter = w.user
			}
			waitFor(t, func() bool {
				return one[bool](t, direct,
					`SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
					WHERE NOT l.granted AND a.usename = $1)`, waiter)
			})
		}
		p.kill()
		release()
		<-done
		if at.lock != "" && len(people) > 0 {
			t.Errorf("%d rows came before %s", len(people), at.before)
		}
		if complete && len(people) != patients {
			t.Errorf("kill %d: an answer of %d rows came to its end, of %d patients", i+1, len(people),
				patients)
		}
		p = own.serveIn(t, binary, audit, nil)
		w.note(sql, people)
		witnesses = append(witnesses, w)
	}
	inParallel(len(witnesses), 4, func(i int) { witnesses[i].askAll(t, p.dsn(witnesses[i].user)) })
	if t.Failed() {
		return
	}
	recorded := released(t, audit)
	for _, w := range witnesses {
		w.assertSound(t, recorded)
	}
}

// TestCrashesOfTheServerLoseNoRelease ends PostgreSQL many times as a power cut
// would, while releases are published and read.
func TestCrashesOfTheServerLoseNoRelease(t *testing.T) {
	own, err := newStand(filepath.Join(stands, "crashing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.cluster.Stop)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	p := own.serveBinary(t, binary, "--audit-log", audit)
	user := own.reader(t)
	w := &witness{user: user}
	crashes := 8
	if soaks() {
		crashes = 20
	}
	for i := range crashes {
		sql := ladder[i*len(ladder)/crashes]
		done := make(chan struct{})
		var people map[string]string
		var complete bool
		go func() {
			defer close(done)
			people, complete, _ = attempt(t, p.dsn(user), sql)
		}()
		time.Sleep(time.Duration(i*37%300) * time.Millisecond) // any moment will do
		own.cluster.Crash()
		<-done
		w.note(sql, people)
		if complete && len(people) != patients {
			t.Errorf("crash %d: an answer of %d rows came to its end, of %d patients", i+1, len(people),
				patients)
		}
		if err := own.cluster.Launch(t.Context(), "fsync=off", "max_connections=200"); err != nil {
			t.Fatal(err)
		}
		// Right or refused, never empty: as soon as an answer comes, it is whole.
		waitFor(t, func() bool {
			people, complete, err := attempt(t, p.dsn(user), sql)
			w.note(sql, people)
			if complete && len(people) != patients {
				t.Fatalf("crash %d: %d rows after recovery, of %d patients", i+1, len(people), patients)
			}
			var refused *pgconn.PgError
			if err != nil && errors.As(err, &refused) &&
				!slices.Contains([]string{"57P03", "57P01", "08006", "40001", "KA005"}, refused.Code) {
				t.Fatalf("crash %d: %v", i+1, err)
			}
			return complete
		})
	}
	w.askAll(t, p.dsn(user))
	if t.Failed() {
		return
	}
	w.assertSound(t, released(t, audit))
}
