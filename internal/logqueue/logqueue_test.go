package logqueue_test

import (
	"bufio"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/logqueue"
)

// TestNobodyWaitsForALogThatIsNotRead writes to a pipe that is read later on.
func TestNobodyWaitsForALogThatIsNotRead(t *testing.T) {
	reader, writer := io.Pipe()
	missed := 0
	q := logqueue.New(writer, func(lines int) { missed += lines })
	const all = 10000
	written := make(chan struct{})
	go func() {
		defer close(written)
		line := []byte("line\n")
		for range all {
			_, _ = q.Write(line)
		}
		copy(line, "LINE") // what was given is the caller's
	}()
	select {
	case <-written:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	closed := make(chan struct{})
	go func() {
		q.Close(20 * time.Second)
		_ = writer.Close()
		close(closed)
	}()
	read := 0
	for lines := bufio.NewScanner(reader); lines.Scan(); read++ {
		if lines.Text() != "line" {
			t.Errorf("line %d is %q", read, lines.Text())
		}
	}
	<-closed
	if missed == 0 || read+missed != all {
		t.Errorf("%d lines are written and %d left out, of %d", read, missed, all)
	}
	if n, err := fmt.Fprintln(q, "late"); n != 5 || err != nil {
		t.Errorf("a late line: %d, %v", n, err)
	}
}

func TestAQueueThatNobodyReadsIsLeftInTime(t *testing.T) {
	_, writer := io.Pipe()
	q := logqueue.New(writer, func(int) {})
	_, _ = fmt.Fprintln(q, "line")
	started := time.Now()
	q.Close(10 * time.Millisecond)
	if waited := time.Since(started); waited > 5*time.Second {
		t.Errorf("closing takes %v", waited)
	}
}
