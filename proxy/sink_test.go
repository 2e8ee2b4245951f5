package proxy

import (
	"bytes"
	"testing"

	"github.com/hiatus-tailor/tailor/proxy/internal/limiter"
)

func TestUntouchedMessagesAreOneWrite(t *testing.T) {
	var stream []byte
	for range 5 {
		stream = append(stream, framed('D', []byte("row"))...)
	}
	writes := &countedWrites{}
	s, _, _ := bareSession(nil, bytes.NewReader(stream))
	s.out.to = writes
	s.expect.add(&pendingReply{kind: 'E'})
	_ = s.answers(t.Context())
	if writes.n != 1 || !bytes.Equal(writes.all, stream) {
		t.Errorf("%d writes of %q", writes.n, writes.all)
	}
}

type countedWrites struct {
	n   int
	all []byte
}

func (w *countedWrites) Write(p []byte) (int, error) {
	w.n++
	w.all = append(w.all, p...)
	return len(p), nil
}

func TestALongRowIsPassedOnInPieces(t *testing.T) {
	row := framed('D', bytes.Repeat([]byte("x"), 10*bufferBytes))
	stream := append(append(framed('T', []byte("\x00\x00")), row...),
		framed('C', []byte("SELECT 1\x00"))...)
	stream = append(stream, framed('Z', []byte("I"))...)
	s, _, toClient := bareSession(nil, bytes.NewReader(stream))
	s.expect.add(&pendingReply{kind: 'Q'})
	_ = s.answers(t.Context())
	if !bytes.Equal(toClient.Bytes(), stream) {
		t.Errorf("%d bytes of %d", toClient.Len(), len(stream))
	}
	if n := len(s.server.frames.buffer); n > bufferBytes {
		t.Errorf("%d bytes were set aside", n)
	}
}

func TestASinkKeepsTheOrderOfWhatPassesAndWhatIsWritten(t *testing.T) {
	var out bytes.Buffer
	w := &sink{to: &out, meter: newProxyMetrics(&Proxy{clientLimiter: limiter.New(1, 0)}).toClients}
	source := []byte("aabbccdd")
	_ = w.pass(source[0:2])
	_ = w.pass(source[2:4])
	_, _ = w.Write([]byte("XX"))
	_ = w.pass(source[6:8]) // not behind the run
	_ = w.pass(source[4:6])
	if err := w.Flush(); err != nil || out.String() != "aabbXXddcc" {
		t.Errorf("%q, %v", out.String(), err)
	}
}
