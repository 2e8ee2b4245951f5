package proxy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
)

// A reader's session may be at a hot standby. Property: no statement of a reader runs on a
// standby that has not replayed what the catalog has read at the primary: which tables are
// protected, what is released of them, and to whom (docs/decisions/standbys.md).

const (
	// standbyPatience is how long a login waits for a standby, and for what it has to replay.
	standbyPatience = 5 * time.Second
	// standbyPause is how long a standby that did not serve is passed over.
	standbyPause = 5 * time.Second
	// replayPatience is how long a statement waits for it.
	replayPatience = 10 * time.Second
	// The first and the longest time between two looks at what a standby has replayed.
	firstPause, lastPause = 2 * time.Millisecond, 100 * time.Millisecond
)

// standbys takes those of a configuration by turns. It is safe for concurrent use.
type standbys struct {
	mu     sync.Mutex
	turn   int
	failed map[string]time.Time // when an address did not serve last
}

// next are addresses in the order in which a login tries them.
func (b *standbys) next(addresses []string, now time.Time) (order []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turn++
	for i := range addresses {
		address := addresses[(b.turn+i)%len(addresses)]
		if failed, ok := b.failed[address]; !ok || now.Sub(failed) >= standbyPause {
			order = append(order, address)
		}
	}
	return order
}

// fail notes that an address did not serve.
func (b *standbys) fail(address string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failed == nil {
		b.failed = make(map[string]time.Time)
	}
	b.failed[address] = now
}

// wantsStandby says whether a session is to be at a standby.
func (r *running) wantsStandby(principal *catalog.Principal, parameters map[string]string) bool {
	return len(r.UpstreamReaders) > 0 && principal.Reader &&
		loginParameter(parameters, "tailor.upstream") != "primary"
}

// connectStandby logs in at a standby; nil where none serves.
func (p *Proxy) connectStandby(
	ctx context.Context, r *running, parameters map[string]string, keys *scram.Keys,
) *upstream {
	for _, address := range p.standbys.next(r.UpstreamReaders, p.clock()) {
		u, err := p.tryStandby(ctx, r, address, parameters, keys)
		if err == nil {
			p.metrics.standbys[served].Add(1)
			return u
		}
		p.metrics.standbys[passedOver].Add(1)
		p.log.Warn("standby passed over", "address", address, "error", err)
		var refused *errorResponse
		if !errors.As(err, &refused) { // else the role may be too young for it
			p.standbys.fail(address, p.clock())
		}
	}
	return nil
}

// tryStandby logs in at one standby, which has to have replayed what the catalog has read.
func (p *Proxy) tryStandby(
	ctx context.Context, r *running, address string, parameters map[string]string, keys *scram.Keys,
) (*upstream, error) {
	ctx, cancel := context.WithTimeout(ctx, standbyPatience)
	defer cancel()
	u, err := r.connect(ctx, address, parameters, keys)
	if err != nil {
		return nil, err
	}
	u.standby = true
	err = p.awaitReplay(ctx, u, func(query string) ([][]byte, error) { return u.ask(query) })
	if err != nil {
		u.close()
		return nil, err
	}
	return u, nil
}

// errBehind is a standby's that has not replayed in time what the catalog has read.
var errBehind = errors.New("the standby has not replayed what the primary shows")

// awaitReplay returns when a standby has replayed what the catalog has read. ask sends it a
// query, given from behind SELECT, and returns the row; nil where the server fails.
func (p *Proxy) awaitReplay(
	ctx context.Context, u *upstream, ask func(query string) (row [][]byte, err error),
) error {
	wanted := p.catalog.Position()
	for pause := firstPause; !u.replayed.Has(wanted); pause = min(2*pause, lastPause) {
		row, err := ask("tailor.replayed()")
		if err != nil {
			return err
		}
		if u.replayed, err = replayed(row, wanted); err != nil || u.replayed.Has(wanted) {
			return err
		}
		select {
		case <-ctx.Done():
			return errBehind
		case <-time.After(pause):
		}
	}
	return nil
}

// replayed reads the answer of tailor.replayed.
func replayed(row [][]byte, wanted catalog.Position) (at catalog.Position, err error) {
	if len(row) != 1 || row[0] == nil {
		return at, errors.New("the server is no standby of a database with Tailor")
	}
	bytes, timeline, _ := strings.Cut(string(row[0]), " ")
	if timeline != wanted.Timeline {
		return at, fmt.Errorf("the standby is of timeline %q, the primary of %q",
			timeline, wanted.Timeline)
	}
	at.Timeline = timeline
	at.Bytes, err = strconv.ParseUint(bytes, 10, 64)
	return at, err
}

// assertReplayed fails where the session is at a standby that does not show what the catalog
// has read. On a loop it returns errWaits. single says that what is to run is one statement,
// which in a failed transaction does not run, or only ends that.
func (s *session) assertReplayed(ctx context.Context, single bool) error {
	u := s.server
	if !u.standby {
		return nil
	}
	if _, err := s.proxy.catalog.Snapshot(); err != nil { // nobody knows what it should show
		return err
	}
	switch {
	case u.replayed.Has(s.proxy.catalog.Position()):
		return nil
	case s.loopSession != nil:
		return errWaits
	case s.hasFailed() && single:
		return nil
	case s.hasFailed() || s.state.InPipeline(): // nothing can be asked
		return sqlstate.New(sqlstate.SerializationFailure,
			"what is released has changed since the transaction began").
			WithHint("Send ROLLBACK by itself, and the transaction again.")
	}
	ctx, done := s.work.during(ctx)
	defer done()
	waiting, cancel := context.WithTimeout(ctx, replayPatience)
	defer cancel()
	err := s.proxy.awaitReplay(waiting, u, func(query string) ([][]byte, error) {
		rows, err := s.ask(waiting, "SELECT "+query)
		if err != nil || len(rows) != 1 {
			return nil, err
		}
		return rows[0], nil
	})
	if ctx.Err() != nil {
		return interrupted(ctx, err)
	}
	if err != nil && s.hasFailed() && single { // as turned out by now
		return nil
	}
	if err != nil {
		s.proxy.standbys.fail(u.address, s.proxy.clock())
		return sqlstate.New(sqlstate.CannotConnectNow,
			"the standby of this session is behind the primary, or is none any more").
			WithHint("Connect again: the session will be at another server.").Wrap(err)
	}
	if s.beginning {
		s.beganAt = u.replayed
	}
	return nil
}

// precedes says that a snapshot of the session's transaction may be older than a release.
func (s *session) precedes(release *catalog.Release) bool {
	if s.server.standby {
		heard := release.Position
		if heard.Timeline != s.beganAt.Timeline { // there was a failover since
			heard = s.proxy.catalog.Position()
		}
		return !s.beganAt.Has(heard)
	}
	return release.Since.After(s.began)
}
