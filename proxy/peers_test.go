package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/proxy/internal/cancelkey"
)

// peered loads what proxy 1 or 2 of a pair knows.
func peered(t *testing.T, number int, secret, address string) peers {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Peers{Number: number, Addresses: "1=" + address + ", 2=" + address, Secret: path}
	if err := c.validate(); err != nil {
		t.Fatal(err)
	}
	p, err := c.load(nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const shared, stranger = "a secret of at least thirty-two bytes",
	"a stranger's, which is as long as that"

func TestAKeyTellsItsProxyToWhoSharesTheSecretOnly(t *testing.T) {
	one, two, other := peered(t, 1, shared, "a:1"), peered(t, 2, shared, "a:1"),
		peered(t, 2, stranger, "a:1")
	chance := 0
	for process := range uint32(2000) {
		for _, length := range []int{cancelkey.Short, cancelkey.Long} {
			key := one.Issue(process, length)
			if len(key) != 4+length {
				t.Fatalf("%d bytes", len(key))
			}
			if n, ok := two.Holder(key); n != 1 || !ok {
				t.Fatalf("key of %d bytes: proxy %d, %v", length, n, ok)
			}
			n, ok := other.Holder(key)
			if length == cancelkey.Long && ok {
				t.Fatal("a key issued under another secret is believed")
			}
			if length == cancelkey.Short && n == 1 {
				chance++
			}
		}
	}
	// One in 256 would be chance: 8 of 2000.
	if chance > 30 {
		t.Errorf("a stranger reads the proxy from %d of 2000 short keys", chance)
	}
	if _, ok := two.Holder("short"); ok {
		t.Error("a key of no known length is read")
	}
}

// TestShortSecretsLookRandom counts each value of the byte that tells the proxy.
func TestShortSecretsLookRandom(t *testing.T) {
	p := peered(t, 1, shared, "a:1")
	var counts [256]int
	for range 25600 {
		key := p.Issue(7, cancelkey.Short)
		counts[key[len(key)-1]]++
	}
	for value, n := range counts {
		if n < 40 || n > 180 { // 100 expected, 6 and 8 standard deviations away
			t.Errorf("byte %d comes %d times", value, n)
		}
	}
}

// captured passes a key on and returns the packet that was sent.
func captured(
	t *testing.T, to byte, answer byte, key string, secret string, behindBalancer bool,
) (packet []byte, found bool) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	sender := peered(t, 3-int(to), secret, listener.Addr().String())
	sent := make(chan []byte, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		buffer := make([]byte, 1000)
		n, _ := conn.Read(buffer)
		sent <- buffer[:n]
		_, _ = conn.Write([]byte{answer})
		_ = conn.Close()
	}()
	r := &running{Config: Config{ProxyProtocol: behindBalancer}}
	if found, err = sender.pass(context.Background(), r, key, time.Now()); err != nil {
		t.Fatal(err)
	}
	return <-sent, found
}

func TestOnlyAPeerIsBelievedAndOnlyOnce(t *testing.T) {
	two := peered(t, 2, shared, "a:1")
	key := two.Issue(42, cancelkey.Short)
	for _, balanced := range []bool{false, true} {
		packet, found := captured(t, 2, deliveredKey, key, shared, balanced)
		if !found {
			t.Error("the peer has the session, and it is not found")
		}
		if bytes.Contains(packet, []byte(key)) {
			t.Error("the key can be read on the way")
		}
		if balanced {
			packet = bytes.TrimPrefix(packet, []byte("PROXY UNKNOWN\r\n"))
		}
		code, body, err := readStartup(bytes.NewReader(packet))
		if err != nil || code != codePeer {
			t.Fatalf("code %d: %v", code, err)
		}
		var seen replays
		for _, c := range []struct {
			claim    string
			receiver peers
			body     []byte
			at       time.Duration
			believed bool
		}{
			{"one of another secret", peered(t, 2, stranger, "a:1"), body, 0, false},
			{"another receiver", peered(t, 3, shared, "a:1"), body, 0, false},
			{"a proxy without peers", peers{}, body, 0, false},
			{
				"a changed message", two, append(bytes.Clone(body[:len(body)-1]), body[len(body)-1]^1), 0,
				false,
			},
			{"a message too short", two, body[:5], 0, false},
			{"one that is late", two, body, time.Minute, false},
			{"one from the future", two, body, -time.Minute, false},
			{"the message", two, body, 0, true},
			{"the message again", two, body, time.Second, false},
		} {
			shown, err := c.receiver.open(c.body, time.Now().Add(c.at), &seen)
			if (err == nil) != c.believed || c.believed && shown != key {
				t.Errorf("%s: %v", c.claim, err)
			}
		}
	}
	if _, found := captured(t, 2, unknownKey, key, shared, false); found {
		t.Error("the peer does not know the key, and it is found")
	}
}

func TestPeersAreGivenCompletely(t *testing.T) {
	short := filepath.Join(t.TempDir(), "short")
	if err := os.WriteFile(short, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		peers Peers
		fault string
	}{
		{Peers{}, ""},
		{Peers{Number: 1, Addresses: "1=a:1,2=b:2", Secret: "f"}, ""},
		{Peers{Number: 1, Addresses: "1=a:1"}, "together"},
		{Peers{Addresses: "1=a:1", Secret: "f"}, "together"},
		{Peers{Number: 256, Addresses: "1=a:1", Secret: "f"}, "peer-number"},
		{Peers{Number: 1, Addresses: "1=a:1,1=b:2", Secret: "f"}, "twice"},
		{Peers{Number: 1, Addresses: "0=a:1", Secret: "f"}, "NUMBER=HOST:PORT"},
		{Peers{Number: 1, Addresses: "1=nowhere", Secret: "f"}, "NUMBER=HOST:PORT"},
	} {
		err := c.peers.validate()
		if (err == nil) != (c.fault == "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%+v: %v, want %q", c.peers, err, c.fault)
		}
	}
	if _, err := (Peers{Number: 1, Addresses: "1=a:1", Secret: short}).load(nil); err == nil {
		t.Error("a short secret is taken")
	}
}

// TestNegotiationOffersWhatIsSpoken checks the version that clients are told.
func TestNegotiationOffersWhatIsSpoken(t *testing.T) {
	for _, c := range []struct {
		asked, newest, told int
		options             map[string]string
	}{
		{0, 2, -1, nil},
		{2, 2, -1, nil},
		{2, 0, 0, nil},
		{9999, 2, 2, nil},
		{9999, 0, 0, nil},
		{2, 2, 2, map[string]string{"_pq_.x": "y"}},
		{0, 2, 0, map[string]string{"_pq_.x": "y"}},
	} {
		var answer bytes.Buffer
		g := &greeting{minor: c.asked, parameters: c.options}
		if err := negotiate(&answer, g, c.newest); err != nil {
			t.Fatal(err)
		}
		if c.told < 0 {
			if answer.Len() > 0 {
				t.Errorf("3.%d: answered", c.asked)
			}
			continue
		}
		head := make([]byte, 9)
		if _, err := io.ReadFull(&answer, head); err != nil || head[0] != 'v' || head[6] != 3 ||
			int(head[8]) != c.told || g.minor != c.told {
			t.Errorf("3.%d: %v %v, session 3.%d", c.asked, head, err, g.minor)
		}
	}
}
