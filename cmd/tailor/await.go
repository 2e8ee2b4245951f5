package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// awaitPace is how often a database that does not answer is asked again.
const awaitPace = time.Second

// awaitDatabase returns once the database lets dsn in. What waiting does not mend, such as a
// wrong password, is returned at once, the rest after the wait. A wait of 0 asks nothing.
func awaitDatabase(ctx context.Context, dsn string, wait time.Duration, log *slog.Logger) error {
	if wait == 0 {
		return nil
	}
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for told := false; ; told = true {
		conn, err := pgx.ConnectConfig(waiting, config)
		if err == nil {
			closeQuietly(conn)
			return nil
		}
		if !comesUp(err) {
			return err
		}
		if !told {
			log.Warn("waiting for the database", "address", config.Host, "duration", wait)
		}
		select {
		case <-time.After(awaitPace):
		case <-waiting.Done():
			return fmt.Errorf("the database did not answer within database-wait (%v): %w", wait, err)
		}
	}
}

// comesUp says whether a connection failed as it does while a server starts: nobody listens
// yet, its name is not known yet, or it lets nobody in yet.
func comesUp(err error) bool {
	if said := (*pgconn.PgError)(nil); errors.As(err, &said) {
		return said.Code == string(sqlstate.CannotConnectNow)
	}
	var name *net.DNSError
	if errors.As(err, &name) || errors.Is(err, context.DeadlineExceeded) {
		return true
	}
	for _, passing := range []syscall.Errno{
		syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EHOSTUNREACH, syscall.ENETUNREACH,
		syscall.ETIMEDOUT, syscall.ENOENT, // the last: of a socket
	} {
		if errors.Is(err, passing) {
			return true
		}
	}
	return false
}
