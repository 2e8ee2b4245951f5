package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// copied is what the copy of a relation says of its dimensions: the hierarchies over
// all values of the copy, and the leaves of each tuple as it is stored. A relation
// without quasi-identifiers has none, nor has a copy without rows.
type copied struct {
	columns []anonymize.Column
	leaves  [][]uint32 // [column][tuple as stored]
}

// cohort is a set of rows of a copy that is partitioned by itself.
type cohort struct {
	rows, subjects int      // subjects: distinct ones
	numbers        []uint32 // of the rows in the copy, in order
	// table holds the dimensions, nil where the relation has none. Its rows are in the
	// order of the copy's random row numbers.
	table     *anonymize.Table
	sensitive map[string][]uint32 // column -> code of each row, [missing] for NULL
	// references are those that its blocks are held against.
	references references
	// subjectOfRow is nil where every row is a subject of its own.
	subjectOfRow []uint32
	// sets says of each row which data sets have its subject, nil where all rows are alike
	// in that; and leaves has its values, by dimension.
	sets   []uint32
	leaves [][]uint32
}

// Names of the columns of copies and releases that nobody is shown. A blank cannot be
// typed by accident. By person, key and nth a row is followed from copy to copy. A block
// is of rows that are shown alike; those of a class have been so at all times.
const (
	rowColumn    = `"tailor row"`
	tupleColumn  = `"tailor tuple"`
	personColumn = `"tailor person"`
	keyColumn    = `"tailor key"`
	nthColumn    = `"tailor nth"`
	blockColumn  = `"tailor block"`
	classColumn  = `"tailor class"`
	gateColumn   = `"tailor gate"` // 0 in every row of a release
)

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// querier reads: the pool, or a transaction that is open already. Whoever holds
// a connection must not ask the pool for another one.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// readCopy reads the tuples of a relation's present copy.
func readCopy(ctx context.Context, db querier, r *Relation) (*copied, error) {
	qids := r.Dimensions()
	tuples, err := readTuples(ctx, db, r, qids)
	if err != nil {
		return nil, fmt.Errorf("read tuples of copy %d: %w", r.Epoch, err)
	}
	if len(qids) == 0 || len(tuples[0].ofRow) == 0 {
		return &copied{}, nil
	}
	columns, leaves, err := encode(qids, tuples)
	if err != nil {
		return nil, fmt.Errorf("copy %d of %s: %w", r.Epoch, r, err)
	}
	return &copied{columns, leaves}, nil
}

// cohort reads those rows of the copy that a table of row numbers has in a group, or
// the whole copy.
func (k *copied) cohort(
	ctx context.Context, db querier, r *Relation, to references, arriving string, group int,
) (*cohort, error) {
	of := &cohort{sensitive: make(map[string][]uint32), references: to}
	rows, err := db.Query(ctx, r.copyQuery(arriving, group))
	if err != nil {
		return nil, fmt.Errorf("read rows of copy %d: %w", r.Epoch, err)
	}
	tuples, err := of.read(rows, r, 1)
	if err != nil {
		return nil, fmt.Errorf("read rows of copy %d: %w", r.Epoch, err)
	}
	if len(k.columns) == 0 || of.rows == 0 {
		return of, nil
	}
	if of.sets == nil {
		of.table, err = anonymize.NewTableOf(k.columns, k.leaves, tuples[0], of.subjectOfRow)
		return of, err
	}
	of.leaves = make([][]uint32, len(k.columns))
	for i := range of.leaves {
		of.leaves[i] = make([]uint32, of.rows)
		for row, tuple := range tuples[0] {
			of.leaves[i][row] = k.leaves[i][tuple]
		}
	}
	return of, of.encode(k.columns)
}

// encode makes the table of a cohort of its leaves.
func (e *cohort) encode(columns []anonymize.Column) (err error) {
	leaves := e.leaves
	if e.sets != nil {
		column, sets, err := setsColumn(e.sets)
		if err != nil {
			return err
		}
		columns, leaves = append(slices.Clip(columns), column), append(slices.Clip(leaves), sets)
	}
	e.table, err = anonymize.NewTable(columns, leaves, e.subjectOfRow)
	return err
}

// readTuples reads the values of every tuple, by column.
func readTuples(ctx context.Context, db querier, r *Relation, qids []*Column) ([]*texts, error) {
	if len(qids) == 0 {
		return nil, nil
	}
	readings, err := readingsOf(ctx, db, r, qids)
	if err != nil {
		return nil, err
	}
	rows, err := db.Query(ctx, fmt.Sprintf("SELECT %s FROM tailor_store.tuples_%d ORDER BY %s",
		strings.Join(readings, ", "), r.Epoch, tupleColumn))
	if err != nil {
		return nil, err
	}
	return collectTexts(rows, len(qids))
}

// readingsOf are expressions for the columns as text.
func readingsOf(ctx context.Context, db querier, r *Relation, qids []*Column) ([]string, error) {
	names := make([]string, len(qids))
	for i, q := range qids {
		names[i] = q.storedName()
	}
	rows, err := db.Query(ctx, `
		SELECT s.reading || '::text'
		FROM unnest($1::text[]) WITH ORDINALITY q (name, place)
		JOIN pg_attribute a ON a.attrelid = $2::text::regclass AND a.attname = q.name
		CROSS JOIN tailor.stored_type(a.atttypid, a.atttypmod, quote_ident(q.name)) s
		ORDER BY q.place`, names, fmt.Sprintf("tailor_store.tuples_%d", r.Epoch))
	if err != nil {
		return nil, err
	}
	readings, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(readings) != len(names) {
		return nil, fmt.Errorf("the copy has %d of %d columns", len(readings), len(names))
	}
	return readings, err
}

