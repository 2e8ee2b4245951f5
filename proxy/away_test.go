package proxy

import (
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// patients is a catalog that protects a table.
type patients struct{ Catalog }

func (patients) Snapshot() (*catalog.Snapshot, error) {
	return catalog.NewSnapshot(1, []*catalog.Relation{{Schema: "public", Name: "patients"}}, nil), nil
}

// protects makes the session a reader's, to whom a table is protected.
func (o *onLoop) protects() { o.proxy.catalog, o.principal.Reader = patients{}, true }

var (
	protectedQuery = framed('Q', []byte("SELECT * FROM patients\x00"))
	plainQuery     = framed('Q', []byte("SELECT 1\x00"))
	plainAnswer    = append(framed('C', []byte("SELECT 1\x00")), framed('Z', []byte("I"))...)
	// failure answers any question: what would have been planned is refused.
	failure = append(errorFrame("ERROR", sqlstate.New(sqlstate.QueryCanceled, "cancelled")),
		framed('Z', []byte("I"))...)
)

// asksItsSettings has the session wait for what it asks before it plans.
func asksItsSettings(t *testing.T) *onLoop {
	t.Helper()
	o := begins(t, testLoop(t))
	o.protects()
	_, _ = o.client.Write(protectedQuery)
	wantBytes(t, o.server, settingsQuestion)
	return o
}

var settingsQuestion = func() []byte {
	question, err := encode(questionOf(selectSettings + ", tailor.session()")...)
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

func TestAProtectedStatementTakesASessionOffTheLoopBeforeItIsPlanned(t *testing.T) {
	o := takesTurns(t)
	o.protects()
	_, _ = o.client.Write(protectedQuery)
	if over := <-o.left; over {
		t.Fatalf("the session is over: %v", o.err)
	}
	if e := o.expect.head(); e != nil || !o.in.unread() {
		t.Errorf("%+v is expected, want the message to be there still", e)
	}
}

// TestASessionThatReadsWhatIsProtectedStaysAway asks for nothing protected afterwards.
func TestASessionThatReadsWhatIsProtectedStaysAway(t *testing.T) {
	o := asksItsSettings(t)
	o.failQuestion(t)
	o.wantRefusal(t)
	for range 3 {
		time.Sleep(restlessness + settling)
		_, _ = o.client.Write(plainQuery)
		wantBytes(t, o.server, plainQuery)
		_, _ = o.server.Write(plainAnswer)
		wantBytes(t, o.client, plainAnswer)
		time.Sleep(20 * time.Millisecond)
		if o.takesTurns() {
			t.Error("it has come home")
		}
	}
}
