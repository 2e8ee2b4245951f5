package console

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// epoch is a stored copy of a table.
type epoch struct {
	Number   int       `json:"epoch"`
	Relation string    `json:"relation"`
	Version  int       `json:"version"`
	Created  time.Time `json:"created"`
	Rows     int64     `json:"rows"`
	Tuples   int64     `json:"tuples"`
	Subjects int64     `json:"subjects"`
	Current  bool      `json:"current"`
	Chains   int64     `json:"chains"` // that are on it
	// on the disk, those of its chains included; 0 where it was given up
	Bytes   int64  `json:"bytes"`
	Refresh string `json:"refresh"` // the statement that begins the next one
}

// epochs lists the copies, the youngest first.
func (c *Console) epochs(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT e.epoch, e.relation::regclass::text, e.version, e.created, e.rows, e.tuples, e.subjects,
		       coalesce(p.epoch = e.epoch, false), (SELECT count(*) FROM tailor.chain h
		       WHERE h.epoch = e.epoch),
		       (SELECT coalesce(sum(pg_total_relation_size(t.oid)), 0)::bigint FROM pg_class t
		        WHERE t.relnamespace = 'tailor_store'::regnamespace AND t.relkind = 'r'
		          AND (t.relname ~ ('^[a-z]+_' || e.epoch || '$') OR EXISTS (
		              SELECT FROM tailor.chain h WHERE h.epoch = e.epoch
		                  AND t.relname ~ format('^chain_%s_', h.chain)))),
		       format('CALL tailor.refresh(%L);', e.relation::regclass::text)
		FROM tailor.epoch e LEFT JOIN tailor.protection p USING (relation)
			ORDER BY e.epoch DESC LIMIT 500`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[epoch])
	if list == nil {
		list = []epoch{}
	}
	return list, err
}

// release is how far what an audience is shown is behind its table.
type release struct {
	Relation        string     `json:"relation"`
	Audience        string     `json:"audience"`
	Copied          time.Time  `json:"copied"`
	Subjects        int64      `json:"subjects"`
	Arrivals        int64      `json:"arrivals"`
	ArrivalsSince   *time.Time `json:"arrivals_since"`
	Departures      int64      `json:"departures"`
	DeparturesSince *time.Time `json:"departures_since"`
	Changes         int64      `json:"changes"`
	ChangesSince    *time.Time `json:"changes_since"`
	Stale           float64    `json:"stale"` // the share of those shown who have left
	Next            string     `json:"next"`
}

// waiting lists who waits in each release, and for what.
func (c *Console) waiting(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT relation::regclass::text, audience, copied, subjects, arrivals, arrivals_since,
			departures, departures_since,
		       changes, changes_since, coalesce(stale, 0), next
		FROM tailor.all_epochs ORDER BY 1, 2`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[release])
	if list == nil {
		list = []release{}
	}
	return list, err
}
