package proxy

import (
	"github.com/hiatus-tailor/tailor/internal/ahocorasick"
	"github.com/hiatus-tailor/tailor/planner"
)

// statementInfo is a statement's text with what it tells by itself. Each question is
// answered once, when it is asked first, however often the text runs. It belongs
// to the goroutine that forwards statements.
type statementInfo struct {
	text        string
	asked       questions
	yes         questions // of those that were asked
	fingerprint uint64    // see statementStats; 0 until it was asked for
	// free is the session's snapshot, by number, in which the text names nothing
	// protected; 0 for none that is known.
	free int
}

// questions is a set of what can be asked about a text.
type questions uint16

const (
	isAlike questions = 1 << iota
	isPlain
	mayUnsettle
	mayEnd
	mayDiscard
	mayExplain
	mayLabel
	mayHold
	mayConfigure
	mayActivate
)

// ask answers a question, and remembers the answer.
func (l *statementInfo) ask(q questions, answer func(text string) bool) bool {
	if l.asked&q == 0 {
		l.asked |= q
		if answer(l.text) {
			l.yes |= q
		}
	}
	return l.yes&q != 0
}

func (l *statementInfo) alike() bool    { return l.ask(isAlike, alike) }
func (l *statementInfo) plain() bool    { return l.ask(isPlain, plain) }
func (l *statementInfo) settles() bool  { return l.ask(mayUnsettle, settlingKeywords.Within) }
func (l *statementInfo) ends() bool     { return l.ask(mayEnd, ending.MatchString) }
func (l *statementInfo) holds() bool    { return l.ask(mayHold, holders.Within) }
func (l *statementInfo) discards() bool { return l.ask(mayDiscard, discards) }
func (l *statementInfo) explains() bool { return l.ask(mayExplain, explainsTailor) }
func (l *statementInfo) labels() bool   { return l.ask(mayLabel, labels) }

// activates says whether a text may activate a policy.
func (l *statementInfo) activates() bool {
	return l.parameters() && l.ask(mayActivate, activation.MatchString)
}

// parameters says whether a text may name one of Tailor's configuration parameters.
func (l *statementInfo) parameters() bool { return l.ask(mayConfigure, configuration.Within) }

// configuration is what the names of all of them hold, however they are written.
var configuration = ahocorasick.New([]string{"tailor"})

// labels says that a text is a SECURITY LABEL, or would be with fewer faults.
func labels(text string) bool {
	call, err := planner.SecurityLabel(text)
	return call != "" || err != nil
}

// shapeIn is the key of the text's shape. All tallies of a proxy have the same.
func (l *statementInfo) shapeIn(t *statementStats) uint64 {
	if l.fingerprint == 0 {
		l.fingerprint = t.key(l.text)
	}
	return l.fingerprint
}

// looks are those at the texts that a client prepared last: without names, as
// many drivers do, the same few come over and over.
type looks struct {
	kept [8]*statementInfo
	next int // to be forgotten
}

// longestLook bounds what a session keeps of texts.
const longestLook = 1 << 10

// at returns the look at a text.
func (k *looks) at(text []byte) *statementInfo {
	for _, l := range k.kept {
		if l != nil && l.text == string(text) {
			return l
		}
	}
	l := &statementInfo{text: string(text)}
	if len(text) <= longestLook {
		k.kept[k.next] = l
		k.next = (k.next + 1) % len(k.kept)
	}
	return l
}
