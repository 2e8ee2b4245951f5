package catalog

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestPatienceIsATimeout(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := func(until time.Time) *patient { return &patient{Context: parent, until: until} }
	later := time.Now().Add(time.Hour)

	over := made(time.Now().Add(10 * time.Millisecond))
	defer over.end()
	child, stop := context.WithCancel(over)
	defer stop()
	<-child.Done()
	for _, err := range []error{over.Err(), child.Err(), context.Cause(over)} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the patience: %v", err)
		}
	}
	if at, ok := made(later).Deadline(); !ok || !at.Equal(later) {
		t.Errorf("the deadline is %v", at)
	}

	unused, used := made(later), made(later)
	done := used.Done()
	if unused.Err() != nil || used.Err() != nil {
		t.Errorf("before the end: %v, %v", unused.Err(), used.Err())
	}
	if unused.timed != nil {
		t.Error("a clock runs although nobody waits")
	}
	unused.end()
	used.end()
	<-done
	<-unused.Done()
	if unused.Err() != context.Canceled || used.Err() != context.Canceled {
		t.Errorf("after the end: %v, %v", unused.Err(), used.Err())
	}

	orphan := made(later)
	defer orphan.end()
	cancel()
	<-orphan.Done()
	if orphan.Err() != context.Canceled {
		t.Errorf("after the parent's end: %v", orphan.Err())
	}
}
