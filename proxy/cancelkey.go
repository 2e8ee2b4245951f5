package proxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
)

// Lengths of the secret part of a cancel key: what protocol 3.0 has room for,
// and what clients of protocol 3.2 get.
const (
	shortSecret = 4
	longSecret  = 32
)

// keyring makes cancel keys that tell, to who has its key only, which proxy
// holds the session. A key is the number of a process in four bytes and a secret:
//
//	protocol 3.0  3 random bytes, number of the proxy under a mask
//	protocol 3.2  number of the proxy, 15 random bytes, 16 of a MAC over all
//
// To anybody else the short secret is 32 bits like random ones, since the mask
// depends on the key, the process and the random bytes (a pseudorandom
// function): what tells the proxy makes nothing easier to guess.
type keyring struct {
	number byte // of this proxy; 0 where it has no peers
	key    []byte
}

// issue makes a key for a process.
func (k keyring) issue(process uint32, length int) string {
	key := binary.BigEndian.AppendUint32(nil, process)
	if length == longSecret {
		key = append(append(key, k.number), randomBytes(15)...)
		return string(append(key, k.code("cancel 3.2", key)[:16]...))
	}
	key = append(key, randomBytes(3)...)
	return string(append(key, k.number^k.code("cancel 3.0", key)[0]))
}

// holder is the number of the proxy that issued a key. Of what no proxy with
// this keyring issued, a long key has none; a short one has any, as if by chance.
func (k keyring) holder(shown string) (number byte, ok bool) {
	n := len(shown)
	switch n {
	case 4 + shortSecret:
		return shown[n-1] ^ k.code("cancel 3.0", []byte(shown[:n-1]))[0], true
	case 4 + longSecret:
		return shown[4], hmac.Equal([]byte(shown[n-16:]), k.code("cancel 3.2", []byte(shown[:n-16]))[:16])
	}
	return 0, false
}

// code is a pseudorandom function of a purpose and bytes.
func (k keyring) code(purpose string, of []byte) []byte {
	mac := hmac.New(sha256.New, k.key)
	mac.Write([]byte(purpose))
	mac.Write(of)
	return mac.Sum(nil)
}
