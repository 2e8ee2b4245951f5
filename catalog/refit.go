package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// refit carries a chain from an earlier epoch to the present one, inside the
// transaction that holds the chain's lock: same cuts, new copy, new release.
// chain has its number, generation and present epoch; stored and means are its
// partition of the earlier epoch and what was shown by means then. Where it
// fails, the chain stays in the earlier epoch, and the next query fails too.
func (c *Catalog) refit(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain, earlier int, stored, means []byte) error {
	chain.generation++
	past, err := loadPast(ctx, tx, r, earlier)
	if err != nil {
		return err
	}
	if err := c.carry(ctx, tx, r, past, chain, stored, means); err != nil {
		return err
	}
	if err := replaceRelease(ctx, tx, r, chain.number, &chain.state); err != nil {
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

// carry re-fits the partition of an earlier epoch to the chain's. A chain that
// either policy shows by means is carried exactly as it is, or not at all.
func (c *Catalog) carry(ctx context.Context, tx pgx.Tx, r, past *Relation, chain *Chain, stored, means []byte) error {
	e, byMeans := chain.epoch, r.showsMeans() || past.showsMeans()
	switch {
	case len(past.Dimensions()) == 0 && !byMeans: // nobody has been shown any yet
		if e.table != nil {
			chain.partition = anonymize.NewPartition(e.table)
		}
		return nil
	case !sameDimensions(r, past):
		return sqlstate.New(sqlstate.PolicyStale,
			"the quasi-identifiers of table %q have changed since this audience was shown it", r.Name).
			WithHint("Restore them, or start all chains anew with tailor.forget_chains, which gives up the guarantee over what was shown before.")
	}
	before, err := loadEpoch(ctx, tx, past)
	if err != nil {
		return err
	}
	partition, err := anonymize.UnmarshalPartition(before.table, stored)
	if err != nil {
		return err
	}
	if byMeans {
		return carryMeans(r, before, chain, partition, means)
	}
	fitted, report, err := anonymize.Refit(partition, e.table, requirements(r, e))
	if err != nil {
		return err
	}
	c.log.Info("chain re-fitted", "relation", r.String(), "epoch", e.number,
		"placed", report.Placed, "beyond", report.Beyond, "joined", report.Joined)
	chain.partition = fitted
	return nil
}

// sameDimensions says whether what was shown under one policy can be carried to
// another. A column begins or ends to be shown by means with a new chain: labels
// of single blocks would tell what groups hold back.
func sameDimensions(now, past *Relation) bool {
	return slices.EqualFunc(now.Dimensions(), past.Dimensions(), func(x, y *Column) bool {
		return x.Name == y.Name && x.Type == y.Type && x.Mean == y.Mean
	})
}

// replaceRelease makes a release over the present epoch in place of the old
// one, for the same readers.
func replaceRelease(ctx context.Context, tx pgx.Tx, r *Relation, chain int, s *state) error {
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
	for _, statement := range []string{
		fmt.Sprintf("DROP VIEW IF EXISTS tailor_release.%[1]s, tailor_release.%[2]s, tailor_release.%[3]s",
			ReleaseName(chain), ParentView(ReleaseName(chain)), LabelView(ReleaseName(chain))),
		fmt.Sprintf("DROP TABLE IF EXISTS tailor_store.chain_%[1]d_block, tailor_store.chain_%[1]d_row, tailor_store.chain_%[1]d_value", chain),
	} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return fmt.Errorf("drop release: %w", err)
		}
	}
	if err := createRelease(ctx, tx, r, chain, s); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE tailor.chain SET layout = $2 WHERE chain = $1`, chain, releaseLayout); err != nil {
		return fmt.Errorf("note layout of release: %w", err)
	}
	if err := assertLends(ctx, tx, r); err != nil {
		return err
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
	// What another transaction reads goes with a later copy.
	_, err = tx.Exec(ctx, "SELECT tailor.drop_unless_used('TABLE', $1)",
		[]string{fmt.Sprintf("tailor_store.epoch_%d", epochNumber), fmt.Sprintf("tailor_store.tuples_%d", epochNumber)})
	if err != nil {
		return err
	}
	return dropPublication(ctx, tx, epochNumber)
}
