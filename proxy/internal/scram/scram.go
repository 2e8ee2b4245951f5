// Package scram has both halves of SCRAM-SHA-256 (RFC 5802, RFC 7677): towards clients from the
// verifier that PostgreSQL stores, and towards PostgreSQL with the key that the client's proof
// gave away, so that a proxy logs in without a password.
package scram

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// The mechanisms that are offered (RFC 7677); the second binds the exchange to
// the TLS connection between client and proxy.
const (
	Mechanism     = "SCRAM-SHA-256"
	MechanismPlus = "SCRAM-SHA-256-PLUS"
)

// Verifier is what PostgreSQL stores of a password: enough to check a proof,
// not enough to make one.
type Verifier struct {
	iterations           int
	salt                 string // base64
	storedKey, serverKey []byte
	// mock marks the verifier of a role that cannot log in. The exchange looks
	// the same and fails at its end, so that nobody learns which roles exist.
	mock bool
}

// ParseVerifier reads SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func ParseVerifier(text string) (Verifier, error) {
	scheme, rest, _ := strings.Cut(text, "$")
	parameters, keys, _ := strings.Cut(rest, "$")
	iterations, salt, _ := strings.Cut(parameters, ":")
	stored, server, _ := strings.Cut(keys, ":")
	v := Verifier{salt: salt}
	var err error
	if v.iterations, err = strconv.Atoi(iterations); err != nil || scheme != Mechanism ||
		v.iterations < 1 {
		return Verifier{}, errors.New("not a SCRAM-SHA-256 verifier")
	}
	if v.storedKey, err = base64.StdEncoding.DecodeString(stored); err != nil ||
		len(v.storedKey) != sha256.Size {
		return Verifier{}, errors.New("malformed stored key")
	}
	if v.serverKey, err = base64.StdEncoding.DecodeString(server); err != nil ||
		len(v.serverKey) != sha256.Size {
		return Verifier{}, errors.New("malformed server key")
	}
	return v, nil
}

// MockVerifier is the same for the same role as long as secret is.
func MockVerifier(secret []byte, principal string) Verifier {
	salt := mac(secret, principal)[:16]
	return Verifier{
		iterations: 4096, salt: base64.StdEncoding.EncodeToString(salt),
		storedKey: mac(secret, "stored "+principal), serverKey: mac(secret, "server "+principal),
		mock: true,
	}
}

// Keys log in as a role without its password, for as long as the role's
// verifier stays the same.
type Keys struct {
	clientKey []byte
	verifier  Verifier
}

// Exchange is the server's half of one exchange (RFC 5802 §5).
type Exchange struct {
	verifier    Verifier
	nonce       string
	clientFirst string // without its GS2 header
	header      string // the GS2 header and the channel binding
	serverFirst string
}

func wrongPassword() error {
	return sqlstate.New(sqlstate.InvalidPassword, "password authentication failed")
}

func malformedSCRAM() error {
	return sqlstate.New(sqlstate.ProtocolViolation, "malformed SCRAM message")
}

// Begin answers the client's first message with nonce, salt and iterations.
// plus says that the client binds the exchange to the channel, binding is what
// it has to bind to; nil where there is nothing.
func (v Verifier) Begin(clientFirst string, plus bool, binding []byte) (*Exchange, string, error) {
	// gs2-header: "n,," no binding; "y,," the client could but believes that
	// the server cannot; "p=…,," it does. No authorization name in any.
	header := "n,,"
	switch {
	case plus:
		header = "p=tls-server-end-point,,"
	case strings.HasPrefix(clientFirst, "y,,"):
		if binding != nil { // somebody took the offer out
			return nil, "", sqlstate.New(sqlstate.InvalidAuthorization,
				"the offer of channel binding was removed on its way")
		}
		header = "y,,"
	}
	rest, ok := strings.CutPrefix(clientFirst, header)
	if !ok {
		return nil, "", malformedSCRAM()
	}
	e := &Exchange{verifier: v, header: header, clientFirst: rest}
	if plus {
		e.header += string(binding)
	}
	_, nonce, ok := strings.Cut(e.clientFirst, ",r=")
	if !ok || nonce == "" || strings.Contains(nonce, ",") {
		return nil, "", malformedSCRAM()
	}
	e.nonce = nonce + newNonce()
	e.serverFirst = fmt.Sprintf("r=%s,s=%s,i=%d", e.nonce, v.salt, v.iterations)
	return e, e.serverFirst, nil
}

// Finish checks the client's proof, and returns its key with the server's signature.
func (e *Exchange) Finish(clientFinal string) (*Keys, string, error) {
	unproven, proofText, ok := strings.Cut(clientFinal, ",p=")
	if !ok {
		return nil, "", malformedSCRAM()
	}
	proof, err := base64.StdEncoding.DecodeString(proofText)
	if err != nil || len(proof) != sha256.Size ||
		unproven != "c="+base64.StdEncoding.EncodeToString([]byte(e.header))+",r="+e.nonce {
		return nil, "", malformedSCRAM()
	}
	message := e.clientFirst + "," + e.serverFirst + "," + unproven
	clientKey := make([]byte, sha256.Size)
	subtle.XORBytes(clientKey, proof, mac(e.verifier.storedKey, message))
	stored := sha256.Sum256(clientKey)
	if subtle.ConstantTimeCompare(stored[:], e.verifier.storedKey) != 1 || e.verifier.mock {
		return nil, "", wrongPassword()
	}
	signature := base64.StdEncoding.EncodeToString(mac(e.verifier.serverKey, message))
	return &Keys{clientKey, e.verifier}, "v=" + signature, nil
}

// Client is the client's half, towards PostgreSQL, from keys instead of a
// password.
type Client struct {
	keys    *Keys
	first   string
	nonce   string
	message string
}

// NewClient begins a login with keys.
func NewClient(keys *Keys) *Client {
	nonce := newNonce()
	return &Client{keys: keys, nonce: nonce, first: "n=,r=" + nonce}
}

// Initial is the first message.
func (c *Client) Initial() string { return "n,," + c.first }

// Prove answers the server's challenge. It fails where the role's verifier is
// no longer the one that the keys belong to.
func (c *Client) Prove(serverFirst string) (string, error) {
	fields := strings.SplitN(serverFirst, ",", 3)
	v := c.keys.verifier
	if len(fields) != 3 || !strings.HasPrefix(fields[0], "r="+c.nonce) ||
		len(fields[0]) <= len(c.nonce)+2 {
		return "", errors.New("malformed challenge")
	}
	if fields[1] != "s="+v.salt || fields[2] != "i="+strconv.Itoa(v.iterations) {
		return "", wrongPassword()
	}
	unproven := "c=biws," + fields[0]
	c.message = c.first + "," + serverFirst + "," + unproven
	proof := make([]byte, sha256.Size)
	subtle.XORBytes(proof, c.keys.clientKey, mac(v.storedKey, c.message))
	return unproven + ",p=" + base64.StdEncoding.EncodeToString(proof), nil
}

// Verify checks that the server knows the verifier too.
func (c *Client) Verify(serverFinal string) error {
	want := "v=" + base64.StdEncoding.EncodeToString(mac(c.keys.verifier.serverKey, c.message))
	if subtle.ConstantTimeCompare([]byte(serverFinal), []byte(want)) != 1 {
		return errors.New("the server's signature is wrong")
	}
	return nil
}

func mac(key []byte, message string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(message))
	return m.Sum(nil)
}

func newNonce() string {
	var b [18]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	return base64.StdEncoding.EncodeToString(b[:])
}
