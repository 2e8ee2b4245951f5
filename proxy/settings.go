package proxy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/ahocorasick"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// settings are what the meaning of a statement depends on in a session. They
// only say which table a name means, how values are shown and which of the
// reader's own chains is read: one that is out of date confuses, and discloses
// nothing.
type settings struct {
	searchPath     []string
	representation string              // tailor.representation, "" for auto
	application    string              // application_name
	notices        bool                // tailor.notices
	recoding       string              // tailor.recoding, "" for the policy's own
	project        string              // tailor.project, "" for none
	temporary      map[string][]string // columns of temporary relations
	names          string              // what tellNames told: searchPath and temporary
	invalid        error               // of the first of them that has a value it cannot have
}

// tellPath and tellTemporary tell what unqualified names mean, and tellNames both at once.
const (
	tellPath      = `pg_catalog.array_to_string(pg_catalog.current_schemas(true), E'\n')`
	tellTemporary = `CASE WHEN pg_catalog.pg_my_temp_schema() <> 0
		THEN (SELECT pg_catalog.json_object_agg(c.relname, array(` +
		`SELECT a.attname FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0
			AND NOT a.attisdropped ORDER BY a.attnum) ORDER BY c.relname)` +
		` FROM pg_catalog.pg_class c WHERE c.relnamespace = pg_catalog.pg_my_temp_schema()
			AND c.relkind IN ('r', 'v', 'p')) END`
	tellNames = `pg_catalog.concat(` + tellPath + `, E'\n', ` + tellTemporary + `)`
)

// selectSettings reads them where the statement itself would.
const selectSettings = `SELECT ` + tellPath + `,` +
	` pg_catalog.left(pg_catalog.current_setting('tailor.representation', true), 1000),` +
	` pg_catalog.left(pg_catalog.current_setting('tailor.notices', true), 1000),` +
	` pg_catalog.left(pg_catalog.current_setting('tailor.recoding', true), 1000),` +
	` pg_catalog.left(pg_catalog.current_setting('tailor.project', true), 1000),` +
	` ` + tellTemporary + `,` +
	` pg_catalog.current_setting('application_name')`

// values says whether quasi-identifiers are shown as values of their own type: labels
// are for people who sit at a terminal.
func (s *settings) values(terminals []string) bool {
	switch s.representation {
	case "label":
		return false
	case "value":
		return true
	}
	return !slices.Contains(terminals, s.application)
}

const (
	// settingsPatience bounds how long the server may take to tell its settings.
	settingsPatience = 30 * time.Second
	// settingsAge is how long they are believed where nothing in the session can
	// have changed them: other sessions create schemas.
	settingsAge = 5 * time.Second
)

// knowledge is how far the settings of a session are known.
type knowledge struct {
	settings
	asked     *internalQuery // on its way; nil for none
	known     bool
	at        time.Time // when they were asked for
	doubtful  bool      // something ran since that may, if unlikely, have changed them
	unsettled bool      // something ran since that is likely to have changed them
	within    bool      // they were asked for within a transaction, whose end may change them
	repeated  repeated
}

// hold says that nothing which ran since can have changed what is known of the settings.
// Within a pipeline nothing can be asked: there it says only that it is not likely.
func (s *session) hold() bool {
	return s.known && !s.unsettled &&
		(s.state.InPipeline() || !s.doubtful && s.proxy.clock().Sub(s.at) < settingsAge)
}

// hasFailed says that the transaction has failed, and that nothing is under way that ends it.
func (s *session) hasFailed() bool {
	return s.status.Load() == 'E' && !s.state.InPipeline() && !s.expect.owesClient()
}

// readSettings asks the server, unless nothing that ran since can have changed
// what is known. In a failed transaction nothing can be asked, and nothing will
// run either.
func (s *session) readSettings(ctx context.Context) error {
	if s.hasFailed() {
		return nil
	}
	if err := s.awaitSettings(ctx); err != nil && !errors.Is(err, errNotAnswered) {
		return err
	}
	if s.hold() {
		return nil
	}
	if s.state.InPipeline() { // a question would end it
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"a protected table cannot follow other statements in one pipeline").
			WithHint("Send Sync before the statement.")
	}
	if err := s.askSettings(); err != nil {
		return err
	}
	err := s.awaitSettings(ctx)
	if errors.Is(err, errNotAnswered) && s.hasFailed() {
		return nil
	}
	// by a cancel request, say, that was meant for a statement before
	if errors.Is(err, errNotAnswered) {
		if err = s.askSettings(); err == nil {
			err = s.awaitSettings(ctx)
		}
	}
	return err
}

// readAhead reads the settings, unless what is known holds, before a statement that begins a
// transaction: drivers send the transaction's first query in the same pipeline, where
// nothing can be asked any more. A fault is told to the query that needs them. On a loop
// it returns errWaits.
func (s *session) readAhead(ctx context.Context, text string) error {
	if s.state.InPipeline() || !s.principal.Reader || !beginsTransaction(text) {
		return nil
	}
	if s.known && !s.unsettled && (s.hold() || !s.loopRejoin.away.Load()) {
		return nil // a session that has asked for nothing protected is spared the question
	}
	if s.loopSession != nil {
		return errWaits
	}
	_ = s.readSettings(ctx)
	return nil
}

// beginsTransaction says that a text begins a transaction, and does nothing else.
func beginsTransaction(text string) bool { return isOne(text, "begin", "start") }

