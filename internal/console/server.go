package console

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hiatus-tailor/tailor/catalog"
)

//go:embed static
var embedded embed.FS

// Config says where the console listens and whom it asks.
type Config struct {
	// Listen is HOST:PORT. It has to be on this machine: passwords are sent to
	// it. For others, put a proxy that speaks TLS before it.
	Listen string
	// DSN is that of tailor_owner; the console only reads with it.
	DSN string
	// Upstream is where passwords are tried: HOST:PORT of PostgreSQL, or the
	// path of its socket.
	Upstream string
}

// Validate reports what is wrong.
func (c Config) Validate() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("console: %w", err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("console: listens on this machine only, as it is asked for passwords; " +
			"put a proxy with TLS before it")
	}
	return nil
}

// Console serves the page. It is made by Open and ends with Close.
type Console struct {
	pool     *pgxpool.Pool
	losses   LossMeter
	drafter  Drafter
	drafting sync.Mutex // held while a draft is made
	measures measures
	classes  classes
	chatter  chatter
	log      *slog.Logger
	sessions sessions
	gate     gate
	listener net.Listener
	server   *http.Server
	ending   context.CancelFunc
}

// LossMeter measures chains; nil where there is nothing to say of one.
type LossMeter interface {
	ChainLoss(ctx context.Context, chain int) (*catalog.ChainLoss, error)
}

// statementTimeout bounds what a look at the page may cost the database, in ms.
const statementTimeout = "10000"

// Open starts to serve the page.
func Open(
	ctx context.Context, config Config, losses LossMeter, drafter Drafter, log *slog.Logger,
) (*Console, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	pool, err := openPool(ctx, config.DSN)
	if err != nil {
		return nil, err
	}
	login, err := upstreamLogin(config)
	if err != nil {
		pool.Close()
		return nil, err
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		pool.Close()
		return nil, fmt.Errorf("console: %w", err)
	}
	c := &Console{
		pool: pool, losses: losses, drafter: drafter, log: log, listener: listener,
		sessions: newSessions(time.Now), gate: newGate(login, time.Now),
	}
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.ending = cancel
	c.server = &http.Server{
		Handler: c.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return base },
		ErrorLog:    slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() { _ = c.server.Serve(listener) }()
	return c, nil
}

// openPool connects such that nothing can be written.
func openPool(ctx context.Context, dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("console: %w", err)
	}
	config.MaxConns = 4
	for name, value := range map[string]string{
		"application_name": "tailor console", "search_path": "pg_catalog, pg_temp",
		"default_transaction_read_only": "on", "statement_timeout": statementTimeout, "jit": "off",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// Address is where the page is served.
func (c *Console) Address() string { return "http://" + c.listener.Addr().String() + "/" }

// Close ends the console and every connection to it.
func (c *Console) Close() {
	c.ending() // live updates end
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		_ = c.server.Close()
	}
	c.pool.Close()
}

// handler is every path of the page, behind the guards.
func (c *Console) handler() http.Handler {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(static))
	mux.HandleFunc("POST /api/login", c.login)
	mux.HandleFunc("POST /api/logout", c.signedIn(c.logout))
	for path, read := range c.reads() {
		mux.HandleFunc("GET /api/"+path, c.signedIn(c.reading(read)))
	}
	mux.HandleFunc("GET /api/live", c.signedIn(c.live))
	mux.HandleFunc("GET /api/draft", c.signedIn(c.draft))
	// Browsers say where a request comes from; those of other sites are refused.
	return guarded(http.NewCrossOriginProtection().Handler(mux))
}

// guarded adds the headers that keep the page to itself: no resource, frame,
// form or script from elsewhere, nothing stored on the way.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; "+
			"style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "+
			"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'")
		h.Set("X-Frame-Options", "DENY")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		h.Set("Cache-Control", "no-store")
		r.Body = http.MaxBytesReader(w, r.Body, 4<<10)
		next.ServeHTTP(w, r)
	})
}
