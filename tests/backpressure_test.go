package tests

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// poolings are the ways of sharing connections, with the flags for them.
var poolings = map[string][]string{
	"session": nil, "transaction": {"--pool", "transaction", "--max-upstream", "4"},
}

// onBoth runs a check directly and through the proxy.
func onBoth(t *testing.T, check func(t *testing.T, w *wire)) {
	t.Helper()
	p := shared.serve(t)
	user := shared.reader(t)
	direct := fmt.Sprintf("postgres://%[1]s:%[1]s@%[2]s/hospital?sslmode=disable",
		user, shared.cluster.Address())
	for way, dsn := range map[string]string{"direct": direct, "proxied": p.dsn(user)} {
		t.Run(way, func(t *testing.T) { check(t, dial(t, dsn)) })
	}
}

func TestNamesCountByTheirFirstSixtyThreeBytes(t *testing.T) {
	s, p := strings.Repeat("s", 63), strings.Repeat("p", 63)
	half := strings.Repeat("é", 32) // the limit is within its last character
	onBoth(t, func(t *testing.T, w *wire) {
		sync := &pgproto3.Sync{}
		for _, step := range []struct {
			claim, want string
			messages    []pgproto3.FrontendMessage
		}{
			{"another ending runs it", "D:first SELECT 1 Z", []pgproto3.FrontendMessage{
				&pgproto3.Parse{Name: s + "a", Query: "SELECT 'first'"},
				&pgproto3.Bind{PreparedStatement: s + "b", DestinationPortal: p + "a"},
				&pgproto3.Execute{Portal: p + "b"}, sync,
			}},
			{"another ending is taken", "E:42P05 Z", []pgproto3.FrontendMessage{
				&pgproto3.Parse{Name: s + "c", Query: "SELECT 'second'"}, sync,
			}},
			{"what is meant stays", "D:first SELECT 1 Z", []pgproto3.FrontendMessage{
				&pgproto3.Bind{PreparedStatement: s}, &pgproto3.Execute{}, sync,
			}},
			{"SQL means the same", "DEALLOCATE Z", []pgproto3.FrontendMessage{
				&pgproto3.Query{String: `DEALLOCATE "` + s + `d"`},
			}},
			{"it is gone", "E:26000 Z", []pgproto3.FrontendMessage{
				&pgproto3.Bind{PreparedStatement: s + "a"}, sync,
			}},
			{"half a character counts", "D:half SELECT 1 Z", []pgproto3.FrontendMessage{
				&pgproto3.Parse{Name: half + "a", Query: "SELECT 'half'"},
				&pgproto3.Bind{PreparedStatement: half + "b"}, &pgproto3.Execute{}, sync,
			}},
			{"Close by another ending", "Z", []pgproto3.FrontendMessage{
				&pgproto3.Close{ObjectType: 'S', Name: half + "c"}, sync,
			}},
			{"it is closed", "E:26000 Z", []pgproto3.FrontendMessage{
				&pgproto3.Bind{PreparedStatement: half}, sync,
			}},
		} {
			w.send(t, step.messages...)
			if got := w.untilReady(t, 1); got != step.want {
				t.Errorf("%s: %s, want %s", step.claim, got, step.want)
			}
		}
	})
}

