package tests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNoWayPastTheRecord runs what has been prepared, bound or granted by
// other ways than the statement that was recorded.
func TestNoWayPastTheRecord(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	if _, err := conn.Prepare(t.Context(), "s1", "SELECT age, zip, cost FROM patients"); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, conn, "SELECT count(age) FROM patients"); n != patients {
		t.Fatal(n)
	}
	chain := one[int](t, shared.superuser(t),
		`SELECT chain FROM tailor.chain WHERE relation = 'patients'::regclass`)
	direct := connect(t, fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user,
		shared.cluster.Address()))
	cases := []struct {
		claim, sql string
		conn       *pgx.Conn
		code       string
	}{
		{"EXECUTE under the proxy's own name", "EXECUTE tailor_own_1", conn, "42501"},
		{"a release in a string", fmt.Sprintf("SELECT query_to_xml('SELECT age FROM "+
			"tai'||'lor_release.ch'||'ain_%d', true, false, '')", chain), conn, "42501"},
		{"a release in DO", fmt.Sprintf("DO $$ BEGIN EXECUTE 'SELECT age FROM "+
			"tai'||'lor_release.ch'||'ain_%d'; PERFORM 1; END $$", chain), conn, ""},
		{
			"a release past the proxy", fmt.Sprintf("SELECT age FROM tailor_release.chain_%d", chain),
			direct, "42501",
		},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			rows, err := c.conn.Query(t.Context(), c.sql, pgx.QueryExecModeSimpleProtocol)
			if err == nil {
				for rows.Next() {
					t.Errorf("a row came: %.40q", rows.RawValues()[0])
				}
				err = rows.Err()
			}
			var answer *pgconn.PgError
			if c.code != "" && (!errors.As(err, &answer) || answer.Code != c.code) {
				t.Errorf("%v, want %s", err, c.code)
			}
		})
	}
	t.Run("a lexer that is told otherwise", func(t *testing.T) {
		if _, err := conn.Exec(t.Context(), "SET standard_conforming_strings = off"); err != nil {
			t.Fatal(err)
		}
		_, err := conn.Exec(t.Context(), fmt.Sprintf(
			`SELECT '\'', age FROM tailor_release.chain_%d LIMIT 1 --'`, chain))
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "42501" {
			t.Errorf("%v, want 42501", err)
		}
	})
}

func TestErrorsAboutReleasedDataQuoteNone(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for sql, code := range map[string]string{
		"SELECT diagnosis::int FROM patients WHERE diagnosis = 'asthma'":                "22P02",
		"SELECT diagnosis::regclass FROM patients WHERE diagnosis = 'asthma'":           "42P01",
		"SELECT diagnosis::regnamespace FROM patients WHERE diagnosis = 'asthma'":       "3F000",
		"SELECT (diagnosis || ' of')::regtype FROM patients WHERE diagnosis = 'asthma'": "42601",
		"SELECT diagnosis::regprocedure FROM patients WHERE diagnosis = 'asthma'":       "22P02",
		"SELECT diagnosis::regproc FROM patients WHERE diagnosis = 'asthma'":            "42883",
		"SELECT has_table_privilege(diagnosis, 'SELECT') FROM patients WHERE diagnosis = " +
			"'asthma'": "42P01",
		"SELECT current_setting(diagnosis) FROM patients WHERE diagnosis = 'asthma'": "42704",
		"SELECT pg_get_serial_sequence('zip_city', diagnosis) FROM patients WHERE diagnosis = " +
			"'asthma'": "42703",
	} {
		for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
			_, err := conn.Exec(t.Context(), sql, mode)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) || answer.Code != code ||
				strings.Contains(answer.Message+answer.Detail+answer.Where, `"`) {
				t.Errorf("%s: %v", sql, err)
			}
		}
	}
	_, err := conn.Exec(t.Context(), "SELECT nosuch(diagnosis) FROM patients")
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "42883" ||
		!strings.Contains(answer.Message, "nosuch") {
		t.Errorf("what the text itself names wrongly: %v", err)
	}
}

