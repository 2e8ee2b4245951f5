package catalog

import (
	"context"
	"encoding/json"
	"fmt"
)

// note writes what the chain has become, tells the proxies, and drops the copy when all
// audiences are brought up to date with it.
func (t *takingIn) note(ctx context.Context, first bool) error {
	c := t.chain
	if !first {
		c.generation++
	}
	c.copy = t.r.Epoch
	stored := []byte("[]") // not measured this time
	var err error
	if t.measured != nil {
		if stored, err = json.Marshal(t.measured); err != nil {
			return err
		}
	}
	row := c.table("row")
	subjects := fmt.Sprintf("(SELECT count(DISTINCT %s) FROM %s)", personColumn, row)
	if t.keyed && !first && !t.numbered {
		subjects = "$13"
	}
	columns, err := t.statistics(ctx)
	if err != nil {
		return fmt.Errorf("sum up columns: %w", err)
	}
	err = t.tx.QueryRow(ctx,
		fmt.Sprintf(`UPDATE tailor.chain SET epoch = $2, generation = $3, edition = $4, version = $5,
			layout = $6, changed = now(),
			arrivals = $7, departures = $8, changes = $9, columns = $11, stored = CASE
			WHEN $10::jsonb = '[]' THEN stored ELSE $10 END,
			blocks = $12, min_block = $14, rows = $13, subjects = %s
		WHERE chain = $1 RETURNING subjects, min_block, arrivals, (SELECT e.created
			FROM tailor.epoch e WHERE e.epoch = $2)`, subjects),
		c.number, t.r.Epoch, c.generation, c.edition, t.r.Version, releaseLayout, t.waiting.arrivals,
		t.waiting.departures, t.waiting.changes, stored, columns,
		t.sums.blocks, t.sums.rows, t.sums.minBlock).
		Scan(&c.subjects, &c.minBlock, &c.arrivals, &c.copied)
	if err != nil {
		return fmt.Errorf("note what the chain has become: %w", err)
	}
	if err := t.forgetWaiting(ctx); err != nil {
		return err
	}
	if err := t.analyze(ctx, row); err != nil {
		return err
	}
	return execute(ctx, t.tx, fmt.Sprintf("SELECT tailor.drop_copy(%d)", t.r.Epoch),
		"SELECT nextval('tailor.catalog_version')", "SELECT pg_notify('tailor', 'policies')")
}

// analyze has the planner know what has been written, if it is much: autovacuum sees to the rest.
func (t *takingIn) analyze(ctx context.Context, row string) error {
	if t.partial {
		var few bool
		err := t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT 20 * ((SELECT count(*) FROM tailor_store.epoch_%d)
			+ (SELECT count(*) FROM %s)) < $1`, t.r.Epoch, t.absent()), t.sums.rows).Scan(&few)
		if err != nil || few {
			return err
		}
	}
	return execute(ctx, t.tx, "ANALYZE "+row)
}
