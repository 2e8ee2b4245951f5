package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Fineness is what a chain shows of its relation by now, in terms of what it
// loses. It holds no value.
type Fineness struct {
	// Losses are those of single quasi-identifiers, from 0 (every value is
	// shown) to 1 (none is).
	Losses map[string]float64
	// Together is the mean over all of them.
	Together float64
}

// Fineness measures a chain as the database has it, without a lock on it: it is
// for people to look at. It is nil for a chain that does not exist, waits to be
// fitted to a newer epoch, or belongs to a relation without quasi-identifiers.
// It takes a look at each block, and the time to read the epoch where no query
// has done so.
func (c *Catalog) Fineness(ctx context.Context, chain int) (*Fineness, error) {
	snapshot, err := c.Snapshot()
	if err != nil {
		return nil, err
	}
	var relation uint32
	var number int
	var stored []byte
	err = c.pool.QueryRow(ctx, `SELECT relation::oid, epoch, partition FROM tailor.chain WHERE chain = $1`, chain).Scan(&relation, &number, &stored)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read chain %d: %w", chain, err)
	}
	var of *Relation
	for _, r := range snapshot.protected {
		if r.OID == relation && r.Epoch == number && !r.Stale && r.SetValued == nil {
			of = r
		}
	}
	if of == nil {
		return nil, nil
	}
	e, err := c.epochOf(ctx, of)
	if err != nil || e.table == nil {
		return nil, err
	}
	partition, err := anonymize.UnmarshalPartition(e.table, stored)
	if err != nil {
		return nil, fmt.Errorf("read chain %d: %w", chain, err)
	}
	found := &Fineness{Losses: make(map[string]float64)}
	var all []int
	for i, column := range e.table.Columns() {
		found.Losses[column.Name] = partition.Loss([]int{i})
		all = append(all, i)
	}
	found.Together = partition.Loss(all)
	return found, nil
}
