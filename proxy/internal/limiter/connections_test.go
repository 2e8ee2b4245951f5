package limiter

import (
	"context"
	"testing"
	"time"
)

func TestSeatsAreGivenInTheOrderOfArrival(t *testing.T) {
	s := New(1, 1)
	if err := s.Acquire(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Acquire(t.Context(), time.Millisecond); err == nil {
		t.Error("a second seat")
	}
	order := make(chan int, 2)
	for i := range 2 {
		go func() {
			if s.Acquire(context.Background(), time.Minute) == nil {
				order <- i
			}
		}()
		for s.Queued() != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	s.Release()
	if first := <-order; first != 0 {
		t.Error("the second was served first")
	}
	s.Resize(2, 1)
	if <-order != 1 {
		t.Error("more seats, and nobody was let in")
	}
	if s.Enter("a") != nil || s.Enter("a") == nil || s.Enter("b") != nil {
		t.Error("the limit of a principal is not kept")
	}
}
