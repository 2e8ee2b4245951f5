package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Log writes records to its sinks. It is safe for concurrent use.
type Log struct {
	config  Config
	log     *slog.Logger
	clock   func() time.Time
	entries chan entry
	done    chan struct{}
	closing sync.Once
	writer  sync.WaitGroup
	leftOut atomic.Int64 // lines lost since the last one that was written
	long    atomic.Int64 // bytes of the long statements of records that nobody waits for
	logins  limiter
	texts   texts

	turn  chan struct{} // held by the one who writes
	noted chan struct{} // lines are queued that nobody waits for
	// failing says that the last batch could not be written; the one who has the turn sets it.
	failing atomic.Bool

	// The rest belongs to the one who has the turn.
	file    *file  // nil: none
	table   *table // nil: none
	last    head   // of the chain
	behind  bool   // the table may lack lines, or the head may be another
	waiting []entry
	sealed  batch // of what waits, from its beginning
}

// Available says whether the last records could be written; it is true before there are any.
func (l *Log) Available() bool { return !l.failing.Load() }

// batch are lines that have got their places in the chain.
type batch struct {
	lines   [][]byte
	text    []byte // all of them
	last    head
	missing int64 // lines that were left out before the first
}

// entry is a line on its way; written is nil where nobody waits.
type entry struct {
	line    chained
	written chan error
}

// ErrClosed is returned for a record that comes after Close.
var ErrClosed = errors.New("audit log is closed")

const (
	queueLength = 4096
	batchLength = 512
	// batchBytes is how much text a batch holds that is written at once, and longBytes how
	// much of texts longer than longText waits for that where nobody else waits.
	batchBytes   = 512 << 10
	longBytes    = 2 << 20
	longText     = 512
	tidyLength   = 8
	writeTimeout = 10 * time.Second
	// linger is how long lines that nobody waits for may wait for others: their
	// flush is one that somebody may come to wait for.
	linger = 100 * time.Millisecond
	// retry is how often lines that could not be written are tried again.
	retry = time.Second
)

// Open starts a log. dsn is that of tailor_owner. Where file and table have
// come apart, the table is given what it lacks.
func Open(ctx context.Context, dsn string, config Config, log *slog.Logger) (*Log, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	l := &Log{
		config: config, log: log, clock: time.Now, last: newChain(),
		entries: make(chan entry, queueLength), done: make(chan struct{}),
		turn: make(chan struct{}, 1), noted: make(chan struct{}, 1),
	}
	if err := l.open(ctx, dsn); err != nil {
		l.release()
		return nil, fmt.Errorf("audit log: %w", err)
	}
	l.writer.Go(l.write)
	return l, nil
}

func (l *Log) open(ctx context.Context, dsn string) error {
	var err error
	if l.config.File != "" {
		var held head
		if l.file, held, err = openFile(l.config.File, l.config.FileBytes,
			l.config.TotalBytes); err != nil {
			return err
		}
		if held != (head{}) {
			l.last = held
		}
		if l.file.givenBack > 0 {
			l.log.Warn("the audit file was given back what its journal held", "records", l.file.givenBack)
		}
		if r := l.file.rescued; r.records > 0 {
			l.log.Error("the audit file was cut, replaced or moved away before it held all that its "+
				"journal holds, which is set aside",
				"records", r.records, "aside", r.name, "after", r.after)
		}
	}
	if !l.config.Table {
		return l.compareFile(ctx, dsn)
	}
	if l.table, err = openTable(ctx, dsn, l.file != nil); err != nil {
		return err
	}
	return l.catchUp(ctx)
}

// release closes the sinks.
func (l *Log) release() {
	if l.file != nil {
		l.file.close()
	}
	if l.table != nil {
		l.table.close()
	}
}

// Append writes a record and returns once it is durable in every sink. Whoever
// comes first writes what is queued by then, for the others too.
func (l *Log) Append(ctx context.Context, r *Record) error {
	r.redact(l.config.SQL, &l.texts)
	e := entry{line: r, written: make(chan error, 1)}
	select {
	case <-l.done:
		return ErrClosed
	case l.entries <- e:
	default:
		select {
		case <-l.done:
			return ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		case l.entries <- e:
		}
	}
	for {
		select {
		case err := <-e.written:
			return err
		case <-l.done:
			return ErrClosed
		case l.turn <- struct{}{}:
			l.gather(batchLength)
			l.writeBatch()
			<-l.turn
		}
	}
}

