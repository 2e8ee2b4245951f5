package proxy

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/proxy/internal/scram"
)

// The server's side of a session is kept for another only where logins that
// are alike come this fast: at a person's pace each session is a new one, as
// without the proxy.
const (
	rushLogins   = 10
	rushInterval = time.Second
	rushMemory   = time.Minute // the next of who came so fast is taken for as fast
	// recentAge is how long a login in a rush takes to come: what is known for less
	// time is as good as new.
	recentAge = rushInterval / rushLogins
)

// reuseAge is how old a connection to the server may become by reuse.
const reuseAge = 5 * time.Minute

// resetTimeout bounds how long the server may take to clear a session.
const resetTimeout = 5 * time.Second

// idlePool keeps connections to the server between sessions of one role with the
// same start-up parameters, password and settings. It is safe for concurrent use.
type idlePool struct {
	mu     sync.Mutex
	kinds  map[string]*poolKey
	closed bool // nothing is kept any more
}

// poolKey is all logins that are alike.
type poolKey struct {
	kept   []*upstream // the last is the youngest
	logins int         // in the interval
	since  time.Time   // the interval's begin
	rushed time.Time   // when many logins came last
}

// take returns a connection that is kept, nil if none, and counts the login.
func (h *idlePool) take(key string, now time.Time) *upstream {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kinds[key]
	if k == nil {
		if h.kinds == nil {
			h.kinds = make(map[string]*poolKey)
		}
		k = &poolKey{since: now}
		h.kinds[key] = k
	}
	if now.Sub(k.since) >= rushInterval {
		k.logins, k.since = 0, now
	}
	if k.logins++; k.logins >= rushLogins {
		k.rushed = now
	}
	if len(k.kept) == 0 {
		return nil
	}
	last := len(k.kept) - 1
	u := k.kept[last]
	k.kept = k.kept[:last]
	return u
}

// wants says whether a connection is to be kept.
func (h *idlePool) wants(key string, now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.kinds[key]
	return k != nil && now.Sub(k.rushed) < rushMemory
}

// put keeps a connection for some time, or closes it where nothing is kept.
func (h *idlePool) put(u *upstream, now time.Time, long time.Duration) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		u.close()
		return
	}
	defer h.mu.Unlock()
	k := h.kinds[u.kind]
	if k == nil {
		k = &poolKey{since: now}
		h.kinds[u.kind] = k
	}
	u.keptSince, u.keptUntil, u.served = now, now.Add(long), true
	k.kept = append(k.kept, u)
}

// sweep closes what was kept for long enough.
func (h *idlePool) sweep(now time.Time) {
	var over []*upstream
	defer func() { closeAll(over) }()
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, k := range h.kinds {
		k.kept = slices.DeleteFunc(k.kept, func(u *upstream) bool {
			if !now.After(u.keptUntil) {
				return false
			}
			over = append(over, u)
			return true
		})
		if len(k.kept) == 0 && now.Sub(k.since) > 2*rushInterval && now.Sub(k.rushed) > rushMemory {
			delete(h.kinds, key)
		}
	}
}

// closeAll closes connections side by side.
func closeAll(all []*upstream) {
	var group sync.WaitGroup
	for _, u := range all {
		group.Go(u.close)
	}
	group.Wait()
}

// whose says which of the connections that are kept are meant.
type whose func(*upstream) bool

func anybodys(*upstream) bool { return true }

// drop closes what is kept, and says whether there was any.
func (h *idlePool) drop(mine whose) bool {
	var over []*upstream
	h.mu.Lock()
	for _, k := range h.kinds {
		k.kept = slices.DeleteFunc(k.kept, func(u *upstream) bool {
			if mine(u) {
				over = append(over, u)
			}
			return mine(u)
		})
	}
	h.mu.Unlock()
	closeAll(over)
	return len(over) > 0
}

// shut closes everything, for good.
func (h *idlePool) shut() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.drop(anybodys)
}

// count is how many are kept.
func (h *idlePool) count(mine whose) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, k := range h.kinds {
		for _, u := range k.kept {
			if mine(u) {
				n++
			}
		}
	}
	return n
}

