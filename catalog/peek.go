package catalog

import (
	"context"
	"fmt"
)

// Peek is a principal's chain of a relation as it stands. It changes nothing
// but that a chain which does not exist is made, with one block. Errors are of
// type *[sqlstate.Error].
func (c *Catalog) Peek(ctx context.Context, r *Relation, p *Principal) (Present, error) {
	e, err := c.readyEpoch(ctx, r)
	if err != nil {
		return Present{}, err
	}
	ctx, cancel := patiently(ctx)
	defer cancel()
	chain, err := c.chain(ctx, r, p, e)
	if err != nil {
		return Present{}, classified(err)
	}
	if err := chain.lock(ctx); err != nil {
		return Present{}, classified(err)
	}
	defer chain.unlock()
	return Present{
		Partition: chain.partition, Requirements: requirements(r, e),
		Chain: chain.number, Generation: chain.generation, Score: chain.score,
	}, nil
}

// Fresh is a chain of a relation of which nobody has been shown anything yet.
// It exists in memory only. Errors are of type *[sqlstate.Error].
func (c *Catalog) Fresh(ctx context.Context, r *Relation) (Present, error) {
	e, err := c.readyEpoch(ctx, r)
	if err != nil {
		return Present{}, err
	}
	present := Present{Requirements: requirements(r, e), Unplanted: r.unplanted(nil, "")}
	if e.table != nil {
		present.Partition = e.whole()
	}
	return present, nil
}

// Owns says whether a principal has the rights of a relation's owner, who may
// see whatever is in it.
func (c *Catalog) Owns(ctx context.Context, p *Principal, r *Relation) (bool, error) {
	var owns bool
	err := c.pool.QueryRow(ctx, `SELECT pg_catalog.pg_has_role($1, c.relowner, 'USAGE') FROM pg_catalog.pg_class c WHERE c.oid = $2`,
		p.Name, r.OID).Scan(&owns)
	if err != nil {
		return false, unavailable(fmt.Errorf("read owner: %w", err))
	}
	return owns, nil
}
