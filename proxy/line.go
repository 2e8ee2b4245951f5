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

// line is an inquirer's connection.
type line struct {
	descriptor
	inquiry *catalog.Inquiry
	in      *frames
	out     []byte         // to be sent
	asked   []*asking      // without an answer, in their order
	next    *asking        // for the state, once that is answered which is on its way; nil for none
	came    int            // messages of the first answer
	row     decode.DataRow // of the first answer
	state   catalog.State  // which is the first answer
	at      time.Time      // of the last question
}

// asking is a question to the catalog: for all there is to know of a role, or for
// the server's state, which many logins share.
type asking struct {
	role string // empty for the state
	by   []*inquired
	at   time.Time
}

// ask asks for a login: for the server's state, where that may tell enough, with
// all others who ask until it is asked for the next time. No answer is older than
// the question.
func (l *line) ask(a *inquired, now time.Time) error {
	l.at = now
	if !l.inquiry.Knows(a.name) {
		return l.put(&asking{role: a.name, by: []*inquired{a}, at: now})
	}
	if l.next != nil {
		l.next.by = append(l.next.by, a)
		return nil
	}
	about := &asking{by: []*inquired{a}, at: now}
	if slices.ContainsFunc(l.asked, func(on *asking) bool { return on.role == "" }) {
		l.next = about
		return nil
	}
	return l.put(about)
}

// put has a question sent by the next flush, behind those that have been asked.
func (l *line) put(about *asking) (err error) {
	l.asked = append(l.asked, about)
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
	_, err := l.descriptor.Write(l.out)
	l.out = l.out[:0]
	return err // errFull too: a server that reads nothing answers nobody
}

// waiting are those without an answer.
func (l *line) waiting() (all []*inquired) {
	for _, about := range l.asked {
		all = append(all, about.by...)
	}
	if l.next != nil {
		all = append(all, l.next.by...)
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
		if err != nil {
			return answered, err
		}
		answered = append(answered, a...)
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
	case len(l.asked) == 0 || kind != answer[l.came]:
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
		first.by[0].found, err = l.inquiry.HearPrincipal(first.role, l.row.Values)
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
// that may have changed since it was last asked for, and for the state again.
func (l *line) conclude() (answered []*inquired, err error) {
	first := l.asked[0]
	l.asked, l.came = slices.Delete(l.asked, 0, 1), 0
	for _, a := range first.by {
		if first.role == "" {
			a.found = l.inquiry.Still(a.name, l.state)
		}
		if a.over = a.found != nil; a.over {
			answered = append(answered, a)
			continue
		}
		err = cmp.Or(err, l.put(&asking{role: a.name, by: []*inquired{a}, at: first.at}))
	}
	if first.role == "" && l.next != nil {
		next := l.next
		l.next = nil
		err = cmp.Or(err, l.put(next))
	}
	return answered, err
}
