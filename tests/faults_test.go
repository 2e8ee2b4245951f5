package tests

import (
	"context"
	bytesOf "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// footprint is what a running proxy holds.
type footprint struct{ goroutines, descriptors, upstream int }

func (p *testProxy) footprint(t *testing.T, base string, direct *pgx.Conn) footprint {
	t.Helper()
	_, profile := get(t, base+"/debug/pprof/goroutine?debug=1")
	_, count, _ := strings.Cut(strings.SplitN(profile, "\n", 2)[0], "total ")
	var f footprint
	f.goroutines, _ = strconv.Atoi(count)
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	f.descriptors = len(open)
	f.upstream = one[int](t, direct,
		"SELECT count(*) FROM pg_stat_activity WHERE application_name = 'faults'")
	return f
}

// leaksNothing runs a fault and waits until the proxy holds no more than before.
func (p *testProxy) leaksNothing(t *testing.T, fault func()) {
	t.Helper()
	base, direct := p.operations(t), shared.superuser(t)
	before := p.footprint(t, base, direct)
	fault()
	var after footprint
	for range 200 {
		after = p.footprint(t, base, direct)
		// The service pool may have grown, by four connections at most.
		if after.goroutines <= before.goroutines+4 && after.descriptors <= before.descriptors+8 &&
			after.upstream <= before.upstream {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("before: %+v, after: %+v", before, after)
}

// faulty starts a proxy for faults, and returns the DSN of a reader of its own.
func faulty(t *testing.T, flags ...string) (p *testProxy, dsn string) {
	t.Helper()
	return faultyOf(t, proxyFor(t), flags...)
}

func faultyOf(t *testing.T, binary string, flags ...string) (p *testProxy, dsn string) {
	t.Helper()
	p = shared.serveBinary(t, binary, append([]string{
		"--metrics", "127.0.0.1:0", "--pprof",
		"--startup-timeout", "20s", "--wrong-password-pause", "50ms", "--upstream-reuse", "200ms",
	},
		flags...)...)
	dsn = p.dsn(shared.reader(t)) + "&application_name=faults"
	warm, err := pgconn.Connect(t.Context(), dsn) // service connections and caches are not leaks
	if err != nil {
		t.Fatal(err)
	}
	if _, err := warm.Exec(t.Context(), "SELECT count(*), count(age) FROM patients").
		ReadAll(); err != nil {
		t.Fatal(err)
	}
	_ = warm.Close(t.Context())
	return p, dsn
}

const (
	longResult      = "SELECT repeat('x', 1000) FROM generate_series(1, 2000000)"
	protectedResult = "SELECT a.age, b.zip FROM patients a, patients b"
)

func TestAServerThatDiesMidResultEndsTheSessionCleanly(t *testing.T) {
	p, dsn := faulty(t)
	p.leaksNothing(t, func() {
		for _, sql := range []string{longResult, protectedResult} {
			conn, err := pgconn.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			results := conn.Exec(t.Context(), sql)
			if !results.NextResult() || !results.ResultReader().NextRow() {
				t.Fatal("no row")
			}
			mustExec(t, shared.superuser(t), "SELECT pg_terminate_backend($1)", int32(conn.PID()))
			for r := results.ResultReader(); r.NextRow(); {
			}
			if err := results.Close(); codeIn(err) != "57P01" && err == nil {
				t.Errorf("%v, want an error", err)
			}
			_ = conn.Close(t.Context())
		}
	})
}

// TestAClientThatLeavesMidResultLeavesNothing leaves while rows come, and while
// PostgreSQL works without having said anything: by itself that would go on to
// the end, as without the proxy; where it looks after its client, it ends.
func TestAClientThatLeavesMidResultLeavesNothing(t *testing.T) {
	p, dsn := faulty(t)
	direct := shared.superuser(t)
	p.leaksNothing(t, func() {
		for _, sql := range []string{longResult, protectedResult} {
			w := dial(t, dsn)
			w.send(t, &pgproto3.Query{String: sql})
			if _, err := io.ReadFull(w.conn, make([]byte, 100)); err != nil {
				t.Errorf("%s: %v", sql, err)
			}
			_ = w.conn.Close()
		}
		w := dial(t, dsn)
		w.send(t, &pgproto3.Query{String: "SET client_connection_check_interval = '100ms'; SELECT " +
			"pg_sleep(600)"})
		waitFor(t, func() bool {
			return one[bool](t, direct, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE "+
				"application_name = 'faults' AND wait_event = 'PgSleep')")
		})
		_ = w.conn.Close()
	})
}

func TestASlowReaderCostsNoMemory(t *testing.T) {
	p, dsn := faulty(t)
	before := p.memory(t, "VmRSS")
	for _, sql := range []string{longResult, protectedResult, "SELECT repeat('x', 500000000)"} {
		w := dial(t, dsn)
		w.send(t, &pgproto3.Query{String: sql})
		time.Sleep(500 * time.Millisecond)
		if grown := p.memory(t, "VmRSS") - before; grown > 50<<20 {
			t.Errorf("%.30s: %d bytes more", sql, grown)
		}
		_ = w.conn.Close()
	}
}

func TestWhoNeverFinishesTheStartUpIsCutOff(t *testing.T) {
	p, _ := faulty(t, "--startup-timeout", "1s")
	p.leaksNothing(t, func() {
		var group sync.WaitGroup
		for _, sent := range []string{
			"", "\x00", "\x00\x00\x00\x20\x00\x03\x00\x00us",
			"\x00\x00\x00\x14\x00\x03\x00\x00user\x00dba\x00\x00\x00", "\x16\x03\x01",
		} {
			group.Go(func() {
				conn, err := net.Dial("tcp", p.address)
				if err != nil {
					t.Error(err)
					return
				}
				defer func() { _ = conn.Close() }()
				_, _ = io.WriteString(conn, sent)
				_ = conn.SetReadDeadline(time.Now().Add(15 * time.Second))
				if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
					t.Errorf("%q: still open", sent)
				}
			})
		}
		group.Wait()
	})
}

// TestGarbageEndsOneSessionOnly sends every type of message with random,
// truncated and lying bodies.
func TestGarbageEndsOneSessionOnly(t *testing.T) {
	p, dsn := faulty(t)
	random := rand.New(rand.NewPCG(7, 7))
	p.leaksNothing(t, func() {
		for kind := byte('A'); kind <= 'z'; kind++ {
			w := dial(t, dsn)
			for range 3 {
				body := make([]byte, random.IntN(40))
				for i := range body {
					body[i] = byte(random.IntN(256) * random.IntN(2))
				}
				_, _ = w.conn.Write(append(bytesOf.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)),
					body...))
			}
			length := []uint32{0, 3, 1 << 20, 1<<31 - 1, 1<<32 - 1}[int(kind)%5]
			_, _ = w.conn.Write(append(bytesOf.BigEndian.AppendUint32([]byte{kind}, length), 'x'))
			_ = w.conn.(interface{ CloseWrite() error }).CloseWrite()
			_ = w.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, w.conn); err != nil &&
				strings.Contains(err.Error(), "timeout") {
				t.Errorf("%q: still open", kind)
			}
			_ = w.conn.Close()
		}
	})
	if strings.Contains(p.log.String(), "session failed") {
		t.Error(p.log.String())
	}
}

