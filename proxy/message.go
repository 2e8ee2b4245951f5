package proxy

import (
	"io"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// message is what pgproto3 encodes.
type message interface {
	Encode(dst []byte) ([]byte, error)
}

// send writes messages in one go.
func send(w io.Writer, messages ...message) error {
	frames, err := encode(messages...)
	if err != nil {
		return err
	}
	_, err = w.Write(frames)
	return err
}

// encode fails on a message that is longer than the protocol allows.
func encode(messages ...message) ([]byte, error) {
	var frames []byte
	for _, m := range messages {
		var err error
		if frames, err = m.Encode(frames); err != nil {
			return nil, sqlstate.New(sqlstate.ProgramLimitExceeded, "a message became too long").Wrap(err)
		}
	}
	return frames, nil
}
