package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// ForecastRows is the number of rows above which [NewForecast] looks at a sample
// of subjects with about that many.
const ForecastRows = 500_000

// Forecast is what a policy would do to a table as it is now: what its readers are
// shown if the root is made anew.
type Forecast struct {
	Rows, Subjects int
	Share          float64 // of the subjects that were looked at; a sample loses more than the whole
	// RawRisk is the highest risk of a subject if quasi-identifiers were shown
	// as they are: 1 over the smallest class. Risk is that of the blocks.
	RawRisk, Risk float64
	Loss          float64 // mean over the quasi-identifiers
	Losses        []float64
	// Withheld is the share of the rows whose value of a column is not shown, if blocks are
	// cut by k alone.
	Withheld map[string]float64
	// Uncovered names the quasi-identifiers whose hierarchy has no place for
	// some value, each with the reason. The figures are then missing.
	Uncovered []string
	// Unmet is the model that not even everybody together meets, "" for none.
	Unmet string
}

// NewForecast reads the columns that a policy needs from the table itself. r
// need not be in force: it names the table, the subject, k, requirements and
// columns with their types.
func NewForecast(ctx context.Context, tx pgx.Tx, r *Relation) (*Forecast, error) {
	return NewForecastOf(ctx, tx, r, ForecastRows)
}

// NewForecastOf is NewForecast with another number of rows above which a sample is looked at.
// It looks at more if the sample alone would not meet k.
func NewForecastOf(ctx context.Context, tx pgx.Tx, r *Relation, most int) (*Forecast, error) {
	f := &Forecast{}
	name := pgx.Identifier{r.Schema, r.Name}.Sanitize()
	if err := tx.QueryRow(ctx, "SELECT count(*) FROM "+name).Scan(&f.Rows); err != nil {
		return nil, fmt.Errorf("count the rows: %w", err)
	}
	e, err := f.read(ctx, tx, r, name, most)
	switch {
	case err != nil:
		return nil, err
	case f.Unmet != "" && f.Share < 1 && most < ForecastRows:
		return NewForecast(ctx, tx, r)
	case e.table == nil:
		return f, nil
	}
	return f, f.measure(ctx, r, e)
}

// read reads a table, or a sample of about so many rows. The cohort has no table where it cannot
// be shown.
func (f *Forecast) read(
	ctx context.Context, tx pgx.Tx, r *Relation, name string, most int,
) (*cohort, error) {
	f.Share = 1
	if f.Rows > most {
		f.Share = float64(most) / float64(f.Rows)
	}
	qids := r.Dimensions()
	read, e, subjectOfRow, err := readTable(ctx, tx, r, f, name, "")
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	e.rows, e.subjects = len(subjectOfRow), distinct(subjectOfRow)
	f.Subjects = e.subjects
	columns, leaves := make([]anonymize.Column, len(qids)), make([][]uint32, len(qids))
	for i, q := range qids {
		if f.Rows == 0 {
			break // no value is without a place
		}
		if columns[i], leaves[i], err = read[i].encode(q); err != nil {
			f.Uncovered = append(f.Uncovered, fmt.Sprintf("%s: %v", q.Name, err))
		}
	}
	if f.Subjects < r.K {
		f.Unmet = fmt.Sprintf("%d-anonymity", r.K)
	}
	if len(f.Uncovered) > 0 || f.Unmet != "" || len(qids) == 0 {
		return e, nil
	}
	if e.subjects == e.rows {
		subjectOfRow = nil
	}
	e.subjectOfRow = subjectOfRow
	e.table, err = anonymize.NewTable(columns, leaves, subjectOfRow)
	return e, err
}

