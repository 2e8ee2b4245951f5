// Package logqueue writes a log without making anybody wait for whoever reads it.
package logqueue

import (
	"io"
	"sync"
	"time"
)

// length is how many lines wait to be written.
const length = 4096

// Queue is a writer of lines that returns at once. Where they come faster than they
// are read, or nobody reads them, it leaves lines out and counts them. It is safe
// for concurrent use.
type Queue struct {
	to      io.Writer
	leftOut func(lines int) // is told before the next line
	lines   chan []byte
	done    chan struct{}

	mu     sync.Mutex
	missed int
	closed bool
}

// New starts a queue before a writer. leftOut is called, on the goroutine that
// writes, with how many lines could not be kept.
func New(to io.Writer, leftOut func(lines int)) *Queue {
	q := &Queue{to: to, leftOut: leftOut, lines: make(chan []byte, length), done: make(chan struct{})}
	go q.write()
	return q
}

// Write takes one line, or leaves it out. It never fails.
func (q *Queue) Write(line []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return len(line), nil
	}
	select {
	case q.lines <- append([]byte(nil), line...):
	default:
		q.missed++
	}
	return len(line), nil
}

func (q *Queue) write() {
	defer close(q.done)
	defer q.tell()
	for line := range q.lines {
		q.tell()
		_, _ = q.to.Write(line)
	}
}

func (q *Queue) tell() {
	q.mu.Lock()
	missed := q.missed
	q.missed = 0
	q.mu.Unlock()
	if missed > 0 {
		q.leftOut(missed)
	}
}

// Close takes no more lines, and waits as long as the patience lasts until those
// that it has are written.
func (q *Queue) Close(patience time.Duration) {
	q.mu.Lock()
	if !q.closed {
		q.closed = true
		close(q.lines)
	}
	q.mu.Unlock()
	select {
	case <-q.done:
	case <-time.After(patience):
	}
}
