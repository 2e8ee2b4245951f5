package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// TestNoticesSayWhatIsEstimated reads what psql and programs are told beside an answer.
func TestNoticesSayWhatIsEstimated(t *testing.T) {
	p := shared.serve(t)
	said := func(dsn, sql string) *pgconn.Notice {
		t.Helper()
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		var last *pgconn.Notice
		config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { last = n }
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(t.Context()) })
		rowsOf(t, conn, sql)
		if last == nil {
			t.Fatalf("%s: no notice", sql)
		}
		return last
	}
	for _, c := range []struct {
		sql       string
		estimated bool
	}{
		{"SELECT age FROM patients", false},
		{"SELECT count(*) FROM patients WHERE age >= 0", false},
		{"SELECT count(*) FROM patients WHERE age = 65", true},
		{"SELECT count(*) FROM patients WHERE age IN (64, 65)", true},
		{"SELECT age, count(*) FROM patients GROUP BY age", true},
		{"SELECT age / 10, count(*) FROM patients GROUP BY 1", true},
		{"SELECT age / 10 AS decade, count(*) FROM patients GROUP BY decade", true},
		{"SELECT age / 10, sex, count(*) FROM patients GROUP BY CUBE (1, 2)", true},
		{"SELECT age / 10 d, sex, count(*) FROM patients GROUP BY GROUPING SETS ((d), (sex))", true},
		{"SELECT count(*) FROM patients JOIN zip_city USING (zip)", true},
		{"SELECT avg(age), max(cost) FROM patients WHERE age BETWEEN 0 AND 119", false},
		// Ranges that cut labels, and those of which nobody knows where.
		{"SELECT count(*) FROM patients WHERE age < 63", true},
		{"SELECT sum(cost) FILTER (WHERE age BETWEEN 22 AND 33) FROM patients", true},
		{"SELECT count(CASE WHEN 63 <= age THEN 1 END) FROM patients", true},
		{"SELECT count(*) FROM patients WHERE age + 1 > 30", true},
		{"SELECT count(*) FROM patients WHERE age::bigint >= 0", false},
		{"SELECT count(*) FROM patients WHERE age::text >= '0'", true}, // ordered otherwise
		{"SELECT count(*) FROM patients WHERE zip >= '38263' AND zip < '38264'", true},
		{"SELECT avg(age) FROM patients HAVING avg(age) > 30", false},
		// Behind subqueries and what is like them.
		{"SELECT age, count(*) FROM (SELECT age FROM patients) p GROUP BY age", true},
		{"SELECT d, count(*) FROM (SELECT age / 10 AS d FROM patients) p GROUP BY d", true},
		{"WITH p AS (SELECT * FROM patients) SELECT count(*) FROM p WHERE age = 65", true},
		{"WITH p AS (SELECT age FROM patients) SELECT count(*) FROM p WHERE age < 63", true},
		{"WITH p AS (SELECT age FROM patients) SELECT count(*) FROM p WHERE age >= 0", false},
		{"SELECT count(*) FROM (SELECT age / 2 AS h FROM patients) p WHERE h < 30", true},
		{"SELECT a, count(*) FROM (SELECT age AS a FROM patients WHERE sex = 'f' UNION ALL " +
			"SELECT age FROM patients WHERE sex = 'm') p GROUP BY a", true},
		{"SELECT a, count(*) FROM patients p CROSS JOIN LATERAL (SELECT p.age AS a) x GROUP BY 1", true},
		{"SELECT cost, count(*) OVER (PARTITION BY age) FROM patients", true},
		{"SELECT DISTINCT age FROM patients", true},
		{"SELECT count(DISTINCT age) FROM patients", true},
		{"SELECT count(*) FROM (SELECT zip AS z FROM patients) p JOIN zip_city c ON c.zip = p.z", true},
		{"SELECT count(*) FROM zip_city WHERE zip IN (SELECT zip FROM patients)", true},
		{"SELECT m FROM (SELECT max(age) AS m FROM patients GROUP BY cost) p WHERE m > 63", false},
		{"SELECT a FROM (SELECT age AS a, cost FROM patients) p", false},
		{"CREATE TEMP TABLE placed AS SELECT age, cost FROM patients", true},
	} {
		n := said(p.program("researcher"), c.sql)
		if got := strings.Contains(n.Message, "an estimate places"); got != c.estimated ||
			(n.Hint != "") != c.estimated {
			t.Errorf("%s: %s, hint %q", c.sql, n.Message, n.Hint)
		}
		if !strings.HasPrefix(n.Detail, `[{"relation":"public.patients","min_block":`) ||
			strings.Contains(n.Detail, `"estimated":true`) != c.estimated {
			t.Errorf("%s: detail %s", c.sql, n.Detail)
		}
	}
	// At a terminal the groups are those of labels, and the detail is left out.
	if n := said(p.dsn("researcher"),
		"SELECT age, count(*) FROM patients GROUP BY age"); strings.Contains(n.Message, "estimate") ||
		n.Detail != "" {
		t.Errorf("to a terminal: %s, detail %q", n.Message, n.Detail)
	}
	if n := said(p.dsn("researcher"),
		"SELECT count(*) FROM patients WHERE age = 40"); !strings.Contains(n.Message,
		"of its rows by age") {
		t.Errorf("to a terminal: %s", n.Message)
	}
}

// TestTheNoticeComesBeforeRows also where a program asks for no description.
func TestTheNoticeComesBeforeRows(t *testing.T) {
	conn, err := pgconn.Connect(t.Context(), shared.serve(t).program("researcher"))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.Hijack()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Conn.Close() })
	for _, message := range []pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: "SELECT age FROM patients LIMIT 3"}, &pgproto3.Bind{},
		&pgproto3.Execute{}, &pgproto3.Sync{},
	} {
		raw.Frontend.Send(message)
	}
	if err := raw.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	order := ""
	for !strings.HasSuffix(order, "Z") {
		message, err := raw.Frontend.Receive()
		if err != nil {
			t.Fatal(err)
		}
		order += map[string]string{
			"*pgproto3.NoticeResponse": "N", "*pgproto3.DataRow": "D", "*pgproto3.ReadyForQuery": "Z",
		}[fmt.Sprintf("%T", message)]
	}
	if order != "NDDDZ" {
		t.Errorf("messages come as %s", order)
	}
}
