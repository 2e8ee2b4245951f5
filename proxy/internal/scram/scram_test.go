package scram

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"testing"
)

// storedFor is what PostgreSQL stores of a password (RFC 5803).
func storedFor(t *testing.T, password string) (stored string, clientKey []byte) {
	t.Helper()
	salt := []byte("0123456789abcdef")
	salted, err := pbkdf2.Key(sha256.New, password, salt, 4096, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	clientKey = mac(salted, "Client Key")
	storedKey := sha256.Sum256(clientKey)
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$4096:%s$%s:%s", encode(salt), encode(storedKey[:]),
		encode(mac(salted, "Server Key"))), clientKey
}

func TestKeysTakenFromAClientsProofLogInElsewhere(t *testing.T) {
	stored, clientKey := storedFor(t, "secret")
	v, err := ParseVerifier(stored)
	if err != nil {
		t.Fatal(err)
	}
	// The client's own login.
	client := NewClient(&Keys{clientKey, v})
	exchange, challenge, err := v.Begin(client.Initial(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	final, err := client.Prove(challenge)
	if err != nil {
		t.Fatal(err)
	}
	keys, signature, err := exchange.Finish(final)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Verify(signature); err != nil {
		t.Errorf("the server's signature: %v", err)
	}
	if !hmac.Equal(keys.clientKey, clientKey) {
		t.Error("the key taken from the proof is not the client's")
	}
	// The login upstream with the keys that it gave away.
	second := NewClient(keys)
	exchange, challenge, err = v.Begin(second.Initial(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if final, err = second.Prove(challenge); err != nil {
		t.Fatal(err)
	}
	if _, _, err := exchange.Finish(final); err != nil {
		t.Errorf("the keys do not log in: %v", err)
	}
}

func TestWrongProofsAreRefused(t *testing.T) {
	stored, _ := storedFor(t, "secret")
	v, err := ParseVerifier(stored)
	if err != nil {
		t.Fatal(err)
	}
	_, wrong := storedFor(t, "guess")
	mock := MockVerifier([]byte("x"), "nobody")
	cases := []struct {
		claim  string
		server Verifier
		keys   *Keys
		spoil  func(string) string
	}{
		{"another password", v, &Keys{wrong, v}, nil},
		{"a role that does not exist", mock, &Keys{wrong, mock}, nil},
		{"a changed nonce", v, &Keys{wrong, v}, func(s string) string {
			return "c=biws,r=other" + s[8:]
		}},
		{"no proof", v, &Keys{wrong, v}, func(string) string { return "c=biws" }},
		{"nothing", v, &Keys{wrong, v}, func(string) string { return "" }},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			client := NewClient(c.keys)
			exchange, challenge, err := c.server.Begin(client.Initial(), false, nil)
			if err != nil {
				t.Fatal(err)
			}
			final, err := client.Prove(challenge)
			if err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				final = c.spoil(final)
			}
			if keys, _, err := exchange.Finish(final); err == nil || keys != nil {
				t.Error("let in")
			}
		})
	}
}

func TestVerifiersOfOtherKindsAreNotUsed(t *testing.T) {
	for _, text := range []string{
		"", "md5abcdef", "SCRAM-SHA-256$0:c2FsdA==$a:b",
		"SCRAM-SHA-256$4096:c2FsdA==$YQ==:YQ==", "SCRAM-SHA-256$",
	} {
		if _, err := ParseVerifier(text); err == nil {
			t.Errorf("%q was taken for a verifier", text)
		}
	}
}
