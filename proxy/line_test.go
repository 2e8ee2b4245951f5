package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
)

// TestWhoComesLaterIsAnsweredLater has some ask for the state while it is on its
// way: they share the next question.
func TestWhoComesLaterIsAnsweredLater(t *testing.T) {
	i, far := connected(t)
	ann, bob := i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob")
	wantQuestions(t, far, "principal ann", "principal bob")
	_, _ = far.Write(append(whole(t, "a1", "s1"), whole(t, "b1", "s1")...))
	before, bobBefore := <-ann, <-bob

	first := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "state")
	later := []chan *catalog.Principal{i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob"), i.asks(t, t.Context(), "ann")}
	_, _ = far.Write(says(t, "s1", "6"))
	if p := <-first; p != before {
		t.Errorf("ann is %+v", p)
	}
	wantQuestions(t, far, "state")
	for _, answer := range later {
		select {
		case p := <-answer:
			t.Fatalf("%+v answers a question that came after it", p)
		default:
		}
	}
	_, _ = far.Write(says(t, "s1", "6"))
	for n, want := range []*catalog.Principal{before, bobBefore, before} {
		if p := <-later[n]; p != want {
			t.Errorf("the answer is %+v, want %+v", p, want)
		}
	}

	changed := []chan *catalog.Principal{i.asks(t, t.Context(), "ann")}
	wantQuestions(t, far, "state")
	for _, name := range []string{"bob", "ann", "bob", "bob"} {
		changed = append(changed, i.asks(t, t.Context(), name))
	}
	_, _ = far.Write(says(t, "s2", "6"))
	wantQuestions(t, far, "principal ann", "state")
	_, _ = far.Write(append(whole(t, "a2", "s2"), says(t, "s2", "6")...))
	wantQuestions(t, far, "principal bob") // one for all
	_, _ = far.Write(whole(t, "b2", "s2"))
	for n, want := range []string{"a2", "b2", "a2", "b2", "b2"} {
		if p := <-changed[n]; p.Verifier != want {
			t.Errorf("the answer is %+v, want %s", p, want)
		}
	}
	last := i.asks(t, t.Context(), "bob")
	wantQuestions(t, far, "state") // and nothing else before it
	_, _ = far.Write(says(t, "s2", "6"))
	if p := <-last; p.Verifier != "b2" {
		t.Errorf("the answer is %+v", p)
	}
}

// TestAnAnswerBeforeItsQuestionIsNone has the catalog answer what it will be asked.
func TestAnAnswerBeforeItsQuestionIsNone(t *testing.T) {
	i, far := connected(t)
	known := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "principal ann")
	_, _ = far.Write(whole(t, "v", "s"))
	<-known
	first, later := i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "state")
	_, _ = far.Write(append(says(t, "s", "6"), says(t, "s", "6")...))
	if p := <-first; p == nil || p.Verifier != "v" {
		t.Errorf("ann is %+v", p)
	}
	if p := <-later; p != nil {
		t.Errorf("an answer from before the question is %+v", p)
	}
}

// TestAnInquirerGivesUpWhatItDoesNotUnderstand has the catalog say what it should
// not, while two wait and after they were answered.
func TestAnInquirerGivesUpWhatItDoesNotUnderstand(t *testing.T) {
	good := whole(t, "v", "s")
	ended := bytes.Index(good, framed('C', []byte("SELECT 1\x00"))) // of its row
	null, err := (&pgproto3.DataRow{Values: [][]byte{nil, {'s'}, {'7'}, {'1'}, {'t'}, {'g'}, {'1'}, {'m'}}}).Encode(framed('2', nil))
	if err != nil {
		t.Fatal(err)
	}
	answered := func(row []byte) []byte { return append(framed('2', nil), framed('D', row)...) }
	for claim, said := range map[string][]byte{
		"nothing, and ends":        nil,
		"half an answer, and ends": good[:len(good)/2],
		"garbage":                  []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"an error":                 framed('E', []byte("SFATAL\x00C57P01\x00\x00")),
		"a length of nothing":      {'2', 0, 0, 0, 0},
		"a huge length":            {'2', 0x7f, 255, 255, 255},
		"a negative length":        {'2', 255, 255, 255, 255},
		"a long notice":            framed('N', make([]byte, 2*bufferBytes)),
		"no row":                   append(framed('2', nil), framed('C', []byte("SELECT 0\x00"))...),
		"two rows":                 append(good[:ended:ended], good[5:]...),
		"a row that lies":          answered([]byte{255, 255, 0, 0, 0, 1}),
		"a value that lies":        answered([]byte{0, 1, 0x7f, 255, 255, 255}),
		"a value that is none":     null,
		"another row":              says(t, "v", "s"),
		"a number that is none":    says(t, "v", "s", "7", "-1", "t", "g", "1", "md5"),
		"a group that is too much": says(t, "v", "s", "7", "1", "t", "g", "4294967296", "md5"),
		"a time that is none":      says(t, "v", "s", "never", "1", "t", "g", "1", "md5"),
		"neither true nor false":   says(t, "v", "s", "7", "1", "true", "g", "1", "md5"),
		"that it is a transaction": append(good[:len(good)-1:len(good)-1], 'T'),
		"an answer too many":       append(append(append([]byte{}, good...), good...), good...),
	} {
		t.Run(claim, func(t *testing.T) {
			i, far := connected(t)
			first, second := i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob")
			wantQuestions(t, far, "principal ann", "principal bob")
			onTheLoop(i.loop, func() { i.inquirer.rounds.Stop() }) // it has all the patience there is
			_, _ = far.Write(said)
			if strings.HasSuffix(claim, "ends") {
				_ = far.(*net.TCPConn).CloseWrite()
			}
			for _, answer := range []chan *catalog.Principal{first, second} {
				select {
				case p := <-answer:
					if (p != nil) != (claim == "an answer too many") {
						t.Errorf("the answer is %+v", p)
					}
				case <-time.After(20 * time.Second):
					t.Fatal("somebody waits for ever")
				}
			}
			_, _ = io.Copy(io.Discard, far) // it ends
			if p := <-i.asks(t, t.Context(), "ann"); p != nil {
				t.Errorf("the answer is %+v", p)
			}
			if n := i.opened.Load(); n != 1 {
				t.Errorf("%d connections were made at once", n)
			}
			onTheLoop(i.loop, func() {
				if n := len(i.members); n != 0 {
					t.Errorf("the loop has %d members", n)
				}
			})
		})
	}
}

// FuzzLine has a catalog say anything.
func FuzzLine(f *testing.F) {
	f.Add(framed('2', nil))
	f.Add(append(framed('2', nil), framed('D', binary.BigEndian.AppendUint16(nil, 7))...))
	f.Fuzz(func(t *testing.T, said []byte) {
		l := newLine(-1, &catalog.Inquiry{}, newFrames(strings.NewReader(string(said))))
		asks := &inquired{name: "ann"}
		if err := l.ask(asks); err != nil {
			t.Fatal(err)
		}
		_ = l.flush() // to nobody
		answers := 0
		var err error
		for err == nil {
			var answered []*inquired
			answered, err = l.read()
			answers += len(answered)
		}
		if strings.Contains(err.Error(), "invariant") {
			t.Error(err)
		}
		if answers > 1 {
			t.Errorf("one question has %d answers", answers)
		}
	})
}