// rowReadings are expressions for what is read of each row but its values, and the names of
// the columns in which a table stores them: its number, its subject, a number of each sensitive
// value of which a requirement asks, and one of the data sets that have it.
func (r *Relation) rowReadings(of string) (expressions, names []string) {
	expressions, names = []string{of + rowColumn, of + personColumn}, []string{rowColumn, personColumn}
	for i, name := range r.required() {
		expressions = append(expressions, r.sensitiveValue(of, name))
		names = append(names, fmt.Sprintf(`"tailor sensitive %d"`, i))
	}
	if sets := r.setsReading(of); sets != "" {
		expressions, names = append(expressions, sets), append(names, ident(setsName))
	}
	return expressions, names
}

// setsReading is the number of the data sets that have a row, "" where there are none.
func (r *Relation) setsReading(of string) string {
	members := r.memberColumns()
	if len(members) == 0 {
		return ""
	}
	return fmt.Sprintf("(dense_rank() OVER (ORDER BY concat_ws(' ', %s%s)) - 1)", of,
		strings.Join(members, ", "+of))
}

// copyQuery asks for the rows of the copy that a table of row numbers has in a group, or
// for all, with the numbers of their tuples.
func (r *Relation) copyQuery(arriving string, group int) string {
	from := fmt.Sprintf("tailor_store.epoch_%d e", r.Epoch)
	if arriving != wholeCopy {
		from += fmt.Sprintf(" JOIN %s a USING (%s) WHERE a.\"tailor cohort\" = %d", arriving,
			rowColumn, group)
	}
	list, _ := r.rowReadings("e.")
	return fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", commas(append(list, "e."+tupleColumn)), from,
		rowColumn)
}

// read reads rows of [Relation.rowReadings] and further numbers, which it returns by column.
func (e *cohort) read(rows pgx.Rows, r *Relation, further int) ([][]uint32, error) {
	_, columns := r.rowReadings("")
	names, own := r.required(), len(columns)
	values := make([]int64, own+further)
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	unknown := make([]map[int64]uint32, len(names))
	for i := range unknown {
		unknown[i] = make(map[int64]uint32)
	}
	var persons []int64
	out := make([][]uint32, further)
	_, err := pgx.ForEachRow(rows, into, func() error {
		e.numbers = append(e.numbers, uint32(values[0]))
		persons = append(persons, values[1])
		for i, name := range names {
			code := e.references.code(name, values[i+2], unknown[i])
			e.sensitive[name] = append(e.sensitive[name], code)
		}
		if own > len(names)+2 {
			e.sets = append(e.sets, uint32(values[own-1]))
		}
		for i := range out {
			out[i] = append(out[i], uint32(values[own+i]))
		}
		return nil
	})
	e.rows = len(e.numbers)
	e.subjects, e.subjectOfRow = subjectsOf(persons)
	e.sets = densely(e.sets)
	e.recode()
	return out, err
}

// recode numbers the sensitive values that the rows have from 1, where these are held against
// no reference: there are as many codes as values, and [missing].
func (e *cohort) recode() {
	for name, codes := range e.sensitive {
		if e.references[name] != nil {
			continue
		}
		of := make(map[uint32]uint32)
		for row, code := range codes {
			if _, known := of[code]; !known && code != missing {
				of[code] = uint32(len(of)) + missing + 1
			}
			codes[row] = of[code]
		}
	}
}

// densely numbers the codes that there are from 0, in order; nil where there are fewer
// than two.
func densely(codes []uint32) []uint32 {
	if sorted := distinctOf(codes); len(sorted) >= 2 {
		return placesIn(sorted, codes)
	}
	return nil
}

func distinctOf[T cmp.Ordered](values []T) []T {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// placesIn are the places of values in an ordered list that has them all.
func placesIn[T cmp.Ordered](sorted, values []T) []uint32 {
	places := make([]uint32, len(values))
	for i, value := range values {
		place, _ := slices.BinarySearch(sorted, value)
		places[i] = uint32(place)
	}
	return places
}

// subjectsOf numbers persons densely; ofRow is nil where each has one row, so that rows
// may be counted.
func subjectsOf(persons []int64) (subjects int, ofRow []uint32) {
	sorted := distinctOf(persons)
	if len(sorted) == len(persons) {
		return len(sorted), nil
	}
	return len(sorted), placesIn(sorted, persons)
}

// missing is the code of NULL among sensitive values.
const missing = 0

// sensitiveCode is an expression for the code of a sensitive value: NULL comes last in order,
// so that the first rank of the others is 1.
func sensitiveCode(column string) string {
	return fmt.Sprintf(
		"CASE WHEN %[1]s IS NULL THEN %[2]d ELSE dense_rank() OVER (ORDER BY %[1]s) END", column, missing)
}

func distinct(codes []uint32) int {
	seen := make(map[uint32]struct{}, len(codes))
	for _, code := range codes {
		seen[code] = struct{}{}
	}
	return len(seen)
}
