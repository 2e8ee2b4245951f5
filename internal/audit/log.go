package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Log writes records to the database and, where one is named, to a file of
// JSON lines. One goroutine writes; what has gathered while it wrote goes out
// together. It is safe for concurrent use.
type Log struct {
	pool     *pgxpool.Pool
	file     *os.File // nil: database only
	log      *slog.Logger
	entries  chan entry
	done     chan struct{}
	closing  sync.Once
	previous string
}

// entry is a record on its way; written is nil where nobody waits.
type entry struct {
	record  *Record
	written chan error
}

// ErrClosed is returned for a record that comes after Close.
var ErrClosed = errors.New("audit log is closed")

const (
	queueLength  = 4096
	batchLength  = 512
	writeTimeout = 10 * time.Second
)

// Open starts a log. path is the file of JSON lines, made with mode 0600 and
// continued where it exists; empty for none.
// dsn is that of tailor_owner; the log has connections of its own, so that a
// record never waits for the work that it is about.
func Open(ctx context.Context, dsn, path string, log *slog.Logger) (*Log, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l, err := open(pool, path, log)
	if err != nil {
		pool.Close()
	}
	return l, err
}

func open(pool *pgxpool.Pool, path string, log *slog.Logger) (*Log, error) {
	l := &Log{pool: pool, log: log, entries: make(chan entry, queueLength), done: make(chan struct{})}
	if path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if l.previous, err = lastHash(file); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("audit log: %w", err)
		}
		l.file = file
	}
	go l.write()
	return l, nil
}

// lastHash reads the hash of the last whole record of a file.
func lastHash(file *os.File) (string, error) {
	lines := bufio.NewReader(file)
	hash := ""
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return hash, nil // a torn last line is left as it is
		}
		if err != nil {
			return "", err
		}
		var r struct{ Hash string }
		if json.Unmarshal(line, &r) == nil {
			hash = r.Hash
		}
	}
}

// Append writes a record and returns once it is durable in every sink.
func (l *Log) Append(ctx context.Context, r *Record) error {
	e := entry{record: r, written: make(chan error, 1)}
	select {
	case <-l.done:
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	case l.entries <- e:
	}
	select {
	case <-l.done:
		return ErrClosed
	case err := <-e.written:
		return err
	}
}

// Note hands a record over without waiting. Where the queue is full it waits
// for room, so that a slow log slows its writers and loses nothing.
func (l *Log) Note(r *Record) {
	select {
	case <-l.done:
	case l.entries <- entry{record: r}:
	}
}

// Close writes what is queued and ends the log.
func (l *Log) Close() {
	l.closing.Do(func() {
		_ = l.Append(context.Background(), nil)
		close(l.done)
		if l.file != nil {
			_ = l.file.Close()
		}
		l.pool.Close()
	})
}

// write is the log's one writer.
func (l *Log) write() {
	for {
		var batch []entry
		select {
		case <-l.done:
			return
		case e := <-l.entries:
			batch = append(batch, e)
		}
		for len(batch) < batchLength && len(l.entries) > 0 {
			batch = append(batch, <-l.entries)
		}
		err := l.writeBatch(batch)
		if err != nil {
			l.log.Error("audit log unavailable", "error", err)
		}
		for _, e := range batch {
			if e.written != nil {
				e.written <- err
			}
		}
	}
}

func (l *Log) writeBatch(batch []entry) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	var lines []byte
	inserts := &pgx.Batch{}
	previous := l.previous
	for _, e := range batch {
		if e.record == nil {
			continue
		}
		e.record.redact()
		line, err := e.record.seal(previous)
		if err != nil {
			return err
		}
		previous = e.record.Hash
		lines = append(append(lines, line...), '\n')
		inserts.Queue(`INSERT INTO tailor.audit_log (id, record) VALUES ($1, $2::text::jsonb)`, e.record.ID, string(line))
	}
	if inserts.Len() == 0 {
		return nil
	}
	if l.file != nil {
		if _, err := l.file.Write(lines); err != nil {
			return err
		}
		if err := l.file.Sync(); err != nil {
			return err
		}
	}
	l.previous = previous
	return l.pool.SendBatch(ctx, inserts).Close()
}
