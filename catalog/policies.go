package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// ReadPolicies reads the policies in force as a database administrator sees
// them, by the view tailor.policies. The snapshot serves for planning; it does
// not know which views read protected tables.
func ReadPolicies(ctx context.Context, db *pgx.Conn) (*Snapshot, error) {
	rows, err := db.Query(ctx,
		`SELECT p.relation::oid, n.nspname::text, c.relname::text, p.version, p.epoch, p.policy
		FROM tailor.policies p JOIN pg_catalog.pg_class c ON c.oid = p.relation
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.version IS NOT NULL ORDER BY n.nspname, c.relname`)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	protected, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Relation, error) {
		r := &Relation{}
		var document []byte
		if err := row.Scan(&r.OID, &r.Schema, &r.Name, &r.Version, &r.Epoch, &document); err != nil {
			return nil, err
		}
		_, err := r.adopt(document)
		return r, err
	})
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	others := make(map[Name]*Other)
	rows, err = db.Query(ctx,
		`SELECT n.nspname::text, c.relname::text, array_agg(a.attname::text ORDER BY a.attnum)
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
			AND n.nspname !~ '^(pg_|tailor|information_schema$|research$)'
		  AND c.oid NOT IN (SELECT p.relation FROM tailor.policies p)
		GROUP BY 1, 2`)
	if err != nil {
		return nil, fmt.Errorf("read relations: %w", err)
	}
	var name Name
	var columns []string
	_, err = pgx.ForEachRow(rows, []any{&name.Schema, &name.Name, &columns}, func() error {
		others[name] = &Other{Columns: columns}
		columns = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read relations: %w", err)
	}
	return NewSnapshot(0, protected, others), nil
}