// SealPending gives the lines that nobody waits for their places in the chain, if there
// are few and nobody writes: the record that comes next need not wait for that.
func (l *Log) SealPending() {
	if len(l.entries) == 0 {
		return
	}
	select {
	case l.turn <- struct{}{}:
	default:
		return
	}
	if l.gather(tidyLength); l.Available() && !l.behind && len(l.waiting) <= tidyLength {
		if l.seal() != nil {
			l.unsealBatch() // whoever writes will say why
		}
	}
	<-l.turn
}

// Finish hands over how a statement ended, without waiting: its record, or the
// completion of the one that was appended before. The record is the log's from
// then on. Where many long statements wait for the log, their records lose the text.
func (l *Log) Finish(r *Record, o Outcome) {
	if n := len(r.statement); n > longText {
		if l.long.Add(int64(n)) <= longBytes {
			r.long = n
		} else {
			l.long.Add(-int64(n))
			r.statement = notHeld
		}
	}
	l.note(r.finish(l.clock(), o))
}

// letGo ends that a line counts among the long ones.
func (l *Log) letGo(line chained) {
	if r, ok := line.(*Record); ok && r.long > 0 {
		l.long.Add(-int64(r.long))
		r.long = 0
	}
}

// RefusedLogin hands over the record of a login. Where they come too fast,
// which anybody can bring about, only their number is kept.
func (l *Log) RefusedLogin(r *Record) {
	if !l.logins.allow(l.clock()) {
		l.leftOut.Add(1)
		return
	}
	l.note(r)
}

// note queues a line that nobody waits for. Where the log has been unavailable
// for so long that the queue is full, the line is left out and counted: other
// statements than protected ones do not wait for the log.
func (l *Log) note(line chained) {
	select {
	case <-l.done:
		return
	case l.entries <- entry{line: line}:
	default:
		l.letGo(line)
		l.leftOut.Add(1)
	}
	select {
	case l.noted <- struct{}{}:
	default: // it is known already that there are some
	}
}

// Close writes what is queued and ends the log.
func (l *Log) Close() {
	l.closing.Do(func() {
		close(l.done)
		l.writer.Wait()
		l.turn <- struct{}{} // and keeps it
		for l.gather(batchLength); len(l.waiting) > 0; l.gather(batchLength) {
			if l.writeBatch(); !l.Available() {
				break // nobody tries again
			}
		}
		l.release()
	})
}

// write writes the lines that nobody waits for, a little later, so that they
// share a flush with others, and tries again what could not be written.
func (l *Log) write() {
	tick := time.NewTicker(retry)
	defer tick.Stop()
	for {
		again := false
		select {
		case <-l.done:
			return
		case <-l.noted:
			select {
			case <-time.After(linger):
			case <-l.done:
				return
			}
		case <-tick.C:
			again = true
		}
		l.turn <- struct{}{}
		l.gather(batchLength)
		if l.Available() || again {
			l.writeBatch()
		}
		for l.Available() && len(l.entries) > 0 {
			l.gather(batchLength)
			l.writeBatch()
		}
		<-l.turn
	}
}

func (e entry) answer(err error) {
	if e.written != nil {
		e.written <- err
	}
}

// gather takes what is queued, so many lines at most, and about as much text as a batch
// holds.
func (l *Log) gather(most int) {
	for bytes := 0; most > 0 && bytes < batchBytes; most-- {
		select {
		case e := <-l.entries:
			l.waiting = append(l.waiting, e)
			if r, ok := e.line.(*Record); ok {
				bytes += len(r.statement) + len(r.SQL)
			}
		default:
			return
		}
	}
}

// writeBatch writes what waits. On failure those who wait are told, and what
// nobody waits for is kept, up to a bound.
func (l *Log) writeBatch() {
	if len(l.waiting) == 0 {
		return
	}
	durable, err := l.tryBatch()
	if err != nil && l.Available() {
		l.log.Error("audit log unavailable", "error", err)
	}
	if err == nil && !l.Available() {
		l.log.Info("audit log available again")
	}
	l.failing.Store(err != nil)
	var kept []entry
	for _, e := range l.waiting {
		if !durable && e.written == nil {
			kept = append(kept, e)
		} else {
			l.letGo(e.line)
		}
		e.answer(err)
	}
	if excess := len(kept) - queueLength; excess > 0 {
		l.leftOut.Add(int64(excess))
		for _, e := range kept[:excess] {
			l.letGo(e.line)
		}
		kept = kept[excess:]
	}
	l.waiting = kept
}

