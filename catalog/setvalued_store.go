package catalog

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
)

// readRecords reads the codes of every subject of a copy; those of a joint publication
// in the order of the subjects' numbers.
func readRecords(ctx context.Context, tx pgx.Tx, epochNumber int, people *people) ([]coded, error) {
	query := `SELECT "tailor key"::text, "tailor code" FROM tailor_store.records_%d
		ORDER BY "tailor subject"`
	if people != nil {
		query = `SELECT d."tailor key"::text, r."tailor code" FROM tailor_store.demographics_%[1]d d
			LEFT JOIN tailor_store.records_%[1]d r USING ("tailor subject")
			ORDER BY d."tailor subject"`
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(query, epochNumber))
	if err != nil {
		return nil, err
	}
	var records []coded
	var person string
	var code *string
	_, err = pgx.ForEachRow(rows, []any{&person, &code}, func() error {
		if len(records) == 0 || records[len(records)-1].person != person {
			records = append(records, coded{person: person})
		}
		if code != nil {
			last := &records[len(records)-1]
			last.codes = append(last.codes, *code)
		}
		code = nil
		return nil
	})
	return records, err
}

// cohortsBefore is what a publication has when a cohort is added to it.
type cohortsBefore struct {
	form     *published.Form // nil if the cohort is the first
	clusters int
	chunks   int
	rows     int
	codes    map[published.Code]int // their numbers
	taken    map[int32]bool         // numbers of records
	groups   *publishedGroups
}

