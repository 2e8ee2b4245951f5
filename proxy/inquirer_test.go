package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/catalog"
)

// inquiring is a loop that asks a catalog which the test plays.
type inquiring struct {
	*loop
	opened atomic.Int64 // connections
	made   func(ctx context.Context) (net.Conn, error)

	mu         sync.Mutex
	remembered []string
}

// playsCatalog has each connection made by a function of the test's.
func playsCatalog(t *testing.T, l *loop, made func(context.Context) (net.Conn, error)) *inquiring {
	t.Helper()
	i := &inquiring{loop: l, made: made}
	i.wanted(t, 1)
	i.post(func() {
		i.inquirer = &inquirer{loop: l, log: slog.New(slog.DiscardHandler), open: func(ctx context.Context) (*catalog.Inquiry, net.Conn, error) {
			i.opened.Add(1)
			conn, err := i.made(ctx)
			return &catalog.Inquiry{}, conn, err
		}, remember: func(name string, found *catalog.Principal) {
			i.mu.Lock()
			defer i.mu.Unlock()
			i.remembered = append(i.remembered, name+" "+found.Verifier)
		}}
	})
	return i
}

// wanted has as many want the loop's processors as the test says.
func (i *inquiring) wanted(t *testing.T, by int) {
	t.Helper()
	want := crowded(t, wanted(by))
	onTheLoop(i.loop, func() {
		i.processors.close()
		i.processors = want
	})
}

// connected is a loop with a connection to the catalog, of which the test has the
// other end.
func connected(t *testing.T) (*inquiring, net.Conn) {
	t.Helper()
	far, near := sockets(t)
	t.Cleanup(func() { _ = far.Close() })
	_ = far.SetDeadline(time.Now().Add(time.Minute)) // of a test that fails
	i := playsCatalog(t, testLoop(t), func(context.Context) (net.Conn, error) { return near, nil })
	i.connects(t)
	return i, far
}

// connects waits until there is a connection.
func (i *inquiring) connects(t *testing.T) {
	t.Helper()
	there := false
	for start := time.Now(); !there; {
		if time.Since(start) > 20*time.Second {
			t.Fatal("no connection is made")
		}
		onTheLoop(i.loop, func() {
			if there = i.inquirer.line != nil; !there {
				i.inquirer.make()
			}
		})
	}
}

// asks has a course ask about a role, and returns where its answer comes: nil
// where there is none.
func (i *inquiring) asks(t *testing.T, ctx context.Context, name string) chan *catalog.Principal {
	t.Helper()
	_, near := sockets(t)
	answer, asked := make(chan *catalog.Principal, 1), make(chan struct{})
	begin(t, i.loop, near, func(c *course, s *socket) {
		defer func() { _ = s.Close() }()
		a := c.inquire(name)
		close(asked)
		if a == nil {
			answer <- nil
			return
		}
		answer <- a.wait(ctx)
	})
	<-asked
	return answer
}

// asksAndGoes has a course ask, and end without the answer.
func (i *inquiring) asksAndGoes(t *testing.T, name string) {
	t.Helper()
	_, near := sockets(t)
	gone := make(chan struct{})
	begin(t, i.loop, near, func(c *course, s *socket) {
		defer close(gone)
		c.inquire(name)
		_ = s.Close()
	})
	<-gone
}

// wantQuestions reads what the catalog is asked: the statement and the role of each.
func wantQuestions(t *testing.T, from io.Reader, want ...string) {
	t.Helper()
	server := pgproto3.NewBackend(from, io.Discard)
	for _, w := range want {
		var got string
		for range 3 {
			message, err := server.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if bind, ok := message.(*pgproto3.Bind); ok {
				got = strings.Join(append([]string{bind.PreparedStatement}, texts(bind.Parameters)...), " ")
			}
		}
		if got != w {
			t.Errorf("the catalog is asked %q, want %q", got, w)
		}
	}
}

func texts(values [][]byte) (all []string) {
	for _, v := range values {
		all = append(all, string(v))
	}
	return all
}