// measure makes the root and says what it shows.
func (f *Forecast) measure(ctx context.Context, r *Relation, e *cohort) error {
	f.RawRisk = 1 / float64(smallestTuple(e.table))
	e.refer(r)
	p, err := ecg.MakeRoot(ctx, e.table, r.rootPlan(everyone, e))
	if unmet := (*anonymize.UnmetError)(nil); asUnmet(err, &unmet) {
		f.Unmet = unmet.Requirement
		return nil
	}
	if err != nil {
		return err
	}
	f.Risk, f.Withheld = 1/float64(p.MinBlock()), withheldShare(r, e, p)
	own := everyColumn(e.table)[:len(r.QuasiIdentifiers())]
	for _, i := range own {
		f.Losses = append(f.Losses, p.Loss([]int{i}))
	}
	if len(own) > 0 {
		f.Loss = p.Loss(own)
	}
	return nil
}

// smallestTuple is the least number of subjects that share their values.
func smallestTuple(t *anonymize.Table) int {
	least := t.Rows()
	for tuple := range uint32(t.Tuples()) {
		rows := t.RowsOf(tuple)
		if t.RowPerSubject() {
			least = min(least, len(rows))
			continue
		}
		subjects := make(map[uint32]struct{}, len(rows))
		for _, row := range rows {
			subjects[t.Subject(row)] = struct{}{}
		}
		least = min(least, len(subjects))
	}
	return least
}

// readTable reads the quasi-identifiers as text, by column, and the codes of
// subjects and sensitive values; in an order, if one is given.
func readTable(
	ctx context.Context, tx pgx.Tx, r *Relation, f *Forecast, name, order string,
) ([]*texts, *cohort, []uint32, error) {
	qids, own := r.Dimensions(), len(r.QuasiIdentifiers())
	list := []string{fmt.Sprintf("dense_rank() OVER (ORDER BY b.%s) - 1", ident(r.Subject))}
	e := &cohort{sensitive: make(map[string][]uint32)}
	for _, name := range r.required() {
		list = append(list, sensitiveCode("b."+ident(name)))
	}
	numbers := make([]int64, len(list))
	values := make([]pgtype.DriverBytes, len(qids))
	var into []any
	for i := range numbers {
		into = append(into, &numbers[i])
	}
	from := name + " b"
	for i, q := range qids {
		value := "b." + ident(q.Name)
		if i >= own {
			value = "p." + ident(r.Parent.Columns[i-own].Name)
		}
		list = append(list, textOf(value, q.Type))
		into = append(into, &values[i])
	}
	if len(qids) > own {
		from += fmt.Sprintf(" LEFT JOIN %s p ON p.%s = b.%s",
			pgx.Identifier{r.Parent.Schema, r.Parent.Name}.Sanitize(), ident(r.Parent.Subject),
			ident(r.Subject))
	}
	where := fmt.Sprintf("WHERE b.%s IS NOT NULL", ident(r.Subject))
	if f.Share < 1 {
		where += fmt.Sprintf(" AND mod(abs(hashtext(b.%s::text)::bigint), 1000000) < %d",
			ident(r.Subject), int(1e6*f.Share))
	}
	rows, err := tx.Query(ctx,
		fmt.Sprintf("SELECT %s FROM %s %s %s", strings.Join(list, ", "), from, where, order))
	if err != nil {
		return nil, nil, nil, err
	}
	out := newTexts(len(qids))
	var subjectOfRow []uint32
	_, err = pgx.ForEachRow(rows, into, func() error {
		subjectOfRow = append(subjectOfRow, uint32(numbers[0]))
		for i, name := range r.required() {
			e.sensitive[name] = append(e.sensitive[name], uint32(numbers[i+1]))
		}
		for i, value := range values {
			out[i].add(value)
		}
		return nil
	})
	return out, e, subjectOfRow, err
}

// textOf is a value as text, as [PrintValues] has it, whatever the time zone of the session: in
// that of a rehearsal others ask.
func textOf(column, pgType string) string {
	if resolution(pgType) == anonymize.ZonedInstants {
		return fmt.Sprintf("(%s AT TIME ZONE 'UTC')::text || '+00'", column)
	}
	return column + "::text"
}
