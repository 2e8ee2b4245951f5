package proxy

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/ahocorasick"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// stateQuery tells what a session has made of its connection: settings, which
// another connection can be given, and whether there is anything else.
const stateQuery = `(SELECT pg_catalog.json_object_agg(name, setting) FROM (` +
	`SELECT name, setting FROM pg_catalog.pg_settings WHERE source = 'session'
		AND name NOT IN ('transaction_isolation', 'transaction_read_only', 'transaction_deferrable')
		UNION ALL ` +
	`SELECT n, pg_catalog.current_setting(n, true)
		FROM pg_catalog.unnest(ARRAY['tailor.representation', 'tailor.notices', 'tailor.recoding',
			'tailor.project']) n ` +
	`WHERE pg_catalog.current_setting(n, true) <> '') s),` +
	` session_user <> current_user OR EXISTS (SELECT FROM pg_catalog.pg_class
		WHERE relnamespace = pg_catalog.pg_my_temp_schema())` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace = pg_catalog.pg_my_temp_schema())` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_type WHERE typnamespace = pg_catalog.pg_my_temp_schema())` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_listening_channels())` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_cursors)` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)` +
	` OR EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory'
		AND pid = pg_catalog.pg_backend_pid()),` +
	` session_user`

// errSilentServer ends a session whose connection answers its proxy no more.
var errSilentServer = errors.New("the server does not tell the state of the session")

// state asks for the state of a session of a role at rest. kept says that it
// has some that no other connection could be given; so does a server that
// cannot answer.
func (u *upstream) state(role string) (settings []byte, kept bool, err error) {
	row, err := u.ask(stateQuery)
	if err != nil {
		return nil, false, err
	}
	if len(row) != 3 || string(row[1]) != "f" || string(row[2]) != role {
		return nil, true, nil
	}
	return row[0], false, nil
}

// restore gives a fresh connection the settings that state told.
func (u *upstream) restore(settings []byte) error {
	if settings == nil {
		return nil
	}
	row, err := u.ask(`pg_catalog.count(pg_catalog.set_config(key, value, false)) ` +
		`FROM pg_catalog.json_each_text(` + literal(string(settings)) + `)`)
	if err == nil && row == nil {
		err = sqlstate.New(sqlstate.CannotConnectNow, "the session's settings cannot be restored").
			WithHint("Connect again.")
	}
	return err
}

// bindSessionID makes a connection known that a reader's tickets will be bound to.
func (u *upstream) bindSessionID(principal *catalog.Principal) error {
	if !principal.Reader || u.session != "" {
		return nil
	}
	row, err := u.ask("tailor.session()")
	if err == nil && len(row) != 1 {
		err = sqlstate.New(sqlstate.CannotConnectNow, "the server does not name the session").
			WithHint("Connect again.")
	}
	if err == nil {
		u.session = string(row[0])
	}
	return err
}

// ask runs a query of one row, given from behind SELECT, on a connection that
// nobody else reads from. The row is nil where the server answers with an error.
// An answer without a word that only this query holds is another's. The
// connection's deadline stays set.
func (u *upstream) ask(columns string) (row [][]byte, err error) {
	_ = u.conn.SetDeadline(time.Now().Add(resetTimeout))
	word := newID()
	if err := send(u.conn, &pgproto3.Query{String: "SELECT " + literal(word) + ", " +
		columns}); err != nil {
		return nil, err
	}
	q := &internalQuery{}
	failed := false
	for {
		inside := u.frames.inside()
		frame, err := u.frames.next()
		if err != nil {
			return nil, errors.Join(errSilentServer, err)
		}
		if inside {
			continue
		}
		switch frame[0] {
		case 'D':
			if err := q.keep(frame); err != nil {
				return nil, err
			}
		case 'E':
			failed = true
		case 'S':
			u.setParameter(frame)
		case 'Z':
			switch {
			case u.frames.start != u.frames.end:
				return nil, errSilentServer
			case failed || q.failure != nil:
				return nil, nil
			case len(q.row) == 0 || string(q.row[0]) != word:
				return nil, errSilentServer
			}
			return q.row[1:], nil
		}
	}
}

// hiders are words without which a text sets nothing that stateQuery overlooks.
var hiders = ahocorasick.New([]string{"set_config", "set", "load"})

var (
	// A setting with a qualified name is a variable of the user's own, which
	// PostgreSQL lists nowhere.
	hiddenSet = regexp.MustCompile(
		`(?is)(?:^|;|\n|\*/)\s*set\s+(?:session\s+)?("?\w+"?\s*\.\s*"?\w+"?)`)
	listedCall = regexp.MustCompile(`(?is)\bset_config\s*\(\s*'\w+'\s*,`)
	loading    = regexp.MustCompile(`(?is)(?:^|;|\n|\*/)\s*load\s`)
)

// hides says whether a text may set what stateQuery overlooks.
func hides(text string) bool {
	if !hiders.Within(text) {
		return false
	}
	for _, m := range hiddenSet.FindAllStringSubmatch(text, -1) {
		switch strings.ToLower(m[1]) {
		case "tailor.representation", "tailor.notices", "tailor.recoding", "tailor.project":
		default:
			return true
		}
	}
	calls := strings.Count(strings.ToLower(text), "set_config")
	return calls > len(listedCall.FindAllString(text, -1)) || loading.MatchString(text)
}

// note pins a session that sets what no other connection could be given.
func (s *session) note(text string) {
	if s.pool != nil && !s.pool.pinned && hides(text) {
		s.pool.pinned = true
	}
}

// deallocated rewrites a text that makes the server forget a statement which
// this connection may not know. ok is false where it can be forwarded.
func (s *session) deallocated(text string) (rewritten string, ok bool) {
	rewritten, ok = s.names.deallocated(text)
	if ok && s.pool != nil {
		// Whatever is left is prepared again when it is needed.
		s.generation++
		return "DEALLOCATE ALL", true
	}
	return rewritten, ok
}

// prepareAgain prepares a statement on a connection that does not know it, or
// not over the releases of now.
func (s *session) prepareAgain(ctx context.Context, p *prepared) error {
	if p == nil || s.knows(p) || p.failed.Load() {
		return nil // where the client never had it, the server says so
	}
	if p.cut {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"a prepared statement of more than 256 kB is gone").WithHint("Prepare it again.")
	}
	e := &pendingReply{kind: 'P', statement: p.text, started: s.proxy.clock(), silent: true, again: p}
	text := p.text
	switch {
	case p.plan.Explain != "":
		var err error
		if text, err = s.explained(ctx, p.plan, nil); err != nil {
			return err
		}
	case p.plan.Passes():
		p.fetches = nil // the cursors ended with their transaction
		text = cmp.Or(p.sent, text)
	default:
		d, err := s.tailorAgain(ctx, p.plan)
		if err != nil {
			return err
		}
		e.over(p.plan, d)
		p.decision = d
		text = s.admissionToken(e.rewritten.SQL, d)
		if err := s.giveTicket(ctx, ticket{p, p.text, d}); err != nil {
			return err
		}
	}
	p.generation.Store(s.generation)
	// A text that was to make the server forget it may have failed.
	s.expect.add(&pendingReply{kind: 'C', statement: p.text, started: e.started, silent: true})
	if err := send(s.up, &pgproto3.Close{ObjectType: 'S', Name: p.name}); err != nil {
		return err
	}
	s.expect.add(e)
	return send(s.up, &pgproto3.Parse{Name: p.name, Query: text, ParameterOIDs: p.types})
}
