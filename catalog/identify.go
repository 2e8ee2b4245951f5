package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// SampleRows is the number of rows above which [Identify] looks at a sample of
// about that many.
const SampleRows = 1_000_000

// Identification is what [Identify] measured of a relation.
type Identification struct {
	Rows    int     // of the relation
	Share   float64 // of the rows that were looked at, 1 for all
	Columns []*identify.Column
	// Cells of the rows that were looked at.
	Cells *identify.Rows
	// Subject is the only column of the primary key, "" where there is none.
	Subject string
}

// Identify measures the columns of a relation on the server, one pass a column.
// Of each, at most 10,000 values are read, and of the rows hashes of their cells.
// A column of more
// than [SampleRows] rows is measured on a random sample of them, the same rows
// for each column; in a sample values are rarer, and risk rates higher, than in
// the whole. The transaction sees one snapshot if it is a repeatable read.
func Identify(ctx context.Context, tx pgx.Tx, relation pgx.Identifier) (*Identification, error) {
	out := &Identification{Share: 1}
	name := relation.Sanitize()
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&out.Rows); err != nil {
		return nil, fmt.Errorf("count the rows: %w", err)
	}
	columns, err := tx.Query(ctx, selectColumns, name)
	if err != nil {
		return nil, fmt.Errorf("read the columns: %w", err)
	}
	var stored, primary bool
	c := identify.Column{}
	_, err = pgx.ForEachRow(columns, []any{&c.Name, &c.Type, &c.Labels, &c.Key, &primary, &stored},
		func() error {
			own := c
			out.Columns = append(out.Columns, &own)
			if primary {
				out.Subject = c.Name
			}
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("read the columns: %w", err)
	}
	from := name + " b"
	if out.Rows > SampleRows {
		out.Share = SampleRows / float64(out.Rows)
		if stored {
			from += fmt.Sprintf(" TABLESAMPLE BERNOULLI (%.9f) REPEATABLE (1)", 100*out.Share)
		} else { // a view has no blocks to sample from
			from = fmt.Sprintf("(SELECT * FROM %s WHERE random() < %.9f) b", name, out.Share)
		}
	}
	for _, c := range out.Columns {
		if err := measure(ctx, tx, from, c); err != nil {
			return nil, fmt.Errorf("measure column %q: %w", c.Name, err)
		}
	}
	if out.Cells, err = readCells(ctx, tx, from, out); err != nil {
		return nil, fmt.Errorf("read the rows: %w", err)
	}
	return out, nil
}

