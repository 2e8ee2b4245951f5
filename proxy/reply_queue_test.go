package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// queued makes a queue of kinds, of which the first is a copy that has begun.
func queued(kinds string) *replyQueue {
	q := &replyQueue{}
	for i := range len(kinds) {
		q.add(&pendingReply{kind: kinds[i]})
	}
	q.queue[0].copying = true
	return q
}

func (q *replyQueue) kinds() string {
	var kinds []byte
	for _, e := range q.queue {
		kinds = append(kinds, e.kind)
	}
	return string(kinds)
}

func TestWhatIsExpectedAfterACopyThatFailed(t *testing.T) {
	for _, test := range []struct {
		name, before, code, after string
		clear                     bool
	}{
		{"Sync behind Execute was read by the copy", "ESdcSQ", "22P02", "SQ", true},
		{"Sync behind the end is answered", "EdcSQ", "22P02", "SQ", true},
		{"nothing has come after the data", "ESd", "22P02", "", true},
		{"Sync between data is in doubt", "EdSdcS", "22P02", "", false},
		{"Sync behind the data is in doubt", "ESdS", "22P02", "", false},
		{"Sync between data of the next copy is not", "EdcBEdSdcS", "22P02", "SdcS", true},
		{"before data, an error leaves Sync", "ESQ", "P0001", "SQ", true},
		{"cancelled without data, the copy has read Sync", "ES", "57014", "", true},
		{"given up without data", "EScS", "57014", "S", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := queued(test.before)
			clear := q.fail(test.code)
			if clear != test.clear || clear && q.kinds() != test.after {
				t.Errorf("%q, clear %v; want %q, %v", q.kinds(), clear, test.after, test.clear)
			}
		})
	}
}

func TestWhatIsExpectedAfterACopyThatEndedWell(t *testing.T) {
	for before, want := range map[string]struct {
		after string
		syncs int64
	}{
		"ESdcSQ": {"ESQ", 1}, "EdSdScS": {"ES", 2}, "QdSdcQ": {"QQ", 1}, "QdcdSc": {"QdSc", 0},
	} {
		q := queued(before)
		if syncs := q.copied(); syncs != want.syncs || q.kinds() != want.after {
			t.Errorf("%s: %q, %d of Sync; want %q, %d", before, q.kinds(), syncs, want.after, want.syncs)
		}
	}
}

func TestASyncInASimpleCopyThatFailedIsInDoubt(t *testing.T) {
	for before, clear := range map[string]bool{"QdcS": true, "QdSdc": false, "QS": false, "Qd": true} {
		if got := queued(before).failedCopy(); got != clear {
			t.Errorf("%s: clear %v, want %v", before, got, clear)
		}
	}
}

func TestAnswersThatDoNotFitEndTheSession(t *testing.T) {
	failed := framed('E', []byte("SERROR\x00VERROR\x00C22P02\x00Mthe value x\x00\x00"))
	ended := framed('E', []byte("SFATAL\x00VFATAL\x00C57P01\x00Mterminating\x00\x00"))
	ready, complete := framed('Z', []byte("I")), framed('C', []byte("SELECT 1\x00"))
	for _, test := range []struct {
		name, expected string
		answer         []byte
		fits           bool
	}{
		{"ready for nothing", "", ready, false},
		{"ready for Sync", "S", ready, true},
		{"ready before a query is answered", "Q", ready, false},
		{"ready after a query's error", "Q", append(bytes.Clone(failed), ready...), true},
		{"ready after a query", "Q", append(bytes.Clone(complete), ready...), true},
		{"ready where Parse is next", "PS", ready, false},
		{"Parse answered where Bind is next", "B", framed('1', nil), false},
		{"Parse answered", "P", framed('1', nil), true},
		{"rows where Sync is next", "SQ", framed('D', []byte{0, 0}), false},
		{"rows for nothing", "", framed('D', []byte{0, 0}), false},
		{"columns for Execute", "E", framed('T', []byte{0, 0}), false},
		{"columns for Describe", "D", framed('T', []byte{0, 0}), true},
		{"an end for nothing", "", complete, false},
		{"a notice for nothing", "", framed('N',
			[]byte("SNOTICE\x00VNOTICE\x00C00000\x00Mx\x00\x00")), true},
		{"a notification for nothing", "", framed('A', []byte("\x00\x00\x00\x01a\x00\x00")), true},
		{"an error for nothing", "", failed, false},
		{"the server's end of the session", "", ended, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, _, toClient := bareSession(nil, bytes.NewReader(test.answer))
			s.principal.Reader = true
			for i := range len(test.expected) {
				s.expect.add(&pendingReply{kind: test.expected[i]})
			}
			err := s.answers(context.Background())
			if fits := errors.Is(err, io.EOF); fits != test.fits || !fits && !errors.Is(err, errDesync) {
				t.Errorf("the session ended with %v", err)
			}
			_ = s.out.Flush()
			if bytes.Contains(toClient.Bytes(), []byte("the value x")) && test.expected == "" {
				t.Error("the error's own text came through")
			}
		})
	}
}

