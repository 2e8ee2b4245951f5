package proxy

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
	return fmt.Sprintf("SCRAM-SHA-256$4096:%s$%s:%s", encode(salt), encode(storedKey[:]), encode(mac(salted, "Server Key"))), clientKey
}

func TestKeysTakenFromAClientsProofLogInElsewhere(t *testing.T) {
	stored, clientKey := storedFor(t, "secret")
	v, err := parseVerifier(stored)
	if err != nil {
		t.Fatal(err)
	}
	// The client's own login.
	client := newSCRAMClient(&scramKeys{clientKey, v})
	exchange, challenge, err := v.begin(client.initial(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	final, err := client.prove(challenge)
	if err != nil {
		t.Fatal(err)
	}
	keys, signature, err := exchange.finish(final)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.verify(signature); err != nil {
		t.Errorf("the server's signature: %v", err)
	}
	if !hmac.Equal(keys.clientKey, clientKey) {
		t.Error("the key taken from the proof is not the client's")
	}
	// The login upstream with the keys that it gave away.
	second := newSCRAMClient(keys)
	exchange, challenge, err = v.begin(second.initial(), false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if final, err = second.prove(challenge); err != nil {
		t.Fatal(err)
	}
	if _, _, err := exchange.finish(final); err != nil {
		t.Errorf("the keys do not log in: %v", err)
	}
}

func TestWrongProofsAreRefused(t *testing.T) {
	stored, _ := storedFor(t, "secret")
	v, err := parseVerifier(stored)
	if err != nil {
		t.Fatal(err)
	}
	_, wrong := storedFor(t, "guess")
	mock := mockVerifier([]byte("x"), "nobody")
	cases := []struct {
		claim  string
		server verifier
		keys   *scramKeys
		spoil  func(string) string
	}{
		{"another password", v, &scramKeys{wrong, v}, nil},
		{"a role that does not exist", mock, &scramKeys{wrong, mock}, nil},
		{"a changed nonce", v, &scramKeys{wrong, v}, func(s string) string { return "c=biws,r=other" + s[8:] }},
		{"no proof", v, &scramKeys{wrong, v}, func(string) string { return "c=biws" }},
		{"nothing", v, &scramKeys{wrong, v}, func(string) string { return "" }},
	}
	for _, c := range cases {
		t.Run(c.claim, func(t *testing.T) {
			client := newSCRAMClient(c.keys)
			exchange, challenge, err := c.server.begin(client.initial(), false, nil)
			if err != nil {
				t.Fatal(err)
			}
			final, err := client.prove(challenge)
			if err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				final = c.spoil(final)
			}
			if keys, _, err := exchange.finish(final); err == nil || keys != nil {
				t.Error("let in")
			}
		})
	}
}

func TestVerifiersOfOtherKindsAreNotUsed(t *testing.T) {
	for _, text := range []string{"", "md5abcdef", "SCRAM-SHA-256$0:c2FsdA==$a:b", "SCRAM-SHA-256$4096:c2FsdA==$YQ==:YQ==", "SCRAM-SHA-256$"} {
		if _, err := parseVerifier(text); err == nil {
			t.Errorf("%q was taken for a verifier", text)
		}
	}
}
