package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// tap records every byte that arrives on a connection.
type tap struct {
	net.Conn
	mu  *sync.Mutex
	all *bytes.Buffer
}

func (c tap) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.Write(p[:n])
	return n, err
}

// tapped connects and returns what has arrived so far whenever it is asked.
func tapped(t *testing.T, dsn string) (*pgx.Conn, func() []byte) {
	t.Helper()
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var all bytes.Buffer
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return tap{conn, &mu, &all}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn, func() []byte {
		mu.Lock()
		defer mu.Unlock()
		return bytes.Clone(all.Bytes())
	}
}

func TestNoByteHoldsACanary(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	conn, received := tapped(t, p.dsn(user))
	direct := shared.superuser(t)
	if n := one[int](t, direct,
		"SELECT count(*) FROM patients WHERE name = $1 AND ssn = $2 AND age = $3",
		demodata.CanaryName, demodata.CanarySSN, demodata.CanaryAge); n != 1 {
		t.Fatal("the canary is not planted")
	}
	ages := make(map[string]bool)
	for _, sql := range []string{
		"SELECT age FROM patients", "SELECT * FROM patients",
		"SELECT DISTINCT age FROM patients ORDER BY 1 DESC",
		"SELECT max(age), min(birth_date) FROM patients",
		"SELECT age, count(*) FROM patients GROUP BY age",
		"SELECT name FROM patients", "SELECT age FROM patients WHERE name = 'Canaria Findley-Goldfinch'",
		"SELECT CAST(ssn AS integer) FROM patients", "SELECT 1 / (age - 103) FROM patients",
		"SELECT * FROM patients WHERE age = 103", "COPY patients TO STDOUT",
		"DO $$ BEGIN RAISE '%', (SELECT string_agg(ssn, '') FROM patients); END $$",
	} {
		rows, err := conn.Query(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			continue
		}
		for rows.Next() {
			if strings.HasPrefix(sql, "SELECT age") || strings.Contains(sql, "DISTINCT age") {
				ages[string(rows.RawValues()[0])] = true
			}
		}
	}
	if ages["103"] {
		t.Error("the canary's age is shown as itself")
	}
	for _, user := range []string{user} {
		stdout, stderr, _ := p.psql(t, user, "-c", `\d patients`, "-c", `\dt`, "-c", "TABLE patients",
			"-c", "SELECT ssn FROM patients")
		assertNoCanary(t, "psql", []byte(stdout+stderr))
	}
	assertNoCanary(t, "the client's connection", received())
	assertNoCanary(t, "the proxy's log", []byte(p.log.String()))
	for _, r := range p.records(t) {
		assertNoCanary(t, "the audit log", fmt.Append(nil, r["sql"]))
	}
}

var canaryAge = regexp.MustCompile(`\b103\b`)

func assertNoCanary(t *testing.T, where string, data []byte) {
	t.Helper()
	for _, canary := range []string{demodata.CanaryName, "Goldfinch", demodata.CanarySSN} {
		// A statement of the client's own may come back in an error's position
		// line, which psql prints; no statement here holds the whole ssn.
		if i := bytes.Index(data, []byte(canary)); i >= 0 &&
			!bytes.Contains(data[max(0, i-60):i], []byte("LINE 1:")) {
			t.Errorf("%s holds %q", where, canary)
		}
	}
	if where == "the proxy's log" && canaryAge.Match(data) {
		t.Errorf("%s holds the canary's age", where)
	}
}

