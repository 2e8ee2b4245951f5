package tests

import (
	"context"
	bytesOf "encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// balancer passes TCP connections on to one of several proxies.
type balancer struct {
	address string
	to      atomic.Pointer[testProxy] // where the next connection goes
}

// balance starts a balancer that ends with the test. With header it tells, by
// the PROXY protocol, who the client is.
func balance(t *testing.T, header bool) *balancer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	b := &balancer{address: listener.Addr().String()}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", b.to.Load().address)
			if err != nil {
				_ = client.Close()
				continue
			}
			if header {
				port := client.RemoteAddr().(*net.TCPAddr).Port
				_, _ = fmt.Fprintf(server, "PROXY TCP4 127.0.0.1 127.0.0.1 %d 1\r\n", port)
			}
			pipe := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				_ = to.Close()
				_ = from.Close()
			}
			go pipe(server, client)
			go pipe(client, server)
		}
	}()
	return b
}

// pair starts two proxies that are peers.
func pair(t *testing.T, flags ...string) [2]*testProxy {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "peer.secret")
	if err := os.WriteFile(secret, []byte("what both proxies know and nobody else does"),
		0o600); err != nil {
		t.Fatal(err)
	}
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = freePort(); err != nil {
			t.Fatal(err)
		}
	}
	addresses := fmt.Sprintf("1=127.0.0.1:%d,2=127.0.0.1:%d", ports[0], ports[1])
	var both [2]*testProxy
	for i, port := range ports {
		own := []string{
			"--listen", fmt.Sprintf("127.0.0.1:%d", port), "--peer-number", fmt.Sprint(i + 1),
			"--peer-addresses", addresses, "--peer-secret", secret,
		}
		both[i] = shared.serve(t, append(own, flags...)...)
	}
	return both
}

// sleeper is a session that sleeps until it is cancelled.
type sleeper struct {
	*pgx.Conn
	ended chan error
}

// asleep connects to a proxy through a balancer and goes to sleep there.
func (b *balancer) asleep(t *testing.T, p *testProxy, user, settings string) *sleeper {
	t.Helper()
	b.to.Store(p)
	s := &sleeper{Conn: connect(t, fmt.Sprintf("postgres://%s:%s@%s/hospital?%s", user, user,
		b.address, settings)), ended: make(chan error, 1)}
	go func() {
		_, err := s.PgConn().Exec(context.Background(), "SELECT pg_sleep(60)").ReadAll()
		s.ended <- err
	}()
	direct := shared.superuser(t)
	waitFor(t, func() bool {
		return one[bool](t, direct, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND "+
			"state = 'active' AND query LIKE 'SELECT pg_sleep%')", int32(s.PgConn().PID()))
	})
	return s
}