// tryBatch seals what waits and writes it to all sinks. It says whether the
// lines are durable in the first of them, which settles their place in the
// chain, and what went wrong.
func (l *Log) tryBatch() (durable bool, err error) {
	ctx := context.Background()
	if l.table != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, writeTimeout)
		defer cancel()
	}
	if l.behind {
		l.unsealBatch() // lines may turn out to have been written
		if err := l.catchUp(ctx); err != nil {
			return false, err
		}
	}
	defer l.unsealBatch()
	if err := l.seal(); err != nil {
		return false, err
	}
	durable, err = l.writeSinks(ctx, l.sealed.lines, l.sealed.text)
	if !durable {
		return false, err
	}
	l.last, l.sealed.missing = l.sealed.last, 0
	for _, e := range l.waiting {
		if r, ok := e.line.(*Record); ok {
			r.written = true
		}
	}
	return true, err
}

// seal gives what waits its place in the chain.
func (l *Log) seal() error {
	b := &l.sealed
	if len(l.waiting) == 0 {
		return nil // nobody would tell what is missing
	}
	if len(b.lines) == 0 {
		b.last, b.missing = l.last, l.leftOut.Swap(0)
	}
	for _, e := range l.waiting[len(b.lines):] {
		if r, ok := e.line.(*Record); ok {
			r.redact(l.config.SQL, &l.texts)
		}
		e.line.chained().LeftOut = 0
		if len(b.lines) == 0 {
			e.line.chained().LeftOut = b.missing
		}
		line, err := b.last.seal(e.line)
		if err != nil {
			return err
		}
		b.lines = append(b.lines, line)
		b.text = append(append(b.text, line...), '\n')
	}
	return nil
}

// unsealBatch takes the places from the lines that have them, unless the lines have been written.
func (l *Log) unsealBatch() {
	l.leftOut.Add(l.sealed.missing)
	l.sealed = batch{}
}

// writeSinks writes to the file while the table's transaction is under way,
// and commits that once the file is durable: the table is never ahead.
func (l *Log) writeSinks(
	ctx context.Context, lines [][]byte, text []byte,
) (durable bool, err error) {
	if l.table == nil {
		err := l.file.write(text)
		return err == nil, err
	}
	if l.file == nil {
		err := l.table.insert(ctx, lines, func() error { return nil })
		l.behind = err != nil
		return err == nil, err
	}
	filed := make(chan error, 1)
	go func() { filed <- l.file.write(text) }()
	asked := false
	var fault error
	err = l.table.insert(ctx, lines, func() error {
		asked, fault = true, <-filed
		return fault
	})
	if !asked {
		fault = <-filed
	}
	if fault != nil {
		return false, fault
	}
	l.behind = err != nil
	return true, err
}

// catchUp brings the sinks together after one of them failed, and at the start.
func (l *Log) catchUp(ctx context.Context) error {
	held, err := l.table.head(ctx, l.last.Log)
	if err != nil {
		return err
	}
	switch {
	case held == l.last || held == (head{}) && l.last.Sequence == 0:
	case l.file == nil: // a commit went through whose answer was lost
		l.waiting = slices.DeleteFunc(l.waiting, func(e entry) bool {
			c := e.line.chained()
			return c.Log == held.Log && c.Sequence > l.last.Sequence && c.Sequence <= held.Sequence
		})
		l.last = held
	case held.Sequence > l.last.Sequence:
		l.log.Error("the audit file ends before the table does: it was cut or replaced; a new "+
			"chain begins",
			"chain", held.Log, "file", l.last.Sequence, "table", held.Sequence)
		l.last = newChain()
	default:
		err = linesAfter(l.file.path, head{Log: l.last.Log, Sequence: held.Sequence}, batchLength,
			func(lines [][]byte) error {
				if err := l.compare(ctx, l.table, lines, held != (head{})); err != nil {
					return err
				}
				return l.table.insert(ctx, lines, func() error { return nil })
			})
	}
	if err == nil {
		l.behind = false
	}
	return err
}

// compare has the database note a restore where its chains are not as far as lines of
// the file say: it has lost what it had committed.
func (l *Log) compare(ctx context.Context, t *table, lines [][]byte, recent bool) error {
	lost, err := t.noteLoss(ctx, lines, recent)
	if lost {
		l.log.Error("the audit file is ahead of the database, which has lost commits; see tailor doctor",
			"chain", l.last.Log)
	}
	return err
}

// compareFile compares the end of the file where no table is kept.
func (l *Log) compareFile(ctx context.Context, dsn string) error {
	if l.last.Sequence == 0 || dsn == "" {
		return nil
	}
	t, err := openTable(ctx, dsn, false)
	if err != nil {
		return err
	}
	defer t.close()
	after := head{Log: l.last.Log, Sequence: max(0, l.last.Sequence-batchLength)}
	return linesAfter(l.file.path, after, batchLength, func(lines [][]byte) error {
		return l.compare(ctx, t, lines, false)
	})
}
