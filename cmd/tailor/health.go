package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// healthTimeout bounds the question.
const healthTimeout = 5 * time.Second

func runHealth(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	flags := newFlags("health", "ask whether a proxy on this machine is ready", stderr)
	describe(flags, `
It asks /readyz of the proxy that has the same file, environment or --metrics. The exit code is 0 if
new clients would be served, else 1.
`)
	flags.String("config", "", "`FILE` in YAML of the proxy")
	address := flags.String("metrics", "", "`HOST:PORT` of the proxy's metrics")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *address == "" {
		served, o := serveFlags(io.Discard)
		if err := layered(served, args); err != nil {
			return complainUsage(flags, stderr, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		*address = o.metrics
	}
	if *address == "" {
		return complainUsage(flags, stderr, "metrics is missing: the proxy has no /readyz without it")
	}
	if err := askReady(ctx, *address); err != nil {
		return complain("health", stderr, err)
	}
	fmt.Fprintln(stdout, "ready")
	return exitSuccess
}

// askReady fails unless the proxy answers that it is ready.
func askReady(ctx context.Context, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // "localhost" is not known everywhere
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/readyz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// No proxy of the environment: the question is for this machine.
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the proxy cannot be asked; its log says why it does not run: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the proxy is not ready (%s); its log says why", answer.Status)
	}
	return nil
}
