package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Querier runs queries: a connection or a pool.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Filter says which statements are meant. Zero fields do not filter.
type Filter struct {
	Since, Until         time.Time
	Principal, Relation  string
	Verdict              Verdict
	RiskAbove, LossAbove float64 // exclusive; at or below 0 they do not filter
}

// Entry is a statement as lists show it: its record with the outcome of its
// answer. Position orders the entries of the table.
type Entry struct {
	Position int64 `json:"position,omitempty"`
	Record
}

// matches says whether an entry is meant.
func (f Filter) matches(e *Entry) bool {
	return (f.Since.IsZero() || !e.Time.Before(f.Since)) &&
		(f.Until.IsZero() || e.Time.Before(f.Until)) &&
		(f.Principal == "" || e.Principal == f.Principal) &&
		(f.Verdict == "" || e.Verdict == f.Verdict) &&
		(f.Relation == "" || contains(e.Relations, f.Relation)) &&
		(f.RiskAbove <= 0 || e.AggregateRisk > f.RiskAbove) &&
		(f.LossAbove <= 0 || e.AggregateLoss > f.LossAbove)
}

// contains looks for a table by its name with a schema, or without for one in
// public.
func contains(relations []string, name string) bool {
	return slices.Contains(relations, name) || slices.Contains(relations, "public."+name)
}

// where is the condition over tailor.audit.
func (f Filter) where() (string, []any) {
	var conditions []string
	var args []any
	add := func(condition string, arg any) {
		args = append(args, arg)
		conditions = append(conditions, strings.ReplaceAll(condition, "?", fmt.Sprintf("$%d", len(args))))
	}
	if !f.Since.IsZero() {
		add("time >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		add("time < ?", f.Until)
	}
	if f.Principal != "" {
		add("principal = ?", f.Principal)
	}
	if f.Verdict != "" {
		add("verdict = ?", string(f.Verdict))
	}
	if f.Relation != "" {
		add("relations && ARRAY[?, 'public.' || ?]", f.Relation)
	}
	if f.RiskAbove > 0 {
		add("aggregate_risk > ?", f.RiskAbove)
	}
	if f.LossAbove > 0 {
		add("aggregate_loss > ?", f.LossAbove)
	}
	if conditions == nil {
		return "true", args
	}
	return strings.Join(conditions, " AND "), args
}

// Page says which part of a list is meant: at most Most entries, the youngest
// first and before a position, or the oldest first and after it. Position 0
// sets no bound.
type Page struct {
	OldestFirst bool
	Position    int64
	Most        int
}

// List reads a page. It looks at narrow rows until it has found the page, however large the log is.
func List(ctx context.Context, q Querier, f Filter, p Page) ([]Entry, error) {
	where, args := f.where()
	order := "DESC"
	side := "<"
	if p.OldestFirst {
		order, side = "ASC", ">"
	}
	if p.Position > 0 {
		args = append(args, p.Position)
		where += fmt.Sprintf(" AND position %s $%d", side, len(args))
	}
	args = append(args, p.Most)
	return entries(ctx, q, fmt.Sprintf(`WHERE position = ANY (ARRAY(
		SELECT position FROM tailor.audit WHERE %s ORDER BY position %s LIMIT $%d)) ORDER BY position %s`,
		where, order, len(args), order), args...)
}

// One reads the statement with an id, nil for none.
func One(ctx context.Context, q Querier, id string) (*Entry, error) {
	found, err := entries(ctx, q, "WHERE id = $1", id)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func entries(ctx context.Context, q Querier, rest string, args ...any) ([]Entry, error) {
	rows, err := q.Query(ctx,
		`SELECT position, record::text, verdict, sqlstate, rows, duration_ms FROM tailor.audit `+rest,
		args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Entry, error) {
		var e Entry
		var line []byte
		var verdict, sqlstate string
		var count *int64
		var duration float64
		if err := row.Scan(&e.Position, &line, &verdict, &sqlstate, &count, &duration); err != nil {
			return e, err
		}
		if err := json.Unmarshal(line, &e.Record); err != nil {
			return e, fmt.Errorf("record at position %d: %w", e.Position, err)
		}
		e.Verdict, e.SQLState, e.Rows, e.DurationMS = Verdict(verdict), sqlstate, count, duration
		return e, nil
	})
}

// Total counts the statements of one principal on one relation. Statements
// that touched no protected table have an empty relation.
type Total struct {
	Principal string  `json:"principal"`
	Relation  string  `json:"relation"`
	Passed    int64   `json:"passed"`
	Released  int64   `json:"released"`
	Refused   int64   `json:"refused"`
	Failed    int64   `json:"failed"`
	Rows      int64   `json:"rows"`
	MaxRisk   float64 `json:"max_risk"`
	MaxLoss   float64 `json:"max_loss"`
	// MeanLoss is over released statements.
	MeanLoss float64 `json:"mean_loss"`
	// MinBlock is the smallest block shown, in subjects; 0 for none.
	MinBlock int64 `json:"min_block"`
}

// Totals adds up by principal and relation, in their order.
func Totals(ctx context.Context, q Querier, f Filter) ([]Total, error) {
	where, args := f.where()
	rows, err := q.Query(ctx, `SELECT principal, relation, count(*) FILTER (WHERE verdict = 'passed'),
			count(*) FILTER (WHERE verdict = 'released'), count(*) FILTER (WHERE verdict = 'refused'),
			count(*) FILTER (WHERE verdict = 'failed'), coalesce(sum(rows), 0)::bigint,
			max(aggregate_risk), max(aggregate_loss),
			coalesce(avg(aggregate_loss) FILTER (WHERE verdict = 'released'), 0),
			coalesce(min(min_block) FILTER (WHERE min_block > 0), 0)::bigint
		FROM (SELECT principal, verdict, rows, aggregate_risk, aggregate_loss, min_block, relations
		      FROM tailor.audit WHERE `+where+`) a
		LEFT JOIN LATERAL unnest(relations) u (r) ON true, LATERAL (SELECT coalesce(r, '') AS relation) n
		GROUP BY principal, relation ORDER BY principal, relation`, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Total])
}