// evict closes the connection that has been kept for longest, to make a place,
// and says whether there was one.
func (h *idlePool) evict(mine whose) bool {
	h.mu.Lock()
	var oldest *upstream
	var among *poolKey
	for _, k := range h.kinds {
		for _, u := range k.kept {
			if mine(u) && (oldest == nil || u.keptUntil.Before(oldest.keptUntil)) {
				oldest, among = u, k
			}
		}
	}
	if oldest == nil {
		h.mu.Unlock()
		return false
	}
	among.kept = slices.DeleteFunc(among.kept, func(u *upstream) bool { return u == oldest })
	h.mu.Unlock()
	oldest.close()
	return true
}

// kindOf names what two logins must share for one to take over the connection
// of the other: the role with its password and settings, and all parameters.
func kindOf(principal *catalog.Principal, parameters map[string]string) string {
	all := []string{principal.Verifier, principal.Settings}
	for _, name := range slices.Sorted(maps.Keys(parameters)) {
		all = append(all, name, parameters[name])
	}
	return strings.Join(all, "\x00") // which is in none of them
}

// server finds a connection to the server for a session, or makes one, once
// there is a place for it. The place is the session's.
func (p *Proxy) server(
	ctx context.Context, r *running, parameters map[string]string, client *admitted,
) (u *upstream, err error) {
	if err := p.upstreamLimiter.Acquire(ctx, r.QueueTimeout, p.requestYield); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.upstreamLimiter.Release()
		}
	}()
	if err := p.confirm(ctx, client); err != nil {
		return nil, err
	}
	return p.connected(ctx, r, parameters, client.principal, client.keys)
}

// connected finds a connection or makes one. Others that are only kept make way.
func (p *Proxy) connected(
	ctx context.Context, r *running, parameters map[string]string, principal *catalog.Principal,
	keys *scram.Keys,
) (*upstream, error) {
	atStandby := r.wantsStandby(principal, parameters)
	key := ""
	if r.Pool == PoolTransaction || r.ReuseTimeout > 0 && keys != nil {
		key = kindOf(principal, parameters)
		for {
			u := p.idle.take(key, p.clock())
			if u == nil {
				break
			}
			now := p.clock()
			age := reuseAge
			if atStandby && !u.standby { // there was none
				age = standbyPause
			}
			if u.from == r && now.Sub(u.born) < age && u.silent() &&
				(now.Sub(u.keptSince) < recentAge || u.awake()) {
				return u, nil
			}
			u.close()
		}
	}
	u, err := p.connect(ctx, r, parameters, atStandby, keys)
	if err != nil {
		return nil, err
	}
	u.kind, u.from, u.born = key, r, p.clock()
	return u, nil
}

// connect makes a connection. What is only kept is in the way of none: neither of
// the proxy's limits nor of PostgreSQL's, which are of a role, of a database and
// of all.
func (p *Proxy) connect(
	ctx context.Context, r *running, parameters map[string]string, atStandby bool, keys *scram.Keys,
) (*upstream, error) {
	role, database := parameters["user"], parameters["database"]
	rolesOwn := func(u *upstream) bool { return u.role == role }
	databasesOwn := func(u *upstream) bool { return u.database == database }
	for p.upstreamLimiter.Occupied()+p.idle.count(anybodys) > r.upstreamLimit() &&
		p.idle.evict(anybodys) {
	}
	for r.Pool == PoolSession && p.clientLimiter.Of(role)+
		p.idle.count(rolesOwn) > r.connectionsOfPrincipal() && p.idle.evict(rolesOwn) {
	}
	if atStandby {
		if u := p.connectStandby(ctx, r, parameters, keys); u != nil {
			u.role, u.database = role, database
			return u, nil
		}
	}
	u, err := r.connect(ctx, r.Upstream, parameters, keys)
	for _, makeRoom := range []func() bool{
		func() bool { return p.idle.drop(rolesOwn) },
		func() bool { return p.idle.evict(databasesOwn) },
		func() bool { return p.idle.evict(anybodys) },
	} {
		var refused *errorResponse
		if errors.As(err, &refused) && codeOf(refused.frame) == string(sqlstate.TooManyConnections) &&
			makeRoom() {
			u, err = r.connect(ctx, r.Upstream, parameters, keys)
		}
	}
	if err != nil {
		return nil, err
	}
	u.role, u.database = role, database
	return u, nil
}

