package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// chained is a line of the log.
type chained interface{ chained() *link }

// head is the last line of a chain. The zero head is that of no chain.
type head struct {
	Log      string
	Sequence int64
	Hash     string
}

// newChain starts a chain of its own.
func newChain() head { return head{Log: newID()} }

// emptyHash is how a line shows its hash while the hash is computed. It comes
// before every text of a client, and JSON would escape the quotes in one.
var emptyHash = []byte(`"hash":""`)

// seal makes a line the next of the chain: without its end, with its hash, the
// SHA-256 of itself with an empty one.
func (h *head) seal(c chained) ([]byte, error) {
	l := c.chained()
	l.Log, l.Sequence, l.PreviousHash, l.Hash = h.Log, h.Sequence+1, h.Hash, ""
	line, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode a record: %w", err)
	}
	sum := sha256.Sum256(line)
	l.Hash = hex.EncodeToString(sum[:])
	h.Sequence, h.Hash = l.Sequence, l.Hash
	return bytes.Replace(line, emptyHash, []byte(`"hash":"`+l.Hash+`"`), 1), nil
}

// errAltered is about a line whose hash is not its own.
var errAltered = errors.New("the record was altered: its hash is not that of its bytes")

// unseal reads the place of a line in its chain, and checks its hash.
func unseal(line []byte) (*link, error) {
	var l link
	if err := json.Unmarshal(line, &l); err != nil {
		return nil, fmt.Errorf("not a record: %w", err)
	}
	if l.Hash == "" {
		return &l, errAltered
	}
	sum := sha256.Sum256(bytes.Replace(line, []byte(`"hash":"`+l.Hash+`"`), emptyHash, 1))
	if hex.EncodeToString(sum[:]) != l.Hash {
		return &l, errAltered
	}
	return &l, nil
}
