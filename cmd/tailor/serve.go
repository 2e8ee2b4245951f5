package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/proxy"
)

func runServe(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags, o := serveFlags(stderr)
	faults := layered(flags, args)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if err := errors.Join(faults, o.validate()); err != nil {
		return complainUsage(flags, stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	log, closeLog := o.logger(stderr)
	defer closeLog()
	ready := func(address string) { fmt.Fprintf(stdout, "listening on %s\n", address) }
	reload := func(server *proxy.Proxy) { o.reload(args, server, log) }
	if err := awaitDatabase(ctx, o.dsn, o.wait, log); err != nil {
		if ctx.Err() != nil { // told to end
			return exitSuccess
		}
		return complain("serve", stderr, err)
	}
	if err := serve(ctx, o, log, ready, reload); err != nil {
		return complain("serve", stderr, err)
	}
	return exitSuccess
}

// serve runs the proxy until the context ends. ready is called with the address
// once clients can connect, reload on SIGHUP; nil for never.
func serve(
	ctx context.Context, o *serveOptions, log *slog.Logger, ready func(address string),
	reload func(*proxy.Proxy),
) error {
	// The audit file may know of commits that the database has lost, for which the
	// catalog then does not open.
	records, err := audit.Open(ctx, o.dsn, *o.audit, log)
	if err != nil {
		return serviceFault(err)
	}
	defer records.Close()
	policies, err := catalog.Open(ctx, o.dsn, log)
	if err != nil {
		return err
	}
	defer policies.Close()
	policies.Patience = o.patience
	policies.PartRows = o.partRows
	if err := assertTested(policies.ServerVersion(), o.untested); err != nil {
		return err
	}
	server, err := proxy.New(o.proxy, policies, records, log, time.Now)
	if err != nil {
		return err
	}
	// Sessions outlive the context by their transactions; what serves them, too.
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	helpers.Go(func() { policies.Watch(serving) })
	helpers.Go(func() { policies.KeepSchedules(serving) })
	closeOperations, err := operations(serving, o.metrics, o.pprof, server, log)
	if err != nil {
		return err
	}
	defer closeOperations()
	listener, err := server.Listen(ctx)
	if err != nil {
		return err
	}
	if reload != nil {
		helpers.Go(func() { onHangUp(serving, func() { reload(server) }) })
	}
	closeConsole, err := openConsole(serving, o.console, o.dsn, o.proxy.Upstream, policies, log)
	if err != nil {
		return err
	}
	defer closeConsole()
	ready(listener.Addr().String())
	return server.Serve(ctx, listener)
}

// onHangUp calls a function on each SIGHUP until the context ends.
func onHangUp(ctx context.Context, do func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			do()
		}
	}
}

// serviceFault names what is in the way of the first look at the database, which is that of the
// audit log.
func serviceFault(err error) error {
	var refused *pgconn.ConnectError
	var answer *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("service connection: %w", refused)
	case errors.As(err, &answer) && (answer.Code == "42P01" || answer.Code == "3F000"):
		return fmt.Errorf("the database has no SQL side of Tailor; run tailor install first: %w", err)
	}
	return err
}
