package catalog

import (
	"context"
	"fmt"
)

// sums are those of the blocks of a release.
type sums struct{ blocks, minBlock, rows int }

// assertSafe checks by itself what is about to be shown: each block, and those of each
// block who have gone together, are enough subjects and meet the other models. It sums up
// the blocks.
func (t *takingIn) assertSafe(ctx context.Context) error {
	subjects := "count(*)"
	if !t.oneRow {
		subjects = fmt.Sprintf("count(DISTINCT %s)", personColumn)
	}
	row, people, blocks := t.chain.table("row"), "true", "true"
	var unsafe int
	err := t.tx.QueryRow(ctx,
		fmt.Sprintf(`SELECT count(*), coalesce(min(n), 0), coalesce(sum(r), 0),
			count(*) FILTER (WHERE n < %d)
		FROM (SELECT %s AS n, count(*) AS r FROM %s GROUP BY %s) b`, t.r.K, subjects, row, blockColumn)).
		Scan(&t.sums.blocks, &t.sums.minBlock, &t.sums.rows, &unsafe)
	if err != nil {
		return fmt.Errorf("check blocks: %w", err)
	}
	if unsafe > 0 {
		return errUnsafe(t.r, unsafe)
	}
	if t.partial { // nothing has been written of anybody else, but that he has gone
		people = fmt.Sprintf("%[1]s IN (SELECT %[1]s FROM tailor_store.epoch_%[2]d)", personColumn,
			t.r.Epoch)
		blocks = fmt.Sprintf("%[1]s IN (SELECT %[1]s FROM %[2]s WHERE %[3]s UNION ALL "+
			"SELECT %[1]s FROM %[4]s WHERE epoch = %[5]d)", blockColumn, row, people,
			t.chain.table("gone"), t.r.Epoch)
	}
	checks := []string{
		fmt.Sprintf(`SELECT FROM tailor.policy_version v,
				unnest(tailor.failing_blocks('%s', v.policy, %d, '%s', '%s'))
			WHERE (v.relation, v.version) = (%d, %d)`, row, t.chain.number, blocks, subjects, t.r.OID,
			t.r.Version),
		fmt.Sprintf("SELECT FROM %s WHERE epoch = %d GROUP BY %s HAVING count(DISTINCT %s) < %d",
			t.chain.table("gone"), t.r.Epoch, blockColumn, personColumn, t.r.K),
		fmt.Sprintf("SELECT FROM %[1]s WHERE %[2]s IN (SELECT %[2]s FROM %[1]s WHERE %[4]s) GROUP BY "+
			"%[2]s HAVING min(%[3]s) <> max(%[3]s)",
			row, classColumn, blockColumn, people),
	}
	if t.keyed {
		checks = append(checks, fmt.Sprintf("SELECT FROM %s WHERE %s GROUP BY %s, %s HAVING count(*) > 1",
			row, people, personColumn, nthColumn))
	}
	if !t.oneRow {
		checks = append(checks,
			fmt.Sprintf(`SELECT FROM (SELECT %[2]s, count(*) AS "tailor rows" FROM %[1]s
				GROUP BY %[2]s, %[3]s) t
			GROUP BY %[2]s HAVING max("tailor rows") > greatest(1, %[4]g * sum("tailor rows"))`, row,
				blockColumn, personColumn, t.r.MaxShare))
	}
	for _, check := range checks {
		if err := t.tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM (%s) unsafe", check)).
			Scan(&unsafe); err != nil {
			return fmt.Errorf("check: %w", err)
		}
		if unsafe > 0 {
			return errUnsafe(t.r, unsafe)
		}
	}
	return nil
}
