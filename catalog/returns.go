package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// together are the cohorts of arriving rows of people who may be shown again: all rows
// of those who had one trajectory when they left are back, or enough of them are and
// enough are not; and the copy has the same of all of them, compared with what was
// shown. Whose values were withheld stays away.
func (t *takingIn) together(ctx context.Context, arriving string) (map[int]bool, error) {
	out := make(map[int]bool)
	rows, err := t.tx.Query(ctx, fmt.Sprintf(
		`SELECT "tailor cohort", back, (SELECT count(*) FROM %[2]s o
			WHERE o.%[3]s = c.%[3]s)::integer - rows
		FROM (SELECT a."tailor cohort", g.%[3]s, count(DISTINCT g.%[1]s)::integer AS back,
				count(*)::integer AS rows FROM %[4]s a
			JOIN tailor_store.epoch_%[5]d e USING (%[6]s) JOIN %[2]s g ON %[7]s
			WHERE a."tailor cohort" <> %[8]d GROUP BY 1, 2) c`,
		personColumn, t.chain.table("gone"), classColumn, arriving, t.r.Epoch, rowColumn,
		t.same("e", "g"), newcomers))
	if err != nil {
		return nil, err
	}
	var cohort, back, away int
	_, err = pgx.ForEachRow(rows, []any{&cohort, &back, &away}, func() error {
		// What was shown of those who stay away is not known any more, so that models cannot be asked.
		out[cohort] = back >= t.r.K &&
			(away == 0 || away >= t.r.K && len(t.r.Requirements) == 0 && t.oneRow)
		return nil
	})
	if err != nil || len(out) == 0 || !t.keyed {
		return out, err
	}
	past, err := t.past(ctx, arriving)
	if err != nil {
		return nil, err
	}
	followed := t.followed()
	list := []string{"a.\"tailor cohort\"", "a." + personColumn, "a." + nthColumn}
	for _, column := range followed {
		list = append(list, t.r.hashOf("e.", column))
	}
	rows, err = t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s a JOIN tailor_store.epoch_%d e USING "+
		"(%s) WHERE a.\"tailor cohort\" <> %d",
		commas(list), arriving, t.r.Epoch, rowColumn, newcomers))
	if err != nil {
		return nil, err
	}
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	same := make(map[int][]int)
	_, err = pgx.ForEachRow(rows, into, func() error {
		cohort := int(values[0])
		shown := make([]int, len(followed))
		for i := range followed {
			row := rowKey{values[1], values[2]}
			shown[i] = past.shownAs(row, i, values[3+i])
			if slices.Contains(t.withholdable, followed[i]) && past.last(row, i) == t.hashOfNull {
				out[cohort] = false
			}
		}
		if same[cohort] == nil {
			same[cohort] = shown
		}
		out[cohort] = out[cohort] && slices.Equal(same[cohort], shown)
		return nil
	})
	return out, err
}

// rekey has rows go on that are in the copy by another key: a table that is loaded with
// new numbers every night has the same rows, which would leave and arrive else, and be
// shown in two blocks. Rows of a person are the same where they say the same; and of
// those that are left over, where their quasi-identifiers do, with another payload.
func (t *takingIn) rekey(ctx context.Context) error {
	if !t.keyed {
		return nil
	}
	numbered := func(shown string) (are *bool, err error) {
		err = t.tx.QueryRow(ctx, fmt.Sprintf("SELECT bool_or(%[1]s <> 0) FROM (SELECT %[1]s FROM %[2]s "+
			"UNION ALL SELECT %[1]s FROM tailor_store.epoch_%[3]d) q", nthColumn, shown, t.r.Epoch)).
			Scan(&are)
		return are, err
	}
	are, err := numbered(t.absent()) // of rows that are not the same, all are or none
	if err == nil && are == nil {
		are, err = numbered(t.chain.table("row"))
	}
	if err != nil || are == nil || !*are {
		return err
	}
	t.numbered = true
	if err := t.rename(ctx, "true", "s."+keyColumn); err != nil {
		return err
	}
	// Rows that have gone for good stay so, whatever else they have come to say.
	return t.rename(ctx, fmt.Sprintf("epoch = %d", forGood), "(s."+keyColumn+" & 4294967295)")
}