func TestErrorsOfConstantWordsAreToldAsTheyAre(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	direct := shared.superuser(t)
	for _, sql := range []string{
		"SELECT cost / (age - age) FROM patients", "SELECT age FROM patients LIMIT -1",
		"SELECT ln(age - age) FROM patients",
		"SELECT 2147483647 + age + 200 FROM patients", "SELECT substr(zip, 1, -1) FROM patients",
		"SELECT (cost * 1000000000)::numeric(10, 2) FROM patients",
		"SELECT age FROM patients WHERE age = 'old'", "SELECT diagnosis::date FROM patients",
		"SELECT age FROM patients WHERE birth_date > '2000-13-01'",
	} {
		var told [2]string
		for i, c := range []*pgx.Conn{conn, direct} {
			_, err := c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) {
				t.Fatalf("%s: %v", sql, err)
			}
			told[i] = answer.Code + " " + answer.Message
			if i == 0 && strings.Contains(answer.Message+answer.Detail+answer.Hint, `"`) {
				t.Errorf("%s: %s %s %s", sql, answer.Message, answer.Detail, answer.Hint)
			}
		}
		if words, _, _ := strings.Cut(told[1], `: "`); told[0] != words {
			t.Errorf("%s: %s, PostgreSQL says %s", sql, told[0], told[1])
		}
	}
}

// wire speaks the protocol by hand.
type wire struct {
	*pgproto3.Frontend
	conn net.Conn
}

func dial(t *testing.T, dsn string) *wire {
	t.Helper()
	c, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	h, err := c.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Conn.Close() })
	_ = h.Conn.SetDeadline(time.Now().Add(30 * time.Second))
	return &wire{h.Frontend, h.Conn}
}

func (w *wire) send(t *testing.T, messages ...pgproto3.FrontendMessage) {
	t.Helper()
	for _, m := range messages {
		w.Send(m)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// untilReady names the messages up to a number of ReadyForQuery; rows are
// shown with their first value, errors with their code.
func (w *wire) untilReady(t *testing.T, times int) string {
	t.Helper()
	var seen []string
	for times > 0 {
		m, err := w.Receive()
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			times--
			seen = append(seen, "Z")
		case *pgproto3.DataRow:
			seen = append(seen, "D:"+string(m.Values[0]))
		case *pgproto3.ErrorResponse:
			seen = append(seen, "E:"+m.Code)
		case *pgproto3.CommandComplete:
			seen = append(seen, string(m.CommandTag))
		case *pgproto3.CopyInResponse:
			seen = append(seen, "G")
		}
	}
	return strings.Join(seen, " ")
}

func TestAnswersStayInStepAfterErrorsAndCopies(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf(
		`CREATE TABLE IF NOT EXISTS scratch (n int); GRANT ALL ON scratch TO %s`, user))
	protected := &pgproto3.Query{String: "SELECT count(*) FROM patients"}
	want := fmt.Sprintf("D:%d SELECT 1 Z", patients)
	parse := func(name, sql string) *pgproto3.Parse { return &pgproto3.Parse{Name: name, Query: sql} }
	bind := func(statement string) *pgproto3.Bind {
		return &pgproto3.Bind{PreparedStatement: statement}
	}
	flush, sync := &pgproto3.Flush{}, &pgproto3.Sync{}

	t.Run("an error that comes before the rest of its pipeline", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		w.send(t, parse("", "SELECT nope"), flush)
		if _, err := w.Receive(); err != nil {
			t.Fatal(err)
		}
		w.send(t, bind(""), &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, sync)
		if got := w.untilReady(t, 1); got != "Z" {
			t.Errorf("%s, want Z", got)
		}
		w.send(t, &pgproto3.Query{String: "SELECT 7"}, protected)
		if got := w.untilReady(t, 2); got != "D:7 SELECT 1 Z "+want {
			t.Errorf("%s", got)
		}
	})
	t.Run("a simple query after an error without Sync", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		w.send(t, parse("", "SELECT nope"), flush)
		if _, err := w.Receive(); err != nil {
			t.Fatal(err)
		}
		w.send(t, protected, sync, protected)
		if got := w.untilReady(t, 2); got != "Z "+want {
			t.Errorf("%s", got)
		}
	})
	t.Run("a copy in the extended protocol", func(t *testing.T) {
		for _, data := range []string{"1\n2\n", "1\nnot a number\n"} {
			w := dial(t, p.dsn(user))
			w.send(t, parse("", "COPY scratch FROM STDIN"), bind(""), &pgproto3.Execute{}, sync)
			w.send(t, &pgproto3.CopyData{Data: []byte(data)}, &pgproto3.CopyDone{}, sync)
			if got := w.untilReady(t, 1); got != "G COPY 2 Z" && got != "G E:22P02 Z" {
				t.Errorf("%s", got)
			}
			w.send(t, protected)
			if got := w.untilReady(t, 1); got != want {
				t.Errorf("after %q: %s, want %s", data, got, want)
			}
		}
	})
	t.Run("a copy in the simple protocol", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		w.send(t, &pgproto3.Query{String: "COPY scratch FROM STDIN"},
			&pgproto3.CopyData{Data: []byte("1\n")}, &pgproto3.CopyDone{})
		w.send(t, protected)
		if got := w.untilReady(t, 2); got != "G COPY 1 Z "+want {
			t.Errorf("%s", got)
		}
	})
	t.Run("a name taken over by a harmless statement", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		w.send(t, parse("s1", "SELECT count(age) FROM patients"), sync)
		w.untilReady(t, 1)
		w.send(t, parse("s1", "SELECT 1 AS harmless"), sync)
		if got := w.untilReady(t, 1); got != "E:42P05 Z" {
			t.Errorf("%s, want 42P05", got)
		}
		before := len(p.records(t))
		w.send(t, bind("s1"), &pgproto3.Execute{}, sync)
		w.untilReady(t, 1)
		records := p.records(t)
		if sql := records[len(records)-1]["sql"]; len(records) <= before ||
			sql != "SELECT count(age) FROM patients" {
			t.Errorf("the record names %v", sql)
		}
		w.send(t, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, parse("s1", "SELECT 1 AS harmless"),
			bind("s1"), &pgproto3.Execute{}, sync)
		if got := w.untilReady(t, 1); got != "D:1 SELECT 1 Z" {
			t.Errorf("after Close: %s", got)
		}
	})
	t.Run("a portal fetched by SQL", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		w.send(t, &pgproto3.Query{String: "BEGIN"}, parse("s1", "SELECT age FROM patients"),
			&pgproto3.Bind{DestinationPortal: "x", PreparedStatement: "s1"}, sync)
		w.untilReady(t, 2)
		w.send(t, &pgproto3.Query{String: "FETCH ALL FROM x"})
		if got := w.untilReady(t, 1); got != "E:34000 Z" {
			t.Errorf("%.60s, want 34000", got)
		}
	})
	t.Run("rows fetched in parts", func(t *testing.T) {
		w := dial(t, p.dsn(user))
		before := 0 // once what others have left is written
		waitFor(t, func() bool {
			before = len(p.records(t))
			time.Sleep(300 * time.Millisecond)
			return len(p.records(t)) == before
		})
		w.send(t, &pgproto3.Query{String: "BEGIN"}, parse("", "SELECT cost FROM patients"),
			&pgproto3.Bind{DestinationPortal: "x"}, &pgproto3.Execute{Portal: "x", MaxRows: 2},
			&pgproto3.Execute{Portal: "x", MaxRows: 3}, sync)
		if got := w.untilReady(t, 2); strings.Count(got, "D:") != 5 {
			t.Errorf("%s, want five rows", got)
		}
		waitFor(t, func() bool { return len(p.records(t)) == before+2 })
	})
}

