package proxy

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/proxy/internal/cancelkey"
)

// deliverers counts requests on their way, each of which takes a moment.
type deliverers struct{ now, most, all atomic.Int64 }

func (d *deliverers) send(*upstream) error {
	n := d.now.Add(1)
	for most := d.most.Load(); n > most && !d.most.CompareAndSwap(most, n); most = d.most.Load() {
	}
	d.all.Add(1)
	time.Sleep(2 * time.Millisecond)
	d.now.Add(-1)
	return nil
}

func TestCancelRequestsTakeFewConnections(t *testing.T) {
	c := newCancels()
	ring := cancelkey.Ring{Key: randomBytes(32)}
	var work interrupts
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = c.register(ring, cancelkey.Long, &work, &upstream{key: []byte{0, 0, 0, byte(i)}})
	}
	flood := func(requests int, key func(i int) string) *deliverers {
		var d deliverers
		var group sync.WaitGroup
		for i := range requests {
			group.Go(func() {
				if found, err := c.deliver(t.Context(), key(i), d.send); !found || err != nil {
					t.Errorf("found %v, %v", found, err)
				}
			})
		}
		group.Wait()
		return &d
	}
	if d := flood(500, func(int) string { return keys[0] }); d.most.Load() != 1 || d.all.Load() < 2 {
		t.Errorf("one session's requests: %d at once, %d in all", d.most.Load(), d.all.Load())
	}
	if d := flood(100, func(i int) string {
		return keys[i]
	}); d.most.Load() > maxDelivered || d.all.Load() != 100 {
		t.Errorf("one request of each session: %d at once, %d in all", d.most.Load(), d.all.Load())
	}
}

func TestACancelRequestThatWaitsDoesNotReachWhoComesNext(t *testing.T) {
	c := newCancels()
	var work interrupts
	key := c.register(cancelkey.Ring{Key: randomBytes(32)}, cancelkey.Long, &work,
		&upstream{key: []byte{0, 0, 0, 1}})
	began, leave := make(chan struct{}), make(chan struct{})
	var sent atomic.Int64
	var group sync.WaitGroup
	request := func() {
		_, _ = c.deliver(t.Context(), key, func(*upstream) error {
			if sent.Add(1) == 1 {
				close(began)
			}
			<-leave
			return nil
		})
	}
	group.Go(request)
	<-began
	group.Go(request)
	waits := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.keys[key].next != nil
	}
	for !waits() {
		time.Sleep(time.Millisecond)
	}
	forgotten := make(chan struct{})
	go func() {
		c.forget(key)
		close(forgotten)
	}()
	for gone := false; !gone; {
		c.mu.Lock()
		gone = len(c.keys) == 0
		c.mu.Unlock()
	}
	close(leave)
	<-forgotten
	group.Wait()
	if sent.Load() != 1 {
		t.Errorf("%d requests reached the server, want only the one that was on its way", sent.Load())
	}
}
