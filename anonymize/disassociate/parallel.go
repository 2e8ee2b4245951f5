package disassociate

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// batch is how many clusters a worker takes at a time.
const batch = 64

// forEach calls work(worker, i) for each i below n, from several goroutines at
// once but with one worker value each, made by newWorker. The order is not
// fixed; results that are stored by i do not depend on it. It stops between
// batches when ctx ends and returns its error. progress is called with the
// number of calls done, never twice at once.
func forEach[W any](ctx context.Context, n int, newWorker func() W, work func(W, int),
	progress func(done int),
) error {
	workers := min(runtime.GOMAXPROCS(0), (n+batch-1)/batch)
	var next atomic.Int64
	var reporting sync.Mutex
	done := 0
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			w := newWorker()
			for ctx.Err() == nil {
				begin := int(next.Add(batch)) - batch
				if begin >= n {
					return
				}
				end := min(begin+batch, n)
				for i := begin; i < end; i++ {
					work(w, i)
				}
				reporting.Lock()
				done += end - begin
				progress(done)
				reporting.Unlock()
			}
		})
	}
	wait.Wait()
	return ctx.Err()
}
