package catalog

import (
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
	tupleOfRow, err := readRows(ctx, db, r, of, arriving, group)
	if err != nil {
		return nil, fmt.Errorf("read rows of copy %d: %w", r.Epoch, err)
	}
	if distinct(of.sets) < 2 {
		of.sets = nil
	}
	if len(k.columns) == 0 || of.rows == 0 {
		return of, nil
	}
	if of.sets == nil {
		of.table, err = anonymize.NewTableOf(k.columns, k.leaves, tupleOfRow, of.subjectOfRow)
		return of, err
	}
	of.leaves = make([][]uint32, len(k.columns))
	for i := range of.leaves {
		of.leaves[i] = make([]uint32, len(tupleOfRow))
		for row, tuple := range tupleOfRow {
			of.leaves[i][row] = k.leaves[i][tuple]
		}
	}
	column, sets, err := setsColumn(of.sets)
	if err != nil {
		return nil, err
	}
	of.table, err = anonymize.NewTable(
		append(slices.Clip(k.columns), column), append(slices.Clip(of.leaves), sets), of.subjectOfRow)
	return of, err
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

// readRows reads tuple and subject of some rows, and the codes of the sensitive
// columns that a requirement names.
func readRows(
	ctx context.Context, db querier, r *Relation, of *cohort, arriving string, group int,
) (tupleOfRow []uint32, err error) {
	list := []string{"e." + rowColumn, "e." + tupleColumn, "e." + personColumn}
	names := r.required()
	for _, name := range names {
		list = append(list, r.sensitiveValue("e.", name))
	}
	members := r.memberColumns()
	if len(members) > 0 {
		list = append(list, fmt.Sprintf("dense_rank() OVER (ORDER BY concat_ws(' ', e.%s)) - 1",
			strings.Join(members, ", e.")))
	}
	from := fmt.Sprintf("tailor_store.epoch_%d e", r.Epoch)
	if arriving != wholeCopy {
		from += fmt.Sprintf(" JOIN %s a USING (%s) WHERE a.\"tailor cohort\" = %d", arriving,
			rowColumn, group)
	}
	rows, err := db.Query(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY %s", strings.Join(list, ", "),
		from, rowColumn))
	if err != nil {
		return nil, err
	}
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	further := make([]map[int64]uint32, len(names))
	for i := range further {
		further[i] = make(map[int64]uint32)
	}
	var persons []int64
	_, err = pgx.ForEachRow(rows, into, func() error {
		of.numbers = append(of.numbers, uint32(values[0]))
		tupleOfRow = append(tupleOfRow, uint32(values[1]))
		persons = append(persons, values[2])
		for i, name := range names {
			code := of.references.code(name, values[i+3], further[i])
			of.sensitive[name] = append(of.sensitive[name], code)
		}
		if len(members) > 0 {
			of.sets = append(of.sets, uint32(values[len(names)+3]))
		}
		return nil
	})
	of.rows = len(tupleOfRow)
	of.subjects, of.subjectOfRow = subjectsOf(persons)
	return tupleOfRow, err
}

// subjectsOf numbers persons densely; ofRow is nil where each has one row, so that rows
// may be counted.
func subjectsOf(persons []int64) (subjects int, ofRow []uint32) {
	sorted := slices.Clone(persons)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	if len(sorted) == len(persons) {
		return len(sorted), nil
	}
	ofRow = make([]uint32, len(persons))
	for row, person := range persons {
		number, _ := slices.BinarySearch(sorted, person)
		ofRow[row] = uint32(number)
	}
	return len(sorted), ofRow
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