// says is what the catalog answers.
func says(t *testing.T, values ...string) []byte {
	t.Helper()
	row := &pgproto3.DataRow{}
	for _, v := range values {
		row.Values = append(row.Values, []byte(v))
	}
	var all []byte
	for _, message := range []pgproto3.BackendMessage{
		&pgproto3.BindComplete{}, row, &pgproto3.CommandComplete{CommandTag: []byte("SELECT 1")}, &pgproto3.ReadyForQuery{TxStatus: 'I'},
	} {
		var err error
		if all, err = message.Encode(all); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// whole is what it says of a role whose verifier expires at 7.
func whole(t *testing.T, verifier, state string) []byte {
	return says(t, verifier, state, "7", "16384", "t", "t", `["lungs"]`, "md5")
}

func TestAnswersReachThoseWhoAsked(t *testing.T) {
	i, far := connected(t)
	asked := []chan *catalog.Principal{i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob"), i.asks(t, t.Context(), "ann")}
	wantQuestions(t, far, "principal ann", "principal bob")
	for _, b := range append(whole(t, "a1", "s1"), whole(t, "b1", "s1")...) { // in pieces
		_, _ = far.Write([]byte{b})
	}
	wantQuestions(t, far, "principal ann") // who asked when that was on its way
	_, _ = far.Write(whole(t, "a2", "s2"))
	first := <-asked[0]
	if want := (catalog.Principal{
		Name: "ann", OID: 16384, Verifier: "a1", Reader: true, Inherits: true, Projects: []string{"lungs"}, Settings: "md5",
	}); !reflect.DeepEqual(*first, want) {
		t.Errorf("ann is %+v, want %+v", first, want)
	}
	if p := <-asked[1]; p.Name != "bob" || p.Verifier != "b1" {
		t.Errorf("bob is %+v", p)
	}
	last := <-asked[2]
	if last.Name != "ann" || last.Verifier != "a2" {
		t.Errorf("ann is %+v", last)
	}

	again := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "state")
	_, _ = far.Write(says(t, "s2", "6"))
	if p := <-again; p != last {
		t.Errorf("ann is %+v, though nothing has changed", p)
	}
	for _, change := range []struct{ state, at, verifier string }{{"s3", "6", "a2"}, {"s4", "6", "a3"}, {"s4", "7", ""}, {"", "6", "a4"}} {
		first := i.asks(t, t.Context(), "ann")
		wantQuestions(t, far, "state")
		_, _ = far.Write(says(t, change.state, change.at))
		wantQuestions(t, far, "principal ann")
		_, _ = far.Write(whole(t, change.verifier, change.state))
		if p := <-first; p.Verifier != change.verifier || p == last {
			t.Errorf("ann is %+v", p)
		}
	}
	unknown := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "principal ann") // an empty state tells nothing
	_, _ = far.Write(whole(t, "", ""))
	if p := <-unknown; p.Verifier != "" {
		t.Errorf("ann is %+v", p)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	const want = "ann a1,bob b1,ann a2,ann a2,ann a2,ann a3,ann ,ann a4,ann "
	if got := strings.Join(i.remembered, ","); got != want {
		t.Errorf("remembered are %s, want %s", got, want)
	}
}

// TestWhoDoesNotWaitLeavesHisPlace has one ask and go, and one come too late for
// its context.
func TestWhoDoesNotWaitLeavesHisPlace(t *testing.T) {
	i, far := connected(t)
	i.asksAndGoes(t, "gone")
	ctx, cancel := context.WithCancel(t.Context())
	late, patient := i.asks(t, ctx, "late"), i.asks(t, t.Context(), "patient")
	wantQuestions(t, far, "principal gone", "principal late", "principal patient")
	cancel()
	if p := <-late; p != nil {
		t.Errorf("who waits no longer has the answer %+v", p)
	}
	for _, verifier := range []string{"g", "l", "p"} {
		_, _ = far.Write(whole(t, verifier, "s"))
	}
	if p := <-patient; p.Name != "patient" || p.Verifier != "p" {
		t.Errorf("the answer is %+v", p)
	}
}

// TestASilentCatalogIsGivenUp has it say nothing to two who wait.
func TestASilentCatalogIsGivenUp(t *testing.T) {
	i, far := connected(t)
	waiting := []chan *catalog.Principal{i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob")}
	wantQuestions(t, far, "principal ann", "principal bob")
	began := time.Now()
	for _, answer := range waiting {
		select {
		case p := <-answer:
			if p != nil {
				t.Errorf("the answer is %+v", p)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("somebody waits for ever")
		}
	}
	if waited := time.Since(began); waited < inquiryPatience/2 {
		t.Errorf("the catalog was given up after %v", waited)
	}
	wantGoodbye(t, far)
}

// TestACatalogThatReadsNothingIsGivenUp asks more than the system keeps for it.
func TestACatalogThatReadsNothingIsGivenUp(t *testing.T) {
	i, far := connected(t)
	_ = far.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, near := sockets(t)
	refused := make(chan struct{})
	begin(t, i.loop, near, func(c *course, s *socket) {
		defer close(refused)
		for n := 0; c.inquire(fmt.Sprintf("%0*d", longestName, n)) != nil; n++ {
		}
		_ = s.Close()
	})
	select {
	case <-refused:
	case <-time.After(20 * time.Second):
		t.Fatal("it is asked for ever")
	}
}

func wantGoodbye(t *testing.T, from io.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(from); err != nil || string(rest) != string(framed('X', nil)) {
		t.Errorf("at the end came %q, %v", rest, err)
	}
}

// TestAConnectionThatNobodyNeedsIsClosed looks after it when it has been idle for
// long enough.
func TestAConnectionThatNobodyNeedsIsClosed(t *testing.T) {
	i, far := connected(t)
	onTheLoop(i.loop, func() { i.inquirer.look(time.Now().Add(inquiryRest / 2)) })
	answer := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "principal ann")
	_, _ = far.Write(whole(t, "v", "s"))
	if <-answer == nil {
		t.Fatal("there is no answer")
	}
	onTheLoop(i.loop, func() { i.inquirer.look(time.Now().Add(2 * inquiryRest)) })
	wantGoodbye(t, far)
	far, near := sockets(t)
	i.made = func(context.Context) (net.Conn, error) { return near, nil }
	i.connects(t)
	answer = i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "principal ann") // nothing is known on another connection
	_, _ = far.Write(whole(t, "v", "s"))
	if <-answer == nil {
		t.Error("there is no answer")
	}
}

func TestAnInquirerEndsWithItsLoop(t *testing.T) {
	for claim, connects := range map[string]bool{"connected": true, "on the way": false} {
		t.Run(claim, func(t *testing.T) {
			far, near := sockets(t)
			l, err := newLoop(func() net.KeepAliveConfig { return keepAlive(time.Minute) })
			if err != nil {
				t.Fatal(err)
			}
			begun := make(chan struct{})
			i := playsCatalog(t, l, func(ctx context.Context) (net.Conn, error) {
				close(begun)
				if !connects {
					<-ctx.Done() // and comes back with a connection none the less
				}
				return near, nil
			})
			if connects {
				i.connects(t)
			} else {
				onTheLoop(l, func() { i.inquirer.make() })
				<-begun
			}
			l.close()
			wantGoodbye(t, far)
		})
	}
}

// TestAnEncryptedConnectionIsNotAskedOn has the catalog reached by no socket.
func TestAnEncryptedConnectionIsNotAskedOn(t *testing.T) {
	far, near := net.Pipe()
	i := playsCatalog(t, testLoop(t), func(context.Context) (net.Conn, error) { return near, nil })
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, far)
		ended <- err
	}()
	i.neverConnects(t)
	if err := <-ended; err != nil {
		t.Errorf("it was left with %v", err)
	}
	onTheLoop(i.loop, func() { i.inquirer.pause = time.Time{} })
	i.neverConnects(t)
}

