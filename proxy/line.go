package proxy

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	decode "github.com/jackc/pgx/v5/pgproto3"

	"github.com/hiatus-tailor/tailor/catalog"
)

// line is an inquirer's connection. One question about the state, and one about each
// role, is on its way at a time; who asks meanwhile shares the next one, so that many
// logins cost few questions and no answer is older than the question.
type line struct {
	descriptor
	inquiry *catalog.Inquiry
	in      *frames
	out     []byte             // to be sent
	asked   []*asking          // without an answer, in their order
	sent    int                // how many of them have been sent
	under   map[string]*asking // them, by role
	next    map[string]*asking // by role, each to be asked when the one that is on its way is answered
	came    int                // messages of the first answer
	row     decode.DataRow     // of the first answer
	state   catalog.State      // which is the first answer
	found   *catalog.Principal // the same
	at      time.Time          // of the last question
	since   time.Time          // when the first answer became the next to come
}

func newLine(d descriptor, inquiry *catalog.Inquiry, in *frames) *line {
	in.limit = bufferBytes - 1
	return &line{descriptor: d, inquiry: inquiry, in: in, under: make(map[string]*asking), next: make(map[string]*asking), at: time.Now()}
}

// asking is a question to the catalog: for all there is to know of a role, or for
// the server's state.
type asking struct {
	role string // empty for the state
	by   []*inquired
	sent bool
	at   time.Time // when it was
}

// ask asks for a login: for the server's state, where that may tell enough.
func (l *line) ask(a *inquired) error {
	if l.inquiry.Knows(a.name) {
		return l.share("", a)
	}
	return l.share(a.name, a)
}

// share asks for a login, with all others who have the same question.
func (l *line) share(role string, a *inquired) error {
	about := l.next[role]
	if about == nil {
		about = l.under[role]
	}
	switch {
	case about == nil:
		return l.put(&asking{role: role, by: []*inquired{a}})
	case about.sent:
		l.next[role] = &asking{role: role, by: []*inquired{a}}
	default:
		about.by = append(about.by, a)
	}
	return nil
}

// put has a question sent by the next flush, behind those that have been asked.
func (l *line) put(about *asking) (err error) {
	l.asked, l.under[about.role] = append(l.asked, about), about
	if about.role == "" {
		l.out, err = l.inquiry.AskState(l.out)
	} else {
		l.out, err = l.inquiry.AskPrincipal(l.out, about.role)
	}
	return err
}

// flush sends what has been put.
func (l *line) flush() error {
	if len(l.out) == 0 {
		return nil
	}
	l.at = time.Now()
	if l.sent == 0 {
		l.since = l.at
	}
	for ; l.sent < len(l.asked); l.sent++ {
		l.asked[l.sent].sent, l.asked[l.sent].at = true, l.at
	}
	_, err := l.descriptor.Write(l.out)
	l.out = l.out[:0]
	return err // errFull too: a server that reads nothing answers nobody
}

// silent says that the next answer has not come for too long.
func (l *line) silent(now time.Time) bool {
	return l.sent > 0 && now.Sub(l.since) > inquiryPatience
}

// waiting are those without an answer.
func (l *line) waiting() (all []*inquired) {
	for _, about := range l.asked {
		all = append(all, about.by...)
	}
	for _, about := range l.next {
		all = append(all, about.by...)
	}
	return all
}

// read returns the questions that are answered by what has come.
func (l *line) read() (answered []*inquired, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("a broken invariant: %s", debug.Stack())
		}
	}()
	for reads := 0; ; {
		frame, err := l.in.next()
		if err == errAgain {
			return answered, nil
		}
		if err != nil {
			return answered, err
		}
		a, err := l.take(frame)
		answered = append(answered, a...)
		if err != nil {
			return answered, err
		}
		if l.in.buffered() {
			continue
		}
		if reads++; l.in.drained || reads == maxReads {
			l.in.settle()
			return answered, nil
		}
	}
}

// answer are the messages of one, in their order.
const answer = "2DCZ"

// take takes one message, and returns those to whose question it ends the answer.
// Anything that is not due ends the connection.
func (l *line) take(frame []byte) (answered []*inquired, err error) {
	switch kind := frame[0]; {
	case kind == 'N' || kind == 'S': // a notice, or a setting that was reloaded
		return nil, nil
	case l.sent == 0 || kind != answer[l.came]:
		return nil, fmt.Errorf("the catalog said %q out of turn", kind)
	}
	l.came++
	switch first := l.asked[0]; frame[0] {
	case 'D':
		if err := l.row.Decode(frame[headerBytes:]); err != nil {
			return nil, err
		}
		if first.role == "" {
			l.state, err = l.inquiry.HearState(l.row.Values)
			return nil, err
		}
		l.found, err = l.inquiry.HearPrincipal(first.role, l.row.Values)
		return nil, err
	case 'Z':
		if string(frame[headerBytes:]) != "I" {
			return nil, errors.New("the catalog's connection is in a transaction")
		}
		return l.conclude()
	}
	return nil, nil
}

// conclude ends the first question, and asks on: for all there is to know of roles
// that may have changed since it was last asked for, and what waited for its answer.
func (l *line) conclude() (answered []*inquired, err error) {
	first := l.asked[0]
	l.asked, l.sent, l.came, l.since = slices.Delete(l.asked, 0, 1), l.sent-1, 0, time.Now()
	delete(l.under, first.role)
	for _, a := range first.by {
		if a.found = l.found; first.role == "" {
			a.found = l.inquiry.Still(a.name, l.state)
		}
		if a.over = a.found != nil; a.over {
			a.asked = first.at
			answered = append(answered, a)
		} else {
			err = cmp.Or(err, l.share(a.name, a))
		}
	}
	if next := l.next[first.role]; next != nil {
		delete(l.next, first.role)
		err = cmp.Or(err, l.put(next))
	}
	return answered, err
}
