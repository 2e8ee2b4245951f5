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
}

// buckets is how many parts there are, whatever the time.
const buckets = 48

// maxHours is ten years.
const maxHours = 24 * 3660

// overview adds up the last hours.
func (c *Console) overview(ctx context.Context, r *http.Request) (any, error) {
	hours := 24
	if text := r.URL.Query().Get("hours"); text != "" {
		var err error
		if hours, err = strconv.Atoi(text); err != nil || hours < 1 || hours > maxHours {
			return nil, fmt.Errorf("%w: hours", errUsage)
		}
	}
	step := time.Duration(hours) * time.Hour / buckets
	rows, err := c.pool.Query(ctx, `
		WITH span AS (SELECT now() AS upto, now() - $1::integer * $2::interval AS since)
		SELECT span.since + b * $2::interval, coalesce(passed, 0), coalesce(released, 0), coalesce(refused, 0), coalesce(failed, 0), loss, risk
		FROM span, generate_series(0, $1::integer - 1) b
		LEFT JOIN (
			SELECT least(floor(extract(epoch FROM e.time - s.since) / extract(epoch FROM $2::interval))::integer, $1::integer - 1) AS b,
			       count(*) FILTER (WHERE verdict = 'passed') AS passed, count(*) FILTER (WHERE verdict = 'released') AS released,
			       count(*) FILTER (WHERE verdict = 'refused') AS refused, count(*) FILTER (WHERE verdict = 'failed') AS failed,
			       avg(e.loss) FILTER (WHERE verdict = 'released') AS loss, max(e.risk) FILTER (WHERE verdict = 'released') AS risk
			FROM span s, tailor.audit_entry e
			WHERE e.time >= now() - $1::integer * $2::interval AND e.time >= s.since
			GROUP BY 1) a USING (b)
		ORDER BY b`, buckets, step)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[bucket])
}

// livePause is how often the page is told of news.
const livePause = time.Second

// live tells the page, as a stream of events, how far the log goes. It ends
// with the session.
func (c *Console) live(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	tick := time.NewTicker(livePause)
	defer tick.Stop()
	last := int64(-1)
	for {
		var position int64
		err := c.pool.QueryRow(r.Context(), `SELECT coalesce(max(position), 0) FROM tailor.audit_log`).Scan(&position)
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
