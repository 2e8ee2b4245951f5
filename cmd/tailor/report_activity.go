package main

import (
	"context"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// readActivity counts the statements of the period, by principal and table.
func (r *report) readActivity(ctx context.Context, tx pgx.Tx) error {
	f := audit.Filter{Since: r.Since, Until: r.Until}
	totals, err := audit.Totals(ctx, tx, f)
	if err != nil {
		return err
	}
	type key struct{ principal, relation string }
	type span struct{ first, last time.Time }
	spans := make(map[key]span)
	rows, err := tx.Query(ctx, `
		SELECT principal, coalesce(u.name, ''), min(time), max(time)
		FROM tailor.audit a LEFT JOIN LATERAL unnest(a.relations) u (name) ON true
		WHERE time >= $1 AND time < $2 GROUP BY 1, 2`, r.Since, r.Until)
	if err != nil {
		return err
	}
	var k key
	var s span
	_, err = pgx.ForEachRow(rows, []any{&k.principal, &k.relation, &s.first, &s.last}, func() error {
		spans[k] = s
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range totals {
		s := spans[key{t.Principal, t.Relation}]
		r.Reads = append(r.Reads, reportedReads{t, s.first, s.last})
	}
	rows, err = tx.Query(ctx, `SELECT verdict, sqlstate, count(*) FROM tailor.audit
		WHERE time >= $1 AND time < $2 AND verdict IN ('refused', 'failed')
		GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2`, r.Since, r.Until)
	if err != nil {
		return err
	}
	r.Refusals, err = pgx.CollectRows(rows, pgx.RowToStructByPos[refusalCount])
	if err != nil {
		return err
	}
	r.Sum, err = sumOf(ctx, tx, f)
	return err
}

// sumOf counts every statement once, however many relations it reads.
func sumOf(ctx context.Context, tx pgx.Tx, f audit.Filter) (s audit.Total, err error) {
	err = tx.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE verdict = 'released'),
			count(*) FILTER (WHERE verdict = 'refused'), count(*) FILTER (WHERE verdict = 'failed'),
			count(*) FILTER (WHERE verdict = 'passed'), coalesce(max(aggregate_risk), 0),
			coalesce(max(aggregate_loss), 0),
			coalesce(avg(aggregate_loss) FILTER (WHERE verdict = 'released'), 0),
			coalesce(min(min_block) FILTER (WHERE min_block > 0), 0),
			coalesce(sum(rows) FILTER (WHERE verdict = 'released'), 0)::bigint
		FROM tailor.audit WHERE time >= $1 AND time < $2`, f.Since, f.Until).
		Scan(&s.Released, &s.Refused, &s.Failed, &s.Passed, &s.MaxRisk, &s.MaxLoss, &s.MeanLoss,
			&s.MinBlock, &s.Rows)
	return s, err
}

// exported is the end of a statement of tailor export.
var exported = regexp.MustCompile(` AS "for ((?:[^"]|"")+)"`)

// readExports reads which tables were written to files, and for whom by the statement.
func (r *report) readExports(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT time, principal, relations, rows, sql FROM tailor.audit
		WHERE time >= $1 AND time < $2 AND verdict = 'released' AND strpos(sql, ' AS "for ') > 0
		ORDER BY position`, r.Since, r.Until)
	if err != nil {
		return err
	}
	var e reportedExport
	var relations []string
	var sql string
	into := []any{&e.Time, &e.Principal, &relations, &e.Rows, &sql}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if m := exported.FindStringSubmatch(sql); m != nil {
			e.Table = strings.Join(relations, ", ")
			e.Recipient = strings.ReplaceAll(m[1], `""`, `"`)
			r.Exports = append(r.Exports, e)
		}
		return nil
	})
	return err
}

// readForemost reads the statements with the highest risk and the greatest loss, without
// their literals.
func (r *report) readForemost(ctx context.Context, tx pgx.Tx, f audit.Filter) (err error) {
	if r.Riskiest, err = audit.Foremost(ctx, tx, f, audit.ByRisk, mostShown); err != nil {
		return err
	}
	if r.Costliest, err = audit.Foremost(ctx, tx, f, audit.ByLoss, mostShown); err != nil {
		return err
	}
	for _, entries := range [][]audit.Entry{r.Riskiest, r.Costliest} {
		for i := range entries {
			entries[i].SQL, _ = audit.WithoutLiterals(entries[i].SQL)
		}
	}
	return nil
}

// readHistory counts copies and erasures.
func (r *report) readHistory(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, `
		SELECT c.relation::text, count(*), max(c.created) FROM tailor.copies c
		WHERE c.created >= $1 AND c.created < $2 GROUP BY 1 ORDER BY 1`, r.Since, r.Until)
	if err != nil {
		return err
	}
	if r.Copies, err = pgx.CollectRows(rows, pgx.RowToStructByPos[copyCount]); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `
		SELECT coalesce(relation::text, name), departures,
			count(*) FILTER (WHERE erased >= $1 AND erased < $2), count(*),
			coalesce(sum(others) FILTER (WHERE erased >= $1 AND erased < $2), 0)::bigint
		FROM tailor.erasures GROUP BY 1, 2 ORDER BY 1, 2`, r.Since, r.Until)
	if err != nil {
		return err
	}
	if r.Erasures, err = pgx.CollectRows(rows, pgx.RowToStructByPos[erasureCount]); err != nil {
		return err
	}
	rows, err = tx.Query(ctx, `SELECT coalesce(relation::text, ''), coalesce(times, 1), latest
		FROM tailor.fresh_starts ORDER BY 1`)
	if err != nil {
		return err
	}
	r.FreshStarts, err = pgx.CollectRows(rows, pgx.RowToStructByPos[freshStart])
	return err
}