// isOne says that a text is one statement, which starts with one of some words.
func isOne(text string, words ...string) bool {
	return alone(text) && slices.ContainsFunc(words, func(word string) bool {
		return len(text) >= len(word) && strings.EqualFold(text[:len(word)], word)
	})
}

// alone says that a text is one statement.
func alone(text string) bool {
	i := strings.IndexByte(text, ';')
	return i < 0 || i == len(text)-1
}

// askSettings asks without waiting for the answer.
func (s *session) askSettings() error {
	q := &internalQuery{server: s.server, done: make(chan error, 1)}
	text := selectSettings
	if s.principal.Reader && s.server.session == "" { // others get no tickets
		text += ", tailor.session()" // while the role is still the one that logged in
	}
	k := &s.knowledge
	k.asked, k.at, k.doubtful, k.unsettled, k.repeated = q, s.proxy.clock(), false, false, repeated{}
	k.within = !s.beginning
	return s.question(text, q)
}

// awaitSettings waits for an answer that is on its way.
func (s *session) awaitSettings(ctx context.Context) error {
	q := s.asked
	if q == nil {
		return nil
	}
	s.asked = nil
	timer := time.NewTimer(settingsPatience)
	defer timer.Stop()
	unreadable := sqlstate.New(sqlstate.CannotConnectNow, "the session's settings cannot be read")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return unreadable
	case err := <-q.done:
		var told settings
		if err == nil {
			told, err = q.settings()
		}
		if err != nil {
			s.unsettled = true
			if known := (*sqlstate.Error)(nil); errors.As(err, &known) {
				return known
			}
			return unreadable.Wrap(err)
		}
		s.known, s.settings = true, told
		if q.server == s.server {
			s.server.identify(q)
		}
	}
	return nil
}

// settings reads the answer to selectSettings.
func (q *internalQuery) settings() (settings, error) {
	if len(q.row) < 7 {
		return settings{}, cmp.Or(q.failure, errNotAnswered)
	}
	var temporary map[string][]string
	if q.row[5] != nil {
		if err := json.Unmarshal(q.row[5], &temporary); err != nil {
			return settings{}, err
		}
	}
	told := settings{
		searchPath:  strings.Split(string(q.row[0]), "\n"),
		project:     string(q.row[4]),
		temporary:   temporary,
		names:       string(q.row[0]) + "\n" + string(q.row[5]),
		application: string(q.row[6]),
	}
	told.representation = told.parameter("tailor.representation", q.row[1])
	told.notices = told.parameter("tailor.notices", q.row[2]) != "off"
	told.recoding = told.parameter("tailor.recoding", q.row[3])
	return told, nil
}

// parameter is the value of a parameter as it is declared, "" where it is not set.
// Not all values come through the proxy's hands: ALTER ROLE, say, takes any.
func (s *settings) parameter(name string, told []byte) string {
	if len(told) == 0 {
		return ""
	}
	value, err := planner.Parameter(name, string(told))
	s.invalid = cmp.Or(s.invalid, err)
	return value
}

// identify notes what the server was asked beside the settings.
func (u *upstream) identify(q *internalQuery) {
	if len(q.row) > 7 {
		u.session = string(q.row[7])
	}
}

// remember notes the settings with which the session began, once it has ended:
// DISCARD ALL brings them back.
func (u *upstream) remember() {
	if u.atLogin != nil || u.first == nil {
		return
	}
	if told, err := u.first.settings(); err == nil {
		u.atLogin = &knowledge{settings: told, known: true, at: u.born}
		u.identify(u.first)
	}
	u.first = nil
}

// recall knows the settings of a connection that has served another session. It
// says whether it does.
func (s *session) recall() bool {
	if s.server.atLogin == nil {
		return false
	}
	s.knowledge = *s.server.atLogin
	return true
}

// settlingKeywords are words without which a statement changes no setting, short of a
// function that does.
var settlingKeywords = ahocorasick.New([]string{
	"set", "discard", "rollback", "abort", "call", "do",
	"schema", "temp", "table",
})

// settle notes that a statement which is about to run may change settings.
// Where it may well, nothing can follow in its pipeline that depends on them.
// Above doubt are plain queries without a function, what begins or ends a transaction
// without having changed them, and what reads releases: the planner lets no function into it
// that could.
func (s *session) settle(l *statementInfo, released bool) {
	begins := beginsTransaction(l.text)
	s.unsettled = s.unsettled || l.settles() && !begins || // REPEATABLE is no table
		s.within && !released && l.ends()
	if l.settles() && strings.Contains(strings.ToLower(l.text), "snapshot") {
		// SET TRANSACTION SNAPSHOT imports one that may be older.
		s.began, s.beganAt = time.Time{}, catalog.Position{}
	}
	passes := !released && !l.plain()
	s.doubtful = s.doubtful || s.unsettled || passes && !begins && !isOne(l.text, "commit", "end")
	s.names.holds = s.names.holds || passes && l.holds()
}

// ending is where a text may end a transaction.
var ending = regexp.MustCompile(`(?i)(?:^|;|\n|\*/)\s*(?:commit|end|prepare\s+transaction)\b`)

// holders are words without which a text opens no cursor WITH HOLD, short of SQL in a
// string.
var holders = ahocorasick.New([]string{"hold"})

// plain says that a text is one query without a function call.
func plain(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) < len("select") || strings.IndexByte(text, '(') >= 0 || !alone(text) {
		return false
	}
	first, _, _ := strings.Cut(text, " ")
	return strings.EqualFold(first, "select") || strings.EqualFold(first, "table") ||
		strings.EqualFold(first, "show")
}
