package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestOnlyWhatPassesIsWaitedFor(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"nobody listens", fmt.Errorf("connect: %w", refused), true},
		{"the server starts", &pgconn.PgError{Code: "57P03"}, true},
		{"the name is not known yet", &net.DNSError{Name: "db", IsNotFound: true}, true},
		{"there is no socket yet", &net.OpError{Op: "dial", Err: syscall.ENOENT}, true},
		{"the password is wrong", &pgconn.PgError{Code: "28P01"}, false},
		{
			"one address refuses, the other has no such database",
			errors.Join(refused, &pgconn.PgError{Code: "3D000"}), false,
		},
		{"the certificate is another's", errors.New("x509"), false},
	} {
		if got := comesUp(c.err); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestAWaitEndsByItsTimeOrByTheSignal: nobody listens on the port.
func TestAWaitEndsByItsTimeOrByTheSignal(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	dsn := "host=127.0.0.1 sslmode=disable port=" + port
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	err = awaitDatabase(t.Context(), dsn, 1500*time.Millisecond, logger)
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "database-wait") {
		t.Error(err)
	}
	if strings.Count(log.String(), "waiting for the database") != 1 {
		t.Errorf("the log has %q", log.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	if awaitDatabase(ctx, dsn, time.Hour, logger) == nil || time.Since(started) > 10*time.Second {
		t.Errorf("the wait went on for %v", time.Since(started))
	}
}