func readCohorts(
	ctx context.Context, tx pgx.Tx, r *Relation, publication int,
) (*cohortsBefore, error) {
	b := &cohortsBefore{codes: make(map[published.Code]int), taken: make(map[int32]bool)}
	if publication == r.Epoch {
		return b, nil
	}
	var form string
	err := tx.QueryRow(ctx, fmt.Sprintf(`SELECT u.form, u.clusters, 
			(SELECT coalesce(max(chunk) + 1, 0) FROM tailor_store.place_%[1]d),
			(SELECT coalesce(max("tailor row") + 1, 0) FROM tailor_store.epoch_%[1]d)
		FROM tailor.publication u WHERE u.epoch = $1`, publication), publication).
		Scan(&form, &b.clusters, &b.chunks, &b.rows)
	if err != nil {
		return nil, err
	}
	if b.form, err = published.Decode(strings.NewReader(form)); err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT code, nth, item FROM tailor_store.item_%d`,
		publication))
	if err != nil {
		return nil, err
	}
	var code published.Code
	var item int
	if _, err := pgx.ForEachRow(rows, []any{&code.Text, &code.Nth, &item},
		func() error { b.codes[code] = item; return nil }); err != nil {
		return nil, err
	}
	people := fmt.Sprintf(`SELECT DISTINCT "tailor subject" FROM tailor_store.epoch_%d`,
		publication)
	if r.IsJoint() {
		people = fmt.Sprintf(`SELECT %s::text::integer FROM tailor_store.people_%d`, rowColumn,
			publication)
		if b.groups, err = readPublishedGroups(ctx, tx, publication); err != nil {
			return nil, err
		}
	}
	if rows, err = tx.Query(ctx, people); err != nil {
		return nil, err
	}
	var number int32
	_, err = pgx.ForEachRow(rows, []any{&number},
		func() error { b.taken[number] = true; return nil })
	return b, err
}

// store writes a cohort to its publication: the form, what tailor.case_count reads, the
// rows that stand in place of the table, and who is in which cluster.
func (p *publication) store(ctx context.Context, tx pgx.Tx, r *Relation) error {
	first := p.before.form == nil
	if first {
		for _, s := range []string{
			"ALTER TABLE tailor_store.shape_%[1]d RENAME TO epoch_%[1]d",
			`CREATE TABLE tailor_store.item_%[1]d (item integer NOT NULL,
				code text COLLATE "C" NOT NULL, nth integer NOT NULL)`,
			`CREATE TABLE tailor_store.place_%[1]d (item integer NOT NULL, cluster integer NOT NULL,
				size integer NOT NULL, kind "char" NOT NULL, chunk integer NOT NULL,
				slots integer NOT NULL, share double precision)`,
			"CREATE TABLE tailor_store.subrecord_%[1]d (chunk integer NOT NULL, items integer[] NOT NULL, " +
				"records integer NOT NULL)",
			`CREATE TABLE tailor_store.member_%[1]d ("tailor key" uuid NOT NULL, cluster integer,
				"tailor codes" uuid)`,
		} {
			if err := execute(ctx, tx, fmt.Sprintf(s, p.number)); err != nil {
				return err
			}
		}
	}
	p.numberCodes()
	for table, encode := range map[string]func(*copyWriter){
		"item_%d":                           p.writeItems,
		"place_%d":                          p.writePlaces,
		"subrecord_%d":                      p.writeSubRecords,
		`member_%d ("tailor key", cluster)`: p.writeMembers,
	} {
		if err := copyInto(ctx, tx, fmt.Sprintf("tailor_store."+table, p.number),
			encode); err != nil {
			return fmt.Errorf("%s: %w", table, err)
		}
	}
	if err := p.fill(ctx, tx, "epoch", func(w *copyWriter) { p.writeRows(w, r) }); err != nil {
		return fmt.Errorf("rows: %w", err)
	}
	var statements []string
	if first {
		for _, s := range []string{
			"ALTER TABLE tailor_store.item_%[1]d ADD PRIMARY KEY (code, nth)",
			"ALTER TABLE tailor_store.place_%[1]d ADD PRIMARY KEY (item, cluster)",
			`ALTER TABLE tailor_store.member_%[1]d ADD PRIMARY KEY ("tailor key")`,
			"CREATE INDEX ON tailor_store.subrecord_%[1]d (chunk)",
			"ALTER TABLE tailor_store.subrecord_%[1]d REPLICA IDENTITY FULL", // an erasure takes rows
			"ALTER TABLE tailor_store.epoch_%[1]d REPLICA IDENTITY FULL",
		} {
			statements = append(statements, fmt.Sprintf(s, p.number))
		}
	}
	// With its key: a publication of all tables keeps tables without one from being changed.
	statements = append(statements, fmt.Sprintf(`UPDATE tailor_store.member_%d m
		SET "tailor codes" = d."tailor codes"
		FROM tailor_store.digest_%d d WHERE d."tailor key" = m."tailor key"`, p.number, r.Epoch))
	statements = append(statements, fmt.Sprintf(`ANALYZE tailor_store.epoch_%[1]d,
		tailor_store.item_%[1]d, tailor_store.place_%[1]d, tailor_store.subrecord_%[1]d,
		tailor_store.member_%[1]d`, p.number))
	if err := execute(ctx, tx, statements...); err != nil {
		return err
	}
	if first {
		_, err := tx.Exec(ctx, `INSERT INTO tailor.publication 
				(epoch, k, m, records, codes, clusters, form) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			p.number, p.form.Promise.K, p.form.Promise.M, len(p.records), len(p.form.Codes),
			len(p.form.Clusters), string(p.encoded))
		return err
	}
	var whole bytes.Buffer
	form := published.Concat(p.before.form, p.form)
	if err := form.Encode(&whole); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE tailor.publication SET records = records + $2, codes = $3,
		clusters = $4, form = $5 WHERE epoch = $1`,
		p.number, len(p.records), len(form.Codes), len(form.Clusters), whole.String())
	return err
}

// fill writes a cohort's rows to a table of its publication that is guarded once it has
// some, which COPY does not write then.
func (p *publication) fill(
	ctx context.Context, tx pgx.Tx, part string, encode func(*copyWriter),
) error {
	table := fmt.Sprintf("tailor_store.%s_%d", part, p.number)
	if p.before.form == nil {
		return copyInto(ctx, tx, table, encode)
	}
	cohort := fmt.Sprintf("tailor_store.cohort_%d", p.number)
	err := execute(ctx, tx,
		fmt.Sprintf("CREATE TABLE %s AS SELECT * FROM %s WITH NO DATA", cohort, table),
		fmt.Sprintf("ALTER TABLE %s DROP COLUMN IF EXISTS %s", cohort, gateColumn))
	if err == nil {
		err = copyInto(ctx, tx, cohort, encode)
	}
	if err != nil {
		return err
	}
	return execute(ctx, tx, fmt.Sprintf("INSERT INTO %s SELECT * FROM %s", table, cohort),
		"DROP TABLE "+cohort)
}

// numberCodes numbers the codes of the cohort as the publication does, which new ones
// follow.
func (p *publication) numberCodes() {
	next := 0
	for _, item := range p.before.codes {
		next = max(next, item+1)
	}
	for _, code := range p.form.Codes {
		item, known := p.before.codes[code]
		if !known {
			item = next
			next++
			p.fresh = append(p.fresh, len(p.items))
		}
		p.items = append(p.items, item)
	}
}
