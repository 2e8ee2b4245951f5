package console

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
)

// chain is how fine the partition of one audience is.
type chain struct {
	Number     int       `json:"chain"`
	Relation   string    `json:"relation"`
	Audience   string    `json:"audience"`
	Epoch      int       `json:"epoch"`
	Generation int       `json:"generation"`
	Blocks     int64     `json:"blocks"`
	MinBlock   int64     `json:"min_block"`
	K          int64     `json:"k"`
	Subjects   int64     `json:"subjects"`
	Created    time.Time `json:"created"`
	Changed    time.Time `json:"changed"`
	// Asked and Loss are the attributes and the loss of the last statement that
	// was released, nil where there was none.
	Asked []string `json:"asked"`
	Loss  *float64 `json:"loss"`
	// Losses are those of single columns in the partition as it is, and Together
	// their mean; nil where the chain has none, or waits for its epoch.
	Losses   map[string]float64 `json:"losses"`
	Together *float64           `json:"together"`
}

// chains lists them. What is left of the room is what the blocks do not use:
// at most subjects / k of them can be told apart.
func (c *Console) chains(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT c.chain, c.relation::regclass::text, c.audience, c.epoch, c.generation, c.blocks,
			c.min_block,
		       coalesce(p.k, 0), coalesce(e.subjects, 0), c.created, c.changed, last.stages, last.loss
		FROM tailor.chain c
		LEFT JOIN tailor.protection p ON p.relation = c.relation
		LEFT JOIN tailor.epoch e ON e.epoch = c.epoch
		LEFT JOIN LATERAL (
			SELECT l.record -> 'stages' AS stages, n.loss
			FROM (SELECT position, loss FROM tailor.audit_entry WHERE chain = c.chain
				AND verdict = 'released'
			      ORDER BY position DESC LIMIT 1) n JOIN tailor.audit_log l USING (position)) last ON true
		ORDER BY c.relation::regclass::text, c.audience`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (chain, error) {
		var h chain
		var stages []byte
		err := row.Scan(&h.Number, &h.Relation, &h.Audience, &h.Epoch, &h.Generation, &h.Blocks,
			&h.MinBlock,
			&h.K, &h.Subjects, &h.Created, &h.Changed, &stages, &h.Loss)
		if err == nil && stages != nil {
			h.Asked = lastStage(stages)
		}
		return h, err
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, measuring)
	defer cancel()
	for i := range list {
		h := &list[i]
		found, err := c.measured(ctx, h)
		if err != nil {
			c.log.Info("a chain is shown without its losses", "chain", h.Number, "error", err)
		}
		if found != nil {
			h.Losses, h.Together = found.Losses, &found.Together
		}
	}
	if list == nil {
		list = []chain{}
	}
	return list, nil
}

// measuring bounds how long all chains together may be looked at: the epoch of
// a large table takes seconds to read for the first time.
const measuring = 10 * time.Second

// measures keeps what was found of chains. It is safe for concurrent use.
type measures struct {
	mu   sync.Mutex
	kept map[int]measured
}

// measured is a chain as it was at a generation.
type measured struct {
	epoch, generation int
	found             *catalog.ChainLoss
}

// measured measures a chain unless it is still as it was.
func (c *Console) measured(ctx context.Context, h *chain) (*catalog.ChainLoss, error) {
	c.measures.mu.Lock()
	old, ok := c.measures.kept[h.Number]
	c.measures.mu.Unlock()
	if ok && old.epoch == h.Epoch && old.generation == h.Generation {
		return old.found, nil
	}
	found, err := c.losses.ChainLoss(ctx, h.Number)
	if err != nil || found == nil {
		return nil, err
	}
	c.measures.mu.Lock()
	defer c.measures.mu.Unlock()
	if c.measures.kept == nil {
		c.measures.kept = make(map[int]measured)
	}
	c.measures.kept[h.Number] = measured{h.Epoch, h.Generation, found}
	return found, nil
}

// lastStage is the combination of the last stage of a record.
func lastStage(stages []byte) []string {
	var all []struct {
		Attributes []string `json:"qids"`
	}
	if json.Unmarshal(stages, &all) != nil || len(all) == 0 {
		return nil
	}
	return all[len(all)-1].Attributes
}
