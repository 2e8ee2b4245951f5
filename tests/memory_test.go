package tests

import (
	"bytes"
	bigEndian "encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What the proxy may hold more for one session, what it may hold for all of them of what
// one has sent (plans, texts, the audit log's queue), and by how much its process may
// grow meanwhile, buffers and what has yet to be collected included.
const (
	sessionBytes = 4 << 20
	sharedBytes  = 4 << 20
	peakBytes    = 48 << 20
)

// flood is something that a client sends without end.
type flood struct {
	claim     string
	flags     []string // of the proxy
	dsn       string   // added to the reader's
	user      string   // in place of the reader
	deaf      bool     // the client never reads
	encrypted bool
	first     []byte
	times     int
	next      func(i int) []byte
}

func frame(kind byte, parts ...string) []byte {
	body := strings.Join(parts, "")
	return append(bigEndian.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func simpleQuery(sql string) []byte { return frame('Q', sql, "\x00") }

func parseMessage(name, sql string) []byte { return frame('P', name, "\x00", sql, "\x00\x00\x00") }

func bindMessage(portal, statement string) []byte {
	return frame('B', portal, "\x00", statement, "\x00\x00\x00\x00\x00\x00\x00")
}

func executeMessage(portal string) []byte { return frame('E', portal, "\x00\x00\x00\x00\x00") }

// many is a chunk of as many copies as make it worth a packet.
func many(messages ...[]byte) func(int) []byte {
	one := bytes.Join(messages, nil)
	chunk := bytes.Repeat(one, max(1, 64<<10/len(one)))
	return func(int) []byte { return chunk }
}

func inOneGo(messages ...[]byte) []byte { return bytes.Join(messages, nil) }

func floods() []flood {
	sync, flush := frame('S'), frame('H')
	pipeline := many(parseMessage("", "SELECT 1"), bindMessage("", ""), frame('D', "P\x00"),
		executeMessage(""), sync)
	sleep := simpleQuery("SELECT pg_sleep(2)")
	sharing := []string{"--pool", "transaction", "--max-upstream", "4"}
	long := strings.Repeat("x", 1<<20)
	name := func(i int) string { return fmt.Sprintf("n%d", i) }
	return []flood{
		{claim: "the end of a copy outside of one", times: 160, next: many(frame('c'))},
		{claim: "copies by halves outside of one", times: 160, next: many(frame('d', "x"), frame('c'))},
		{
			claim: "the end of a copy behind a statement that takes long", first: sleep, times: 160,
			next: many(frame('d'), frame('c')),
		},
		{
			claim: "Sync into a copy",
			first: simpleQuery("CREATE TEMP TABLE t (n int); COPY t FROM STDIN"), times: 160,
			next: many(frame('d', "1\n"), sync),
		},
		{
			claim: "portals with long names", first: parseMessage("", "SELECT 1"), times: 100,
			next: func(i int) []byte { return inOneGo(bindMessage(name(i)+long, ""), sync) },
		},
		{
			claim: "long names of no statement", times: 100,
			next: func(i int) []byte { return inOneGo(bindMessage("", name(i)+long), sync) },
		},
		{
			claim: "portals of one transaction",
			first: inOneGo(simpleQuery("BEGIN"), parseMessage("", "SELECT 1")), times: 20000,
			next: func(i int) []byte { return bindMessage(name(i), "") },
		},
		{
			claim: "portals of many transactions", first: parseMessage("s", "SELECT 1"), times: 100000,
			next: func(i int) []byte { return inOneGo(bindMessage(name(i), "s"), sync) },
		},
		{
			claim: "portals of statements that are gone", first: simpleQuery("BEGIN"), times: 400,
			next: func(i int) []byte {
				text := "SELECT 1 /* " + name(i) + long[:200<<10] + " */"
				return inOneGo(parseMessage("", text), bindMessage(name(i), ""))
			},
		},
		{
			claim: "portals of protected statements that are gone", first: simpleQuery("BEGIN"), times: 300,
			next: func(i int) []byte {
				text := "SELECT age FROM patients /* " + name(i) + long[:100<<10] + " */"
				return inOneGo(parseMessage("", text), bindMessage(name(i), ""))
			},
		},
		{
			claim: "types of statements that are gone", first: simpleQuery("BEGIN"), times: 200,
			next: func(i int) []byte {
				types := "\xff\xff" + strings.Repeat("\x00", 4*65535)
				return inOneGo(frame('P', "\x00SELECT 1\x00", types), bindMessage(name(i), ""))
			},
		},
		{
			claim: "statements that cannot be prepared", times: 10000,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT nothing /* "+long[:5000]+" */"), sync)
			},
		},
		{
			claim: "statements that can be prepared", times: 10000,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT 1 /* "+long[:5000]+" */"), sync)
			},
		},
		{
			claim: "long statements that can be prepared", times: 100,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT 1 /* "+long+" */"), sync)
			},
		},
		{
			claim: "statements over protected tables", times: 3000,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT age FROM patients /* "+long[:5000]+" */"), sync)
			},
		},
		{
			claim: "statements that an administrator prepares", user: "dba", times: 10000,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT 1 /* "+long[:5000]+" */"), sync)
			},
		},
		{
			claim: "statements of a session that shares connections", flags: sharing, times: 10000,
			next: func(i int) []byte {
				return inOneGo(parseMessage(name(i), "SELECT 1 /* "+long[:5000]+" */"), sync)
			},
		},
		{
			claim: "cursors over protected tables", first: simpleQuery("BEGIN"), times: 2000,
			next: func(i int) []byte {
				return simpleQuery("DECLARE " + name(i) + " CURSOR FOR SELECT age FROM patients")
			},
		},
		{
			claim: "long texts", times: 300,
			next: func(i int) []byte {
				return simpleQuery("SELECT 1 /* " + name(i) + long[:200<<10] + " */")
			},
		},
		{
			claim: "long texts behind a statement that takes long", first: sleep, times: 100,
			next: func(i int) []byte { return simpleQuery("SELECT 1 /* " + name(i) + long + " */") },
		},
		{
			claim: "statements that are prepared by SQL", times: 2000,
			next: func(i int) []byte {
				return simpleQuery("PREPARE " + name(i) + " AS SELECT 1 /* " + long[:20000] + " */")
			},
		},
		{
			claim: "savepoints of one transaction", first: simpleQuery("BEGIN"), times: 20000,
			next: func(i int) []byte { return simpleQuery("SAVEPOINT " + name(i)) },
		},
		{
			claim: "statements over protected tables that are prepared by SQL", times: 500,
			next: func(i int) []byte {
				return simpleQuery("PREPARE " + name(i) + " AS SELECT age FROM patients /* " +
					long[:5000] + " */")
			},
		},
		{
			claim: "accounts of what would be answered", times: 500,
			next: func(i int) []byte {
				return simpleQuery("EXPLAIN (TAILOR) SELECT age, zip FROM patients WHERE age > " +
					strconv.Itoa(i))
			},
		},
		{
			claim: "answers with labels and bounds that nobody reads", deaf: true, times: 160,
			next: many(simpleQuery("SELECT tailor.label(age), tailor.bounds(age), tailor.exact(zip), zip, " +
				"sex FROM patients")),
		},
		{
			claim: "many labels in one text", times: 30,
			next: func(i int) []byte {
				return simpleQuery("SELECT " + name(i) + strings.Repeat(", tailor.bounds(age)", 1200) +
					" FROM patients, (SELECT 1 AS " + name(i) + ") n LIMIT 1")
			},
		},
		{
			claim: "temporary tables of what is released", times: 300,
			next: func(i int) []byte {
				return simpleQuery("CREATE TEMP TABLE " + name(i) + " AS SELECT age AS " + name(i) + long[:50] +
					" FROM patients LIMIT 1")
			},
		},
		{
			claim: "numbers of cases of many codes", times: 100,
			next: func(i int) []byte {
				return simpleQuery("SELECT * FROM tailor.case_count('diagnoses', ARRAY['" + name(i) +
					strings.Repeat("', 'x", 1500) + "'])")
			},
		},
		{
			claim: "values of settings", times: 100,
			next: func(i int) []byte { return simpleQuery("SET tailor.project = '" + name(i) + long + "'") },
		},
		{
			claim: "answers that nobody reads", deaf: true, times: 160,
			next: many(simpleQuery("SELECT 1")),
		},
		{claim: "Sync that nobody reads the answer of", deaf: true, times: 160, next: many(sync)},
		{
			claim: "pipelines that nobody reads the answers of", deaf: true, times: 160,
			next: pipeline,
		},
		{
			claim: "refused calls that nobody reads the answers of", deaf: true, times: 160,
			next: many(frame('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01")),
		},
		{
			claim: "pipelines over TLS", encrypted: true, deaf: true, times: 160,
			next: pipeline,
		},
		{
			claim: "pipelines on connections that are shared", flags: sharing, deaf: true, times: 160,
			next: pipeline,
		},
		{
			claim: "pipelines without an end", deaf: true, times: 160, first: parseMessage("", "SELECT 1"),
			next: many(bindMessage("", ""), executeMessage("")),
		},
		{
			claim: "notifications that nobody reads", deaf: true, first: simpleQuery("LISTEN c"), times: 160,
			next: many(simpleQuery("NOTIFY c, '" + long[:7000] + "'")),
		},
		{
			claim: "Describe and Close", times: 20,
			next: many(frame('D', "Sx\x00"), frame('C', "Sx\x00"), sync),
		},
		{claim: "Close without an end", times: 160, next: many(frame('C', "Sx\x00"))},
		{claim: "Flush", times: 160, next: many(flush)},
		{
			claim: "calls of an administrator's", user: "dba", times: 10,
			next: many(frame('F', "\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01")),
		},
		{claim: "long errors", times: 8, next: func(int) []byte {
			return simpleQuery("DO $$ BEGIN RAISE EXCEPTION '%', repeat('x', 50000000); END $$")
		}},
		{claim: "long notices", times: 8, next: func(int) []byte {
			return simpleQuery("DO $$ BEGIN RAISE NOTICE '%', repeat('x', 50000000); END $$")
		}},
		{
			claim: "a long message of a short kind", times: 1,
			next: func(int) []byte { return frame('E', strings.Repeat(long, 60), "\x00\x00\x00\x00\x00") },
		},
		{
			claim: "a long message of no kind", times: 1,
			next: func(int) []byte { return frame('z', strings.Repeat(long, 60)) },
		},
		{
			claim: "parameters of the start", dsn: manyParameters(), times: 1,
			next: func(int) []byte { return sync },
		},
	}
}

