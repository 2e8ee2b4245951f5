package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"testing"
	"testing/iotest"
)

func framed(kind byte, body []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4)), body...)
}

func TestFramesComeOutAsTheyWentIn(t *testing.T) {
	var stream []byte
	bodies := [][]byte{{}, []byte("x"), bytes.Repeat([]byte("row"), 50000), []byte("after a long one")}
	for _, b := range bodies {
		stream = append(stream, framed('D', b)...)
	}
	for name, source := range map[string]io.Reader{
		"at once":        bytes.NewReader(stream),
		"byte by byte":   iotest.OneByteReader(bytes.NewReader(stream)),
		"half by half":   iotest.HalfReader(bytes.NewReader(stream)),
		"with its error": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			in := newFrames(source)
			for i, b := range bodies {
				frame, err := in.next()
				if err != nil {
					t.Fatalf("frame %d: %v", i, err)
				}
				if frame[0] != 'D' || !bytes.Equal(frame[headerBytes:], b) {
					t.Errorf("frame %d differs", i)
				}
			}
			if _, err := in.next(); err != io.EOF {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

func TestLengthsThatLieAreRefusedWithoutMemory(t *testing.T) {
	for _, length := range []uint32{0, 3, 1 << 30, 1<<31 - 1, 1<<32 - 1} {
		in := newFrames(bytes.NewReader(binary.BigEndian.AppendUint32([]byte{'Q'}, length)))
		if _, err := in.next(); err == nil {
			t.Errorf("a length of %d was believed", length)
		}
	}
	in := newFrames(bytes.NewReader(binary.BigEndian.AppendUint32([]byte{'Q'}, 1<<29)))
	if _, err := in.next(); err == nil || len(in.buffer) > bufferBytes {
		t.Errorf("%d bytes were set aside for a promise: %v", len(in.buffer), err)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(framed('Q', []byte("SELECT 1\x00")))
	f.Add([]byte{'Q', 0, 0, 0, 3})
	f.Fuzz(func(t *testing.T, stream []byte) {
		in := newFrames(bytes.NewReader(stream))
		read := 0
		for {
			frame, err := in.next()
			if err != nil {
				break
			}
			read += len(frame)
		}
		if read > len(stream) {
			t.Errorf("%d bytes came out of %d", read, len(stream))
		}
	})
}

func FuzzStartupParameters(f *testing.F) {
	f.Add([]byte("user\x00x\x00database\x00y\x00\x00"))
	f.Add([]byte("\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		parameters, err := startupParameters(body)
		if err == nil && parameters["user"] == "" {
			t.Error("a session without a user")
		}
	})
}
