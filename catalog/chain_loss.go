package catalog

import "context"

// ChainLoss is what a chain shows of its relation by now, in terms of what it
// loses. It holds no value.
type ChainLoss struct {
	// Losses are those of single quasi-identifiers, from 0 (every value is
	// shown) to 1 (none is).
	Losses map[string]float64
	// Together is the mean over all of them.
	Together float64
}

// ChainLoss measures a chain as the database has it, without a lock on it: it is
// for people to look at. It is nil for a chain that does not exist, waits to be
// fitted to a newer epoch, or belongs to a relation without quasi-identifiers.
// It takes a look at each block, and the time to read the epoch where no query
// has done so.
func (c *Catalog) ChainLoss(ctx context.Context, chain int) (*ChainLoss, error) {
	snapshot, err := c.Snapshot()
	if err != nil {
		return nil, err
	}
	for _, r := range snapshot.relations() {
		for _, of := range r.chains {
			if of.Number == chain && !r.Stale && r.SetValued == nil {
				return c.chainLoss(ctx, r, of)
			}
		}
	}
	return nil, nil
}

func (c *Catalog) chainLoss(ctx context.Context, r *Relation, of chainState) (*ChainLoss, error) {
	chain := &Chain{number: of.Number, edition: of.Edition}
	c.mu.Lock()
	for _, known := range c.chains {
		if known.number == of.Number && known.edition == of.Edition {
			chain = known
		}
	}
	c.mu.Unlock()
	root := chain.root
	if root == nil {
		var err error
		if len(r.QuasiIdentifiers()) == 0 {
			return nil, nil
		}
		if root, err = c.readRoot(ctx, r, chain); err != nil {
			return nil, err
		}
	}
	found := &ChainLoss{Losses: make(map[string]float64), Together: root.Loss()}
	for _, name := range root.Shown.Attributes {
		found.Losses[name] = root.Loss(name)
	}
	return found, nil
}
