package tests

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// TestRefreshesDuringMixedLoad refreshes a table as fast as it goes, by two sessions at
// once and under two proxies, while readers ask: each answer is what one copy says, and
// all of a transaction that is REPEATABLE READ say the same. 30 s with TAILOR_SOAK=1.
func TestRefreshesDuringMixedLoad(t *testing.T) {
	own, err := newStand(filepath.Join(stands, "refreshload"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(own.cluster.Stop)
	s := &takenIn{testCluster: own, direct: own.superuser(t), holder: own.superuser(t)}
	mustExec(t, s.direct, waitsAtEachWrite)
	user := own.reader(t)
	proxies := []*testProxy{own.serve(t), own.serve(t)}
	for _, p := range proxies {
		mustExec(t, connect(t, p.dsn(user)), `SELECT count(*) FROM patients`)
	}
	s.note(t)
	duration := 5 * time.Second
	if soaks() {
		duration = 30 * time.Second
	}
	var mu sync.Mutex // of the stages
	isStage := func(people map[string]string) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, stage := range s.stages {
			if maps.Equal(stage, people) {
				return true
			}
		}
		return false
	}
	ask := func(ctx context.Context, db interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	}, mode pgx.QueryExecMode,
	) (map[string]string, error) {
		rows, err := db.Query(ctx, `SELECT token::text, cost::text FROM patients`, mode)
		if err != nil {
			return nil, err
		}
		people := make(map[string]string)
		var token, cost string
		_, err = pgx.ForEachRow(rows, []any{&token, &cost},
			func() error { people[token] = cost; return nil })
		return people, err
	}
	// passing: whoever is told so asks again.
	passing := func(err error) bool { return codeIn(err) == "40001" }
	ctx, stop := context.WithTimeout(t.Context(), duration)
	defer stop()
	var group sync.WaitGroup
	answers := make([]int, 8)
	for client := range answers {
		conn := connect(t, proxies[client%2].dsn(user))
		group.Go(func() {
			for ctx.Err() == nil {
				var seen []map[string]string
				var err error
				switch client % 4 {
				case 0, 1:
					var people map[string]string
					people, err = ask(t.Context(), conn,
						[]pgx.QueryExecMode{
							pgx.QueryExecModeSimpleProtocol,
							pgx.QueryExecModeCacheStatement,
						}[client%2])
					seen = append(seen, people)
				case 2:
					err = pgx.BeginTxFunc(t.Context(), conn,
						pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
							for range 3 {
								people, err := ask(t.Context(), tx, pgx.QueryExecModeSimpleProtocol)
								if err != nil {
									return err
								}
								seen = append(seen, people)
							}
							return nil
						})
				case 3: // what passes
					var n int
					if err = conn.QueryRow(t.Context(),
						`SELECT count(*) FROM numbers`).Scan(&n); err == nil && n != 10000 {
						t.Errorf("%d numbers", n)
					}
				}
				if err != nil {
					if !passing(err) {
						t.Errorf("client %d: %v", client, err)
						return
					}
					continue
				}
				answers[client]++
				for _, people := range seen {
					if !isStage(people) {
						t.Errorf("client %d: %d rows are of no copy", client, len(people))
						return
					}
					if !maps.Equal(people, seen[0]) {
						t.Errorf("client %d: a transaction sees two copies", client)
						return
					}
				}
			}
		})
	}
	for ctx.Err() == nil && !t.Failed() {
		func() {
			mu.Lock() // what is shown next is noted before anybody can ask whether it is
			defer mu.Unlock()
			s.changes(t)
		}()
		// Another refresh beside it finds nothing to do, or waits.
		done := make(chan error)
		go func() {
			_, err := s.holder.Exec(t.Context(), `CALL tailor.refresh('patients')`)
			done <- err
		}()
		_, err := s.direct.Exec(t.Context(), `CALL tailor.refresh('patients')`)
		for _, err := range []error{err, <-done} {
			if err != nil {
				t.Errorf("one of two refreshes: %v", err)
			}
		}
		awaitTakenIn(t, s.direct, "patients")
	}
	group.Wait()
	t.Logf("%d copies, %v answers", len(s.stages), answers)
	if len(s.stages) < 2 {
		t.Errorf("%d copies were taken in", len(s.stages)-1)
	}
	for client, n := range answers {
		if n == 0 {
			t.Errorf("client %d was never answered", client)
		}
	}
	last := make(disclosed)
	last.answer(t, connect(t, proxies[0].dsn(user)),
		`SELECT token, age, zip, sex, race, birth_date FROM patients`)
	if least := last.smallestClass(); least < k {
		t.Errorf("a class of %d", least)
	}
	for i, p := range proxies {
		if log := p.log.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log,
			"session failed") {
			t.Error(fmt.Sprint("proxy ", i, ": ", log))
		}
	}
}