func TestABurstOfConnectionsIsServedOrRefused(t *testing.T) {
	p, dsn := faulty(t, "--max-clients", "20", "--queue-timeout", "1s")
	p.leaksNothing(t, func() {
		var group sync.WaitGroup
		outcomes := make(chan string, 2000)
		for i := range 2000 {
			group.Go(func() {
				if i%10 > 0 { // nobody who means to log in
					conn, err := net.Dial("tcp", p.address)
					if err == nil {
						_, _ = conn.Write([]byte{0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f})
						_, _ = conn.Read(make([]byte, 1))
						_ = conn.Close()
					}
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				conn, err := pgconn.Connect(ctx, dsn)
				if err == nil {
					_, err = conn.Exec(ctx, "SELECT count(*) FROM patients").ReadAll()
					_ = conn.Close(ctx)
				}
				switch {
				case err == nil:
					outcomes <- "served"
				case codeIn(err) == "53300":
					outcomes <- "refused"
				default:
					outcomes <- err.Error()
				}
			})
		}
		group.Wait()
		close(outcomes)
		counts := make(map[string]int)
		for o := range outcomes {
			counts[o]++
		}
		if counts["served"] == 0 || counts["served"]+counts["refused"] != 200 {
			t.Errorf("%v", counts)
		}
	})
	conn := connect(t, dsn)
	if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("afterwards a session counts %d", n)
	}
}
