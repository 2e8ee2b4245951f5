package tests

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/proxy"
)

// noRecords is a sink that keeps nothing, which no configuration allows.
type noRecords struct{}

func (noRecords) Append(context.Context, *audit.Record) error { return nil }
func (noRecords) Finish(*audit.Record, audit.Outcome)         {}
func (noRecords) Available() bool                             { return true }
func (noRecords) SealPending()                                {}
func (noRecords) RefusedLogin(*audit.Record)                  {}

// BenchmarkFileSink asks a protected query through a proxy without records,
// through one that writes them to a file, and flushes as many bytes to the same
// disk, in turn. What a record adds is the median of the differences.
func BenchmarkFileSink(b *testing.B) {
	const asked = "SELECT age, sex, count(*) FROM patients WHERE age >= 30 GROUP BY age, sex"
	dir := b.TempDir()
	config := audit.DefaultConfig()
	config.File, config.Table = filepath.Join(dir, "audit.jsonl"), false
	records, err := audit.Open(b.Context(), "", config, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(records.Close)
	without, with := servedInside(b, noRecords{}), servedInside(b, records)
	bare, err := os.Create(filepath.Join(dir, "bare"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bare.Close() })
	for _, protocol := range []struct {
		name string
		mode pgx.QueryExecMode
	}{{"simple", pgx.QueryExecModeSimpleProtocol}, {"prepared", pgx.QueryExecModeCacheStatement}} {
		b.Run(protocol.name, func(b *testing.B) {
			ask := func(conn *pgx.Conn) time.Duration {
				started := time.Now()
				if _, err := conn.Exec(b.Context(), asked, protocol.mode); err != nil {
					b.Fatal(err)
				}
				return time.Since(started)
			}
			var off, on, added, flush []time.Duration
			line := make([]byte, 1500)
			for b.Loop() {
				off, on = append(off, ask(without)), append(on, ask(with))
				added = append(added, on[len(on)-1]-off[len(off)-1])
				started := time.Now()
				_, _ = bare.Write(line)
				if err := syscall.Fdatasync(int(bare.Fd())); err != nil {
					b.Fatal(err)
				}
				flush = append(flush, time.Since(started))
			}
			for name, times := range map[string][]time.Duration{
				"off": off, "on": on, "added": added,
				"bare-flush": flush,
			} {
				slices.Sort(times)
				b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "µs-"+name)
			}
		})
	}
}

// servedInside starts a proxy in this process and connects a reader to it.
func servedInside(b testing.TB, records proxy.Audit) *pgx.Conn {
	b.Helper()
	log := slog.New(slog.DiscardHandler)
	ctx, stop := context.WithCancel(context.Background())
	policies, err := catalog.Open(ctx, shared.cluster.ServiceDSN("hospital"), log)
	if err != nil {
		b.Fatal(err)
	}
	config := proxy.DefaultConfig()
	config.Upstream = shared.cluster.Address()
	server, err := proxy.New(config, policies, records, log, time.Now)
	if err != nil {
		b.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ended := make(chan error, 1)
	go policies.Watch(ctx)
	go func() { ended <- server.Serve(ctx, listener) }()
	conn, err := pgx.Connect(ctx, "postgres://researcher:researcher@"+listener.Addr().
		String()+"/hospital?sslmode=disable")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = conn.Close(context.Background())
		stop()
		<-ended
		policies.Close()
	})
	return conn
}
