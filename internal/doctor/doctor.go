// Package doctor finds ways round the proxy, and what else is wrong with an
// installation: a connection goes in, findings come out, each with the
// statement that mends it. Nothing is changed.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/extension"
)

// Finding is something that the doctor has to say.
type Finding struct {
	Check    string `json:"check"`
	Severity string `json:"severity"` // Serious, Warning, Unknown
	Object   string `json:"object"`
	Message  string `json:"message"`
	Mend     string `json:"mend"` // a statement, or what to do
}

// The severities: a serious finding lets readers past the releases, or keeps
// the proxy from serving; unknown is a check that the role may not make.
const (
	Serious = "serious"
	Warning = "warning"
	Unknown = "unknown"
)

// Checks is how many are made.
func Checks() int { return len(checks) }

// Examine makes all checks on one connection, each in a transaction of its own
// that only reads. A superuser's connection sees everything.
func Examine(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	findings := []Finding{}
	for _, c := range checks {
		found, err := c.make(ctx, conn)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", c.name, err)
		}
		findings = append(findings, found...)
	}
	return findings, nil
}

// make runs a check. A check that the role may not make is a finding itself.
func (c *check) make(ctx context.Context, conn *pgx.Conn) ([]Finding, error) {
	query := strings.ReplaceAll(c.query, "@VERSION@", extension.Version)
	var found []Finding
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL search_path = pg_catalog, pg_temp`); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, query)
		if err != nil {
			return err
		}
		f := Finding{Check: c.name}
		_, err = pgx.ForEachRow(rows, []any{&f.Severity, &f.Object, &f.Message, &f.Mend}, func() error {
			found = append(found, f)
			return nil
		})
		return err
	})
	var server *pgconn.PgError
	if errors.As(err, &server) && (server.Code == "42501" || server.Code == "0A000") {
		return []Finding{{
			c.name, Unknown, "-", "the role of this connection may not make this check",
			"Run tailor doctor as a superuser.",
		}}, nil
	}
	return found, err
}