// Add counts an entry, whose principal and relation are the total's.
func (t *Total) Add(e Entry) {
	switch e.Verdict {
	case Passed:
		t.Passed++
	case Released:
		t.MeanLoss += (e.AggregateLoss - t.MeanLoss) / float64(t.Released+1)
		t.Released++
	case Refused:
		t.Refused++
	case Failed:
		t.Failed++
	}
	if e.Rows != nil {
		t.Rows += *e.Rows
	}
	t.MaxRisk, t.MaxLoss = max(t.MaxRisk, e.AggregateRisk), max(t.MaxLoss, e.AggregateLoss)
	if n := int64(e.MinBlock); n > 0 && (t.MinBlock == 0 || n < t.MinBlock) {
		t.MinBlock = n
	}
}

// Order says what puts a statement before others.
type Order string

// The orders: by aggregate risk and by aggregate loss, the highest first.
const (
	ByRisk Order = "aggregate_risk"
	ByLoss Order = "aggregate_loss"
)

// Foremost reads the released statements that come first in an order, of each
// kind of statement (by fingerprint and principal) the one that comes first.
func Foremost(ctx context.Context, q Querier, f Filter, by Order, most int) ([]Entry, error) {
	f.Verdict = Released
	where, args := f.where()
	args = append(args, most)
	// Of many alike it is enough to look at the first thousands.
	found, err := entries(ctx, q, fmt.Sprintf(`WHERE position IN (
		SELECT position FROM (
			SELECT DISTINCT ON (principal, fingerprint) position, %[1]s FROM tailor.audit
				WHERE position = ANY (ARRAY(
				SELECT position FROM tailor.audit WHERE %[2]s ORDER BY %[1]s DESC, position LIMIT 5000))
			ORDER BY principal, fingerprint, %[1]s DESC, position) a
		ORDER BY %[1]s DESC, position LIMIT $%[3]d)
		ORDER BY %[1]s DESC, position`, by, where, len(args)), args...)
	return found, err
}
