package proxy

import (
	"encoding/binary"
	"io"
	"sync"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Sizes of the buffer of each direction: the small one is a session's own, the
// large one is borrowed while much arrives.
const (
	smallBytes  = 2 << 10
	bufferBytes = 64 << 10
)

// maxFrame is the longest message that PostgreSQL itself accepts.
const maxFrame = 1<<30 - 1

// headerBytes are a message's type and length (PostgreSQL, chapter "Message
// Formats").
const headerBytes = 5

// frames cuts a stream into messages. The buffer grows as bytes of a long
// message arrive, never by what its length field promises.
type frames struct {
	source     io.Reader
	limit      int    // of a message's length
	brief      int    // messages that would be longer in memory fail with errWaits, unread; 0 for none
	small      []byte // the buffer of a session at rest
	buffer     []byte
	start, end int // unread bytes
	// streamed is the type of messages that are never needed as a whole: where
	// one is longer than the buffer, it is handed out in pieces.
	streamed byte
	rest     int  // bytes to come of the message that is handed out in pieces
	drained  bool // the last read left room: there was no more to read
}

func newFrames(source io.Reader) *frames {
	own := small.Get().(*[smallBytes]byte)[:]
	return &frames{source: source, limit: maxFrame, small: own, buffer: own}
}

// large are buffers that sessions borrow, small are their own until they end.
var (
	large = sync.Pool{New: func() any { return new([bufferBytes]byte) }}
	small = sync.Pool{New: func() any { return new([smallBytes]byte) }}
)

// release gives the buffers back. Nothing that was read is to be looked at any
// more, and nothing to be read.
func (f *frames) release() {
	f.start, f.end = 0, 0
	f.settle()
	small.Put((*[smallBytes]byte)(f.small))
	f.small, f.buffer = nil, nil
}

// next returns the next message, header included. It stays valid until the
// following call. Where streamed is set, what follows a piece of a message is
// its next piece (see inside).
func (f *frames) next() ([]byte, error) {
	if f.rest > 0 {
		return f.piece()
	}
	if err := f.fill(headerBytes); err != nil {
		return nil, err
	}
	length := int64(binary.BigEndian.Uint32(f.buffer[f.start+1:]))
	if length < 4 || length > int64(f.limit) {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "invalid message length")
	}
	total := int(length) + 1
	if total > bufferBytes && f.streamed != 0 && f.buffer[f.start] == f.streamed {
		f.rest = total
		return f.piece()
	}
	if f.brief > 0 && total > f.brief {
		return nil, errWaits
	}
	if err := f.fill(total); err != nil {
		return nil, err
	}
	frame := f.buffer[f.start : f.start+total]
	f.start += total
	return frame, nil
}

// unread says that something is at hand without reading, be it less than a message.
func (f *frames) unread() bool { return f.start != f.end }

// inside says that the next call of next returns a further piece of a message.
func (f *frames) inside() bool { return f.rest > 0 }

// piece returns what is at hand of a message in pieces.
func (f *frames) piece() ([]byte, error) {
	if err := f.fill(1); err != nil {
		return nil, err
	}
	n := min(f.rest, f.end-f.start)
	piece := f.buffer[f.start : f.start+n]
	f.start += n
	f.rest -= n
	return piece, nil
}

// buffered says whether a whole message, or a piece of one, is at hand without
// reading.
func (f *frames) buffered() bool {
	n := f.end - f.start
	if f.rest > 0 {
		return n > 0
	}
	return n >= headerBytes && int64(n) > int64(binary.BigEndian.Uint32(f.buffer[f.start+1:]))
}

// fill reads until n bytes are unread in the buffer.
func (f *frames) fill(n int) error {
	if f.start == f.end {
		f.start, f.end = 0, 0
	}
	for f.end-f.start < n {
		if f.end == len(f.buffer) {
			f.makeRoom(n)
		}
		read, err := f.source.Read(f.buffer[f.end:])
		f.end += read
		f.drained = f.end < len(f.buffer)
		if err != nil && f.end-f.start < n {
			if err == io.EOF && (f.end > f.start || f.rest > 0) {
				return io.ErrUnexpectedEOF
			}
			return err
		}
		if f.end == smallBytes && len(f.buffer) == smallBytes {
			f.replace(large.Get().(*[bufferBytes]byte)[:]) // more is to be expected
		}
	}
	return nil
}

// makeRoom moves unread bytes to the front, and doubles a full buffer.
func (f *frames) makeRoom(n int) {
	if f.start == 0 {
		f.replace(make([]byte, min(2*len(f.buffer), max(n, len(f.buffer)+1))))
		return
	}
	copy(f.buffer, f.buffer[f.start:f.end])
	f.start, f.end = 0, f.end-f.start
}

// settle gives a large buffer back where nothing is unread. The caller expects
// to wait for the next message.
func (f *frames) settle() {
	if len(f.buffer) > smallBytes && f.start == f.end {
		f.replace(f.small)
	}
}

// replace moves unread bytes to another buffer.
func (f *frames) replace(buffer []byte) {
	unread := copy(buffer, f.buffer[f.start:f.end])
	if len(f.buffer) == bufferBytes {
		large.Put((*[bufferBytes]byte)(f.buffer))
	}
	f.buffer, f.start, f.end = buffer, 0, unread
}
