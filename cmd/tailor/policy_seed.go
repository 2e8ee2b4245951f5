package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/planner"
)

// seedPolicy composes the SELECT statements of a file as a workload and
// declares it for a project, all tables in one transaction, or prints it as the
// seeds of a policy file.
func seedPolicy(ctx context.Context, o *policyOptions, stdout io.Writer) error {
	text, err := os.ReadFile(o.file)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	committed := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return pgx.BeginTxFunc(ctx, conn, committed, func(tx pgx.Tx) error {
		snapshot, err := catalog.ReadPolicies(ctx, conn)
		if err != nil {
			return refusal(ctx, "read the policies", err)
		}
		declared, err := planner.Workload(string(text),
			planner.Session{Database: conn.Config().Database, SearchPath: strings.Split(o.path, ",")},
			snapshot)
		if err != nil {
			return err
		}
		if len(declared) == 0 {
			return errors.New("no statement uses a quasi-identifier of a protected table: there is " +
				"nothing to prepare for")
		}
		for _, d := range declared {
			combinations, err := json.Marshal(d.Combinations)
			if err != nil {
				return err
			}
			if o.project == "" {
				fmt.Fprintf(stdout, "%s:\n  chain: {seed: %s}\n", d.Relation, combinations)
				continue
			}
			if _, err := tx.Exec(ctx, `CALL tailor.project($1::text, $2::text::regclass, $3::jsonb)`,
				o.project, pgx.Identifier{d.Relation.Schema, d.Relation.Name}.Sanitize(),
				string(combinations)); err != nil {
				return refusal(ctx, d.Relation.String(), err)
			}
			fmt.Fprintf(stdout, "project %s: %d queries of %s\n", o.project, len(d.Combinations), d.Relation)
		}
		return nil
	})
}
