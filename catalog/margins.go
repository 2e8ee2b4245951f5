package catalog

import (
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// newChance is randomness from the operating system, which is not kept.
func newChance() *rand.Rand {
	var seed [32]byte
	for i := range 4 {
		var word [8]byte
		_, _ = crand.Read(word[:]) // it never fails
		binary.LittleEndian.PutUint64(seed[8*i:], binary.LittleEndian.Uint64(word[:]))
	}
	return rand.New(rand.NewChaCha8(seed))
}

// cohortPart names what has margins of its own: a cohort by the copy that it came with, and
// one of the parts that were partitioned by themselves.
type cohortPart struct{ cohort, part int }

// publishMargin stores the margin of a cohort, or of a part of it.
func (t *takingIn) publishMargin(
	ctx context.Context, of cohortPart, d *dictionary, h *anonymize.Hierarchy, m *anonymize.Margin,
) error {
	return copyInto(ctx, t.tx,
		"tailor.margin (chain, cohort, part, dimension, column_name, label, subjects, rows)",
		func(w *copyWriter) {
			for _, c := range m.Cells {
				w.number(t.chain.number)
				w.number(of.cohort)
				w.number(of.part)
				w.number(d.column.Number)
				w.text(d.column.Name)
				e := entryOf(d.column, h, c.Node)
				w.textOrNull(e.label, !e.isNull())
				w.number(c.Subjects)
				w.number(c.Rows)
				w.end()
			}
		})
}

// withdrawMargins withdraws what is not to be published any more: margins of columns whose
// distribution has become secret, and all of a table of which the policy lets subjects own
// less of a cell, since nobody knows any more who owns how much.
func (t *takingIn) withdrawMargins(ctx context.Context, was *Relation) error {
	for _, d := range t.dictionaries {
		if !d.column.NoMargin && (t.oneRow || t.r.MaxShare >= was.MaxShare) {
			continue
		}
		if err := t.dropMargins(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

func (t *takingIn) dropMargins(ctx context.Context, d *dictionary) error {
	_, err := t.tx.Exec(ctx, `DELETE FROM tailor.margin WHERE chain = $1 AND dimension = $2`,
		t.chain.number, d.column.Number)
	return err
}

// poolMargins joins the cells of published margins that are too small for another policy.
// Those of columns whose hierarchy has changed are withdrawn.
func (t *takingIn) poolMargins(ctx context.Context, was *Relation, changed []int) error {
	find := t.finders()
	for i, d := range t.dictionaries {
		if t.r.K <= was.K && !slices.Contains(changed, i) {
			continue
		}
		h := t.copied.columns[i].Hierarchy
		cohorts, err := t.margins(ctx, d, h, find[i])
		if err != nil {
			return err
		}
		if err := t.dropMargins(ctx, d); err != nil {
			return err
		}
		if slices.Contains(changed, i) {
			continue
		}
		for of, m := range cohorts {
			if m == nil {
				continue
			}
			if err := t.publishMargin(ctx, of, d, h, m.Pool(h, t.r.K, t.r.MaxShare)); err != nil {
				return err
			}
		}
	}
	return nil
}

// margins reads the margins of a column, by cohort and part; nil if it is not certain which
// nodes of the present hierarchy the labels of its cells are, so that they cannot be joined.
func (t *takingIn) margins(
	ctx context.Context, d *dictionary, h *anonymize.Hierarchy,
	find func(string) (anonymize.Node, bool),
) (map[cohortPart]*anonymize.Margin, error) {
	rows, err := t.tx.Query(ctx, `SELECT cohort, part, label, subjects, rows FROM tailor.margin
		WHERE chain = $1 AND dimension = $2 ORDER BY cohort, part, label`,
		t.chain.number, d.column.Number)
	if err != nil {
		return nil, err
	}
	out, uncertain := make(map[cohortPart]*anonymize.Margin), make(map[cohortPart]bool)
	var of cohortPart
	var label *string
	var c anonymize.Cell
	into := []any{&of.cohort, &of.part, &label, &c.Subjects, &c.Rows}
	_, err = pgx.ForEachRow(rows, into, func() error {
		found := false
		if label != nil {
			c.Node, found = find(*label)
		} else if leaf, ok := h.NullCode(); ok {
			c.Node, found = anonymize.Node{Group: leaf}, true
		}
		if out[of] == nil {
			out[of] = &anonymize.Margin{SeveralRows: !t.oneRow}
		}
		m := out[of]
		twice := slices.ContainsFunc(m.Cells, func(o anonymize.Cell) bool { return o.Node == c.Node })
		uncertain[of] = uncertain[of] || !found || twice
		m.Cells = append(m.Cells, c)
		return nil
	})
	for of := range uncertain {
		if uncertain[of] {
			out[of] = nil
		}
	}
	return out, err
}

// reshuffle has the rows that show a label in a column exchange their values there. As
// they were drawn, they would tell the labels before, of their own blocks and others, in
// this column and others. The two orders are different expressions: PostgreSQL evaluates
// equal ones once.
func (t *takingIn) reshuffle(ctx context.Context, dimension int) error {
	d := t.dictionaries[dimension]
	return execute(ctx, t.tx,
		fmt.Sprintf(`WITH r AS MATERIALIZED (SELECT r.ctid AS place, r.%[1]s AS number, r.%[2]s AS value,
				row_number() OVER (PARTITION BY r.%[1]s ORDER BY gen_random_uuid())
				AS one, row_number() OVER (PARTITION BY r.%[1]s ORDER BY gen_random_uuid()::text) AS other
			FROM %[3]s r WHERE r.%[1]s IN (SELECT number FROM %[4]s WHERE dimension = %[5]d AND NOT exact))
		UPDATE %[3]s r SET %[2]s = y.value FROM r x JOIN r y ON x.number = y.number
			AND x.one = y.other WHERE r.ctid = x.place`,
			d.own("number"), d.own("value"), t.chain.table("row"), t.chain.table("entry"), d.column.Number))
}

// redraw spreads values of blocks evenly over their labels, which another hierarchy has
// given them.
func (t *takingIn) redraw(ctx context.Context, parts []*part, dimension int) error {
	d, drawn := t.dictionaries[dimension], t.temporary("drawn")
	s := &anonymize.Sketch{Hierarchies: []*anonymize.Hierarchy{t.copied.columns[dimension].Hierarchy}}
	var blocks []int
	for _, p := range parts {
		if p.into == nil {
			blocks, s.Rows = append(blocks, p.number), append(s.Rows, p.class.all)
			s.Labels = append(s.Labels, []anonymize.Node{p.shown[dimension].node})
		}
	}
	values := s.Draw(0, nil, newChance())
	if err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s integer, place integer, value %s)",
		drawn, blockColumn, d.column.ReleaseType())); err != nil {
		return err
	}
	err := copyInto(ctx, t.tx, drawn, func(w *copyWriter) {
		for i, block := range blocks {
			for row, value := range values.Of[i] {
				w.number(block)
				w.number(row + 1)
				w.textOrNull(values.Texts[value], value > 0)
				w.end()
			}
		}
	})
	if err != nil {
		return err
	}
	return execute(ctx, t.tx, "ANALYZE "+drawn, fmt.Sprintf(`UPDATE %[1]s r SET %[2]s = w.value
		FROM (SELECT ctid AS id, %[3]s, row_number() OVER (PARTITION BY %[3]s
			ORDER BY gen_random_uuid()) AS place FROM %[1]s) o JOIN %[4]s w USING (%[3]s, place)
			WHERE r.ctid = o.id`,
		t.chain.table("row"), d.own("value"), blockColumn, drawn), "DROP TABLE "+drawn)
}

// showMiddles has rows show what stands for their labels in columns whose values were
// drawn and are to be no more. The other way round, cohorts that come next are drawn.
func (t *takingIn) showMiddles(ctx context.Context, was *Relation) error {
	for i, d := range t.dictionaries {
		if !d.column.Middle || was.Dimensions()[i].Middle {
			continue
		}
		err := execute(ctx, t.tx, fmt.Sprintf("UPDATE %s r SET %s = (SELECT value::%s FROM %s WHERE "+
			"dimension = %d AND number = r.%s)", t.chain.table("row"),
			d.own("value"), d.column.ReleaseType(), t.chain.table("entry"), d.column.Number,
			d.own("number")))
		if err != nil {
			return err
		}
	}
	return nil
}

// columnStatistics is how a release shows a column.
type columnStatistics struct {
	Exact float64 `json:"exact"` // the share of rows whose value is the table's
	Loss  float64 `json:"loss"`  // the mean share of the domain that a label covers
}

// statistics sums up how the release shows each dimension, and each column of which values
// may be withheld, by its number.
func (t *takingIn) statistics(ctx context.Context) ([]byte, error) {
	of := make(map[int]columnStatistics)
	var numbers, sets []string
	dimension := "CASE"
	for _, d := range t.dictionaries {
		number := d.own("number")
		numbers, sets = append(numbers, number), append(sets, "("+number+")")
		dimension += fmt.Sprintf(" WHEN GROUPING(%s) = 0 THEN %d", number, d.column.Number)
		of[d.column.Number] = columnStatistics{}
	}
	if len(numbers) > 0 {
		rows, err := t.tx.Query(ctx, fmt.Sprintf( // one scan for all
			`SELECT dimension,
				coalesce(sum(n) FILTER (WHERE coalesce(e.exact, true)) / sum(n), 0)::float8,
				coalesce(sum(n * e.share) / sum(n), 0)::float8
			FROM (SELECT %s END AS dimension, coalesce(%s) AS number, count(*) AS n FROM %s
				GROUP BY GROUPING SETS (%s)) r LEFT JOIN %s e USING (dimension, number) GROUP BY 1`,
			dimension, commas(numbers), t.chain.table("row"), commas(sets), t.chain.table("entry")))
		if err != nil {
			return nil, err
		}
		var column int
		var s columnStatistics
		_, err = pgx.ForEachRow(rows, []any{&column, &s.Exact, &s.Loss}, func() error {
			of[column] = s
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if t.r.BlindCuts {
		for _, q := range t.r.Requirements {
			column := t.r.stored(ident(q.Column))
			s := columnStatistics{}
			err := t.tx.QueryRow(ctx, fmt.Sprintf("SELECT coalesce(count(%s)::float8 / nullif(count(*), "+
				"0), 0) FROM %s",
				ident(q.Column), t.chain.table("row"))).Scan(&s.Exact)
			if err != nil {
				return nil, err
			}
			of[column.Number] = s
		}
	}
	return json.Marshal(of)
}
