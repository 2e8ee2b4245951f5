package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/logqueue"
	"github.com/hiatus-tailor/tailor/proxy"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	proxy     proxy.Config
	dsn       string
	audit     *audit.Config
	wait      time.Duration // for the database, at the start; 0 for not at all
	patience  time.Duration // of a statement, for a release that is being made
	partRows  int           // of a table, that are partitioned at once
	untested  bool          // a major version of PostgreSQL will do
	console   string        // HOST:PORT; empty for none
	metrics   string        // HOST:PORT; empty for none
	pprof     bool
	logFormat string
	logLevel  slog.LevelVar
}

// serveFlags declares the flags. What they hold is complete once they are parsed.
func serveFlags(stderr io.Writer) (*flag.FlagSet, *serveOptions) {
	o := &serveOptions{proxy: proxy.DefaultConfig(), logFormat: "text"}
	c := &o.proxy
	flags := newFlags("serve", "run the proxy", stderr)
	flags.String("config", "", "`FILE` in YAML with a key for each flag, read again on SIGHUP")
	flags.StringVar(&c.Listen, "listen", c.Listen, "`HOST:PORT` for clients")
	flags.StringVar(&c.Upstream, "upstream", "",
		"`HOST:PORT` of PostgreSQL, or the path of its socket; empty for where service-dsn leads")
	flags.Func("upstream-readers",
		"`HOST:PORT,…` of hot standbys at which readers' sessions are by turns",
		func(s string) error {
			c.UpstreamReaders = strings.Split(s, ",")
			return nil
		})
	flags.StringVar(&o.dsn, "service-dsn", "", "`connection` string of tailor_owner")
	flags.BoolVar(&o.untested, untestedFlag, false, untestedUsage)
	flags.DurationVar(&o.wait, "database-wait", 0,
		"`TIME` that serve waits at its start for a database that does not answer yet; 0 for none")
	flags.DurationVar(&o.patience, "release-wait", catalog.DefaultPatience,
		"`TIME` that a statement waits for a release that is being made; making it goes on")
	flags.IntVar(&o.partRows, "part-rows", catalog.DefaultPartRows,
		"`NUMBER` of rows of a table that are partitioned at once, 300 bytes each")
	o.audit = auditFlags(flags)
	flags.StringVar(&o.console, "console", "",
		"`HOST:PORT` of the console, on this machine; none if not given")

	flags.StringVar(&c.TLS.Certificate, "tls-certificate", "",
		"PEM `FILE` that clients are shown; empty for no TLS")
	flags.StringVar(&c.TLS.Key, "tls-key", "", "PEM `FILE` of the certificate's key")
	flags.StringVar(&c.TLS.ClientCA, "tls-client-ca", "",
		"PEM `FILE` of authorities that clients' certificates are checked against")
	flags.StringVar(&c.TLS.MinVersion, "tls-min-version", c.TLS.MinVersion,
		"oldest `VERSION` of TLS: 1.2 or 1.3")
	flags.BoolVar(&c.TLS.Required, "tls-required", false, "refuse clients without TLS")
	flags.StringVar((*string)(&c.UpstreamTLS.Mode), "upstream-tls", string(c.UpstreamTLS.Mode),
		"`MODE` towards PostgreSQL: disable, require, verify-ca or verify-full")
	flags.StringVar(&c.UpstreamTLS.CA, "upstream-ca", "",
		"PEM `FILE` of authorities for PostgreSQL's certificate; empty for the system's")
	flags.StringVar(&c.UpstreamTLS.Certificate, "upstream-certificate", "",
		"PEM `FILE` that PostgreSQL is shown")
	flags.StringVar(&c.UpstreamTLS.Key, "upstream-key", "", "PEM `FILE` of that certificate's key")
	flags.StringVar((*string)(&c.Authentication), "authentication", string(c.Authentication),
		"`METHOD` of clients: scram, cert or trust")

	flags.IntVar(&c.Peers.Number, "peer-number", 0,
		"`NUMBER` of this proxy among several behind one balancer, 1 to 255; 0 for none")
	flags.StringVar(&c.Peers.Addresses, "peer-addresses", "",
		"`NUMBER=HOST:PORT,…` of all of them, for cancel requests that come to another one")
	flags.StringVar(&c.Peers.Secret, "peer-secret", "",
		"`FILE` with at least 32 bytes that they share")

	flags.IntVar(&c.MaxClients, "max-clients", c.MaxClients, "`NUMBER` of sessions")
	flags.IntVar(&c.MaxClientsOfPrincipal, "max-clients-per-principal", 0,
		"`NUMBER` of sessions of one role; 0 for no limit of its own")
	flags.StringVar((*string)(&c.Pool), "pool", string(c.Pool),
		"`WAY` of sharing connections to PostgreSQL: session (none) or transaction")
	flags.IntVar(&c.MaxUpstream, "max-upstream", 0,
		"`NUMBER` of connections to PostgreSQL for clients; 0 for no limit")
	flags.DurationVar(&c.QueueTimeout, "queue-timeout", c.QueueTimeout,
		"`TIME` that a client waits for a session or a connection to become free")
	flags.DurationVar(&c.StartupTimeout, "startup-timeout", c.StartupTimeout,
		"`TIME` from connection to login")
	flags.DurationVar(&c.IdleTimeout, "idle-timeout", 0,
		"`TIME` after which an idle session is ended; 0 for never")
	flags.DurationVar(&c.DrainTimeout, "drain-timeout", c.DrainTimeout,
		"`TIME` that transactions have when the proxy is ended")
	flags.DurationVar(&c.ReuseTimeout, "upstream-reuse", c.ReuseTimeout,
		"`TIME` that PostgreSQL's side of a session is kept where logins rush in; 0 for never")
	flags.DurationVar(&c.KeepAlive, "keepalive", c.KeepAlive,
		"`TIME` of silence after which a peer is probed")
	flags.DurationVar(&c.WrongPasswordPause, "wrong-password-pause", c.WrongPasswordPause,
		"`TIME` that the answer to a failed login takes")
	flags.Func("terminals", "`NAME,…` of programs, by application_name, that show labels if not "+
		"told otherwise (psql,pgcli,usql)", func(s string) error {
		c.Terminals = strings.Split(s, ",")
		return nil
	})
	flags.BoolVar(&c.ProxyProtocol, "proxy-protocol", false,
		"expect a PROXY header before each connection")

	flags.StringVar(&o.metrics, "metrics", "",
		"`HOST:PORT` for /metrics, /healthz and /readyz; empty for none")
	flags.BoolVar(&o.pprof, "pprof", false, "serve /debug/pprof there, too")
	flags.StringVar(&o.logFormat, "log-format", o.logFormat, "`FORMAT` of the log: text or json")
	flags.TextVar(&o.logLevel, "log-level", &o.logLevel,
		"`LEVEL` of the log: debug, info, warn or error")
	return flags, o
}

