package proxy

import (
	"unicode/utf8"

	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// What a session knows of names is bounded. Attacker: a client that gives name after
// name, to what the server takes or refuses. Property: statements, portals and cursors
// with their texts take about maxHeld, and what goes beyond it is refused. What the
// server has forgotten is forgotten before. TestASessionTakesAtMostFourMegabytes checks
// it.

const (
	// maxHeld is how much names and what they stand for may take, in bytes.
	maxHeld = 3 << 20
	// What they take: a statement without its text, a portal, one over releases, and a
	// cursor over releases.
	statementWeight = 512
	portalWeight    = 256
	releasedWeight  = 2 << 10
	cursorWeight    = 1 << 10
)

// cutName is as much of a name as PostgreSQL looks at, which knows statements and portals
// by as many bytes as an identifier has.
func cutName(name []byte) []byte { return name[:min(len(name), longestName)] }

// cutIdentifier is as much of a name in SQL as PostgreSQL looks at: whole characters.
func cutIdentifier(name string) string {
	if len(name) <= longestName {
		return name
	}
	end := longestName
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

func (p *prepared) weight() int {
	if p.closed {
		return statementWeight
	}
	return statementWeight + len(p.text) + len(p.sent) + 4*len(p.types) + p.plan.Bytes()
}

func (p *portal) weight() int {
	if p.bound != nil {
		return releasedWeight
	}
	return portalWeight
}

// assertHolds refuses what a session has no room to know any more. What goes is
// subtracted when the room has been used up, and not before.
func (s *session) assertHolds(more int) error {
	n := &s.names
	if n.held += more; n.held <= maxHeld {
		return nil
	}
	s.forgetEnded()
	if n.held = n.weigh(); n.held+more <= maxHeld {
		n.held += more
		return nil
	}
	return sqlstate.New(sqlstate.ProgramLimitExceeded,
		"the session has too many prepared statements, portals or cursors").
		WithHint("Close what is no longer needed: with texts and names they may take %d MB.", maxHeld>>20)
}

// weigh is how much is held. Statements that the server refused to prepare go. A portal
// has its statement for as long as it is there, whatever the statement's name stands for.
func (n *names) weigh() (held int) {
	counted := make(map[*prepared]bool, len(n.statements))
	for name := range n.statements {
		for p := n.latest(name); p != nil; p = p.before {
			held += len(name) + p.weight()
			counted[p] = true
		}
	}
	for name, portal := range n.portals {
		held += len(name) + portal.weight()
		for p := portal.prepared; p != nil && !counted[p]; p = p.before {
			held += p.weight()
			counted[p] = true
		}
	}
	for name := range n.cursors {
		held += len(name) + cursorWeight
	}
	return held
}

// forgetEnded forgets the portals whose transaction has ended: the server has answered
// what was sent behind their Bind, and has no transaction open.
func (s *session) forgetEnded() {
	answered := s.replies.Load()
	if s.status.Load() != 'I' {
		return
	}
	for name, p := range s.names.portals {
		if p.asked < answered {
			delete(s.names.portals, name)
		}
	}
}

// shorten leaves of a statement that passes what is needed once the server has it: a long
// text is of no use to its record. Another connection could not be given it any more.
func (s *session) shorten(p *prepared) {
	shown := audit.Shown(p.text)
	if len(shown) == len(p.text) {
		return
	}
	for _, ask := range []func() bool{
		p.alike, p.plain, p.settles, p.ends, p.discards, p.explains, p.labels, p.holds, p.parameters,
	} {
		ask() // while there is the whole
	}
	look := *p.statementInfo
	look.text = shown
	p.statementInfo, p.cut = &look, true
	if s.pool != nil {
		s.pool.pinned = true
	}
}
