package proxy

import (
	"context"
	"errors"
	"testing"
)

// TestACancelRequestEndsAllThatTheProxyDoes: a session waits for releases while its next
// statement is planned.
func TestACancelRequestEndsAllThatTheProxyDoes(t *testing.T) {
	var work interrupts
	waits, over := work.during(context.Background())
	_, planned := work.during(context.Background())
	planned()
	if !work.interrupt() || !errors.Is(context.Cause(waits), errInterrupted) {
		t.Error("what was begun first goes on")
	}
	over()
	if work.interrupt() {
		t.Error("there is nothing to interrupt")
	}
}

// TestNothingIsBegunForASessionThatHasEnded: nobody would end it.
func TestNothingIsBegunForASessionThatHasEnded(t *testing.T) {
	var work interrupts
	before, done := work.during(context.Background())
	defer done()
	work.end()
	after, done := work.during(context.Background())
	defer done()
	if before.Err() == nil || after.Err() == nil {
		t.Errorf("%v before the end, %v after it", before.Err(), after.Err())
	}
}
