package audit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

const asked = "SELECT age, zip, sex, avg(cost) FROM patients WHERE age >= 30 AND zip LIKE '35%' " +
	"GROUP BY age, zip, sex"

// BenchmarkAppend compares what a record adds to a protected query with the
// bare cost of its durability: a write and a flush of as many bytes to the same
// disk, in turn with it.
func BenchmarkAppend(b *testing.B) {
	dir := b.TempDir()
	config := DefaultConfig()
	config.File, config.Table = filepath.Join(dir, "audit.jsonl"), false
	l, err := Open(b.Context(), "", config, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	bare, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = bare.Close() }()
	line := make([]byte, 900)
	var appended, flushed []time.Duration
	for b.Loop() {
		started := time.Now()
		r := NewRecord(started, asked)
		if err := l.Append(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		appended = append(appended, time.Since(started))
		l.Finish(r, Outcome{Verdict: Passed, Rows: 1})
		started = time.Now()
		_, _ = bare.Write(line)
		if err := syscall.Fdatasync(int(bare.Fd())); err != nil {
			b.Fatal(err)
		}
		flushed = append(flushed, time.Since(started))
	}
	slices.Sort(appended)
	slices.Sort(flushed)
	b.ReportMetric(float64(appended[len(appended)/2].Microseconds()), "µs-median")
	b.ReportMetric(float64(flushed[len(flushed)/2].Microseconds()), "µs-bare-flush")
}

// BenchmarkGroupCommit has sessions append at once: what they pay together for
// a flush falls with their number.
func BenchmarkGroupCommit(b *testing.B) {
	for _, sessions := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			config := DefaultConfig()
			config.File, config.Table = filepath.Join(b.TempDir(), "audit.jsonl"), false
			l, err := Open(b.Context(), "", config, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			for b.Loop() {
				var group sync.WaitGroup
				for range sessions {
					group.Go(func() {
						if err := l.Append(context.Background(), NewRecord(time.Now(), asked)); err != nil {
							b.Error(err)
						}
					})
				}
				group.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*sessions), "µs/record")
		})
	}
}