// readCells reads the rows as hashes of their cells, which tell what is equal
// and nothing else. What is empty is missing, as NULL is.
func readCells(
	ctx context.Context, tx pgx.Tx, from string, of *Identification,
) (*identify.Rows, error) {
	r := &identify.Rows{Share: of.Share, Codes: make([][]uint32, len(of.Columns))}
	var hashes []string
	into := make([]any, len(of.Columns))
	row := make([]int64, len(of.Columns))
	coders := make([]identify.Coder[int64], len(of.Columns))
	for i, c := range of.Columns {
		r.Names = append(r.Names, c.Name)
		hashes = append(hashes, fmt.Sprintf(
			`pg_catalog.hashtextextended(coalesce(b.%s::pg_catalog.text, '') COLLATE "C", 0)`,
			ident(c.Name)))
		into[i], coders[i] = &row[i], identify.Coder[int64]{}
	}
	rows, err := tx.Query(ctx, "SELECT "+strings.Join(hashes, ", ")+" FROM "+from)
	if err != nil {
		return nil, err
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		r.Count++
		for i, hash := range row {
			r.Codes[i] = append(r.Codes[i], coders[i].Code(hash))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range of.Columns {
		texts, err := readTexts(ctx, tx, from, of.Columns[i].Name, hashes[i], coders[i])
		if err != nil {
			return nil, err
		}
		r.Texts = append(r.Texts, texts)
	}
	return r, nil
}

// readTexts are the values of the codes of a column with few of them, none where
// a text is empty: what is missing has the same code, and needs no place.
func readTexts(
	ctx context.Context, tx pgx.Tx, from, column, hash string, coder identify.Coder[int64],
) ([]string, error) {
	if len(coder) > identify.TextsAtMost {
		return nil, nil
	}
	texts := make([]string, len(coder))
	rows, err := tx.Query(ctx, fmt.Sprintf(
		`SELECT DISTINCT b.%s::pg_catalog.text COLLATE "C", %s FROM %s`,
		ident(column), hash, from))
	if err != nil {
		return nil, err
	}
	var text *string
	var code int64
	empty := false
	_, err = pgx.ForEachRow(rows, []any{&text, &code}, func() error {
		i, known := coder[code] // a view may give other rows in its second sample
		if text != nil && known {
			texts[i] = *text
			empty = empty || *text == ""
		}
		return nil
	})
	if empty {
		return nil, err
	}
	return texts, err
}

// Of a domain the type that it is of: releases have that.
const selectColumns = `
SELECT a.attname::text, pg_catalog.format_type(b.type, b.modifier),
       ARRAY(SELECT l.enumlabel::text FROM pg_catalog.pg_enum l WHERE l.enumtypid = b.type
       ORDER BY l.enumsortorder),
       EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique
       AND i.indnkeyatts = 1
               AND i.indkey[0] = a.attnum AND i.indpred IS NULL),
       EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisprimary
       AND i.indnkeyatts = 1
               AND i.indkey[0] = a.attnum),
       c.relkind IN ('r', 'm', 'p')
FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
CROSS JOIN LATERAL (
    WITH RECURSIVE bases (type, modifier) AS (
        SELECT a.atttypid, a.atttypmod
      UNION ALL
        SELECT t.typbasetype, t.typtypmod FROM bases JOIN pg_catalog.pg_type t
            ON t.oid = bases.type WHERE t.typtype = 'd')
    SELECT q.type, q.modifier FROM bases q JOIN pg_catalog.pg_type t ON t.oid = q.type
        WHERE t.typtype <> 'd') b
WHERE c.oid = $1::pg_catalog.regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum`

// measure fills in the figures of one column. Texts that are empty count as
// missing, as NULL does.
func measure(ctx context.Context, tx pgx.Tx, from string, c *identify.Column) error {
	text := fmt.Sprintf(`(b.%s::pg_catalog.text COLLATE "C")`, ident(c.Name))
	frequencies := fmt.Sprintf(`
		(SELECT v, count(*)::float8 AS n, count(*) FILTER (WHERE gone) AS missing, v <> '%[1]s'
		OR NOT bool_or(gone) AS own
		 FROM (SELECT coalesce(nullif(%[2]s, ''), '%[1]s') AS v, coalesce(%[2]s = '', true) AS gone
		     FROM %[3]s) cells
		 GROUP BY v) frequencies`, identify.Missing, text, from)
	e := &c.Evidence
	err := tx.QueryRow(ctx, `
		SELECT coalesce(sum(n), 0)::bigint, coalesce(sum(missing), 0)::bigint, count(*),
			coalesce(sum(1 / n), 0)::float8,
		       count(*) FILTER (WHERE own), coalesce(min(length(v)) FILTER (WHERE own), 0),
		       coalesce(max(length(v)) FILTER (WHERE own), 0)
		FROM `+frequencies).Scan(&c.Rows, &c.Missing, &c.Distinct, &c.GDistinct, &e.Values, &e.MinLength,
		&e.MaxLength)
	if err != nil {
		return err
	}
	if err := examine(ctx, tx, frequencies, c); err != nil {
		return err
	}
	switch base := c.BaseType(); {
	case slices.Contains(numberTypes, base):
		return measureNumbers(ctx, tx, from, c)
	case base == "date" || base == "timestamp":
		var first, last *string
		err := tx.QueryRow(ctx,
			fmt.Sprintf(`SELECT min(d)::date::text, max(d)::date::text FROM (SELECT b.%s AS d FROM %s) v
				WHERE isfinite(d)`,
				ident(c.Name), from)).Scan(&first, &last)
		if err == nil && first != nil {
			e.FirstDay, e.LastDay = *first, *last
		}
		return err
	}
	return nil
}

// shownValues is the number of values that are looked at for what they are, and
// shownLength how much of each.
const shownValues, shownLength = 10_000, 1_000

// examine reads values of a column: what they are is told by checksums and
// dictionaries that the server does not have.
func examine(ctx context.Context, tx pgx.Tx, frequencies string, c *identify.Column) error {
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT left(v, %d) FROM %s WHERE own LIMIT %d`,
		shownLength, frequencies, shownValues))
	if err != nil {
		return err
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil {
		c.Evidence.Examine(values)
	}
	return err
}

func measureNumbers(ctx context.Context, tx pgx.Tx, from string, c *identify.Column) error {
	var quantiles []*float64 // NULL if there are no numbers
	var whole *bool
	err := tx.QueryRow(ctx, fmt.Sprintf(`
		SELECT ARRAY[min(v), percentile_disc(0.1) WITHIN
			GROUP (ORDER BY v), percentile_disc(0.9) WITHIN GROUP (ORDER BY v), max(v)],
		       bool_and(v = floor(v))
		FROM (SELECT b.%s::float8 AS v FROM %s) numbers WHERE v - v = 0`, // neither NaN nor without end
		ident(c.Name), from)).Scan(&quantiles, &whole)
	if err != nil || len(quantiles) < 4 || whole == nil {
		return err
	}
	c.Evidence.Range = &identify.Range{
		Low: *quantiles[0], Tenth: *quantiles[1], Ninetieth: *quantiles[2],
		High: *quantiles[3], Whole: *whole,
	}
	return nil
}