func TestACatalogThatRefusesIsNotStormed(t *testing.T) {
	i := playsCatalog(t, testLoop(t), func(context.Context) (net.Conn, error) { return nil, errors.New("too many connections") })
	i.neverConnects(t)
}

// neverConnects asks often, and wants one try.
func (i *inquiring) neverConnects(t *testing.T) {
	t.Helper()
	for range 50 {
		if <-i.asks(t, t.Context(), "ann") != nil {
			t.Error("there is an answer")
		}
	}
	if n := i.opened.Load(); n != 1 {
		t.Errorf("%d tries, want 1", n)
	}
}

// TestASlowCatalogIsNotGivenUp has each answer come before the patience is over,
// and the loop look late at one that has come.
func TestASlowCatalogIsNotGivenUp(t *testing.T) {
	i, far := connected(t)
	ann, bob := i.asks(t, t.Context(), "ann"), i.asks(t, t.Context(), "bob")
	wantQuestions(t, far, "principal ann", "principal bob")
	for _, answer := range []chan *catalog.Principal{ann, bob} {
		time.Sleep(inquiryPatience * 7 / 10)
		_, _ = far.Write(whole(t, "v", "s"))
		if <-answer == nil {
			t.Fatal("a catalog that answers was given up")
		}
	}
	late := i.asks(t, t.Context(), "carl")
	wantQuestions(t, far, "principal carl")
	onTheLoop(i.loop, func() {
		_, _ = far.Write(whole(t, "v", "s"))
		time.Sleep(20 * time.Millisecond) // until it is there
		i.inquirer.look(time.Now().Add(2 * inquiryPatience))
	})
	if <-late == nil {
		t.Error("the answer was there, and the catalog given up")
	}
}

// TestWhereProcessorsAreWantedOneQuestionIsForAllAtWork has some ask who do not wait
// for the answer yet.
func TestWhereProcessorsAreWantedOneQuestionIsForAllAtWork(t *testing.T) {
	i, far := connected(t)
	known := i.asks(t, t.Context(), "ann")
	wantQuestions(t, far, "principal ann")
	_, _ = far.Write(whole(t, "v", "s"))
	<-known

	i.wanted(t, 1000)
	proof := make(chan struct{})
	answers := make(chan *catalog.Principal, 3)
	began := time.Now()
	for range 3 {
		_, near := sockets(t)
		asked := make(chan struct{})
		begin(t, i.loop, near, func(c *course, s *socket) {
			defer func() { _ = s.Close() }()
			a := c.inquire("ann")
			close(asked)
			c.elsewhere(func() { <-proof })
			answers <- a.wait(t.Context())
			if a.asked.Before(began) {
				t.Errorf("it was asked at %v", a.asked)
			}
		})
		<-asked
	}
	_ = far.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := far.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("it is asked though nobody waits")
	}
	_ = far.SetReadDeadline(time.Now().Add(time.Minute))
	began = time.Now()
	close(proof)
	wantQuestions(t, far, "state")
	_, _ = far.Write(says(t, "s", "6"))
	for range 3 {
		if p := <-answers; p == nil || p.Verifier != "v" {
			t.Errorf("ann is %+v", p)
		}
	}

	i.asksAndGoes(t, "ann")
	wantQuestions(t, far, "state") // in the end, for the line to be at rest
}
