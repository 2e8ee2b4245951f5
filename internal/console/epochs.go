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
	Chains   int64     `json:"chains"`  // that are on it
	Bytes    int64     `json:"bytes"`   // on the disk, those of its chains included; 0 where it was given up
	Refresh  string    `json:"refresh"` // the statement that begins the next one
}

// epochs lists the copies, the youngest first.
func (c *Console) epochs(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT e.epoch, e.relation::regclass::text, e.version, e.created, e.rows, e.tuples, e.subjects,
		       coalesce(p.epoch = e.epoch, false), (SELECT count(*) FROM tailor.chain h WHERE h.epoch = e.epoch),
		       (SELECT coalesce(sum(pg_total_relation_size(t.oid)), 0)::bigint FROM pg_class t
		        WHERE t.relnamespace = 'tailor_store'::regnamespace AND t.relkind = 'r'
		          AND (t.relname ~ ('^[a-z]+_' || e.epoch || '$') OR EXISTS (
		              SELECT FROM tailor.chain h WHERE h.epoch = e.epoch AND t.relname ~ format('^chain_%s_', h.chain)))),
		       format('CALL tailor.refresh(%L);', e.relation::regclass::text)
		FROM tailor.epoch e LEFT JOIN tailor.protection p USING (relation) ORDER BY e.epoch DESC LIMIT 500`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[epoch])
	if list == nil {
		list = []epoch{}
	}
	return list, err
}
