package catalog

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// epoch is the stored copy of a relation as the engine sees it. It is
// immutable: an epoch's tables are written once.
type epoch struct {
	number   int
	rows     int
	subjects int // distinct, with or without quasi-identifiers
	// table holds the quasi-identifiers that blocks are made along, nil where the
	// relation has no quasi-identifiers. Its rows are in the order of the copy's
	// random row numbers.
	table     *anonymize.Table
	tuples    []uint32            // tuple as it is stored -> tuple of the table
	sensitive map[string][]uint32 // column -> code of each row
	kinds     map[string]int      // column -> distinct values
}

// Names of the copy's own columns. A blank cannot be typed by accident.
const (
	rowColumn     = `"tailor row"`
	tupleColumn   = `"tailor tuple"`
	subjectColumn = `"tailor subject"`
)

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// querier reads: the pool, or a transaction that is open already. Whoever holds
// a connection must not ask the pool for another one.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// epochOf returns the relation's present epoch, reading it once.
func (c *Catalog) epochOf(ctx context.Context, r *Relation) (*epoch, error) {
	c.mu.Lock()
	e := c.epochs[r.Epoch]
	c.mu.Unlock()
	if e != nil {
		return e, nil
	}
	// Whoever asks first reads for all, and is not to stop when it loses its
	// own patience.
	reading := c.reading.DoChan(strconv.Itoa(r.Epoch), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		e, err := loadEpoch(ctx, c.pool, r)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.epochs[r.Epoch] = e
		return e, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for epoch %d: %w", r.Epoch, ctx.Err())
	case read := <-reading:
		if read.Err != nil {
			return nil, read.Err
		}
		return read.Val.(*epoch), nil
	}
}

func loadEpoch(ctx context.Context, db querier, r *Relation) (*epoch, error) {
	e := &epoch{number: r.Epoch, sensitive: make(map[string][]uint32), kinds: make(map[string]int)}
	qids := r.Dimensions()
	tuples, err := readTuples(ctx, db, r, qids)
	if err != nil {
		return nil, fmt.Errorf("read tuples of epoch %d: %w", r.Epoch, err)
	}
	tupleOfRow, subjectOfRow, err := readRows(ctx, db, r, e)
	if err != nil {
		return nil, fmt.Errorf("read rows of epoch %d: %w", r.Epoch, err)
	}
	e.rows, e.subjects = len(tupleOfRow), distinct(subjectOfRow)
	for column, codes := range e.sensitive {
		e.kinds[column] = distinct(codes)
	}
	if len(qids) == 0 || e.rows == 0 { // of nobody, nothing is shown (see assertFeasible)
		return e, nil
	}
	columns, leaves, err := encode(qids, tuples)
	if err != nil {
		return nil, fmt.Errorf("epoch %d of %s: %w", r.Epoch, r, err)
	}
	byRow := make([][]uint32, len(qids))
	for i := range qids {
		byRow[i] = make([]uint32, len(tupleOfRow))
		for row, tuple := range tupleOfRow {
			byRow[i][row] = leaves[i][tuple]
		}
	}
	if unique(subjectOfRow) {
		subjectOfRow = nil // every row is a subject of its own: rows may be counted
	}
	if e.table, err = anonymize.NewTable(columns, byRow, subjectOfRow); err != nil {
		return nil, err
	}
	e.tuples = make([]uint32, len(tuples[0]))
	for row, tuple := range e.table.TupleOfRow() {
		e.tuples[tupleOfRow[row]] = tuple
	}
	return e, nil
}

// readTuples reads the values of every tuple as text, [column][tuple]; nil is
// NULL.
func readTuples(ctx context.Context, db querier, r *Relation, qids []*Column) ([][]*string, error) {
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
	out := make([][]*string, len(qids))
	values := make([]*string, len(qids))
	into := make([]any, len(qids))
	for i := range values {
		into[i] = &values[i]
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		for i := range values {
			out[i] = append(out[i], values[i])
			values[i] = nil
		}
		return nil
	})
	return out, err
}

// readingsOf are expressions for the columns as text. Copies of earlier versions
// have the types of the table, whose casts can be functions of its owner.
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

// encode builds each column's hierarchy over its values and encodes them.
func encode(qids []*Column, tuples [][]*string) ([]anonymize.Column, [][]uint32, error) {
	columns := make([]anonymize.Column, len(qids))
	leaves := make([][]uint32, len(qids))
	for i, q := range qids {
		seen := make(map[string]bool)
		var values []string
		var withNull bool
		for _, v := range tuples[i] {
			switch {
			case v == nil:
				withNull = true
			case !seen[*v]:
				seen[*v] = true
				values = append(values, *v)
			}
		}
		h, err := q.Hierarchy.Build(values, withNull, isInteger(q.Type))
		if err != nil {
			return nil, nil, fmt.Errorf("column %q: %w", q.Name, err)
		}
		columns[i] = anonymize.Column{Name: q.Name, Hierarchy: h}
		leaves[i] = make([]uint32, len(tuples[i]))
		for t, v := range tuples[i] {
			if v == nil {
				leaves[i][t], _ = h.NullCode()
			} else {
				leaves[i][t], _ = h.Code(*v)
			}
		}
	}
	return columns, leaves, nil
}

func isInteger(pgType string) bool {
	return pgType == "smallint" || pgType == "integer" || pgType == "bigint"
}

// readRows reads tuple and subject of every row, and the codes of the
// sensitive columns that a requirement names.
func readRows(ctx context.Context, db querier, r *Relation, e *epoch) (tupleOfRow, subjectOfRow []uint32, err error) {
	list := []string{tupleColumn, subjectColumn}
	var names []string
	for _, q := range r.Requirements {
		names = append(names, q.Column)
		list = append(list, fmt.Sprintf("dense_rank() OVER (ORDER BY %s) - 1", ident(q.Column)))
	}
	rows, err := db.Query(ctx, fmt.Sprintf("SELECT %s FROM tailor_store.epoch_%d ORDER BY %s",
		strings.Join(list, ", "), r.Epoch, rowColumn))
	if err != nil {
		return nil, nil, err
	}
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		tupleOfRow = append(tupleOfRow, uint32(values[0]))
		subjectOfRow = append(subjectOfRow, uint32(values[1]))
		for i, name := range names {
			e.sensitive[name] = append(e.sensitive[name], uint32(values[i+2]))
		}
		return nil
	})
	return tupleOfRow, subjectOfRow, err
}

func distinct(codes []uint32) int {
	seen := make(map[uint32]struct{}, len(codes))
	for _, code := range codes {
		seen[code] = struct{}{}
	}
	return len(seen)
}

func unique(codes []uint32) bool {
	seen := make([]bool, len(codes))
	for _, code := range codes {
		if int(code) >= len(seen) || seen[code] {
			return false
		}
		seen[code] = true
	}
	return true
}
