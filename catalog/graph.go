package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// storeNodes appends the stages of a query to its chain's Execution Chain
// Graph ([Chen] §4), with the generation of the chain that they led to. Queries
// that change nothing add no nodes: they show again what is shown.
func storeNodes(ctx context.Context, tx pgx.Tx, chain, generation int, nodes [][]byte) error {
	for i, node := range nodes {
		if _, err := tx.Exec(ctx, `INSERT INTO tailor.chain_node (chain, generation, position, node) VALUES ($1, $2, $3, $4)`,
			chain, generation, i+1, node); err != nil {
			return fmt.Errorf("store graph: %w", err)
		}
	}
	return nil
}
