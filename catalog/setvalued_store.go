package catalog

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// readRecords reads the codes of every subject of an epoch; those of a joint publication
// by the subjects' numbers.
func readRecords(ctx context.Context, tx pgx.Tx, epochNumber int, people *people) ([][]string, error) {
	rows, err := tx.Query(ctx, fmt.Sprintf(
		`SELECT "tailor subject", "tailor code" FROM tailor_store.records_%d ORDER BY 1`, epochNumber))
	if err != nil {
		return nil, err
	}
	var records [][]string
	if people != nil {
		records = make([][]string, len(people.groupOf))
	}
	var subject, last int32
	var code string
	_, err = pgx.ForEachRow(rows, []any{&subject, &code}, func() error {
		if people != nil {
			records[subject-1] = append(records[subject-1], code)
			return nil
		}
		if len(records) == 0 || subject != last {
			records, last = append(records, nil), subject
		}
		records[len(records)-1] = append(records[len(records)-1], code)
		return nil
	})
	return records, err
}

// store writes a publication: the form, what tailor.case_count reads, and the
// rows that stand in place of the table, under the name by which releases find
// the copy of an epoch. It drops what the publication was made from.
func (p *publication) store(ctx context.Context, tx pgx.Tx, r *Relation) error {
	number := r.Epoch
	for _, s := range []string{
		"ALTER TABLE tailor_store.shape_%[1]d RENAME TO epoch_%[1]d",
		`CREATE TABLE tailor_store.item_%[1]d (item integer NOT NULL, code text COLLATE "C" NOT NULL, nth integer NOT NULL)`,
		`CREATE TABLE tailor_store.place_%[1]d (item integer NOT NULL, cluster integer NOT NULL, size integer NOT NULL,
			kind "char" NOT NULL, chunk integer NOT NULL, slots integer NOT NULL, share double precision)`,
		"CREATE TABLE tailor_store.subrecord_%[1]d (chunk integer NOT NULL, items integer[] NOT NULL, records integer NOT NULL)",
	} {
		if _, err := tx.Exec(ctx, fmt.Sprintf(s, number)); err != nil {
			return err
		}
	}
	for table, encode := range map[string]func(*copyWriter){
		"epoch":     func(w *copyWriter) { p.writeRows(w, r) },
		"item":      p.writeItems,
		"place":     p.writePlaces,
		"subrecord": p.writeSubRecords,
	} {
		statement := fmt.Sprintf("COPY tailor_store.%s_%d FROM STDIN", table, number)
		err := copyText(ctx, tx, statement, func(to io.Writer) error {
			w := &copyWriter{to: to}
			encode(w)
			w.flush()
			return w.err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	for _, s := range []string{
		"ALTER TABLE tailor_store.item_%[1]d ADD PRIMARY KEY (code, nth)",
		"ALTER TABLE tailor_store.place_%[1]d ADD PRIMARY KEY (item, cluster)",
		"CREATE INDEX ON tailor_store.subrecord_%[1]d (chunk)",
		"ALTER TABLE tailor_store.subrecord_%[1]d REPLICA IDENTITY FULL", // an erasure takes rows
		"ALTER TABLE tailor_store.epoch_%[1]d REPLICA IDENTITY FULL",
		"ANALYZE tailor_store.epoch_%[1]d, tailor_store.item_%[1]d, tailor_store.place_%[1]d, tailor_store.subrecord_%[1]d",
		"DROP TABLE tailor_store.records_%[1]d",
		"DROP TABLE IF EXISTS tailor_store.demographics_%[1]d",
	} {
		if _, err := tx.Exec(ctx, fmt.Sprintf(s, number)); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `INSERT INTO tailor.publication (epoch, k, m, records, codes, clusters, form) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		number, p.form.Promise.K, p.form.Promise.M, len(p.records), len(p.form.Codes), len(p.form.Clusters), string(p.encoded))
	return err
}

// dropPublication removes what is stored of an epoch, unless somebody reads it.
func dropPublication(ctx context.Context, tx pgx.Tx, epochNumber int) error {
	var tables []string
	for _, name := range []string{"item", "place", "subrecord", "digest", "records", "shape", "people", "demographics"} {
		tables = append(tables, fmt.Sprintf("tailor_store.%s_%d", name, epochNumber))
	}
	var gone bool
	if err := tx.QueryRow(ctx, "SELECT tailor.drop_unless_used('TABLE', $1)", tables).Scan(&gone); err != nil || !gone {
		return err
	}
	_, err := tx.Exec(ctx, "DELETE FROM tailor.publication WHERE epoch = $1", epochNumber)
	return err
}
