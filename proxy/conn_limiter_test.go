package proxy

import (
	"context"
	"testing"
	"time"
)

func TestSeatsAreGivenInTheOrderOfArrival(t *testing.T) {
	s := newSeats(1, 1)
	if err := s.acquire(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := s.acquire(t.Context(), time.Millisecond); err == nil {
		t.Error("a second seat")
	}
	order := make(chan int, 2)
	for i := range 2 {
		go func() {
			if s.acquire(context.Background(), time.Minute) == nil {
				order <- i
			}
		}()
		for s.queued() != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	s.release()
	if first := <-order; first != 0 {
		t.Error("the second was served first")
	}
	s.resize(2, 1)
	if <-order != 1 {
		t.Error("more seats, and nobody was let in")
	}
	if s.enter("a") != nil || s.enter("a") == nil || s.enter("b") != nil {
		t.Error("the limit of a principal is not kept")
	}
}
