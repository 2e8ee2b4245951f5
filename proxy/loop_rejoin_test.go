package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// longQuery is handled on no loop.
var longQuery = framed('Q', append(bytes.Repeat([]byte(" "), maxStatement), 0))

// lives is a session that goes where it likes, on a loop or off it, until it is
// over. Its server answers queries.
func lives(t *testing.T, l *loop) *onLoop {
	t.Helper()
	o := begins(t, l)
	go o.answersQueries()
	return o
}

// begins is such a session with a server that says nothing by itself.
func begins(t *testing.T, l *loop) *onLoop {
	t.Helper()
	s, _, _ := bareSession(nil, nil)
	o := &onLoop{session: s, left: make(chan bool, 1)}
	var client net.Conn
	o.client, client = sockets(t)
	o.server, s.server.conn = sockets(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	s.stop, o.ctx = cancel, ctx
	context.AfterFunc(ctx, func() { s.interrupt(context.Cause(ctx)) })
	s.client, s.loop = client, l
	s.in.source, s.out.to = client, client
	s.server.frames.source, s.up.to = s.server.conn, s.server.conn
	go func() {
		for over := false; !over && s.runDirections(ctx); {
			over, o.err = s.takeTurns(ctx)
			o.departures.Add(1)
		}
		_ = s.client.Close()
		o.left <- true
	}()
	t.Cleanup(func() { _, _ = o.client.Close(), o.server.Close() })
	return o
}

// takesTurns says whether a loop serves the session.
func (o *onLoop) takesTurns() bool {
	o.touch.Lock()
	defer o.touch.Unlock()
	return o.loopSession != nil
}

// leaves has the session leave its loop for a query that is long. It may be back by the
// time that the answer is read.
func (o *onLoop) leaves(t *testing.T) {
	t.Helper()
	before := o.departures.Load()
	_, _ = o.client.Write(longQuery)
	wantBytes(t, o.client, plainAnswer)
	if o.departures.Load() == before {
		t.Error("a long query was handled on the loop")
	}
}

func TestASessionThatHasLeftComesHome(t *testing.T) {
	o := lives(t, testLoop(t))
	for range 3 {
		for deadline := time.Now().Add(10 * time.Second); !o.takesTurns(); time.Sleep(time.Millisecond) {
			_, _ = o.client.Write(plainQuery)
			wantBytes(t, o.client, plainAnswer)
			if time.Now().After(deadline) {
				t.Fatal("it does not come home")
			}
		}
		o.leaves(t)
	}
}

func TestASessionWithHalfAMessageStaysAway(t *testing.T) {
	for range 3 {
		o := lives(t, testLoop(t)) // it has asked for nothing, and so is away
		time.Sleep(restlessness + settling)
		_, _ = o.client.Write(append(plainQuery, plainQuery[:9]...))
		wantBytes(t, o.client, plainAnswer)
		time.Sleep(20 * time.Millisecond)
		for deadline := time.Now().Add(10 * time.Second); o.takesTurns(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("it has come home")
			}
		}
		_, _ = o.client.Write(plainQuery[9:])
		wantBytes(t, o.client, plainAnswer)
	}
}

// TestNothingIsLostOnTheWayHome has sessions of one loop come and go, and end at
// any moment.
func TestNothingIsLostOnTheWayHome(t *testing.T) {
	l := testLoop(t)
	var group sync.WaitGroup
	for seed := range uint64(12) {
		o := lives(t, l)
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, seed))
			length := 2*time.Second + time.Duration(random.IntN(1000))*time.Millisecond
			for started := time.Now(); time.Since(started) < length; {
				switch random.IntN(20) {
				case 0:
					_, _ = o.client.Write(longQuery)
				case 1:
					time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
					fallthrough
				default:
					cut := random.IntN(len(plainQuery))
					_, _ = o.client.Write(plainQuery[:cut])
					if random.IntN(10) == 0 {
						time.Sleep(time.Duration(random.IntN(300)) * time.Microsecond)
					}
					_, _ = o.client.Write(plainQuery[cut:])
				}
				got := make([]byte, len(plainAnswer))
				if _, err := io.ReadFull(o.client, got); err != nil || string(got) != string(plainAnswer) {
					t.Errorf("session %d: %q, %v, %v, %v", seed, got, err, o.err, context.Cause(o.ctx))
					return
				}
			}
			for range random.IntN(300) { // the end comes at any step of the way
				_, _ = o.client.Write(plainQuery)
			}
			[]func(){
				func() { _ = o.client.Close() },
				func() { _ = o.server.Close() },
				func() { o.stop(errors.New("the end")) },
			}[random.IntN(3)]()
			select {
			case <-o.left:
			case <-time.After(10 * time.Second):
				t.Errorf("session %d has no end", seed)
			}
		})
	}
	group.Wait()
}

// TestWhatIsUnderWayKeepsASessionAway is about a copy, say, whose data comes now.
func TestWhatIsUnderWayKeepsASessionAway(t *testing.T) {
	for underWay, want := range map[bool]string{true: "goes on", false: "stops"} {
		s, _, _ := bareSession(nil, nil)
		s.client, _ = sockets(t)
		s.server.conn, _ = sockets(t)
		s.loopRejoin.called.Store(true)
		if underWay {
			s.expect.add(&pendingReply{kind: 'Q'})
		}
		if stops, again := s.stopsForHome(t.Context(), os.ErrDeadlineExceeded); stops == underWay ||
			again != underWay {
			t.Errorf("stops %t, reads again %t, want that it %s", stops, again, want)
		}
	}
}