// manyParameters are as many as a first packet has room for.
func manyParameters() string {
	var dsn strings.Builder
	for i := range 700 {
		fmt.Fprintf(&dsn, "&own.p%d=v", i)
	}
	return dsn.String()
}

// TestASessionTakesAtMostFourMegabytes. Attacker: one client, with everything that
// the protocol lets it send, reading the answers or not. Property: whatever it sends,
// the proxy's process grows by what is bounded for a session, and serves others.
func TestASessionTakesAtMostFourMegabytes(t *testing.T) {
	// Go collects late where the machine is busy: with a limit it does not, so that the
	// process grows beyond only by what is in use.
	t.Setenv("GOMEMLIMIT", strconv.Itoa(peakBytes))
	for i, f := range floods() {
		t.Run(f.claim, func(t *testing.T) {
			oneIn(t, 6, i)
			if f.encrypted {
				certificate, key := newAuthority(t).sign(t, "proxy", false)
				f.flags = append(f.flags, "--tls-certificate", certificate, "--tls-key", key)
			}
			// What is held is bounded each time; how far the process grows meanwhile
			// depends on when Go collects, which a busy machine puts off.
			for attempt := 1; !f.fits(t, attempt == 3); attempt++ {
			}
		})
	}
}

// fits has a client of a new proxy send a flood, and says whether the process grew by
// no more than it may: what Go collects late, beside as much as was in use.
func (f flood) fits(t *testing.T, last bool) bool {
	t.Helper()
	p, dsn := plain(t, f.flags...)
	if f.encrypted {
		dsn = strings.Replace(dsn, "sslmode=disable", "sslmode=require", 1)
	}
	if f.user != "" {
		dsn = p.dsn(f.user)
	}
	w := dial(t, dsn+f.dsn)
	heap, resident := p.heap(t), p.memory(t, "VmRSS")
	p.resetPeak(t)
	over := make(chan error, 1)
	if f.deaf {
		over <- nil
	} else {
		_ = w.conn.SetReadDeadline(time.Now().Add(time.Minute))
		go func() { over <- readTo(w.conn, floodEnd) }()
	}
	sent, blocked := f.send(t, w.conn)
	if blocked && !f.deaf {
		t.Errorf("the client waits after %d bytes", sent)
	}
	if err := <-over; err != nil && !isGone(err) {
		t.Error(err)
	}
	peak, held := p.memory(t, "VmHWM")-resident, 0
	const mb = 1 << 20
	waitFor(t, func() bool { // the audit log has yet to write what it was given
		held = p.heap(t) - heap
		return held <= sessionBytes+sharedBytes
	})
	t.Logf("%.1f MB sent, %.1f MB more, %.1f MB held, beside %.1f MB", float64(sent)/mb,
		float64(peak)/mb, float64(held)/mb, float64(heap)/mb)
	fits := peak <= peakBytes+heap
	if !fits && last {
		t.Errorf("%d bytes more after %d bytes", peak, sent)
	}
	if got := one[int](t, connect(t, dsn), "SELECT 1"); got != 1 {
		t.Error(got)
	}
	return fits || last
}

