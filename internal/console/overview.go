package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// bucket is a part of the time that the overview shows.
type bucket struct {
	Time     time.Time `json:"time"`
	Passed   int64     `json:"passed"`
	Released int64     `json:"released"`
	Refused  int64     `json:"refused"`
	Failed   int64     `json:"failed"`
	// MeanLoss and MaxRisk are over released statements, nil without any.
	MeanLoss *float64 `json:"mean_loss"`
	MaxRisk  *float64 `json:"max_risk"`
	// Catalog are those of Passed that read catalogs only, as far as they were looked at.
	Catalog int64 `json:"catalog" db:"-"`
}

// buckets is how many parts there are, whatever the time.
const buckets = 48

// maxHours is ten years.
const maxHours = 24 * 3660

// overview is what was asked in the last hours.
type overview struct {
	Buckets []bucket `json:"buckets"`
	// Catalog counts, by principal, those statements that passed which read catalogs only, and
	// CatalogOf how many were looked at for it: the last, where there are many.
	Catalog   map[string]int64 `json:"catalog"`
	CatalogOf int64            `json:"catalog_of"`
}

// overview adds up the last hours, of a table if one is named.
func (c *Console) overview(ctx context.Context, r *http.Request) (any, error) {
	hours := 24
	if text := r.URL.Query().Get("hours"); text != "" {
		var err error
		if hours, err = strconv.Atoi(text); err != nil || hours < 1 || hours > maxHours {
			return nil, fmt.Errorf("%w: hours", errUsage)
		}
	}
	relation := r.URL.Query().Get("relation")
	step := time.Duration(hours) * time.Hour / buckets
	rows, err := c.pool.Query(ctx, `
		WITH span AS (SELECT now() AS upto, now() - $1::integer * $2::interval AS since)
		SELECT span.since + b * $2::interval, coalesce(passed, 0), coalesce(released, 0),
			coalesce(refused, 0), coalesce(failed, 0), loss, risk
		FROM span, generate_series(0, $1::integer - 1) b
		LEFT JOIN (
			SELECT least(floor(extract(epoch FROM e.time - s.since)
					/ extract(epoch FROM $2::interval))::integer, $1::integer - 1) AS b,
				count(*) FILTER (WHERE verdict = 'passed') AS passed,
				count(*) FILTER (WHERE verdict = 'released') AS released,
				count(*) FILTER (WHERE verdict = 'refused') AS refused,
				count(*) FILTER (WHERE verdict = 'failed') AS failed,
				avg(e.loss) FILTER (WHERE verdict = 'released') AS loss,
				max(e.risk) FILTER (WHERE verdict = 'released') AS risk
			FROM span s, tailor.audit_entry e
			WHERE e.time >= now() - $1::integer * $2::interval AND e.time >= s.since
				AND ($3 = '' OR e.relations && ARRAY[$3])
			GROUP BY 1) a USING (b)
		ORDER BY b`, buckets, step, relation)
	if err != nil {
		return nil, err
	}
	out := overview{Catalog: make(map[string]int64)}
	out.Buckets, err = pgx.CollectRows(rows, pgx.RowToStructByPos[bucket])
	if err != nil || relation != "" { // what reads a protected table has not just passed
		return out, err
	}
	return out, c.countChatter(ctx, time.Duration(hours)*time.Hour, &out)
}

// countChatter adds up the last statements of the time that passed and read catalogs only.
func (c *Console) countChatter(ctx context.Context, last time.Duration, out *overview) error {
	rows, err := c.pool.Query(ctx, `
		SELECT e.time, e.principal, coalesce(l.record ->> 'fingerprint', ''),
			coalesce(l.record ->> 'sql', '')
		FROM (SELECT position, time, principal FROM tailor.audit_entry
			WHERE verdict = 'passed' AND time >= now() - $1::interval AND relations = '{}'
			ORDER BY position DESC LIMIT $2) e JOIN tailor.audit_log l USING (position)`,
		last, mostLooked)
	if err != nil {
		return err
	}
	var at time.Time
	var principal, fingerprint, sql string
	_, err = pgx.ForEachRow(rows, []any{&at, &principal, &fingerprint, &sql}, func() error {
		out.CatalogOf++
		if c.chatter.reads(fingerprint, sql) {
			out.Catalog[principal]++
			i := int(at.Sub(out.Buckets[0].Time) / (last / buckets))
			out.Buckets[min(max(i, 0), buckets-1)].Catalog++
		}
		return nil
	})
	return err
}

// livePause is how often the page is told of news.
const livePause = time.Second

// live tells the page, as a stream of events, how far the log goes. It ends
// with the session.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // nothing more is read of the request
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(livePause)
	defer tick.Stop()
	last := int64(-1)
	for {
		var position int64
		err := c.pool.QueryRow(r.Context(),
			`SELECT coalesce(max(position), 0) FROM tailor.audit_log`).Scan(&position)
		if err != nil {
			return
		}
		if position != last {
			last = position
			if _, err := fmt.Fprintf(w, "data: %d\n\n", position); err != nil || control.Flush() != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if c.sessions.find(r) == nil {
			return
		}
	}
}