func TestUnprotectedTrafficIsRelayedByteForByte(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	script := []struct {
		mode pgx.QueryExecMode
		sql  string
		args []any
	}{
		{pgx.QueryExecModeSimpleProtocol, "SELECT n, square FROM numbers ORDER BY n", nil},
		{pgx.QueryExecModeSimpleProtocol, "SELECT 1; SELECT 'two'; SELECT NULL", nil},
		{pgx.QueryExecModeCacheStatement, "SELECT square FROM numbers WHERE n = $1", []any{7}},
		{pgx.QueryExecModeDescribeExec, "SELECT $1::text || ' ä'", []any{"x"}},
		{pgx.QueryExecModeSimpleProtocol, "", nil},
		{pgx.QueryExecModeSimpleProtocol, "SELECT 1 / 0", nil},
		{pgx.QueryExecModeExec, "SELECT nothing", nil},
		{pgx.QueryExecModeSimpleProtocol, "SET application_name = 'other'", nil},
		{pgx.QueryExecModeSimpleProtocol, "DO $$ BEGIN RAISE NOTICE 'noted'; END $$", nil},
		{pgx.QueryExecModeSimpleProtocol, "SELECT repeat('long ', 100000)", nil},
	}
	run := func(dsn string) []byte {
		conn, received := tapped(t, dsn)
		from := len(received())
		for _, s := range script {
			rows, err := conn.Query(t.Context(), s.sql, append([]any{s.mode}, s.args...)...)
			if err == nil {
				rows.Close()
			}
		}
		return received()[from:]
	}
	want := run(fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable", user, user,
		shared.cluster.Address()))
	got := run(p.dsn(user))
	if !bytes.Equal(got, want) {
		i := 0
		for i < min(len(got), len(want)) && got[i] == want[i] {
			i++
		}
		t.Errorf("%d bytes, want %d; they differ from byte %d on: %q, want %q", len(got), len(want), i,
			got[i:min(len(got), i+60)], want[i:min(len(want), i+60)])
	}
}

func TestPreparedStatementsCarryParametersAndLabels(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	const sql = "SELECT age, zip, sex FROM patients WHERE age BETWEEN $1 AND $2 AND sex = $3 ORDER " +
		"BY age DESC, zip"
	d, err := conn.Prepare(t.Context(), "by_age", sql)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.ParamOIDs) != 3 || d.ParamOIDs[0] != 23 {
		t.Errorf("parameter types %v, want integer first", d.ParamOIDs)
	}
	if len(d.Fields) != 3 || d.Fields[0].Name != "age" || d.Fields[0].DataTypeOID != 25 {
		t.Errorf("described as %v, want three text labels", d.Fields)
	}
	for _, from := range []int{20, 40, 60} {
		rows, err := conn.Query(t.Context(), "by_age", from, from+9, "male")
		if err != nil {
			t.Fatal(err)
		}
		type row struct{ Age, Zip, Sex string }
		got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
		if err != nil || len(got) == 0 {
			t.Fatalf("from %d: %d rows, %v", from, len(got), err)
		}
	}
	if _, err := conn.Exec(t.Context(), "SET tailor.representation = 'value'"); err != nil {
		t.Fatal(err)
	}
	if d, err = conn.Prepare(t.Context(), "values",
		"SELECT age, birth_date FROM patients"); err != nil {
		t.Fatal(err)
	}
	if d.Fields[0].DataTypeOID != 23 || d.Fields[1].DataTypeOID != 1082 {
		t.Errorf("with representation = value: %v, want integer and date", d.Fields)
	}
}