// heap is what the proxy's heap holds that cannot be collected, in bytes.
func (p *testProxy) heap(t *testing.T) int {
	t.Helper()
	_, profile := get(t, p.operations(t)+"/debug/pprof/heap?debug=1&gc=1")
	_, rest, _ := strings.Cut(profile, "# HeapAlloc = ")
	line, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// readTo reads until a text has come.
func readTo(from io.Reader, text string) error {
	buffer, kept := make([]byte, 256<<10), 0
	for {
		n, err := from.Read(buffer[kept:])
		seen := buffer[:kept+n]
		if bytes.Contains(seen, []byte(text)) {
			return nil
		}
		if err != nil {
			return err
		}
		kept = copy(buffer, seen[max(0, len(seen)-len(text)):])
	}
}

// floodEnd is what the last answer holds to a client that reads.
const floodEnd = "this is the end"

// send sends it all, and says how much was taken, and whether the proxy has stopped
// reading before.
func (f *flood) send(t *testing.T, to net.Conn) (sent int, blocked bool) {
	t.Helper()
	patience := time.Minute
	if f.deaf {
		patience = time.Second
	}
	write := func(b []byte) error {
		_ = to.SetWriteDeadline(time.Now().Add(patience))
		n, err := to.Write(b)
		sent += n
		return err
	}
	err := write(f.first)
	for i := 0; i < f.times && err == nil; i++ {
		err = write(f.next(i))
	}
	if err == nil && !f.deaf {
		err = write(inOneGo(frame('S'), simpleQuery("ROLLBACK"), simpleQuery("SELECT '"+floodEnd+"'")))
	}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return sent, true
	case err != nil && !isGone(err):
		t.Fatal(err)
	}
	return sent, false
}

// isGone says that the other side has closed the connection.
func isGone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