// rename gives rows that are shown, or that have gone in some way, and that are not in the
// table, the keys of rows of the copy that are not among them, of the same person and alike
// in an expression, one for one.
func (t *takingIn) rename(ctx context.Context, which, alike string) error {
	of, renamed := fmt.Sprintf("tailor_store.epoch_%d", t.r.Epoch), t.temporary("renamed")
	row, gone := t.chain.table("row"), t.chain.table("gone")
	known := commas([]string{personColumn, keyColumn, nthColumn})
	// Rows that have gone are not shown: if the table has them, so has the copy.
	missing := fmt.Sprintf(`SELECT %[1]s FROM %[2]s UNION ALL
		SELECT %[1]s FROM %[3]s g WHERE %[4]s AND NOT EXISTS (SELECT FROM %[5]s e WHERE %[6]s)`,
		known, t.absent(), gone, which, of, t.same("e", "g"))
	coming := fmt.Sprintf(`SELECT %s FROM %s e WHERE NOT EXISTS (SELECT FROM %s r WHERE %s)
		AND NOT EXISTS (SELECT FROM %s g WHERE %s AND %s)`,
		known, of, row, t.same("e", "r"), gone, which, t.same("e", "g"))
	placed := func(rows string) string {
		return fmt.Sprintf(`SELECT s.%[1]s, s.%[2]s, %[3]s AS alike,
			row_number() OVER (PARTITION BY s.%[1]s, %[3]s ORDER BY s.%[2]s) AS place FROM (%[4]s) s`,
			personColumn, nthColumn, alike, rows)
	}
	statements := []string{
		fmt.Sprintf("CREATE TABLE %[1]s AS SELECT b.%[2]s, b.%[3]s, n.%[3]s AS becomes FROM (%[4]s) b "+
			"JOIN (%[5]s) n USING (%[2]s, alike, place)",
			renamed, personColumn, nthColumn, placed(missing), placed(coming)),
		fmt.Sprintf("DELETE FROM %[1]s s USING %[2]s m WHERE (s.%[3]s, s.%[4]s) = (m.%[3]s, m.%[4]s)",
			t.absent(), renamed, personColumn, nthColumn),
	}
	for _, part := range []string{"row", "gone", "past"} {
		statements = append(statements, fmt.Sprintf(
			"UPDATE %[1]s s SET %[3]s = m.becomes FROM %[4]s m WHERE (s.%[2]s, s.%[3]s) = (m.%[2]s, "+
				"m.%[3]s)",
			t.chain.table(part), personColumn, nthColumn, renamed))
	}
	return execute(ctx, t.tx, append(statements, "DROP TABLE "+renamed)...)
}

// assertNewKeys fails where people seem to have got other keys: of those whom nobody has
// seen before, many say what people say who are gone, now or for long, and nobody else says.
// They would be shown in two blocks.
func (t *takingIn) assertNewKeys(ctx context.Context, arriving string, newcomersThere int) error {
	if !t.keyed || newcomersThere < t.r.K {
		return nil
	}
	row, gone := t.chain.table("row"), t.chain.table("gone")
	list := commas([]string{personColumn, keyColumn, nthColumn})
	// Of whom the table has another row; where there is one of each, those are known.
	of, which := row, fmt.Sprintf("r.%[1]s IN (SELECT %[1]s FROM told)", personColumn)
	if t.oneRow && !t.numbered {
		of, which = "known", "r.shown"
	}
	there := fmt.Sprintf("SELECT r.%s FROM %s r WHERE %s AND NOT EXISTS (SELECT FROM %s a WHERE %s)",
		personColumn, of, which, t.absent(), t.same("a", "r"))
	var twice int
	err := t.tx.QueryRow(ctx, fmt.Sprintf(`WITH coming AS MATERIALIZED (
				SELECT e.%[1]s FROM %[5]s a JOIN tailor_store.epoch_%[4]d e USING (%[6]s)
				WHERE a."tailor cohort" = %[7]d GROUP BY 1 HAVING count(*) = 1),
			known AS MATERIALIZED (SELECT %[8]s, true AS shown FROM %[3]s JOIN coming USING (%[1]s)
				UNION ALL SELECT %[8]s, false FROM %[9]s JOIN coming USING (%[1]s)),
			told AS MATERIALIZED (SELECT %[1]s, min(%[2]s) AS %[2]s FROM known
				GROUP BY 1 HAVING count(*) = 1)
		SELECT count(*) FROM told t
		WHERE NOT EXISTS (SELECT FROM tailor_store.epoch_%[4]d e WHERE e.%[2]s = t.%[2]s)
		  AND t.%[2]s NOT IN (%[10]s)`,
		keyColumn, personColumn, row, t.r.Epoch, arriving, rowColumn, newcomers, list, gone, there)).
		Scan(&twice)
	if err != nil {
		return err
	}
	if twice >= t.r.K && 2*twice >= newcomersThere {
		return sqlstate.New(sqlstate.PolicyStale,
			"%d of %d newcomers of table %q seem to be people who have been shown by other keys", twice,
			newcomersThere, t.r.Name).
			WithHint("Give them their keys back and call tailor.refresh('%[1]s'). Or "+
				"tailor.forget_chains('%[1]s') gives up the guarantee over what was shown before.", t.r)
	}
	return nil
}