func TestMessagesThatEndWithReadyAreCounted(t *testing.T) {
	s, _, _ := bareSession(nil, nil)
	s.up.questions = &s.questions
	_, _ = s.up.Write(append(framed('P', []byte("SSS")), framed('S', nil)...))
	_ = s.up.pass(framed('Q', []byte("x")))
	_ = s.up.pass(framed('d', []byte("x")))
	_ = s.up.piece([]byte("SQF"))
	s.status.Store('I')
	if n := s.questions.Load(); n != 2 || s.owedNothing() {
		t.Errorf("%d are counted, want 2; nothing owed: %v", n, s.owedNothing())
	}
	s.replies.Add(2)
	if !s.owedNothing() {
		t.Error("something is owed when all is answered")
	}
}

func TestWhatWasLentComesBackWiped(t *testing.T) {
	var q replyQueue
	lent := q.blank()
	*lent = pendingReply{
		kind: 'E', statement: "SELECT 1", record: &audit.Record{},
		fingerprint: &fingerprint{}, rows: 7, prelude: []byte("x"), prepares: &prepared{}, lent: true,
	}
	q.add(lent)
	if e := q.blank(); e == lent {
		t.Fatal("what is still to be answered is lent again")
	}
	q.complete()
	again := q.blank()
	if again != lent || !reflect.DeepEqual(*again, pendingReply{}) {
		t.Errorf("%+v, want the one that was answered, and nothing of it", again)
	}
	if e := q.blank(); e == lent {
		t.Error("one is lent twice")
	}
}

func TestWhatIsNotLentIsNotUsedAgain(t *testing.T) {
	var q replyQueue
	for name, e := range map[string]*pendingReply{"another's": {kind: 'E'}, "shared": bare['S']} {
		q.add(e)
		q.complete()
		if q.blank() == e {
			t.Errorf("%s is lent", name)
		}
	}
	failed, dropped := &pendingReply{kind: 'P', lent: true}, &pendingReply{kind: 'B', lent: true}
	q.add(failed)
	q.add(dropped)
	q.fail("42601")
	q.add(dropped)
	for range 3 {
		if e := q.blank(); e == failed || e == dropped {
			t.Errorf("%q is lent after an error, which its record may still be about", e.kind)
		}
	}
}

func TestAQueueStartsWhereItWasEmptied(t *testing.T) {
	var q replyQueue
	for n := range 100 {
		for range 1 + n%20 { // more than there is room for, too
			q.add(bare['D'])
		}
		for range 1 + n%20 {
			if q.head() != bare['D'] {
				t.Fatal("an expectation is lost")
			}
			q.complete()
		}
		if q.head() != nil {
			t.Fatal("an expectation is left")
		}
	}
}
