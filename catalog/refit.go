package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// refit carries a chain from an earlier epoch to the present one, inside the
// transaction that holds the chain's lock: same cuts, new copy, new release.
// chain has its number, generation and present epoch; stored is its partition
// of the earlier epoch.
func (c *Catalog) refit(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, earlier int, stored []byte) error {
	chain.generation++
	if chain.epoch.table != nil {
		past, err := loadPast(ctx, tx, r, earlier)
		if err != nil {
			return err
		}
		chain.partition, err = c.carried(ctx, tx, r, past, chain.epoch, stored)
		if err != nil {
			return err
		}
	}
	if err := replaceRelease(ctx, tx, r, chain.number); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE tailor.chain SET epoch = $2, generation = $3, min_block = $4 WHERE chain = $1`,
		chain.number, chain.epoch.number, chain.generation, chain.epoch.subjects); err != nil {
		return fmt.Errorf("move chain to epoch %d: %w", chain.epoch.number, err)
	}
	if chain.partition != nil {
		if err := c.storeChain(ctx, tx, r, chain.number, &chain.state); err != nil {
			return err
		}
	}
	return dropUnused(ctx, tx, r, earlier)
}

// carried is the partition of an earlier epoch, re-fitted to a new one.
func (c *Catalog) carried(ctx context.Context, tx pgx.Tx, r, past *Relation, e *epoch, stored []byte) (*anonymize.Partition, error) {
	before, err := loadEpoch(ctx, tx, past)
	if err != nil {
		return nil, err
	}
	switch {
	case before.table == nil:
		return anonymize.NewPartition(e.table), nil // nobody has been shown any yet
	case !sameDimensions(r, past):
		return nil, sqlstate.New(sqlstate.PolicyStale,
			"the quasi-identifiers of table %q have changed since this audience was shown it", r.Name).
			WithHint("Restore them, or start all chains anew with tailor.forget_chains, which gives up the guarantee over what was shown before.")
	}
	partition, err := anonymize.UnmarshalPartition(before.table, stored)
	if err != nil {
		return nil, err
	}
	fitted, report, err := anonymize.Refit(partition, e.table, requirements(r, e))
	if err != nil {
		return nil, err
	}
	c.log.Info("chain re-fitted", "relation", r.String(), "epoch", e.number,
		"placed", report.Placed, "beyond", report.Beyond, "joined", report.Joined)
	return fitted, nil
}

func sameDimensions(a, b *Relation) bool {
	x, y := a.Dimensions(), b.Dimensions()
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i].Name != y[i].Name || x[i].Type != y[i].Type {
			return false
		}
	}
	return true
}

// replaceRelease makes a release over the present epoch in place of the old
// one, for the same readers.
func replaceRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain int) error {
	rows, err := tx.Query(ctx, `SELECT a.grantee::regrole::text FROM pg_class c, aclexplode(c.relacl) a
		WHERE c.oid = to_regclass($1) AND a.grantee <> c.relowner AND a.privilege_type = 'SELECT'`,
		"tailor_release."+ReleaseName(chain))
	if err != nil {
		return fmt.Errorf("read readers of release: %w", err)
	}
	readers, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read readers of release: %w", err)
	}
	for _, s := range []string{
		fmt.Sprintf("DROP VIEW IF EXISTS tailor_release.%[1]s, tailor_release.%[2]s, tailor_release.%[3]s",
			ReleaseName(chain), ParentView(ReleaseName(chain)), LabelView(ReleaseName(chain))),
		fmt.Sprintf("DROP TABLE IF EXISTS tailor_store.chain_%[1]d_block, tailor_store.chain_%[1]d_row", chain),
	} {
		if _, err := tx.Exec(ctx, s); err != nil {
			return fmt.Errorf("drop release: %w", err)
		}
	}
	if err := createRelease(ctx, tx, r, chain); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE tailor.chain SET layout = $2 WHERE chain = $1`, chain, releaseLayout); err != nil {
		return fmt.Errorf("note layout of release: %w", err)
	}
	for _, reader := range readers { // quoted by PostgreSQL
		if _, err := tx.Exec(ctx, grantStatement(r, chain, reader)); err != nil {
			return fmt.Errorf("grant release: %w", err)
		}
	}
	return nil
}

// dropUnused removes the copy of an epoch that no chain is on any more.
func dropUnused(ctx context.Context, tx pgx.Tx, r *Relation, epochNumber int) error {
	var used bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tailor.chain WHERE epoch = $1)
		OR EXISTS (SELECT FROM tailor.protection WHERE relation = $2 AND epoch = $1)`, epochNumber, r.OID).Scan(&used)
	if err != nil || used {
		return err
	}
	_, err = tx.Exec(ctx, fmt.Sprintf("DROP TABLE IF EXISTS tailor_store.epoch_%[1]d, tailor_store.tuples_%[1]d", epochNumber))
	if err != nil {
		return err
	}
	return dropPublication(ctx, tx, epochNumber)
}
