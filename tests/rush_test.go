package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// soakOnly skips what takes long.
func soakOnly(t *testing.T) {
	t.Helper()
	if !soaks() {
		t.Skip("takes long; set TAILOR_SOAK=1")
	}
}

// oneIn leaves out case i of a long table, unless it is the first of n or tests may take long.
func oneIn(t *testing.T, n, i int) {
	t.Helper()
	if i%n > 0 {
		soakOnly(t)
	}
}

// soonOf is the outcome that comes within a minute.
func soonOf(t *testing.T, outcome <-chan error) error {
	t.Helper()
	select {
	case err := <-outcome:
		return err
	case <-time.After(time.Minute):
		t.Fatal("nothing comes of it")
		return nil
	}
}

// soaks says that tests may take long.
func soaks() bool { return os.Getenv("TAILOR_SOAK") != "" }

// plain starts a proxy for faults without the race detector.
func plain(t *testing.T, flags ...string) (p *testProxy, dsn string) {
	t.Helper()
	return faultyOf(t, binary, flags...)
}

// TestTenThousandConnectionsAtOnceAreServedOrRefused holds all of them open
// together: those that say nothing, ask for TLS, or begin a login and leave it,
// while two hundred log in and ask. Every one is answered or closed.
func TestTenThousandConnectionsAtOnceAreServedOrRefused(t *testing.T) {
	soakOnly(t)
	const burst, logins = 9800, 200
	p, dsn := plain(t, "--max-clients", "50", "--queue-timeout", "20s", "--startup-timeout", "30s")
	begun, err := (&pgproto3.StartupMessage{
		ProtocolVersion: pgproto3.ProtocolVersionNumber,
		Parameters:      map[string]string{"user": "nobody", "database": "hospital"},
	}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	openings := [][]byte{
		nil,
		{0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f},
		begun[:20],
		[]byte("GET / HTTP/1.1\r\n\r\n"),
	}
	p.leaksNothing(t, func() {
		connections := make([]net.Conn, burst)
		inParallel(burst, 100, func(i int) {
			conn, err := net.Dial("tcp", p.address)
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
				return
			}
			connections[i] = conn
			opening := openings[i%len(openings)]
			if i%500 == 0 { // these hold a seat
				opening = begun
			}
			_, _ = conn.Write(opening)
		})
		var served, refused int
		var mu sync.Mutex
		inParallel(logins, logins, func(int) {
			err := countsPatients(dsn)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				served++
			case codeIn(err) == "53300":
				refused++
			default:
				t.Errorf("login: %v", err)
			}
		})
		answered, closed := 0, 0
		inParallel(burst, 100, func(i int) {
			conn := connections[i]
			if conn == nil {
				return
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			answer, err := io.ReadAll(conn)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && strings.Contains(err.Error(), "timeout"):
				t.Errorf("connection %d is still open", i)
			case len(answer) > 0:
				answered++
			default:
				closed++
			}
		})
		t.Logf("%d connections answered, %d closed; %d logins served, %d refused", answered, closed,
			served, refused)
		if served == 0 {
			t.Error("nobody was served")
		}
	})
	if err := countsPatients(dsn); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// countsPatients logs in and asks a protected query.
func countsPatients(dsn string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	conn, err := pgconn.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	results, err := conn.Exec(ctx, "SELECT count(*) FROM patients").ReadAll()
	if err == nil && string(results[0].Rows[0][0]) != strconv.Itoa(patients) {
		return fmt.Errorf("counted %s", results[0].Rows[0][0])
	}
	return err
}

// inParallel does n things, some at a time.
func inParallel(n, atATime int, do func(i int)) {
	var group sync.WaitGroup
	turns := make(chan int)
	for range atATime {
		group.Go(func() {
			for i := range turns {
				do(i)
			}
		})
	}
	for i := range n {
		turns <- i
	}
	close(turns)
	group.Wait()
}

// TestTenMillionProtectedRowsTakeNoMemory reads a result of several hundred
// megabytes, in both protocols.
func TestTenMillionProtectedRowsTakeNoMemory(t *testing.T) {
	soakOnly(t)
	const growth = 50 << 20
	p, dsn := plain(t)
	for claim, messages := range map[string][]pgproto3.FrontendMessage{
		"simple": {&pgproto3.Query{String: protectedResult + " LIMIT 10000000"}},
		"extended": {
			&pgproto3.Parse{Query: protectedResult + " LIMIT 10000000"}, &pgproto3.Bind{},
			&pgproto3.Execute{}, &pgproto3.Sync{},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := dial(t, dsn)
			_ = w.conn.SetDeadline(time.Now().Add(10 * time.Minute))
			before := p.memory(t, "VmRSS")
			p.resetPeak(t)
			started := time.Now()
			w.send(t, messages...)
			total, end := w.drain(t)
			if !bytes.Contains(end, []byte("SELECT 10000000\x00")) {
				t.Errorf("the result ends with %q", end)
			}
			grown := p.memory(t, "VmHWM") - before
			t.Logf("%d MB in %v, the proxy grew by %.1f MB", total>>20, time.Since(started).
				Round(time.Second), float64(grown)/(1<<20))
			if grown > growth {
				t.Errorf("the proxy grew by %d bytes, want at most %d", grown, growth)
			}
		})
	}
}

// memory is a figure of the proxy's process in bytes.
func (p *testProxy) memory(t *testing.T, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), name+":")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// resetPeak lets VmHWM begin anew.
func (p *testProxy) resetPeak(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.command.Process.Pid), []byte("5"),
		0); err != nil {
		t.Fatal(err)
	}
}

// drain reads to the ReadyForQuery that is the last message of a result,
// without decoding any, and returns how much came and its last bytes.
func (w *wire) drain(t *testing.T) (total int, end []byte) {
	t.Helper()
	buffer := make([]byte, 256<<10)
	for {
		n, err := w.conn.Read(buffer)
		if err != nil {
			t.Fatalf("after %d bytes: %v", total, err)
		}
		total += n
		end = append(end, buffer[:n]...)
		end = end[max(0, len(end)-100):]
		if bytes.HasSuffix(end, []byte{'Z', 0, 0, 0, 5, 'I'}) {
			return total, end
		}
	}
}