// inRush says that logins like the session's come fast.
func (s *session) inRush() bool {
	return s.server.kind != "" && s.proxy.idle.wants(s.server.kind, s.proxy.clock())
}

// leaveServer keeps the server's side of a session that has ended, or closes it,
// and gives its place back.
func (s *session) leaveServer() {
	if s.pool != nil {
		if s.pool.asleep {
			return
		}
		s.pool.setAway(true)
	}
	s.touch.Lock()
	s.parted = true
	s.touch.Unlock()
	defer s.proxy.upstreamLimiter.Release()
	u, r := s.server, s.proxy.running.Load()
	keep := s.reusable && u.from == r && r.ReuseTimeout > 0 && !s.proxy.draining.Load() && s.inRush()
	if !keep || u.clear() != nil {
		u.close()
		return
	}
	u.remember()
	s.proxy.idle.put(u, s.proxy.clock(), r.ReuseTimeout)
}

// clear makes a connection what it was after its login (PostgreSQL, DISCARD):
// settings, temporary tables, locks, listening, statements, the unnamed one
// included. The answer holds a random word: what comes before it is what was asked,
// and nothing that another is owed. It is asked in one pipeline, as each answer of
// its own costs the server a write and the proxy a wake.
func (u *upstream) clear() error {
	_ = u.conn.SetDeadline(time.Now().Add(resetTimeout))
	word := newID()
	err := send(u.conn,
		&pgproto3.Parse{Query: "DISCARD ALL"}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Parse{Query: "SELECT " + literal(word)}, &pgproto3.Bind{}, &pgproto3.Execute{},
		&pgproto3.Close{ObjectType: 'S'}, &pgproto3.Sync{})
	if err != nil {
		return err
	}
	told := &internalQuery{}
	for due := cleared; due != ""; {
		inside := u.frames.inside()
		frame, err := u.frames.next()
		if err != nil {
			return err
		}
		if inside {
			continue
		}
		switch frame[0] {
		case 'S':
			u.setParameter(frame)
			continue
		case 'N', 'A': // what it listened to until now
			continue
		case 'E':
			return errors.New("the server could not clear the session")
		case 'D':
			if err := told.keep(frame); err != nil {
				return err
			}
		case 'Z':
			if frame[len(frame)-1] != 'I' {
				return errors.New("the session is in a transaction")
			}
		}
		if frame[0] != due[0] {
			return errSilentServer
		}
		due = due[1:]
	}
	if len(told.row) != 1 || string(told.row[0]) != word {
		return errSilentServer
	}
	if u.frames.start != u.frames.end {
		return errors.New("the server said more than it was asked")
	}
	u.frames.settle()
	if u.told {
		u.shorten()
	}
	return nil
}

// cleared are the messages that answer clear, in their order.
const cleared = "12C12DC3Z"

// silent says that a kept connection is still there and has said nothing. What
// it says later goes to the next client.
func (u *upstream) silent() bool {
	_ = u.conn.SetDeadline(time.Time{})
	if conn, ok := u.conn.(syscall.Conn); ok {
		return nothingToRead(conn)
	}
	_ = u.conn.SetReadDeadline(time.Now().Add(50 * time.Microsecond))
	err := u.frames.fill(1)
	_ = u.conn.SetReadDeadline(time.Time{})
	var late interface{ Timeout() bool }
	return errors.As(err, &late) && late.Timeout()
}

// awake says that a connection which was kept for a while is answered on. For the
// server's idle_session_timeout the next client's session begins with that, and
// it tells which parameters have changed.
func (u *upstream) awake() bool {
	_ = u.conn.SetDeadline(time.Now().Add(leaveTimeout))
	if send(u.conn, &pgproto3.Sync{}) != nil {
		return false
	}
	for {
		frame, err := u.frames.next()
		if err != nil {
			return false
		}
		switch frame[0] {
		case 'S':
			u.setParameter(frame)
		case 'N':
		case 'Z':
			if u.told {
				u.shorten()
			}
			_ = u.conn.SetDeadline(time.Time{})
			return u.frames.start == u.frames.end
		default:
			return false
		}
	}
}

// nothingToRead says that a connection is open and that nothing has come.
func nothingToRead(conn syscall.Conn) (silent bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(fd uintptr) bool {
		silent = descriptor(fd).silent()
		return true
	})
	return err == nil && silent
}
