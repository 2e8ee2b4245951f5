package proxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// patients is a catalog that protects a table. Who looks at it does something.
type patients struct {
	Catalog
	do func()
}

func (p *patients) Snapshot() (*catalog.Snapshot, error) {
	p.do()
	return catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: "patients"}}, nil), nil
}

// protects makes the session a reader's, which looks at the catalog.
func (o *onLoop) protects(do func()) {
	o.proxy.catalog, o.principal.Reader = &patients{do: do}, true
}

var (
	protectedQuery = framed('Q', []byte("SELECT * FROM patients\x00"))
	plainQuery     = framed('Q', []byte("SELECT 1\x00"))
	plainAnswer    = append(framed('C', []byte("SELECT 1\x00")), framed('Z', []byte("I"))...)
	// failure answers any question: what would have been planned is refused.
	failure = append(errorFrame("ERROR", sqlstate.New(sqlstate.QueryCanceled, "cancelled")), framed('Z', []byte("I"))...)
)

// asksItsSettings has the session wait for what it asks before it plans.
func asksItsSettings(t *testing.T, before ...byte) *onLoop {
	t.Helper()
	o := isAlone(t)
	o.protects(func() {})
	_, _ = o.client.Write(append(before, protectedQuery...))
	wantBytes(t, o.server, append(before, settingsQuestion...))
	return o
}

// isAlone puts a session on a loop on which nobody else has had a turn for a while.
func isAlone(t *testing.T) *onLoop {
	t.Helper()
	o := takesTurns(t)
	_, _ = o.client.Write(plainQuery)
	wantBytes(t, o.server, plainQuery)
	_, _ = o.server.Write(plainAnswer)
	wantBytes(t, o.client, plainAnswer)
	o.proxy.company.note(o.session)
	time.Sleep(2 * solitude)
	return o
}

var settingsQuestion = func() []byte {
	question, err := (&pgproto3.Query{String: selectSettings + ", tailor.session()"}).Encode(nil)
	if err != nil {
		panic(err)
	}
	return question
}()

// failQuestion plays the server for the question, which is asked once more.
func (o *onLoop) failQuestion(t *testing.T) {
	t.Helper()
	_, _ = o.server.Write(failure)
	wantBytes(t, o.server, settingsQuestion)
	_, _ = o.server.Write(failure)
}

// serves says whether the loop does what it is asked.
func (o *onLoop) serves(patience time.Duration) bool {
	ran := make(chan struct{})
	o.loop.post(func() { close(ran) })
	select {
	case <-ran:
		return true
	case <-time.After(patience):
		return false
	}
}

// wantSilence wants nothing to come for a moment.
func wantSilence(t *testing.T, from net.Conn) {
	t.Helper()
	_ = from.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	defer func() { _ = from.SetReadDeadline(time.Now().Add(30 * time.Second)) }()
	if n, err := from.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("something has come")
	}
}

// wantRefusal plays the server for a statement that is refused.
func (o *onLoop) wantRefusal(t *testing.T) {
	t.Helper()
	wantBytes(t, o.server, framed('Q', []byte(unparsable+"\x00")))
	_, _ = o.server.Write(failure)
	frames := newFrames(o.client)
	for _, kind := range []byte("EZ") {
		if frame, err := frames.next(); err != nil || frame[0] != kind {
			t.Errorf("%q, %v, want %c", frame, err, kind)
		}
	}
}

func TestAMessageThatWaitsHoldsUpItsClientOnly(t *testing.T) {
	o := asksItsSettings(t)
	_, _ = o.client.Write(plainQuery)
	if wantSilence(t, o.server); !o.serves(10 * time.Second) {
		t.Fatal("the loop waits")
	}
	o.failQuestion(t)
	o.wantRefusal(t)
	for range 2 { // it is back on the loop, what had to wait comes first
		wantBytes(t, o.server, plainQuery)
		_, _ = o.server.Write(plainAnswer)
		wantBytes(t, o.client, plainAnswer)
		_, _ = o.client.Write(plainQuery)
	}
}

