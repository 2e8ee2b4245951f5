package console

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestWhoGuessesAtARoleKeepsNobodyElseOut(t *testing.T) {
	now := time.Now()
	g := newGate(func(_ context.Context, _, password string) error {
		if password != "right" {
			return errWrong
		}
		return nil
	}, func() time.Time { return now })
	enter := func(host, password string) error {
		return g.enter(t.Context(), host, credentials{User: "dba", Password: password})
	}
	var last error
	for range 2 * freeFailures {
		last = enter("192.0.2.1", "wrong")
	}
	if !errors.Is(last, errTooOften) {
		t.Errorf("after many guesses: %v", last)
	}
	if err := enter("192.0.2.2", "right"); err != nil {
		t.Errorf("from another address: %v", err)
	}
	if err := enter("192.0.2.1", "right"); !errors.Is(err, errTooOften) {
		t.Errorf("the right password at once: %v", err)
	}
	now = now.Add(failurePause)
	if err := enter("192.0.2.1", "right"); err != nil {
		t.Errorf("the right password after a pause: %v", err)
	}
	if err := g.enter(t.Context(), "192.0.2.1",
		credentials{User: "other", Password: "right"}); err != nil {
		t.Errorf("another role: %v", err)
	}
}

func TestAHostOfIPv6IsItsSubnet(t *testing.T) {
	if guesser("2001:db8::1", "dba") != guesser("2001:db8::ffff:2", "dba") {
		t.Error("two addresses of a subnet count apart")
	}
	if guesser("::ffff:192.0.2.1", "dba") != guesser("192.0.2.1", "dba") {
		t.Error("an address of IPv4 counts apart from itself")
	}
	if guesser("192.0.2.1", "dba") == guesser("192.0.2.2", "dba") {
		t.Error("two hosts count together")
	}
}

func TestALoginThatFindsOthersWaits(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	g := newGate(func(context.Context, string, string) error {
		entered <- struct{}{}
		<-leave
		return nil
	}, time.Now)
	ended := make(chan error)
	for range atOnce + 1 {
		go func() {
			ended <- g.enter(t.Context(), "192.0.2.1", credentials{User: "dba", Password: "right"})
		}()
	}
	for range atOnce {
		<-entered
	}
	leave <- struct{}{}
	<-entered
	close(leave)
	for range atOnce + 1 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
