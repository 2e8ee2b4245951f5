package proxy

import (
	"encoding/binary"
	"io"
	"sync/atomic"

	"github.com/hiatus-tailor/tailor/internal/metrics"
)

// sink collects what goes to one side and writes it at once when it is
// flushed. Messages that pass as they are lie side by side in the buffer that
// they were read into, and are written from there without being copied.
type sink struct {
	to        io.Writer
	pending   []byte // of the sink's own
	run       []byte // behind pending; lies in the buffer of a frames
	whole     bool   // it is written when it is flushed only, however much it is
	meter     *metrics.Counter
	questions *atomic.Int64 // counts messages that end with ReadyForQuery; nil for none
}

// maxPending is how much is collected before it is written.
const maxPending = 64 << 10

// pass forwards a message as it is. It must stay as it is until the flush.
func (w *sink) pass(frame []byte) error {
	w.count(frame[0])
	return w.piece(frame)
}

// piece is pass for a further piece of a message.
func (w *sink) piece(frame []byte) error {
	if n := len(w.run); n > 0 {
		if cap(w.run) > n && &w.run[:n+1][n] == &frame[0] { // right behind the run
			w.run = w.run[:n+len(frame)]
			return nil
		}
		if err := w.keepRun(); err != nil {
			return err
		}
	}
	w.run = frame
	return nil
}

// count counts a message that the server answers with ReadyForQuery, among
// others or alone.
func (w *sink) count(kind byte) {
	if w.questions != nil && (kind == 'Q' || kind == 'S' || kind == 'F') {
		w.questions.Add(1)
	}
}

// Write adds whole messages that the caller may change afterwards.
func (w *sink) Write(p []byte) (int, error) {
	if w.questions != nil {
		for rest := p; len(rest) >= headerBytes; {
			w.count(rest[0])
			rest = rest[min(len(rest), 1+int(binary.BigEndian.Uint32(rest[1:]))):]
		}
	}
	if err := w.keepRun(); err != nil {
		return 0, err
	}
	w.pending = append(w.pending, p...)
	return len(p), w.bound()
}

// keepRun moves the run to the sink's own bytes.
func (w *sink) keepRun() error {
	w.pending = append(w.pending, w.run...)
	w.run = nil
	return w.bound()
}

func (w *sink) bound() error {
	if len(w.pending) > maxPending && !w.whole {
		return w.Flush()
	}
	return nil
}

// Flush writes everything. What a receiver that takes no more now has not got is
// kept, and the error is errFull.
func (w *sink) Flush() error {
	all := w.run
	if len(w.pending) > 0 {
		w.pending = append(w.pending, w.run...)
		all = w.pending
	}
	w.run = nil
	if len(all) == 0 {
		return nil
	}
	n, err := w.to.Write(all)
	w.meter.Add(int64(n))
	if err == errFull {
		w.pending = append([]byte(nil), all[n:]...)
		return err
	}
	if cap(w.pending) > smallBytes {
		w.pending = nil
	} else {
		w.pending = w.pending[:0]
	}
	return err
}