func TestSelectsComeBackAsResearchersWriteThem(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	cases := []struct{ claim, sql, columns string }{
		{
			"a star shows visible columns", "SELECT * FROM patients",
			"birth_date age sex race zip ward diagnosis cost token",
		},
		{
			"a star beside another table", "SELECT * FROM patients p JOIN zip_city z ON z.zip = p.zip",
			"birth_date age sex race zip ward diagnosis cost token zip city",
		},
		{"an alias", `SELECT p.age AS "Age Now", p.sex FROM patients AS p`, "Age Now sex"},
		{"the schema's name", "SELECT public.patients.age FROM public.patients", "age"},
		{"the research schema's name", "SELECT age FROM research.patients", "age"},
		{
			"a subquery",
			"SELECT q.age, q.n FROM (SELECT age, count(*) AS n FROM patients GROUP BY age) q ORDER BY q.age",
			"age n",
		},
		{
			"a common table expression",
			"WITH old AS (SELECT age, zip FROM patients WHERE age > 70) SELECT zip, age FROM old",
			"zip age",
		},
		{
			"a renaming common table expression",
			"WITH old (a, z) AS (SELECT age, zip FROM patients) SELECT * FROM old", "a z",
		},
		{"a union", "SELECT age FROM patients WHERE sex = 'male' UNION SELECT age FROM patients WHERE " +
			"sex = 'female' ORDER BY age", "age"},
		{"EXISTS and IN", "SELECT age FROM patients p WHERE EXISTS (SELECT FROM zip_city z WHERE z.zip " +
			"= p.zip) AND zip IN (SELECT zip FROM patients)", "age"},
		{"a window", "SELECT age, rank() OVER (PARTITION BY sex ORDER BY age) FROM patients", "age rank"},
		{"CASE and casts", "SELECT CASE WHEN age > 50 THEN 'old' ELSE sex END, age::text, count(*) " +
			"FROM patients GROUP BY 1, 2", "sex age count"},
		{
			"a keyword as a name", "SELECT age AS from, sex IS DISTINCT FROM 'male' FROM patients",
			"from ?column?",
		},
		{
			"an aggregate with a filter",
			"SELECT ward, avg(cost) FILTER (WHERE age > 60) FROM patients GROUP BY ward HAVING count(*) > 5",
			"ward avg",
		},
		{
			"grouping sets",
			"SELECT sex, ward, count(*) FROM patients GROUP BY GROUPING SETS ((sex), (ward), ())",
			"sex ward count",
		},
		{"a comment at the end", "SELECT age FROM patients -- all of them", "age"},
		{"a semicolon", "SELECT age FROM patients;", "age"},
		{"a limit", "SELECT age FROM patients ORDER BY age LIMIT 3 OFFSET 2", "age"},
		{
			"a self-join", "SELECT a.age, b.age FROM patients a, patients b WHERE a.token = b.token",
			"age age",
		},
		{"set-valued codes", "SELECT code, count(*) FROM diagnoses GROUP BY code", "code count"},
		{"text that is not ASCII", "SELECT 'Größe ✓' AS ä, age FROM patients LIMIT 1", "ä age"},
		{"nothing protected is used", "SELECT count(*) FROM visits", "count"},
	}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol,
		pgx.QueryExecModeCacheStatement,
	} {
		for _, c := range cases {
			t.Run(fmt.Sprintf("%s/%s", mode, c.claim), func(t *testing.T) {
				rows, err := conn.Query(t.Context(), c.sql, mode)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				n := 0
				for rows.Next() {
					n++
				}
				if err := rows.Err(); err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, f := range rows.FieldDescriptions() {
					names = append(names, f.Name)
				}
				if got := strings.Join(names, " "); got != c.columns {
					t.Errorf("columns %q, want %q", got, c.columns)
				}
				if n == 0 {
					t.Error("no rows")
				}
			})
		}
	}
}

func TestLabelsAreOrderedByValue(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	rows, err := conn.Query(t.Context(), "SELECT DISTINCT age FROM patients ORDER BY age")
	if err != nil {
		t.Fatal(err)
	}
	labels, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	last := -1
	for _, label := range labels {
		var low int
		if _, err := fmt.Sscan(strings.Split(label, "-")[0], &low); err != nil {
			continue // the root
		}
		if low < last-40 {
			t.Errorf("%q stands behind %d", label, last)
		}
		last = low
	}
}

func TestLogins(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	cases := []struct{ claim, dsn, code string }{
		{"a wrong password", fmt.Sprintf("postgres://%s:wrong@%s/hospital?sslmode=disable", user,
			p.address), "28P01"},
		{"an unknown role", fmt.Sprintf("postgres://nobody_here:x@%s/hospital?sslmode=disable",
			p.address), "28P01"},
		{"a role without a password", fmt.Sprintf("postgres://tailor_owner:x@%s/hospital?sslmode=disable",
			p.address), "28P01"},
		{"an unknown database", fmt.Sprintf("postgres://%s:%s@%s/nowhere?sslmode=disable", user, user,
			p.address), "3D000"},
		{"replication", fmt.Sprintf("postgres://%s:%s@%s/hospital?sslmode=disable&replication=database",
			user, user, p.address), "0A000"},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			_, err := pgx.Connect(t.Context(), c.dsn)
			var answer *pgconn.PgError
			if !errors.As(err, &answer) || answer.Code != c.code {
				t.Errorf("%v, want SQLSTATE %s", err, c.code)
			}
		})
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	p := shared.serve(t)
	conn := connect(t, p.dsn(shared.reader(t)))
	ended := make(chan error, 1)
	go func() {
		_, err := conn.PgConn().Exec(context.Background(), "SELECT pg_sleep(60)").ReadAll()
		ended <- err
	}()
	direct := shared.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, direct,
			"SELECT count(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)' AND state = "+
				"'active'") == 1
	})
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		var answer *pgconn.PgError
		if !errors.As(err, &answer) || answer.Code != "57014" {
			t.Errorf("%v, want 57014", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("not cancelled")
	}
}