// wakes checks that a cancel request through a balancer ends the sleep.
func (s *sleeper) wakes(t *testing.T, what string) {
	t.Helper()
	if err := s.PgConn().CancelRequest(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-s.ended:
		if codeIn(err) != "57014" {
			t.Errorf("%s: %v, want 57014", what, err)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s: not cancelled", what)
	}
}

// sleeps checks that nobody has ended the sleep.
func (s *sleeper) sleeps(t *testing.T, what string) {
	t.Helper()
	select {
	case err := <-s.ended:
		t.Errorf("%s: another session is cancelled: %v", what, err)
	default:
	}
}

func TestACancelRequestReachesItsSessionThroughAnyProxy(t *testing.T) {
	a := newAuthority(t)
	certificate, key := a.sign(t, "proxy", false)
	user := shared.reader(t)
	for _, c := range []struct {
		claim, settings string
		header          bool
		flags           []string
	}{
		{"protocol 3.0", "sslmode=disable", false, nil},
		{"protocol 3.2", "sslmode=disable&min_protocol_version=3.2&max_protocol_version=3.2", false, nil},
		{
			"TLS only", "sslmode=require", false,
			[]string{"--tls-certificate", certificate, "--tls-key", key, "--tls-required"},
		},
		{"the PROXY protocol", "sslmode=disable", true, []string{"--proxy-protocol"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if strings.Contains(c.settings, "protocol_version=3.2") {
				asAServerThatSpeaks32(t)
			}
			both, b := pair(t, c.flags...), balance(t, c.header)
			for i, home := range both {
				away := both[1-i]
				mine, other, theirs := b.asleep(t, home, user, c.settings), b.asleep(t, home, user, c.settings),
					b.asleep(t, away, user, c.settings)
				b.to.Store(away)
				mine.wakes(t, "through the other proxy")
				other.sleeps(t, "on the same proxy")
				theirs.sleeps(t, "on the other proxy")
				theirs.wakes(t, "through its own proxy")
				other.sleeps(t, "on the same proxy")
				other.wakes(t, "through the other proxy")
			}
		})
	}
}

// asAServerThatSpeaks32 lets the proxies take the server for one of version 18.
func asAServerThatSpeaks32(t *testing.T) {
	t.Helper()
	direct := shared.superuser(t)
	definition := one[string](t, direct, "SELECT pg_get_functiondef('tailor.protocol'::regproc)")
	mustExec(t, direct,
		"CREATE OR REPLACE FUNCTION tailor.protocol() RETURNS integer LANGUAGE sql AS 'SELECT 2'")
	t.Cleanup(func() {
		if _, err := direct.Exec(context.Background(), definition); err != nil {
			t.Error(err)
		}
	})
}

// TestTheProtocolIsTheServers asks for 3.2 directly and through the proxy.
func TestTheProtocolIsTheServers(t *testing.T) {
	user := shared.reader(t)
	p := shared.serve(t)
	through, direct := connect(t, p.dsn(user)+"&max_protocol_version=3.2"),
		connect(t, shared.cluster.SuperuserDSN("hospital")+" max_protocol_version=3.2")
	if got, want := len(through.PgConn().SecretKey()), len(direct.PgConn().SecretKey()); got != want {
		t.Errorf("a cancel key has %d bytes, directly %d", got, want)
	}
}

// TestAKeyOfASessionThatEndedCancelsNothing also holds where the number of the
// server's process is another session's by now: secrets differ.
func TestAKeyOfASessionThatEndedCancelsNothing(t *testing.T) {
	both, b := pair(t), balance(t, false)
	user := shared.reader(t)
	gone := b.asleep(t, both[0], user, "sslmode=disable")
	b.to.Store(both[1])
	gone.wakes(t, "through the other proxy")
	stale := gone.PgConn()
	_ = gone.Close(t.Context())
	alive := b.asleep(t, both[0], user, "sslmode=disable")
	for _, p := range both {
		b.to.Store(p)
		_ = stale.CancelRequest(t.Context())
	}
	alive.sleeps(t, "a stale key")
	for _, p := range both {
		cancelRaw(t, p.address, alive.PgConn().PID(), alive.PgConn().SecretKey()[:3])
		cancelRaw(t, p.address, alive.PgConn().PID(),
			append([]byte{alive.PgConn().SecretKey()[0] ^ 1}, alive.PgConn().SecretKey()[1:]...))
	}
	alive.sleeps(t, "a wrong key")
	b.to.Store(both[1])
	alive.wakes(t, "the right key")
}

// cancelRaw sends a cancel request and waits until the proxy has dealt with it.
func cancelRaw(t *testing.T, address string, process uint32, secret []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	packet := bytesOf.BigEndian.AppendUint32(nil, uint32(12+len(secret)))
	packet = bytesOf.BigEndian.AppendUint32(packet, 80877102)
	packet = bytesOf.BigEndian.AppendUint32(packet, process)
	_, _ = conn.Write(append(packet, secret...))
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		t.Errorf("a cancel request is answered: %d bytes, %v", n, err)
	}
}

func TestWhoGuessesCancelKeysIsSlowed(t *testing.T) {
	both, b := pair(t), balance(t, false)
	victim := b.asleep(t, both[0], shared.reader(t), "sslmode=disable")
	secret := victim.PgConn().SecretKey()
	for i := range uint32(600) {
		guess := bytesOf.BigEndian.AppendUint32(nil, bytesOf.BigEndian.Uint32(secret)+1+i)
		cancelRaw(t, both[1].address, victim.PgConn().PID(), guess)
	}
	cancelRaw(t, both[1].address, victim.PgConn().PID(), secret)
	victim.sleeps(t, "after hundreds of guesses")
	waitFor(t, func() bool {
		cancelRaw(t, both[1].address, victim.PgConn().PID(), secret)
		return len(victim.ended) == 1
	})
	if err := <-victim.ended; codeIn(err) != "57014" {
		t.Errorf("%v, want 57014", err)
	}
}

func TestAPeerThatIsGoneHoldsNobodyUp(t *testing.T) {
	both, b := pair(t), balance(t, false)
	user := shared.reader(t)
	gone := b.asleep(t, both[0], user, "sslmode=disable")
	here := b.asleep(t, both[1], user, "sslmode=disable")
	secret, process := gone.PgConn().SecretKey(), gone.PgConn().PID()
	both[0].kill()
	cancelRaw(t, both[1].address, process, secret)
	here.sleeps(t, "a request for a proxy that is gone")
	here.wakes(t, "afterwards")
}
