package tests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// shownRows reads a table of codes through a proxy as the rows come.
func shownRows(t *testing.T, conn *pgx.Conn, table string) [][2]string {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT person::text, code FROM "+table)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (pair [2]string, err error) {
		return pair, row.Scan(&pair[0], &pair[1])
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// again is one, asked again while the proxy is yet to hear of a refresh.
func again[T any](t *testing.T, conn *pgx.Conn, sql string, args ...any) (v T) {
	t.Helper()
	waitFor(t, func() bool {
		err := conn.QueryRow(t.Context(), sql, args...).Scan(&v)
		var answer *pgconn.PgError
		if err != nil && (!errors.As(err, &answer) || answer.Code != "40001") {
			t.Fatalf("%s: %v", sql, err)
		}
		return err == nil
	})
	return v
}

// sets are the codes shown of each pseudonym.
func sets(rows [][2]string) map[string][]string {
	out := make(map[string][]string)
	for _, r := range rows {
		out[r[0]] = append(out[r[0]], r[1])
	}
	for _, codes := range out {
		slices.Sort(codes)
	}
	return out
}

func isUnlinkable(t *testing.T, s *testCluster) {
	c := drawCodes(3000)
	p := s.published(t, "linked", c, `, sensitive => '{245.50,250.30}', diversity => 3`)
	conn := connect(t, p.dsn(s.reader(t)))
	rows := shownRows(t, conn, "linked")
	before := sets(rows)
	same := 0
	for person := range c {
		if _, shown := before[fmt.Sprint(person)]; shown {
			same++
		}
	}
	if same > 5 {
		t.Errorf("%d pseudonyms are keys of the table", same)
	}
	beside := 0
	for i := range rows[1:] {
		if rows[i][0] == rows[i+1][0] || rows[i][1] == rows[i+1][1] && rows[i][1] > "300" {
			beside++
		}
	}
	if beside > len(rows)/20 {
		t.Errorf("%d of %d rows stand beside one of the same subject or rare code: the order tells "+
			"something", beside, len(rows))
	}

	// Another copy of the same people shows the same.
	mustExec(t, s.as(t, "dba"), `CALL tailor.refresh('linked')`)
	awaitTakenIn(t, s.superuser(t), "linked", conn)
	after := sets(shownRows(t, conn, "linked"))
	if !maps.EqualFunc(before, after, slices.Equal) {
		t.Errorf("%d subjects after a refresh, %d before, or other codes", len(after), len(before))
	}
}

// publishesOnce lets clients of two proxies ask for an epoch at the same
// moment: all are held by a lock on it, and go on together.
func publishesOnce(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	drawCodes(2000).fill(t, owner, "raced", "")
	mustExec(t, owner, `CALL tailor.activate('raced')`)
	db := s.superuser(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(),
		`SELECT FROM tailor.epoch JOIN tailor.protection p USING (epoch) `+
			`WHERE p.relation = 'raced'::regclass FOR UPDATE OF epoch`); err != nil {
		t.Fatal(err)
	}
	first, second := s.serve(t), s.serve(t) // which would publish at once
	user := s.reader(t)
	const clients = 4
	answers := make(chan string, 2*clients)
	for _, p := range []*testProxy{first, second} {
		for range clients {
			conn := connect(t, p.dsn(user))
			go func() {
				var all string
				err := conn.QueryRow(t.Context(),
					`SELECT md5(string_agg(person || ' ' || code, ',' ORDER BY person, code)) FROM raced`).
					Scan(&all)
				var answer *pgconn.PgError
				for errors.As(err, &answer) && (answer.Code == "40001" || answer.Code == "57P03") {
					// Two proxies made the same chain at once; one is asked again.
					err = conn.QueryRow(t.Context(),
						`SELECT md5(string_agg(person || ' ' || code, ',' ORDER BY person, code)) FROM raced`).
						Scan(&all)
				}
				if err != nil {
					all = err.Error()
				}
				answers <- all
			}()
		}
	}
	watch := s.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, watch,
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' `+
				`AND query LIKE '%tailor.epoch%FOR UPDATE%' AND application_name = 'tailor'`) == 2
	})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]int)
	for range 2 * clients {
		seen[<-answers]++
	}
	if len(seen) != 1 {
		t.Errorf("%d different answers of one epoch: %v", len(seen), seen)
	}
	const published = `published set-valued table" relation=public.raced`
	made := strings.Count(first.log.String(), published) + strings.Count(second.log.String(),
		published)
	if made != 1 {
		t.Errorf("%d publications were made, want one\n%s\n%s", made, first.log, second.log)
	}
}

// survivesKill kills a proxy when everything is written but the last row, and
// lets another one go on.
func survivesKill(t *testing.T, s *testCluster) {
	p := s.published(t, "killed", drawCodes(2000))
	user := s.reader(t)
	db, watch := s.superuser(t), s.superuser(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE tailor.publication IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, p.dsn(user))
	asked := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT count(*) FROM killed")
		asked <- err
	}()
	waitFor(t, func() bool {
		return one[int](t, watch,
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' `+
				`AND query LIKE 'INSERT INTO tailor.publication%'`) == 1
	})
	p.kill()
	if err := <-asked; err == nil {
		t.Error("a killed proxy answered")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		return one[int](t, watch,
			`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tailor' `+
				`AND state <> 'idle'`) == 0
	})
	epoch := one[int](t, watch,
		`SELECT epoch FROM tailor.protection WHERE relation = 'killed'::regclass`)
	left := one[string](t, watch, fmt.Sprintf(
		`SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class
		WHERE relnamespace = 'tailor_store'::regnamespace AND relkind = 'r' AND relname ~ '_%d$'`, epoch))
	if want := fmt.Sprintf("digest_%[1]d records_%[1]d shape_%[1]d", epoch); left != want {
		t.Errorf("left behind: %s, want %s", left, want)
	}
	if n := one[int](t, watch, `SELECT count(*) FROM tailor.publication WHERE epoch = $1`,
		epoch); n != 0 {
		t.Error("half a publication is visible")
	}
	next := connect(t, s.serve(t).dsn(user))
	if n := one[int](t, next, "SELECT count(DISTINCT person) FROM killed"); n != 2000 {
		t.Errorf("%d subjects from the next proxy, want 2000", n)
	}
}

// cancelsPublishing cancels the statement that publishes while it waits.
func cancelsPublishing(t *testing.T, s *testCluster) {
	p := s.published(t, "cancelled", drawCodes(2000))
	db, watch := s.superuser(t), s.superuser(t)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `LOCK TABLE tailor.publication IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, p.dsn(s.reader(t)))
	asked := make(chan error, 1)
	go func() {
		_, err := conn.Exec(t.Context(), "SELECT count(*) FROM cancelled")
		asked <- err
	}()
	waitFor(t, func() bool {
		return one[int](t, watch,
			`SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' `+
				`AND query LIKE 'INSERT INTO tailor.publication%'`) == 1
	})
	// The proxy may be publishing by itself, before the statement has begun to wait: a request
	// that finds nothing to cancel is repeated, as people do.
	var answer error
	deadline := time.Now().Add(time.Minute)
	for answered := false; !answered; {
		if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
			t.Fatal(err)
		}
		select {
		case answer = <-asked:
			answered = true
		case <-time.After(time.Second):
			if time.Now().After(deadline) {
				t.Fatal("nothing comes of it")
			}
		}
	}
	if codeIn(answer) != "57014" {
		t.Errorf("%v, want 57014", answer)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM cancelled"); n != 2000 {
		t.Errorf("%d subjects when asked again, want 2000", n)
	}
}
