// Package cancelkey makes the keys by which PostgreSQL's clients cancel statements, so that of
// several proxies each can tell which of them holds the session.
package cancelkey

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Lengths of the secret part of a cancel key, in bytes: what protocol 3.0 has room for,
// and what clients of protocol 3.2 get.
const (
	Short = 4
	Long  = 32
)

// Ring makes cancel keys that tell, to who has its key only, which proxy
// holds the session. A key is the number of a process in four bytes and a secret:
//
//	protocol 3.0  3 random bytes, number of the proxy under a mask
//	protocol 3.2  number of the proxy, 15 random bytes, 16 of a MAC over all
//
// To anybody else the short secret is 32 bits like random ones, since the mask
// depends on the key, the process and the random bytes (a pseudorandom
// function): what tells the proxy makes nothing easier to guess.
type Ring struct {
	Number byte // of this proxy; 0 where it has no peers
	Key    []byte
}

// Issue makes a key for a process.
func (k Ring) Issue(process uint32, length int) string {
	key := binary.BigEndian.AppendUint32(nil, process)
	if length == Long {
		key = appendRandom(append(key, k.Number), 15)
		return string(append(key, k.code("cancel 3.2", key)[:16]...))
	}
	key = appendRandom(key, 3)
	return string(append(key, k.Number^k.code("cancel 3.0", key)[0]))
}

// Holder is the number of the proxy that issued a key. Of what no proxy with
// this keyring issued, a long key has none; a short one has any, as if by chance.
func (k Ring) Holder(shown string) (number byte, ok bool) {
	n := len(shown)
	switch n {
	case 4 + Short:
		return shown[n-1] ^ k.code("cancel 3.0", []byte(shown[:n-1]))[0], true
	case 4 + Long:
		return shown[4], hmac.Equal([]byte(shown[n-16:]), k.code("cancel 3.2", []byte(shown[:n-16]))[:16])
	}
	return 0, false
}

// code is a pseudorandom function of a purpose and bytes.
func (k Ring) code(purpose string, of []byte) []byte {
	mac := hmac.New(sha256.New, k.Key)
	mac.Write([]byte(purpose))
	mac.Write(of)
	return mac.Sum(nil)
}

func appendRandom(to []byte, n int) []byte {
	random := make([]byte, n)
	_, _ = rand.Read(random) // never fails: crypto/rand ends the process instead
	return append(to, random...)
}
