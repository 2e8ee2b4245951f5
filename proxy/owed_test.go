package proxy

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	decode "github.com/jackc/pgx/v5/pgproto3"
)

func TestWhatIsOwedIsBoundedAndEased(t *testing.T) {
	q := &replyQueue{owed: owed{eased: make(chan struct{}, 1)}}
	n := 0
	for ; !q.owed.crowded.Load(); n++ {
		q.add(&pendingReply{kind: 'Q', statement: strings.Repeat("x", 1000)})
	}
	if n < 100 || n > maxOwed/1000 {
		t.Errorf("%d statements of 1000 bytes make a queue full", n)
	}
	ended := make(chan error, 1)
	go func() { ended <- q.ease(t.Context()) }()
	for range n/2 + 1 {
		q.complete()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	q.drain()
	if q.owed.bytes != 0 {
		t.Errorf("%d bytes are owed of an empty queue", q.owed.bytes)
	}
}

func TestWhoWaitsForRoomEndsWithTheSession(t *testing.T) {
	q := &replyQueue{owed: owed{eased: make(chan struct{}, 1)}}
	for !q.owed.crowded.Load() {
		q.add(&pendingReply{kind: 'Q'})
	}
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errShutdown)
	if err := q.ease(ctx); err != errShutdown {
		t.Errorf("%v, want why the session ended", err)
	}
}

func TestSyncsWithinACopyDoNotWaitForEver(t *testing.T) {
	q := &replyQueue{owed: owed{eased: make(chan struct{}, 1)}}
	copied := &pendingReply{kind: 'Q'}
	q.add(copied)
	for !q.owed.crowded.Load() {
		q.add(bare['S'])
		q.add(bare['d'])
	}
	ended := make(chan error, 1)
	go func() { ended <- q.ease(t.Context()) }()
	q.copies(copied)
	if err := <-ended; !errors.Is(err, errSyncsInCopy) {
		t.Error(err)
	}
}

func TestMarksOutsideOfACopyAreNotKept(t *testing.T) {
	q := &replyQueue{}
	mark := func() {
		for range 1000 {
			q.add(bare['d'])
			q.add(bare['c'])
		}
	}
	mark()
	if len(q.queue) != 0 {
		t.Errorf("%d marks without a statement", len(q.queue))
	}
	q.add(&pendingReply{kind: 'Q'})
	mark()
	q.complete()
	if len(q.queue) != 0 || q.owed.bytes != 0 {
		t.Errorf("%d marks, %d bytes are left of a statement", len(q.queue), q.owed.bytes)
	}
}

// TestACutErrorIsAMessage cuts errors at any place.
func TestACutErrorIsAMessage(t *testing.T) {
	message := "a€é" + strings.Repeat("€", 20)
	whole, err := (&decode.ErrorResponse{
		Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: "P0001",
		Message: message, Detail: "détail",
	}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	for n := headerBytes + 2; n < len(whole); n++ {
		cut := withEndOfFields(bytes.Clone(whole[:n]))
		in := newFrames(bytes.NewReader(cut))
		in.ofServer()
		frame, err := in.next()
		if err != nil || len(frame) != len(cut) || in.unread() {
			t.Fatalf("at %d: %q: %v", n, cut, err)
		}
		var e decode.ErrorResponse
		if err := e.Decode(frame[headerBytes:]); err != nil {
			t.Errorf("at %d: %v", n, err)
		}
		valid := utf8.ValidString(e.Message+e.Detail) && strings.HasPrefix(message, e.Message)
		if frame[len(frame)-1] != 0 || !valid {
			t.Errorf("at %d: %q", n, frame)
		}
	}
}

func TestWhatIsCutIsReadOver(t *testing.T) {
	long := framed('E', []byte("SERROR\x00CP0001\x00M"+strings.Repeat("x", 2*maxText)+"\x00\x00"))
	next := framed('Z', []byte("I"))
	for name, source := range map[string][][]byte{
		"an error": {long, next}, "two": {long, long, next},
	} {
		in := newFrames(bytes.NewReader(bytes.Join(source, nil)))
		in.ofServer()
		for {
			frame, err := in.next()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(frame) > maxText {
				t.Errorf("%s: %d bytes", name, len(frame))
			}
			if frame[0] == 'Z' {
				break
			}
		}
	}
}

func TestMessagesOfShortKindsAreShort(t *testing.T) {
	for _, kind := range []byte("QPBdFEDCSHz") {
		in := newFrames(bytes.NewReader(framed(kind, make([]byte, maxShort))))
		in.ofClient()
		if _, err := in.next(); (err == nil) != bytes.ContainsRune([]byte("QPBdF"), rune(kind)) {
			t.Errorf("%c: %v", kind, err)
		}
	}
}

func TestIdentifiersAreCutAtACharacter(t *testing.T) {
	for letter, want := range map[string]int{"n": 63, "é": 62, "€": 63} {
		name := strings.Repeat(letter, 80)
		if got := cutIdentifier(name); len(got) != want || !utf8.ValidString(got) {
			t.Errorf("%q has %d bytes, want %d", got, len(got), want)
		}
	}
}

func TestATallyKeepsFewTexts(t *testing.T) {
	now := time.Now()
	tally := &statementStats{seed: maphash.MakeSeed()}
	for i := range maxShapes {
		text := "SELECT /*" + strings.Repeat("x", 1<<15) + strings.Repeat("y", i) + "*/ 1"
		l := &statementInfo{text: text}
		for range recordsOfAShape + 1 {
			tally.counts(l, now)
		}
	}
	held := 0
	for _, s := range tally.shapes {
		held += len(s.statement)
	}
	if held > maxTallied || held != tally.bytes {
		t.Errorf("%d bytes are kept, %d counted, at most %d", held, tally.bytes, maxTallied)
	}
	for _, s := range tally.shapes {
		s.open = 0
	}
	tally.take(now, nil)
	if tally.bytes != 0 {
		t.Errorf("%d bytes are counted of nothing", tally.bytes)
	}
}
