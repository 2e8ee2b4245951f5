package proxy

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/proxy/internal/cancelkey"
)

// Peers are the proxies behind one balancer, which may bring a cancel request
// to any of them.
type Peers struct {
	Number    int    // of this proxy, 1 to 255; 0 where it has no peers
	Addresses string // NUMBER=HOST:PORT of each, by commas; its own may be among them
	Secret    string // file with at least 32 bytes that all of them share
}

func (c Peers) validate() error {
	var faults []error
	if c.Number < 0 || c.Number > 255 {
		faults = append(faults, errors.New("peer-number: must be from 1 to 255, or 0 for no peers"))
	}
	if given := c.Addresses != ""; given != (c.Number != 0) || given != (c.Secret != "") {
		faults = append(faults, errors.New("peer-number, peer-addresses and peer-secret: are given "+
			"together or not at all"))
	}
	_, err := c.addresses()
	return errors.Join(append(faults, err)...)
}

// addresses are those of the other proxies.
func (c Peers) addresses() (map[byte]string, error) {
	all := make(map[byte]string)
	if c.Addresses == "" {
		return all, nil
	}
	for entry := range strings.SplitSeq(c.Addresses, ",") {
		name, address, _ := strings.Cut(strings.TrimSpace(entry), "=")
		number, err := strconv.ParseUint(name, 10, 8)
		if _, _, bad := net.SplitHostPort(address); err != nil || number == 0 || bad != nil {
			return nil, fmt.Errorf("peer-addresses: %q is not NUMBER=HOST:PORT", entry)
		}
		if _, twice := all[byte(number)]; twice {
			return nil, fmt.Errorf("peer-addresses: %d is given twice", number)
		}
		all[byte(number)] = address
	}
	delete(all, byte(c.Number))
	return all, nil
}

// peers are the other proxies in force, with what is shared with them.
type peers struct {
	cancelkey.Ring
	addresses map[byte]string
	seal      cipher.AEAD // nil where there are none
}

// load reads the secret. alone is the key of a keyring without peers.
func (c Peers) load(alone []byte) (peers, error) {
	if c.Number == 0 {
		return peers{Ring: cancelkey.Ring{Key: alone}}, nil
	}
	secret, err := os.ReadFile(c.Secret)
	if err != nil {
		return peers{}, fmt.Errorf("peer-secret: %w", err)
	}
	if len(secret) < 32 {
		return peers{}, fmt.Errorf("peer-secret: %s holds less than 32 bytes", c.Secret)
	}
	addresses, err := c.addresses()
	if err != nil {
		return peers{}, err
	}
	block, err := aes.NewCipher(derived(secret, "tailor peers: seal"))
	if err != nil {
		return peers{}, err
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		return peers{}, err
	}
	ring := cancelkey.Ring{Number: byte(c.Number), Key: derived(secret, "tailor peers: cancel keys")}
	return peers{Ring: ring, addresses: addresses, seal: seal}, nil
}

// derived is a key of 32 bytes for one purpose.
func derived(secret []byte, purpose string) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(purpose))
	return mac.Sum(nil)
}

// Answers of a proxy to which a peer has passed a cancel request.
const (
	deliveredKey byte = 'D'
	unknownKey   byte = 'U'
)

const (
	// peerPatience bounds how long a peer may take.
	peerPatience = 5 * time.Second
	// peerSkew is how far the clocks of two proxies may be apart.
	peerSkew = 30 * time.Second
)

// pass hands a cancel request to the proxy that issued its key, and says
// whether the session is there. The message is a first packet of its own kind:
// a nonce, and under the shared key (AES-256-GCM, bound to the receiver) the
// time and the cancel key. So nobody on the way can read, change or, thanks to
// time and nonce, repeat it; and since a peer never passes it on, there is no loop.
func (p peers) pass(
	ctx context.Context, r *running, shown string, now time.Time,
) (found bool, err error) {
	number, ok := p.Holder(shown)
	address := p.addresses[number]
	if !ok || address == "" {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, peerPatience)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	nonce := randomBytes(p.seal.NonceSize())
	plain := binary.BigEndian.AppendUint64(nil, uint64(now.UnixNano()))
	body := p.seal.Seal(nonce, nonce, append(plain, shown...), []byte{number})
	var packet []byte
	if r.ProxyProtocol {
		packet = []byte("PROXY UNKNOWN\r\n")
	}
	packet = binary.BigEndian.AppendUint32(packet, uint32(8+len(body)))
	packet = binary.BigEndian.AppendUint32(packet, codePeer)
	if _, err := conn.Write(append(packet, body...)); err != nil {
		return false, err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return false, fmt.Errorf("peer %d does not answer: %w", number, err)
	}
	return answer[0] == deliveredKey, nil
}

// open reads what a peer has passed on.
func (p peers) open(body []byte, now time.Time, seen *replays) (shown string, err error) {
	if p.seal == nil || len(body) < p.seal.NonceSize() {
		return "", errors.New("no peers, or no message")
	}
	nonce, sealed := body[:p.seal.NonceSize()], body[p.seal.NonceSize():]
	plain, err := p.seal.Open(nil, nonce, sealed, []byte{p.Number})
	if err != nil || len(plain) < 8 {
		return "", errors.New("not sealed with the shared secret for this proxy")
	}
	sent := time.Unix(0, int64(binary.BigEndian.Uint64(plain)))
	if age := now.Sub(sent); age > peerSkew || age < -peerSkew {
		return "", errors.New("the clocks of the proxies are too far apart")
	}
	if !seen.first(string(nonce), now) {
		return "", errors.New("the message has come before")
	}
	return string(plain[8:]), nil
}

// replays are the messages of peers that were taken while they are young enough
// to be believed. It is safe for concurrent use.
type replays struct {
	mu    sync.Mutex
	seen  map[string]time.Time
	swept time.Time
}

// first says whether a message, which is authentic, comes for the first time.
func (r *replays) first(nonce string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = make(map[string]time.Time)
	}
	if now.Sub(r.swept) > peerSkew {
		r.swept = now
		for other, at := range r.seen {
			if now.Sub(at) > 2*peerSkew {
				delete(r.seen, other)
			}
		}
	}
	if _, again := r.seen[nonce]; again {
		return false
	}
	r.seen[nonce] = now
	return true
}
