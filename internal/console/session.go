package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// sessions are the administrators who have signed in. They live in memory: a
// restart signs everybody out.
type sessions struct {
	mu    *sync.Mutex
	clock func() time.Time
	open  map[[sha256.Size]byte]*session // by the hash of the cookie
}

// session is one sign-in. Token has to come back with whatever changes
// something.
type session struct {
	principal   string
	token       string
	begun, used time.Time
}

const (
	cookieName  = "__Host-tailor"
	tokenHeader = "X-Tailor-Token"
	idleLimit   = 30 * time.Minute
	ageLimit    = 12 * time.Hour
	maxSessions = 1000
)

func newSessions(clock func() time.Time) sessions {
	return sessions{mu: &sync.Mutex{}, clock: clock, open: make(map[[sha256.Size]byte]*session)}
}

func (s *sessions) begin(principal string) (cookie string, _ *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	for key, old := range s.open {
		if old.over(now) || len(s.open) >= maxSessions {
			delete(s.open, key)
		}
	}
	cookie = rand.Text()
	started := &session{principal: principal, token: rand.Text(), begun: now, used: now}
	s.open[sha256.Sum256([]byte(cookie))] = started
	return cookie, started
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) > idleLimit || now.Sub(s.begun) > ageLimit
}

// find is the session of a request, nil for none.
func (s *sessions) find(r *http.Request) *session {
	cookie, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.open[sha256.Sum256([]byte(cookie.Value))]
	now := s.clock()
	if found == nil || found.over(now) {
		return nil
	}
	found.used = now
	return found
}

func (s *sessions) end(of *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, found := range s.open {
		if found == of {
			delete(s.open, key)
		}
	}
}

// sessionKey is where a request's context has its session.
type sessionKey struct{}

// signedIn lets through who has signed in and is an administrator still.
func (c *Console) signedIn(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := c.sessions.find(r)
		if s == nil {
			fail(w, http.StatusUnauthorized, "sign in first")
			return
		}
		if r.Method != http.MethodGet &&
			subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(s.token)) != 1 {
			fail(w, http.StatusForbidden, "the request did not come from the page")
			return
		}
		admin, err := c.isAdmin(r.Context(), s.principal)
		if err != nil {
			c.unavailable(w, err)
			return
		}
		if !admin {
			c.sessions.end(s)
			fail(w, http.StatusUnauthorized, "the role is no longer a member of tailor_admin")
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), sessionKey{}, s)))
	}
}

// isAdmin asks each time: the membership may have been taken away.
func (c *Console) isAdmin(ctx context.Context, principal string) (bool, error) {
	var admin bool
	err := c.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = $1
		AND pg_has_role(r.oid, 'tailor_admin', 'MEMBER'))`, principal).Scan(&admin)
	return admin, err
}

// credentials are what the page sends to sign in.
type credentials struct {
	User     string `json:"user"`
	Password string `json:"password"`
}

// login signs in. A wrong password and a role that is no administrator's look
// the same.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	var given credentials
	if r.Header.Get("Content-Type") != "application/json" ||
		json.NewDecoder(r.Body).Decode(&given) != nil {
		fail(w, http.StatusBadRequest, "the request is malformed")
		return
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	admin := false
	err := c.gate.enter(r.Context(), host, given)
	if err == nil {
		admin, err = c.isAdmin(r.Context(), given.User)
	}
	switch {
	case errors.Is(err, errTooOften):
		w.Header().Set("Retry-After", "30")
		fail(w, http.StatusTooManyRequests, "too many attempts; wait half a minute")
	case errors.Is(err, errWrong) || err == nil && !admin:
		if err == nil {
			c.gate.failed(host, given.User)
		}
		c.log.Info("console sign-in refused")
		fail(w, http.StatusUnauthorized,
			"the password is wrong, or the role is not a member of tailor_admin")
	case err != nil:
		c.unavailable(w, err)
	default:
		cookie, s := c.sessions.begin(given.User)
		http.SetCookie(w, &http.Cookie{
			Name: cookieName, Value: cookie, Path: "/", Secure: true, HttpOnly: true,
			SameSite: http.SameSiteStrictMode,
		})
		answer(w, s.shown())
	}
}

// shown is what the page may know of its session.
func (s *session) shown() map[string]string {
	return map[string]string{"principal": s.principal, "token": s.token}
}

func (c *Console) logout(w http.ResponseWriter, r *http.Request) {
	c.sessions.end(r.Context().Value(sessionKey{}).(*session))
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Path: "/", MaxAge: -1, Secure: true,
		HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	answer(w, map[string]string{})
}
