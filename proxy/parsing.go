package proxy

import (
	"bytes"
	"encoding/binary"
)

// parsing is a Parse message (PostgreSQL, chapter "Message Formats"). Name and
// query lie in the buffer that it was read into.
type parsing struct {
	name, query []byte
	types       []uint32 // of parameters; nil for none
}

// parsingOf reads the body of a message. It takes what pgx's decoder takes, and
// copies nothing but the types.
func parsingOf(body []byte) (p parsing, ok bool) {
	name, rest, named := bytes.Cut(body, zero)
	query, rest, ended := bytes.Cut(rest, zero)
	if !named || !ended || len(rest) < 2 {
		return parsing{}, false
	}
	n := int(binary.BigEndian.Uint16(rest))
	if rest = rest[2:]; len(rest) < 4*n {
		return parsing{}, false
	}
	p = parsing{name: name, query: query}
	for i := range n {
		p.types = append(p.types, binary.BigEndian.Uint32(rest[4*i:]))
	}
	return p, true
}
