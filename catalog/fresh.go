package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
)

// holdBack takes columns that have not been shown before, and that a model is asked of, out of
// blocks that have a class which fails it: to join another block would not help, since whoever
// remembers the labels of before knows whose the values of the class are. They wait as changes
// do, which are asked the same ([block.allows]).
func (t *takingIn) holdBack(ctx context.Context, past *Relation) error {
	isFresh := func(q Requirement) bool { return !stays(past, ident(q.Column)) }
	if !slices.ContainsFunc(t.r.Requirements, isFresh) {
		return nil
	}
	row, n := t.chain.table("row"), t.needs()
	list := []string{classColumn, blockColumn, personColumn}
	for _, q := range t.r.Requirements {
		list = append(list, t.r.hashOf("", ident(q.Column)))
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY 2, 1", commas(list), row))
	if err != nil {
		return err
	}
	failing := make(map[string]map[int64]bool) // blocks, by column
	classes := make(map[int64]*class)          // of one block
	var block int64
	judge := func() {
		for i, q := range t.r.Requirements {
			of := n
			of.late = map[int]bool{i: n.late[i] && isNothing(classes, i, n.nothing)}
			for _, c := range classes {
				if isFresh(q) && !of.meetsModel(c, i) {
					if failing[q.Column] == nil {
						failing[q.Column] = make(map[int64]bool)
					}
					failing[q.Column][block] = true
				}
			}
		}
		clear(classes)
	}
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if values[1] != block {
			judge()
		}
		block = values[1]
		if classes[values[0]] == nil {
			classes[values[0]] = &class{}
		}
		classes[values[0]].add(values[2], slices.Clone(values[3:]))
		return nil
	})
	if err != nil {
		return err
	}
	judge()
	for column, blocks := range failing {
		statement := fmt.Sprintf("UPDATE %s r SET %s = NULL", row, ident(column))
		where := fmt.Sprintf(" WHERE r.%s = ANY ($1) AND r.%s IS NOT NULL", blockColumn, ident(column))
		if t.keyed { // the copy says something else of the row
			statement += fmt.Sprintf(", %[1]s = (~e.%[1]s & ~4294967295) | (r.%[1]s & 4294967295) "+
				"FROM tailor_store.epoch_%[2]d e%[3]s AND %[4]s", keyColumn, t.r.Epoch, where,
				t.same("e", "r"))
		} else {
			statement += where
		}
		if _, err := t.tx.Exec(ctx, statement, slices.Collect(maps.Keys(blocks))); err != nil {
			return err
		}
	}
	return nil
}

// isNothing says whether nothing stands for the i-th sensitive value in all of a block.
func isNothing(classes map[int64]*class, i int, nothing int64) bool {
	for _, c := range classes {
		if len(c.values[i]) > 1 || c.values[i][nothing] == nil {
			return false
		}
	}
	return true
}
