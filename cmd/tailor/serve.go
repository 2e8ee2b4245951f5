package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/proxy"
)

func runServe(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	config := proxy.DefaultConfig()
	flags := newFlags("serve", "run the proxy", stderr)
	flags.StringVar(&config.Listen, "listen", fromEnvironment("listen", config.Listen), "`HOST:PORT` for clients")
	flags.StringVar(&config.Upstream, "upstream", fromEnvironment("upstream", config.Upstream), "`HOST:PORT` of PostgreSQL")
	dsn := flags.String("service-dsn", fromEnvironment("service-dsn", ""), "`connection` string of tailor_owner")
	records := auditFlags(flags)
	page := flags.String("console", fromEnvironment("console", ""), "`HOST:PORT` of the console, on this machine; none if not given")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *dsn == "" {
		return complainUsage(flags, stderr, "--service-dsn is missing")
	}
	if err := errors.Join(config.Validate(), records.Validate(), consoleFault(*page)); err != nil {
		return complainUsage(flags, stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	log := slog.New(slog.NewTextHandler(stderr, nil))
	ready := func(address string) { fmt.Fprintf(stdout, "listening on %s\n", address) }
	if err := serve(ctx, config, *dsn, *records, *page, log, ready); err != nil {
		return complain("serve", stderr, err)
	}
	return exitSuccess
}

// serve runs the proxy until the context ends. ready is called with the
// address once clients can connect.
func serve(ctx context.Context, config proxy.Config, dsn string, auditing audit.Config, page string, log *slog.Logger, ready func(address string)) error {
	policies, err := catalog.Open(ctx, dsn, log)
	if err != nil {
		return err
	}
	defer policies.Close()
	records, err := audit.Open(ctx, dsn, auditing, log)
	if err != nil {
		return err
	}
	defer records.Close()
	server, err := proxy.New(config, policies, records, log, time.Now)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return err
	}
	closeConsole, err := openConsole(ctx, page, dsn, config.Upstream, log)
	if err != nil {
		return err
	}
	defer closeConsole()
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { policies.Watch(watching) })
	defer watcher.Wait()
	defer stop()
	ready(listener.Addr().String())
	return server.Serve(ctx, listener)
}