// wantEnd wants the session to be over.
func (o *onLoop) wantEnd(t *testing.T) {
	t.Helper()
	select {
	case over := <-o.left:
		if !over {
			t.Errorf("the session goes on, %v", o.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the session waits for ever")
	}
}

func TestASessionEndsWhileAMessageWaits(t *testing.T) {
	for claim, end := range map[string]func(*testing.T, *onLoop){
		"the server":   func(_ *testing.T, o *onLoop) { _ = o.server.Close() },
		"it was asked": func(_ *testing.T, o *onLoop) { o.stop(errShutdown) },
		"the client, once the message is handled": func(t *testing.T, o *onLoop) {
			_ = o.client.Close()
			o.serves(10 * time.Second)
			o.failQuestion(t)
		},
	} {
		t.Run(claim, func(t *testing.T) {
			o := asksItsSettings(t)
			end(t, o)
			o.wantEnd(t)
		})
	}
}

func TestASessionEndsWhileAMessageWaitsForTheCatalog(t *testing.T) {
	o := isAlone(t)
	waits := make(chan struct{})
	o.protects(func() {
		done := o.waiting(o.ctx).Done()
		close(waits)
		<-done
	})
	_, _ = o.client.Write(protectedQuery)
	<-waits
	_ = o.server.Close()
	o.wantEnd(t)
}

func TestASlowReceiverTakesAMessageThatWaitsOffTheLoop(t *testing.T) {
	o := asksItsSettings(t, plainQuery...)
	rows := bytes.Repeat(framed('D', bytes.Repeat([]byte("x"), 3000)), 5000)
	stream := append(rows, plainAnswer...)
	go func() { _, _ = o.server.Write(append(stream, failure...)) }() // the question is answered behind the rows
	if over := <-o.left; over {
		t.Fatalf("the session is over: %v", o.err)
	}
	go func() { _ = o.answers(t.Context()) }()
	go func() { _ = o.statements(t.Context()) }()
	wantBytes(t, o.client, stream)
	wantBytes(t, o.server, settingsQuestion) // the message is handled again
	o.failQuestion(t)
	o.wantRefusal(t)
}

// TestWhatExecuteStandsForIsAskedAgainOffTheLoop has the server's side leave the loop
// between the two questions that an EXECUTE takes.
func TestWhatExecuteStandsForIsAskedAgainOffTheLoop(t *testing.T) {
	o := isAlone(t)
	o.protects(func() {})
	o.names.kept = true
	_, _ = o.client.Write(framed('Q', []byte("EXECUTE known\x00")))
	question := framed('Q', []byte(fmt.Sprintf(selectPrepared, hex.EncodeToString([]byte("known")))+"\x00"))
	wantBytes(t, o.server, question)
	row, err := (&pgproto3.DataRow{Values: [][]byte{[]byte(base64.StdEncoding.EncodeToString([]byte("PREPARE known AS SELECT * FROM patients"))), []byte("[]")}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	long := framed('N', make([]byte, 2*bufferBytes))
	_, _ = o.server.Write(append(append(row, plainAnswer...), long[:bufferBytes]...))
	if over := <-o.left; over || !o.in.unread() {
		t.Errorf("over %t, %v, want the message to be there still", over, o.err)
	}
}

// TestALateTimerHandsNothingOver asks under the context of a message that is over,
// as the timer of a context may that was made from it.
func TestALateTimerHandsNothingOver(t *testing.T) {
	o := isAlone(t)
	var late context.Context
	o.protects(func() {
		late = o.waiting(o.ctx)
		late.Done()
	})
	_, _ = o.client.Write(plainQuery)
	wantBytes(t, o.server, plainQuery)
	for o.turn.isBeside(&o.turn.client) {
		time.Sleep(time.Millisecond)
	}
	late.Done()
	if o.turn.isBeside(&o.turn.client) {
		t.Error("the loop was handed over for a message that is over")
	}
}

func TestWhoeverIsAloneLingersUntilRelieved(t *testing.T) {
	o := isAlone(t)
	arrived, free := make(chan struct{}), make(chan struct{})
	fault := errors.New("what it did")
	o.protects(func() {
		err := o.linger(func() error {
			arrived <- struct{}{}
			<-free
			return fault
		})
		if err != fault {
			t.Errorf("%v, want what was done to tell", err)
		}
	})
	for _, relieved := range []bool{false, true, false} {
		_, _ = o.client.Write(plainQuery)
		<-arrived
		if o.serves(20 * time.Millisecond) {
			t.Error("it did not linger")
		}
		if relieved {
			if o.loop.relieve(); !o.serves(10 * time.Second) {
				t.Error("the loop is held by whom it was taken from")
			}
		}
		free <- struct{}{}
		wantBytes(t, o.server, plainQuery)
		_, _ = o.server.Write(plainAnswer)
		wantBytes(t, o.client, plainAnswer)
	}
	if o.loop.relieve(); !o.serves(10 * time.Second) { // nobody lingers any more
		t.Error("the loop is gone")
	}
}

func TestWhoeverIsInCompanyLeavesTheLoopInPlaceOfLingering(t *testing.T) {
	o := takesTurns(t)
	o.protects(func() {})
	_, _ = o.client.Write(protectedQuery)
	if over := <-o.left; over {
		t.Fatalf("the session is over: %v", o.err)
	}
	if e := o.expect.head(); e != nil || !o.in.unread() {
		t.Errorf("%+v is expected, want the message to be there still", e)
	}
	o = isAlone(t)
	arrived, free := make(chan struct{}), make(chan struct{})
	o.protects(func() {
		o.proxy.company.note(&session{}) // another has come between
		_ = o.linger(func() error {
			arrived <- struct{}{}
			<-free
			return nil
		})
	})
	_, _ = o.client.Write(plainQuery)
	if <-arrived; !o.serves(10 * time.Second) {
		t.Fatal("the loop is held")
	}
	free <- struct{}{}
	wantBytes(t, o.server, plainQuery)
	if over := <-o.left; over {
		t.Errorf("the session is over: %v", o.err)
	}
}
