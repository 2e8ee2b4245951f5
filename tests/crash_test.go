package tests

import (
	"context"
	"encoding/json"
	"errors"
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
// query of which a row was seen has its record.
func (w *witness) assertSound(t *testing.T, records string) {
	t.Helper()
	block := make(map[string]string)
	for _, last := range w.answers[len(w.answers)-len(ladder):] {
		for token, shown := range last.people {
			block[token] += " ; " + shown
		}
	}
	size := make(map[string]int)
	for _, b := range block {
		size[b]++
	}
	for _, n := range size {
		if n < k {
			t.Errorf("%s: a block of %d", w.user, n)
		}
	}
	for i, g := range w.answers {
		shownAs := make(map[string]string)
		for token, shown := range g.people {
			if other, known := shownAs[block[token]]; known && other != shown {
				t.Fatalf("%s: answer %d of %d tells people of one block apart: %s", w.user, i+1, len(w.answers), g.sql)
			}
			shownAs[block[token]] = shown
		}
	}
	recorded := make(map[string]bool)
	for line := range strings.Lines(records) {
		var r struct{ Principal, Verdict, SQL string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Principal == w.user && r.Verdict == "released" {
			recorded[r.SQL] = true
		}
	}
	for _, g := range w.answers {
		if !recorded[g.sql] {
			t.Errorf("%s: rows came without a record: %s", w.user, g.sql)
		}
	}
}

// askAll asks every query once more and takes the whole answers.
func (w *witness) askAll(t *testing.T, dsn string) {
	t.Helper()
	for range 2 { // the second time, nothing is refined any more
		for _, sql := range ladder {
			people, complete, err := attempt(t, dsn, sql)
			if !complete || len(people) != patients {
				t.Fatalf("after the last crash: %d rows, %v", len(people), err)
			}
			w.note(sql, people)
		}
	}
}

// steps are where the proxy is stopped: a lock that keeps it from the step
// after the one named.
var steps = []struct{ before, lock string }{
	{"a chain is opened", `LOCK TABLE tailor.chain IN ACCESS EXCLUSIVE MODE`},
	{"the policy is checked", `SELECT FROM tailor.protection FOR UPDATE`},
	{"the graph is stored", `LOCK TABLE tailor.chain_node IN ACCESS EXCLUSIVE MODE`},
	{"labels are written", `DO $$ BEGIN EXECUTE (SELECT format('LOCK TABLE tailor_store.chain_%s_block IN ACCESS EXCLUSIVE MODE', max(chain)) FROM tailor.chain WHERE relation = 'public.patients'::regclass); END $$`},
	{"rows are written", `DO $$ BEGIN EXECUTE (SELECT format('LOCK TABLE tailor_store.chain_%s_row IN ACCESS EXCLUSIVE MODE', max(chain)) FROM tailor.chain WHERE relation = 'public.patients'::regclass); END $$`},
	{"the record is in the table", `LOCK TABLE tailor.audit_log IN ACCESS EXCLUSIVE MODE`},
	{"the release is read", `DO $$ BEGIN EXECUTE (SELECT format('LOCK TABLE tailor_store.epoch_%s IN ACCESS EXCLUSIVE MODE', epoch) FROM tailor.protection WHERE relation = 'public.patients'::regclass); END $$`},
}

// TestKillingTheProxyAtAnyStepLosesNothing kills it 50 times: at each step of
// publishing a release, held up by a lock, and at any moment.
func TestKillingTheProxyAtAnyStepLosesNothing(t *testing.T) {
	user := shared.reader(t)
	w := &witness{user: user}
	direct := shared.superuser(t)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	kills := 50
	for i := range kills {
		p := shared.serve(t, "--audit-log", audit)
		sql := ladder[i*len(ladder)/kills]
		done := make(chan struct{})
		release := func() {}
		if i%2 == 0 {
			step := steps[i/2%len(steps)]
			tx, err := direct.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), step.lock); err != nil && i >= 2*len(steps) {
				t.Fatalf("before %s: %v", step.before, err)
			}
			release = func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }
		}
		var people map[string]string
		var complete bool
		go func() {
			defer close(done)
			people, complete, _ = attempt(t, p.dsn(user), sql)
		}()
		select {
		case <-done:
		case <-time.After(time.Duration(20+i*17%400) * time.Millisecond):
		}
		p.kill()
		release()
		<-done
		w.note(sql, people)
		if complete && len(people) != patients {
			t.Errorf("kill %d: an answer of %d rows came to its end, of %d patients", i+1, len(people), patients)
		}
	}
	w.askAll(t, shared.serve(t, "--audit-log", audit).dsn(user))
	records, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	w.assertSound(t, string(records))
	if n := one[int](t, direct, `SELECT min(min_block) FROM tailor.chain WHERE audience = $1`, "principal "+user); n < k {
		t.Errorf("the chain has a block of %d", n)
	}
}

// TestCrashesOfTheServerLoseNoRelease ends PostgreSQL 20 times as a power cut
// would, while releases are published and read.
func TestCrashesOfTheServerLoseNoRelease(t *testing.T) {
	own, err := newStand(filepath.Join(stands, "crashing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.cluster.Stop)
	audit := filepath.Join(t.TempDir(), "audit.jsonl")
	p := own.serve(t, "--audit-log", audit)
	user := own.reader(t)
	w := &witness{user: user}
	crashes := 20
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
			t.Errorf("crash %d: an answer of %d rows came to its end, of %d patients", i+1, len(people), patients)
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
			if err != nil && errors.As(err, &refused) && !slices.Contains([]string{"57P03", "57P01", "08006", "40001", "KA005"}, refused.Code) {
				t.Fatalf("crash %d: %v", i+1, err)
			}
			return complete
		})
	}
	w.askAll(t, p.dsn(user))
	records, err := os.ReadFile(audit)
	if err != nil {
		t.Fatal(err)
	}
	w.assertSound(t, string(records))
}
