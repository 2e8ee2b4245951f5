package proxy

import (
	"encoding/binary"
	"io"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// bufferBytes is the size of the buffer of each direction.
const bufferBytes = 64 << 10

// maxFrame is the longest message that PostgreSQL itself accepts.
const maxFrame = 1<<30 - 1

// headerBytes are a message's type and length (PostgreSQL, chapter "Message
// Formats").
const headerBytes = 5

// frames cuts a stream into messages. The buffer grows as bytes of a long
// message arrive, never by what its length field promises.
type frames struct {
	source     io.Reader
	buffer     []byte
	start, end int // unread bytes
}

func newFrames(source io.Reader) *frames {
	return &frames{source: source, buffer: make([]byte, bufferBytes)}
}

// next returns the next message, header included. It stays valid until the
// following call.
func (f *frames) next() ([]byte, error) {
	if err := f.fill(headerBytes); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(f.buffer[f.start+1:]))
	if length < 4 || length > maxFrame {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "invalid message length")
	}
	total := int(length) + 1
	if err := f.fill(total); err != nil {
		return nil, err
	}
	frame := f.buffer[f.start : f.start+total]
	f.start += total
	return frame, nil
}

// buffered says whether a whole message is at hand without reading.
func (f *frames) buffered() bool {
	n := f.end - f.start
	return n >= headerBytes && int64(n) > int64(binary.BigEndian.Uint32(f.buffer[f.start+1:]))
}

// fill reads until n bytes are unread in the buffer.
func (f *frames) fill(n int) error {
	if f.start == f.end {
		f.start, f.end = 0, 0
		if len(f.buffer) > bufferBytes && n <= bufferBytes {
			f.buffer = make([]byte, bufferBytes) // a long message has gone by
		}
	}
	for f.end-f.start < n {
		if f.end == len(f.buffer) {
			f.makeRoom(n)
		}
		read, err := f.source.Read(f.buffer[f.end:])
		f.end += read
		if err != nil && f.end-f.start < n {
			if err == io.EOF && f.end > f.start {
				return io.ErrUnexpectedEOF
			}
			return err
		}
	}
	return nil
}

// makeRoom moves unread bytes to the front, and doubles a full buffer.
func (f *frames) makeRoom(n int) {
	if f.start == 0 {
		grown := make([]byte, min(2*len(f.buffer), max(n, len(f.buffer)+1)))
		copy(grown, f.buffer[:f.end])
		f.buffer = grown
		return
	}
	copy(f.buffer, f.buffer[f.start:f.end])
	f.start, f.end = 0, f.end-f.start
}