func TestManyReadersAtOnceAfterARefresh(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn := connect(t, p.dsn(user))
	if n := one[int](t, conn, "SELECT count(age) FROM patients"); n != patients {
		t.Fatal(n)
	}
	mustExec(t, connect(t, p.dsn("dba")), `CALL tailor.refresh('public.patients')`)
	var group sync.WaitGroup
	for range 12 {
		c := connect(t, p.dsn(user))
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for {
				var n int
				err := c.QueryRow(ctx, "SELECT count(age) FROM patients", pgx.QueryExecModeSimpleProtocol).
					Scan(&n)
				var answer *pgconn.PgError
				if errors.As(err, &answer) && answer.Code == "40001" {
					continue
				}
				if err != nil || n != patients {
					t.Errorf("%d, %v", n, err)
				}
				return
			}
		})
	}
	group.Wait()
}

// TestTheLogHoldsNoLiteralOfAStatementThatIsNone sends what cannot be parsed: the
// parser's own message quotes what it stopped at.
func TestTheLogHoldsNoLiteralOfAStatementThatIsNone(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	for _, sql := range []string{
		"SELECT age FROM patients WHERE 42 'Canaria Literal'",
		"SELECT age FROM patients WHERE ward = 'Canaria Literal",
		`SELECT age FROM patients WHERE "Canaria Literal`,
	} {
		if _, err := conn.Exec(t.Context(), sql,
			pgx.QueryExecModeSimpleProtocol); codeIn(err) != "42601" || strings.Contains(err.Error(),
			"Canaria") {
			t.Errorf("%s: %v", sql, err)
		}
	}
	if log := p.log.String(); !strings.Contains(log, "42601") || strings.Contains(log, "Canaria") {
		t.Errorf("the log:\n%s", log)
	}
}
