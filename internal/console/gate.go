package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// gate tries passwords, and slows down those who guess, by the role that they guess at
// and the address that they come from, both together: whoever guesses at a role from
// elsewhere does not keep its owner out. The right password enters after a pause.
type gate struct {
	login    func(ctx context.Context, user, password string) error
	clock    func() time.Time
	mu       *sync.Mutex
	failures map[string]*failures
	slots    chan struct{} // attempts at the same time
}

// failures decay by one in the pause.
type failures struct {
	count float64
	last  time.Time
}

const (
	freeFailures = 5
	failurePause = 30 * time.Second
	maxTracked   = 10_000
	atOnce       = 4
	loginTimeout = 10 * time.Second
)

var (
	errTooOften = errors.New("too many failed attempts")
	errWrong    = errors.New("wrong role or password")
)

func newGate(
	login func(ctx context.Context, user, password string) error, clock func() time.Time,
) gate {
	return gate{
		login: login, clock: clock, mu: &sync.Mutex{},
		failures: make(map[string]*failures), slots: make(chan struct{}, atOnce),
	}
}

// enter tries a password at the server.
func (g *gate) enter(ctx context.Context, host string, given credentials) error {
	if given.User == "" || given.Password == "" || len(given.User) > 63 ||
		strings.Contains(given.User+given.Password, "\x00") {
		return errWrong
	}
	if g.blocked(guesser(host, given.User)) {
		return errTooOften
	}
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	select {
	case g.slots <- struct{}{}:
		defer func() { <-g.slots }()
	case <-ctx.Done():
		return errTooOften
	}
	err := g.login(ctx, given.User, given.Password)
	if errors.Is(err, errWrong) {
		g.failed(host, given.User)
	}
	return err
}

// guesser is who guesses at what. A host of IPv6 can take any address of its subnet.
func guesser(host, user string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap().WithZone("")
		host = ip.String()
		if ip.Is6() {
			host = netip.PrefixFrom(ip, 64).Masked().String()
		}
	}
	return host + " " + user
}

func (g *gate) blocked(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.failures[key]
	if f == nil {
		return false
	}
	f.decay(g.clock())
	return f.count > freeFailures-1
}

func (f *failures) decay(now time.Time) {
	f.count = max(0, f.count-now.Sub(f.last).Seconds()/failurePause.Seconds())
	f.last = now
}

func (g *gate) failed(host, user string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock()
	if len(g.failures) > maxTracked {
		for key, f := range g.failures {
			if f.decay(now); f.count == 0 {
				delete(g.failures, key)
			}
		}
	}
	key := guesser(host, user)
	if g.failures[key] == nil {
		g.failures[key] = &failures{last: now}
	}
	g.failures[key].decay(now)
	g.failures[key].count++
}

// upstreamLogin logs in to PostgreSQL as a role. It insists on SCRAM, by which
// the server proves to have checked the password: one that trusts local
// connections signs nobody in.
func upstreamLogin(c Config) (func(ctx context.Context, user, password string) error, error) {
	template, err := pgx.ParseConfig(c.DSN)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	// Where clients of the proxy are sent to, not where its service account is.
	template.Fallbacks, template.RequireAuth = nil, "scram-sha-256"
	var host, port string
	if strings.HasPrefix(c.Upstream, "/") {
		var ok bool
		if host, port, ok = strings.Cut(c.Upstream, "/.s.PGSQL."); !ok {
			return nil, fmt.Errorf("console: upstream %q is not the socket of a PostgreSQL", c.Upstream)
		}
	} else if host, port, err = net.SplitHostPort(c.Upstream); err != nil {
		return nil, fmt.Errorf("console: upstream: %w", err)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, fmt.Errorf("console: upstream: port %q", port)
	}
	template.Host, template.Port = host, uint16(number)
	return func(ctx context.Context, user, password string) error {
		config := template.Copy()
		config.User, config.Password = user, password
		conn, err := pgx.ConnectConfig(ctx, config)
		var refused *pgconn.PgError
		if errors.As(err, &refused) && strings.HasPrefix(refused.Code, "28") {
			return errWrong
		}
		if err != nil {
			return fmt.Errorf("log in to the database: %w", err)
		}
		return conn.Close(ctx)
	}, nil
}
