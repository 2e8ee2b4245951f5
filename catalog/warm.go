package catalog

import "context"

// warmUp reads the epochs of the present snapshot that have not been read, in
// the background, so that no researcher's first query has to wait for it. What
// fails is tried again by the query that needs it.
func (c *Catalog) warmUp(ctx context.Context) {
	s := c.snapshot.Load()
	if s == nil || !c.warming.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.warming.Store(false)
		for _, r := range s.protected {
			// Codes are published under the epoch's lock first, by a query.
			if r.Stale || r.SetValued != nil {
				continue
			}
			if _, err := c.epochOf(ctx, r); err != nil && ctx.Err() == nil {
				c.log.Warn("epoch not read in advance", "relation", r.String(), "error", err)
			}
		}
	}()
}

// forget frees the epochs that a snapshot no longer knows. Who works on one
// still has it.
func (c *Catalog) forget(s *Snapshot) {
	c.mu.Lock()
	defer c.mu.Unlock()
	present := make(map[int]bool)
	for _, r := range s.protected {
		present[r.Epoch] = true
	}
	for number := range c.epochs {
		if !present[number] {
			delete(c.epochs, number)
		}
	}
}
