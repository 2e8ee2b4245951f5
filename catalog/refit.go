package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// carry takes a chain from an earlier epoch to the present one, inside the
// transaction that holds the epoch's lock: same cuts, and finer ones within the
// blocks; new release. chain has its number, generation and present epoch; was is
// what it was in the earlier epoch. Where it fails, the chain stays in the
// earlier epoch, and the next query fails too.
func (c *Catalog) carry(ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain, was stored) error {
	chain.generation++
	past, err := loadPast(ctx, tx, r, was.epoch)
	if err != nil {
		return err
	}
	p, err := c.refit(ctx, tx, r, past, audience, chain, was.partition)
	if err != nil {
		return err
	}
	stored := []byte{}
	blocks, minBlock := 1, chain.epoch.subjects
	if p != nil {
		if stored, err = p.MarshalBinary(); err != nil {
			return err
		}
		chain.root, blocks, minBlock = chain.epoch.root(r, p), p.Blocks(), p.MinBlock()
	}
	if _, err := tx.Exec(ctx, `UPDATE tailor.chain SET epoch = $2, generation = $3, partition = $4, blocks = $5, min_block = $6, layout = $7,
		changed = now() WHERE chain = $1`, chain.number, chain.epoch.number, chain.generation, stored, blocks, minBlock, releaseLayout); err != nil {
		return fmt.Errorf("move chain to epoch %d: %w", chain.epoch.number, err)
	}
	if err := createRelease(ctx, tx, r, chain); err != nil {
		return err
	}
	return dropUnused(ctx, tx, r, was.epoch)
}

// refit is the partition of an earlier epoch, re-fitted to the chain's; nil where
// there are no quasi-identifiers.
func (c *Catalog) refit(ctx context.Context, tx pgx.Tx, r, past *Relation, audience string, chain *Chain, stored []byte) (*anonymize.Partition, error) {
	e := chain.epoch
	switch {
	case past.ByMeans:
		return nil, errByMeans(r)
	case len(past.Dimensions()) == 0 && e.table == nil:
		return nil, nil
	case len(past.Dimensions()) == 0: // nobody has been shown any yet
		return c.makeRoot(ctx, r, audience, e)
	case !sameDimensions(r, past):
		return nil, sqlstate.New(sqlstate.PolicyStale,
			"the quasi-identifiers of table %q have changed since this audience was shown it", r.Name).
			WithHint("Restore them, or start all chains anew with tailor.forget_chains, which gives up the guarantee over what was shown before.")
	}
	before, err := loadEpoch(ctx, tx, past)
	if err != nil {
		return nil, err
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
	return ecg.RefineRoot(ctx, fitted, r.rootPlan(audience, e))
}

// sameDimensions says whether what was shown under one policy can be carried to
// another.
func sameDimensions(now, past *Relation) bool {
	return slices.EqualFunc(now.Dimensions(), past.Dimensions(), func(x, y *Column) bool {
		return x.Name == y.Name && x.Type == y.Type
	})
}

// errByMeans refuses what an earlier version showed by means of groups of blocks.
// Labels of single blocks would tell what those means hold back.
func errByMeans(r *Relation) error {
	return &sqlstate.Error{
		Code:    sqlstate.PolicyStale,
		Message: fmt.Sprintf("table %q was shown by means of blocks, which this version cannot do", r.Name),
		Detail:  "The labels that would be shown now tell values that those means hold back.",
		Hint: fmt.Sprintf("Call tailor.activate('%[1]s'), after which ranges show their middle, and tailor.forget_chains('%[1]s'), "+
			"which gives up the guarantee over what was shown before.", r),
	}
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
