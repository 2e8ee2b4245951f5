package catalog

import (
	"context"
	"fmt"
)

// A relation that answers with aggregates only shows averages of its payload
// (extension/rows.sql, docs/decisions/aggregates-only.md).

// averaged are the columns of the payload that a release does not show as they are: of a
// relation that answers with aggregates only.
func (r *Relation) averaged() []*Column {
	var out []*Column
	for i := range r.Columns {
		if c := &r.Columns[i]; r.AggregateOnly && c.IsPayload() {
			out = append(out, c)
		}
	}
	return out
}

// insteadColumn is the column of a release's rows that holds what such a column shows.
func (c *Column) insteadColumn() string { return fmt.Sprintf(`"tailor shown %d"`, c.Number) }

// cellColumn is the column that holds the number of the cell of a row.
func (c *Column) cellColumn() string { return fmt.Sprintf(`"tailor cell %d"`, c.Number) }

// carried are the columns that a release keeps, from tables to others, of those that show
// averages: what they are called now, and what they were. Under another policy all is shown
// anew, of cells that those before have joined: of other columns nothing is kept.
func (t *takingIn) carried(was *Relation) (now, then []string) {
	for _, c := range t.r.averaged() {
		past := was.Column(c.Name)
		averaged := c.IsAveraged() && past != nil && past.IsAveraged() && stays(was, ident(c.Name))
		if !was.AggregateOnly || was != t.r && !averaged {
			continue
		}
		now, then = append(now, c.insteadColumn()), append(then, past.insteadColumn())
		if averaged {
			now, then = append(now, c.cellColumn()), append(then, past.cellColumn())
		}
	}
	return now, then
}

// renewCells joins cells until they meet another policy, and has all be shown anew.
func (t *takingIn) renewCells(ctx context.Context) error {
	if err := t.cells(ctx, "CALL tailor.renew_cells($1::text::regclass, $2)"); err != nil {
		return err
	}
	return t.touch(ctx, "true")
}

// touch notes the cells of rows r that are about to change, by a condition.
func (t *takingIn) touch(ctx context.Context, condition string) error {
	return t.cells(ctx, "CALL tailor.touch_cells($1::text::regclass, $2, $3)", condition)
}

// showAverages writes what the rows of cells that have changed are to show. Tables of
// another edition have had no cell noted: there all is written.
func (t *takingIn) showAverages(ctx context.Context) error {
	return t.cells(ctx, "SELECT tailor.show_averages($1::text::regclass, $2)")
}

// cells runs a statement over the release's rows ($1) and the policy's document ($2), where
// only aggregates are answered.
func (t *takingIn) cells(ctx context.Context, statement string, more ...any) error {
	if !t.r.AggregateOnly {
		return nil
	}
	var policy string
	err := t.tx.QueryRow(ctx, `SELECT policy FROM tailor.policy_version
		WHERE relation = $1 AND version = $2`, t.r.OID, t.r.Version).Scan(&policy)
	if err != nil {
		return err
	}
	_, err = t.tx.Exec(ctx, statement, append([]any{t.chain.table("row"), policy}, more...)...)
	return err
}