func TestHostileBytesEndOneConnectionOnly(t *testing.T) {
	p := shared.serve(t)
	for _, hostile := range [][]byte{
		{},
		{0},
		{0, 0, 0, 0},
		{0, 0, 0, 8, 0, 0, 0, 0},
		{0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		{0, 0, 0, 9, 0, 3, 0, 0, 1},
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		{0, 0, 0, 16, 0x04, 0xd2, 0x16, 0x2e, 1, 2, 3, 4, 5, 6, 7, 8},
		append([]byte{0, 0, 0, 16, 0, 3, 0, 0}, []byte("user\x00x\x00\x00")...),
		append(append([]byte{0, 0, 0, 15, 0, 3, 0, 0}, []byte("user\x00x\x00")...), 'p', 0, 0, 0, 3, 1),
	} {
		conn, err := net.Dial("tcp", p.address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write(hostile)
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.Copy(io.Discard, conn); err != nil && !errors.Is(err, net.ErrClosed) {
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				t.Errorf("% x: the connection is still open", hostile)
			}
		}
		_ = conn.Close()
	}
	if n := one[int](t, connect(t, p.dsn(shared.reader(t))),
		"SELECT count(*) FROM patients"); n != patients {
		t.Errorf("afterwards a session counts %d", n)
	}
}

func TestManyClientsAtOnceShareOneChain(t *testing.T) {
	p := shared.serve(t)
	q := shared.serve(t) // two proxies side by side
	user := shared.reader(t)
	queries := []string{
		"SELECT token, age FROM patients", "SELECT token, zip, sex FROM patients",
		"SELECT token, birth_date FROM patients",
		"SELECT token, race, age FROM patients", "SELECT token, zip, age FROM patients",
	}
	var group sync.WaitGroup
	answers := make([]disclosed, 2*len(queries))
	for i := range answers {
		server := p
		if i%2 == 1 {
			server = q
		}
		conn := connect(t, server.dsn(user))
		answers[i] = make(disclosed)
		group.Go(func() {
			for range 20 { // a chain made at the same moment elsewhere: ask again
				if _, err := conn.Exec(t.Context(), queries[i/2], pgx.QueryExecModeSimpleProtocol); err == nil {
					break
				}
			}
			answers[i].answer(t, conn, queries[i/2])
		})
	}
	group.Wait()
	together := make(disclosed)
	for _, a := range answers {
		for token, shown := range a {
			together[token] = append(together[token], shown...)
		}
	}
	if len(together) != patients {
		t.Fatalf("%d people", len(together))
	}
	if least := together.smallestClass(); least < k {
		t.Errorf("smallest class of everything shown: %d, want at least %d", least, k)
	}
}

// TestWhatWasSentBeforeTheEndIsRun: statements that a client sends with its
// goodbye, or with what breaks the protocol, are PostgreSQL's to run.
func TestWhatWasSentBeforeTheEndIsRun(t *testing.T) {
	super := shared.superuser(t)
	mustExec(t, super, `CREATE SEQUENCE IF NOT EXISTS farewells; GRANT ALL ON farewells TO PUBLIC`)
	p := shared.serve(t)
	user := shared.reader(t)
	for claim, end := range map[string][]byte{
		"goodbye":      {'X', 0, 0, 0, 4},
		"a bad length": {'Q', 0, 0, 0, 0}, "nothing": nil,
	} {
		mustExec(t, super, `SELECT setval('farewells', 1, false)`)
		w := dial(t, p.dsn(user))
		message, err := (&pgproto3.Query{String: "SELECT nextval('farewells')"}).Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.conn.Write(append(message, end...)); err != nil {
			t.Fatal(err)
		}
		if end == nil {
			_ = w.conn.Close()
		}
		waitFor(t, func() bool { return one[bool](t, super, `SELECT is_called FROM farewells`) })
		t.Log(claim)
	}
}