func TestNamesOfReleasesCountByTheirFirstSixtyThreeBytes(t *testing.T) {
	p := shared.serve(t)
	w := dial(t, p.dsn(shared.reader(t)))
	long := strings.Repeat("n", 63)
	sync := &pgproto3.Sync{}
	w.send(t, &pgproto3.Parse{Name: long + "a", Query: "SELECT count(*) FROM patients"},
		&pgproto3.Bind{PreparedStatement: long + "b", DestinationPortal: long + "c"},
		&pgproto3.Execute{Portal: long + "d"}, sync)
	if got, want := w.untilReady(t, 1), fmt.Sprintf("D:%d SELECT 1 Z", patients); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	w.send(t, &pgproto3.Parse{Name: long + "e", Query: "SELECT 1"}, sync,
		&pgproto3.Query{String: `DEALLOCATE "` + long + `f"`},
		&pgproto3.Bind{PreparedStatement: long + "g"}, sync)
	if got, want := w.untilReady(t, 3), "E:42P05 Z DEALLOCATE Z E:26000 Z"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestAPipelineIsWrittenBeforeItsAnswersAreRead. PostgreSQL takes it all as long as the
// answers fit into what lies between it and the client.
func TestAPipelineIsWrittenBeforeItsAnswersAreRead(t *testing.T) {
	const times = 20000
	each := inOneGo(parseMessage("", "SELECT 1"), bindMessage("", ""), executeMessage(""))
	synced := inOneGo(each, frame('S'))
	onBoth(t, func(t *testing.T, w *wire) {
		for _, pipeline := range [][]byte{
			[]byte(strings.Repeat(string(synced), times)),
			// Nothing but its full buffer makes the server answer.
			append([]byte(strings.Repeat(string(each), times)), frame('S')...),
		} {
			if _, err := w.conn.Write(pipeline); err != nil {
				t.Fatal(err)
			}
			count := strings.Count(string(pipeline), string(frame('S')))
			if got := strings.Count(w.untilReady(t, count), "D:1"); got != times {
				t.Errorf("%d rows, want %d", got, times)
			}
		}
	})
}

// TestASessionThatOwesTooMuchCanBeCancelled fills a session up behind a statement that
// takes long. Others are served meanwhile.
func TestASessionThatOwesTooMuchCanBeCancelled(t *testing.T) {
	for claim, flags := range poolings {
		t.Run(claim, func(t *testing.T) {
			p := shared.serve(t, flags...)
			dsn := p.dsn(shared.reader(t))
			c, err := pgconn.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			conn := c.Conn()
			t.Cleanup(func() { _ = conn.Close() })
			flood := many(simpleQuery("SELECT 1"))(0)
			_, err = conn.Write(simpleQuery("SELECT pg_sleep(600)"))
			for err == nil {
				_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
				_, err = conn.Write(flood)
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			other := connect(t, dsn)
			for range 100 {
				if got := one[int](t, other, "SELECT 1"); got != 1 {
					t.Fatal(got)
				}
			}
			if err := c.CancelRequest(t.Context()); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
			if err := readTo(conn, "C57014\x00"); err != nil {
				t.Fatal(err)
			}
			if err := readTo(conn, "SELECT 1\x00"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestTooManyPreparedStatementsAreRefused(t *testing.T) {
	for claim, flags := range poolings {
		t.Run(claim, func(t *testing.T) {
			p := shared.serve(t, flags...)
			conn := connect(t, p.dsn(shared.reader(t)))
			text := func(i int) string {
				return fmt.Sprintf("SELECT %d /* %s */", i, strings.Repeat("x", 10000))
			}
			var err error
			n := 0
			for ; err == nil && n < 1000; n++ {
				_, err = conn.Prepare(t.Context(), fmt.Sprint("s", n), text(n))
			}
			if codeIn(err) != "54000" || n < 200 {
				t.Fatalf("after %d statements: %v", n, err)
			}
			if got := one[int](t, conn, "s7"); got != 7 {
				t.Errorf("one that was prepared before: %d", got)
			}
			for i := range 100 {
				if err := conn.Deallocate(t.Context(), fmt.Sprint("s", i)); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 30 {
				if _, err = conn.Prepare(t.Context(), fmt.Sprint("again", i), text(i)); err != nil {
					t.Fatalf("once others are closed: %v", err)
				}
			}
			long := "SELECT 'long' /* " + strings.Repeat("x", 1<<20) + " */"
			for _, name := range []string{"", "long"} {
				if _, err := conn.Prepare(t.Context(), name, long); err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got := conn.PgConn().ExecPrepared(t.Context(), name, nil, nil, nil).Read()
					if got.Err != nil || string(got.Rows[0][0]) != "long" {
						t.Errorf("a long text: %+v", got)
					}
				}
			}
		})
	}
}

func TestPortalsOfThousandsOfTransactionsAreForgotten(t *testing.T) {
	p := shared.serve(t)
	w := dial(t, p.dsn(shared.reader(t)))
	w.send(t, &pgproto3.Parse{Name: "s", Query: "SELECT 1"}, &pgproto3.Sync{})
	w.untilReady(t, 1)
	for range 200 {
		for i := range 100 {
			name := fmt.Sprint(strings.Repeat("p", 50), i)
			w.Send(&pgproto3.Bind{PreparedStatement: "s", DestinationPortal: name})
			w.Send(&pgproto3.Execute{Portal: name})
			w.Send(&pgproto3.Sync{})
		}
		w.send(t)
		if got := w.untilReady(t, 100); strings.Contains(got, "E:") {
			t.Fatal(got)
		}
	}
}

// TestManyColumnsOfTemporaryTablesEndNoSession makes more than the proxy can be told.
func TestManyColumnsOfTemporaryTablesEndNoSession(t *testing.T) {
	p := shared.serve(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeSimpleProtocol, pgx.QueryExecModeExec} {
		t.Run(mode.String(), func(t *testing.T) {
			conn := connect(t, p.dsn(shared.reader(t)))
			for i := range 8 {
				mustExec(t, conn, fmt.Sprintf(`DO $$ BEGIN EXECUTE 'CREATE TEMP TABLE many%d (' ||
					(SELECT string_agg('c' || n || ' int', ', ') FROM generate_series(1, 1500) n) || ')';
					END $$`, i))
			}
			for range 2 {
				_, err := conn.Exec(t.Context(), "SELECT age FROM patients", mode)
				if codeIn(err) != "54000" || !strings.Contains(err.Error(), "temporary tables") {
					t.Errorf("%v, want the reason", err)
				}
				if got := one[int](t, conn, "SELECT 1"); got != 1 {
					t.Error(got)
				}
			}
			mustExec(t, conn, "DROP TABLE many0, many1, many2, many3, many4, many5")
			mustExec(t, conn, "SELECT age FROM patients", mode)
		})
	}
}

func TestAValueOfASettingThatIsTooLongEndsNoSession(t *testing.T) {
	p := shared.serve(t, "--pool", "transaction", "--max-upstream", "1", "--queue-timeout", "2s")
	dsn := p.dsn(shared.reader(t))
	conn := connect(t, dsn)
	mustExec(t, conn, "SET tailor.project = '"+strings.Repeat("x", 200000)+"'")
	if _, err := conn.Exec(t.Context(), "SELECT age FROM patients"); codeIn(err) != "42704" {
		t.Errorf("%.100v, want that there is no such project", err)
	}
	// What cannot be given to another connection keeps its own.
	if _, err := pgconn.Connect(t.Context(), dsn); codeIn(err) != "53300" {
		t.Errorf("another session: %v", err)
	}
	mustExec(t, conn, "SET tailor.project = ''")
	mustExec(t, conn, "SELECT age FROM patients")
}

func TestLongErrorsAndNoticesAreCutAndStayText(t *testing.T) {
	p := shared.serve(t)
	config, err := pgx.ParseConfig(p.dsn(shared.reader(t)))
	if err != nil {
		t.Fatal(err)
	}
	noticed := ""
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { noticed = n.Message }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	for _, letter := range []string{"x", "é", "€"} {
		for _, length := range []int{1000, 300_000, 5_000_000} {
			want := min(length*len(letter), 256<<10)
			fits := func(text string) bool {
				return utf8.ValidString(text) && len(text) <= want && len(text) > want-200 &&
					strings.Trim(text, letter) == ""
			}
			raise := func(level string) string {
				return fmt.Sprintf("DO $$ BEGIN RAISE %s '%%', repeat('%s', %d); END $$", level, letter, length)
			}
			_, err := conn.Exec(t.Context(), raise("EXCEPTION"))
			var told *pgconn.PgError
			if !errors.As(err, &told) || told.Code != "P0001" || !fits(told.Message) {
				t.Errorf("an error of %d %s: %.100v", length, letter, err)
			}
			mustExec(t, conn, raise("NOTICE"))
			if !fits(noticed) {
				t.Errorf("a notice of %d %s has %d bytes", length, letter, len(noticed))
			}
			if got := one[int](t, conn, "SELECT 1"); got != 1 {
				t.Error(got)
			}
		}
	}
}
