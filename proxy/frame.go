package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"sync"
	"unicode/utf8"

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

// maxShort is the longest message of the types that PostgreSQL takes for short, and of
// those before a login has succeeded.
const maxShort = 10000

// maxText is how much of an error or a notice of the server is told.
const maxText = 256 << 10

// ofClient sets what a client may send once it is logged in.
func (f *frames) ofClient() { f.limit, f.streamed, f.long = maxFrame, "d", "QPBFdf" }

// ofServer sets what a server may send once a client is logged in: rows, data of a copy,
// results of function calls and values of parameters are of any length.
func (f *frames) ofServer() { f.streamed, f.cut = "DdVS", "EN" }

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
	// streamed are the types of messages that are never needed as a whole: where
	// one is longer than the buffer, it is handed out in pieces.
	streamed string
	rest     int // bytes to come of the message that is handed out in pieces
	// long are the only types of messages that may be longer than maxShort; empty for all.
	long string
	// cut are the types of messages that are handed out up to maxText.
	cut      string
	skipping int  // bytes to come of a message that was cut
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
	if err := f.skip(); err != nil {
		return nil, err
	}
	if err := f.fill(headerBytes); err != nil {
		return nil, err
	}
	kind, length := f.buffer[f.start], int64(binary.BigEndian.Uint32(f.buffer[f.start+1:]))
	tooLong := length > maxShort && f.long != "" && strings.IndexByte(f.long, kind) < 0
	if length < 4 || length > int64(f.limit) || tooLong {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, "invalid message length")
	}
	total := int(length) + 1
	if total > bufferBytes && strings.IndexByte(f.streamed, kind) >= 0 {
		f.rest = total
		return f.piece()
	}
	if f.brief > 0 && total > f.brief {
		return nil, errWaits
	}
	if total > maxText && strings.IndexByte(f.cut, kind) >= 0 {
		return f.shortened(total)
	}
	if err := f.fill(total); err != nil {
		return nil, err
	}
	frame := f.buffer[f.start : f.start+total]
	f.start += total
	return frame, nil
}

// back makes next return again the message of which it has just returned all, or the first piece.
func (f *frames) back(frame []byte) { f.start, f.rest = f.start-len(frame), 0 }

// shortened returns the beginning of an error or a notice, as a message.
func (f *frames) shortened(total int) ([]byte, error) {
	if err := f.fill(maxText); err != nil {
		return nil, err
	}
	frame := f.buffer[f.start : f.start+maxText]
	f.start += maxText
	f.skipping = total - maxText
	return withEndOfFields(frame), nil
}

// withEndOfFields makes a message of the first fields of one, of which the last may be
// cut (PostgreSQL, chapter "Error and Notice Message Fields").
func withEndOfFields(frame []byte) []byte {
	room := frame[:len(frame)-2] // for the end of a text, and that of the fields
	end := headerBytes
	for end < len(room) && room[end] != 0 {
		if n := bytes.IndexByte(room[end:], 0); n > 0 {
			end += n + 1
			continue
		}
		last := len(room)
		for range utf8.UTFMax { // the last character may be cut
			if room[last-1] < utf8.RuneSelf {
				break
			}
			if last--; last == end+1 || utf8.RuneStart(room[last]) {
				break
			}
		}
		frame[last] = 0
		end = last + 1
	}
	frame[end] = 0
	binary.BigEndian.PutUint32(frame[1:], uint32(end))
	return frame[:end+1]
}

// skip reads over the rest of a message that was cut.
func (f *frames) skip() error {
	for f.skipping > 0 {
		if err := f.fill(1); err != nil {
			return err
		}
		n := min(f.skipping, f.end-f.start)
		f.start += n
		f.skipping -= n
	}
	return nil
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
	if f.rest > 0 {
		return f.end > f.start
	}
	n := f.end - f.start - f.skipping
	return n >= headerBytes && int64(n) > int64(
		binary.BigEndian.Uint32(f.buffer[f.start+f.skipping+1:]))
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
