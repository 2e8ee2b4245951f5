package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func asUnmet(err error, into **anonymize.UnmetError) bool { return errors.As(err, into) }

// LoadColumns reads the columns of a table as a policy that classifies none of
// them would have them. It fails with pgx.ErrNoRows where the name, read as in
// SQL, names no table.
func LoadColumns(ctx context.Context, tx pgx.Tx, name string) (*Relation, error) {
	r := &Relation{}
	err := tx.QueryRow(ctx, `
		SELECT c.oid::oid, n.nspname::text, c.relname::text
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = pg_catalog.to_regclass($1) AND c.relkind IN ('r', 'p', 'm')`, name).
		Scan(&r.OID, &r.Schema, &r.Name)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		SELECT a.attname::text, a.attnum::int, pg_catalog.format_type(s.stored, s.stored_modifier),
			t.typcategory::text
		FROM pg_catalog.pg_attribute a CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, '') s
		JOIN pg_catalog.pg_type t ON t.oid = s.stored
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, r.OID)
	if err != nil {
		return nil, fmt.Errorf("read the columns: %w", err)
	}
	var c Column
	_, err = pgx.ForEachRow(rows, []any{&c.Name, &c.Number, &c.Type, &c.Category}, func() error {
		r.Columns = append(r.Columns, c)
		return nil
	})
	return r, err
}
