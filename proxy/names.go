package proxy

import (
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// prepared is a statement that the client has prepared under a name, or the
// unnamed one.
type prepared struct {
	*statementInfo // at the client's own text
	plan           *planner.Plan
	meant          uint64 // the meaning of names that the plan depends on; 0 for none
	name           string // under which the server knows it
	// fetches is what a text reads that fetches from cursors.
	fetches *decision
	// decision is what the text reads that the server has; nil where it passes.
	decision *decision
	// failed says that the server has refused to do this, or has passed over it, which
	// passedOver says, and done that it has done it; before is what the name stood for until then.
	failed, passedOver, done atomic.Bool
	closed                   bool // it is no statement, but the closing of one
	cut                      bool // the text is only the beginning of what the server got
	before                   *prepared
	nth                      int      // of unnamed ones, one before the other
	types                    []uint32 // of parameters, as the client gave them
	sent                     string   // what the server got for a text that passes; empty for the text
	// generation is the session's connection that knows it, -1 where it is to be
	// prepared again.
	generation atomic.Int64
}

// portal is a bound statement. It is decided and recorded once, however many
// times rows are fetched from it.
type portal struct {
	*prepared
	name    string        // under which the server knows it
	bound   *decision     // what it reads
	took    time.Duration // to decide
	decided bool          // its run is recorded
	record  *audit.Record // of a released statement; each fetch completes it
	asked   int64         // how often the server had been asked before; see forgetEnded
}

// names says what the client's names of statements and portals stand for. What
// reads a release has a name of the proxy's own at the server: whatever the
// client does with its names, in messages or in SQL, what runs is what these
// maps say, and what they say is what the record holds.
type names struct {
	statements map[string]*prepared
	portals    map[string]*portal
	cursors    map[string]*cursor
	declared   bool // there has been a cursor over releases
	kept       bool // there has been a PREPARE over releases
	complete   bool // the server need not know all names: see pooled
	given      int
	holds      bool     // there may have been a cursor WITH HOLD over anything else
	closing    []string // statements that the client has closed
	held       int      // what all takes, or more: see assertHolds
}

func newNames() names {
	return names{
		statements: make(map[string]*prepared), portals: make(map[string]*portal),
		cursors: make(map[string]*cursor),
	}
}

// fetches is what running a portal reads through cursors over releases, and the
// text that says so: FETCH, or the cursor run by message; nil for nothing.
func (n *names) fetches(client string) (d *decision, text string) {
	if p := n.portals[client]; p != nil {
		return p.fetches, p.text
	}
	if c := n.cursors[client]; c != nil {
		return c.decision, "FETCH"
	}
	return nil, ""
}

// bound notes which statement, without protected tables, a portal runs. Where the
// portal had another one, that is forgotten: nobody but the map has a portal.
func (n *names) bound(to []byte, p *prepared, asked int64) {
	if known := n.portals[string(to)]; known != nil && known.name == string(to) {
		*known = portal{prepared: p, name: known.name, asked: asked}
		return
	}
	n.portals[string(to)] = &portal{prepared: p, name: string(to), asked: asked}
}

// ownPrefix starts the names that the proxy gives.
const ownPrefix = "tailor_own_"

// give makes a name for the server, for the client's unnamed ones too: what
// reads a release never lies where a name of the client's could reach it.
func (n *names) give() string {
	n.given++
	return fmt.Sprintf("%s%d", ownPrefix, n.given)
}

// own says whether a name is of the proxy's own. Clients cannot use one.
func own[Name string | []byte](name Name) bool {
	return len(name) >= len(ownPrefix) && string(name[:len(ownPrefix)]) == ownPrefix
}

// errOwnName ends messages that use a name of the proxy's own: what is under it
// is run when the proxy says so, once it has been recorded.
func errOwnName(client string) error {
	return sqlstate.New(sqlstate.InsufficientPrivilege, "name %q is reserved", client)
}

// replace closes what the client's unnamed statement ('S') or portal ('P')
// stands for, as the server does with its own.
func (s *session) replace(kind byte, client string) error {
	name := s.names.server(kind, client)
	if client != "" || !own(name) {
		return nil
	}
	s.expect.add(&pendingReply{kind: 'C', silent: true})
	return send(s.up, &pgproto3.Close{ObjectType: kind, Name: name})
}

// taken says that a name stands for a protected statement, so that the server,
// which has it under another name, would not see the clash.
func (n *names) taken(client string) bool {
	p := n.statement(client)
	return client != "" && p != nil && (own(p.name) || n.complete)
}

// server is the name that the server has for a client's statement or portal.
func (n *names) server(kind byte, client string) string {
	switch kind {
	case 'S':
		if p := n.statement(client); p != nil {
			return p.name
		}
	case 'P':
		if p := n.portals[client]; p != nil {
			return p.name
		}
	}
	return client
}

// statement is what a client's name stands for at the server, as far as its answers have
// come: a Parse or a Close that has failed, or that the server has passed over, has
// changed nothing. It is nil where that is not known.
func (n *names) statement(client string) *prepared {
	if p := n.latest(client); p != nil && !p.closed {
		return p
	}
	return nil
}

// latest is what has last been sent about a name, short of what has failed. It is nil
// where the name stands for nothing.
func (n *names) latest(client string) *prepared {
	last := n.statements[client]
	p := last
	for p != nil && p.failed.Load() {
		if client == "" && !p.passedOver.Load() { // the server has forgotten what there was
			p = nil
			break
		}
		p = p.before
	}
	if p != nil && p.done.Load() {
		p.before = nil
		if p.closed {
			p = nil
		}
	}
	switch {
	case p == nil && last != nil:
		delete(n.statements, client)
	case p != last:
		n.statements[client] = p
	}
	return p
}

// prepare notes what a name stands for once the server has answered. Both it and close
// return what the expectation of that answer decides about.
func (n *names) prepare(client string, p *prepared) *prepared {
	p.before = n.latest(client)
	if client == "" && p.before != nil {
		if p.nth = p.before.nth + 1; p.nth > maxUnnamed {
			p.before, p.nth = nil, 0
		}
	}
	n.statements[client] = p
	return p
}

// maxUnnamed bounds how many unnamed statements are kept in a pipeline, one behind the other: the
// last that a failure leaves may be any of them.
const maxUnnamed = 16

// close notes that a statement is to be closed; nil for one that is not known.
func (n *names) close(client string) *prepared {
	n.reap()
	p := n.statement(client)
	if p == nil {
		return nil
	}
	n.closing = append(n.closing, client)
	n.statements[client] = &prepared{closed: true, before: p}
	return n.statements[client]
}

// reap forgets the statements of which the server has said that they are closed.
func (n *names) reap() {
	for len(n.closing) > 0 {
		p := n.statements[n.closing[0]]
		if p != nil && p.closed && !p.done.Load() && !p.failed.Load() {
			return
		}
		n.latest(n.closing[0])
		n.closing = n.closing[1:]
	}
	n.closing = nil
}

var deallocation = regexp.MustCompile(
	`(?is)^\s*deallocate\s+(?:prepare\s+)?("(?:[^"]|"")+"|[a-z_][a-z0-9_$]*)\s*;?\s*$`)

var discarding = regexp.MustCompile(
	`(?is)^\s*(?:deallocate\s+(?:prepare\s+)?|discard\s+)all\s*;?\s*$`)

// discard follows a text that makes the server forget all statements.
func (n *names) discard(l *statementInfo) {
	if len(n.statements) > 0 && l.discards() {
		clear(n.statements)
	}
}

// discards says whether a text makes the server forget all statements.
func discards(text string) bool {
	return len(text) < 100 && startsWithD(text) && discarding.MatchString(text)
}

// startsWithD spares most texts the look of a regular expression.
func startsWithD(text string) bool {
	text = strings.TrimLeft(text, " \t\n\f\r")
	return text != "" && text[0]|0x20 == 'd'
}

// deallocated rewrites DEALLOCATE of a protected statement, which some drivers
// send in place of Close. ok is false for any other text.
func (n *names) deallocated(text string) (rewritten string, ok bool) {
	if n.given == 0 && !n.complete { // a protected statement has a name of the proxy's own
		return "", false
	}
	m := deallocation.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	name := strings.ToLower(m[1])
	if m[1][0] == '"' {
		name = strings.ReplaceAll(m[1][1:len(m[1])-1], `""`, `"`)
	}
	name = cutIdentifier(name)
	if !n.taken(name) {
		return "", false
	}
	rewritten = `DEALLOCATE "` + n.statements[name].name + `"`
	delete(n.statements, name)
	return rewritten, true
}