// validate completes the options and reports every fault.
func (o *serveOptions) validate() error {
	var faults []error
	if o.proxy.Upstream == "" {
		faults = append(faults, o.followService())
	}
	faults = append(faults, o.proxy.Validate(), o.audit.Validate(), consoleFault(o.console))
	if o.dsn == "" {
		faults = append(faults, errors.New("--service-dsn is missing"))
	}
	if o.wait < 0 {
		faults = append(faults, errors.New("database-wait: is negative"))
	}
	if o.patience < 0 {
		faults = append(faults, errors.New("release-wait: is negative"))
	}
	if o.partRows < catalog.MinPartRows {
		faults = append(faults, fmt.Errorf("part-rows: %d is less than %d", o.partRows,
			catalog.MinPartRows))
	}
	if o.metrics != "" {
		if _, _, err := net.SplitHostPort(o.metrics); err != nil {
			faults = append(faults, fmt.Errorf("metrics: %w", err))
		}
	} else if o.pprof {
		faults = append(faults, errors.New("pprof: needs metrics"))
	}
	if o.logFormat != "text" && o.logFormat != "json" {
		faults = append(faults, fmt.Errorf("log-format: %q is neither text nor json", o.logFormat))
	}
	return errors.Join(faults...)
}

// followService has sessions at the server that the connection string of tailor_owner leads
// to, where no flag names another. That is by TCP even where the string names a socket: many
// servers ask for no password there.
func (o *serveOptions) followService() error {
	o.proxy.Upstream = proxy.DefaultConfig().Upstream
	service, err := pgconn.ParseConfig(o.dsn)
	if err != nil { // told by whoever connects
		return nil
	}
	encrypted := service.TLSConfig != nil
	for _, other := range service.Fallbacks { // with other TLS, too
		if other.Host != service.Host || other.Port != service.Port {
			return errors.New("upstream: is missing, and service-dsn names several servers")
		}
		encrypted = encrypted && other.TLSConfig != nil
	}
	if encrypted && o.proxy.UpstreamTLS.Mode == proxy.TLSDisable {
		return errors.New("upstream-tls: is disable, and service-dsn has TLS to the same server; " +
			"upstream names another")
	}
	host := service.Host
	if strings.HasPrefix(host, "/") {
		host = "127.0.0.1"
	}
	o.proxy.Upstream = net.JoinHostPort(host, fmt.Sprint(service.Port))
	return nil
}

// logger writes structured lines, and makes nobody wait for who reads them: close
// waits a second for the last ones. Its level follows o.
func (o *serveOptions) logger(w io.Writer) (log *slog.Logger, closeLog func()) {
	direct := o.structured(w)
	queue := logqueue.New(w, func(lines int) { direct.Warn("log lines left out", "lines", lines) })
	return o.structured(queue), func() { queue.Close(time.Second) }
}

func (o *serveOptions) structured(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: &o.logLevel}
	if o.logFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// reload reads file and environment again, and puts in force what can change
// while the proxy runs. Nothing changes where there is a fault.
func (o *serveOptions) reload(args []string, server *proxy.Proxy, log *slog.Logger) {
	flags, fresh := serveFlags(io.Discard)
	flags.SetOutput(io.Discard)
	err := layered(flags, args)
	if err == nil {
		err = errors.Join(flags.Parse(args), fresh.validate())
	}
	if err == nil {
		err = server.Reload(fresh.proxy)
	}
	if err != nil {
		log.Error("configuration not reloaded", "error", err)
		return
	}
	o.logLevel.Set(fresh.logLevel.Level())
	for name, changed := range map[string]bool{
		"listen": fresh.proxy.Listen != o.proxy.Listen, "service-dsn": fresh.dsn != o.dsn,
		"audit": *fresh.audit != *o.audit, "console": fresh.console != o.console,
		"metrics": fresh.metrics != o.metrics, "pprof": fresh.pprof != o.pprof,
		"log-format": fresh.logFormat != o.logFormat,
	} {
		if changed {
			log.Warn("a change takes effect after a restart only", "key", name)
		}
	}
	log.Info("configuration reloaded")
}
