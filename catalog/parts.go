package catalog

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// DefaultPartRows is how many rows of a table are partitioned at once, where
// [Catalog.PartRows] says nothing else: about 1.2 GB.
const DefaultPartRows = 4 << 20

// MinPartRows is the least that it may be.
const MinPartRows = 1000

// division is that of a copy which is shown for the first time and has more rows than are
// partitioned at once. Each part is a cohort: it is cut along all quasi-identifiers by
// itself, and has margins of its own. PostgreSQL holds the rows with the leaves of their values, by
// cells, so that no more than a part is read at a time (docs/decisions/parts.md).
type division struct {
	table string // of the rows
	list  []*tablePart
	rows  int // of all
	done  int // rows of those that are placed
}

// Names of the columns of the tables that parts are read from.
const (
	cellColumn  = `"tailor cell"`
	valueColumn = `"tailor value"`
	leafColumn  = `"tailor leaf"`
)

// leafOf is the column of a dimension's leaves.
func leafOf(dimension int) string { return fmt.Sprintf(`"tailor leaf %d"`, dimension) }

// tooManyRows says whether the copy is to be partitioned part by part. One level a column
// is chosen for all rows at once.
func (t *takingIn) tooManyRows(ctx context.Context) (are bool, err error) {
	if len(t.r.Dimensions()) == 0 || t.r.recoding() == ecg.FullDomain {
		return false, nil
	}
	err = t.tx.QueryRow(ctx, `SELECT rows > $2 FROM tailor.epoch WHERE epoch = $1`, t.r.Epoch,
		t.PartRows).Scan(&are)
	return are, err
}

// divide divides the copy into parts that can be shown by themselves. It finds the
// hierarchies over all values on the way.
func (t *takingIn) divide(ctx context.Context) error {
	g, err := t.storeLeaves(ctx)
	if err != nil {
		return fmt.Errorf("rows of copy %d by cells: %w", t.r.Epoch, err)
	}
	cells, err := t.countCells(ctx, g)
	if err != nil {
		return fmt.Errorf("count cells of copy %d: %w", t.r.Epoch, err)
	}
	whole := divide(cells, t.PartRows)
	t.division.rows = whole.rows
	if _, err := t.settle(ctx, whole); err != nil {
		return err
	}
	t.division.list = whole.undivided()
	t.log.Info("divided a table", "relation", t.r.String(), "copy", t.r.Epoch, "rows", whole.rows,
		"parts", len(t.division.list))
	return nil
}

// storeLeaves writes the rows of the copy with the leaves of their values, in the order of
// the cells of a grid.
func (t *takingIn) storeLeaves(ctx context.Context) (*grid, error) {
	readings, err := readingsOf(ctx, t.tx, t.r, t.r.Dimensions())
	if err != nil {
		return nil, err
	}
	t.copied = &copied{}
	values, counted := make([][]string, len(readings)), make([][]int, len(readings))
	for i, q := range t.r.Dimensions() {
		readings[i] = "(" + readings[i] + `) COLLATE "C"` // values are told apart by their bytes
		if values[i], counted[i], err = t.encodeValues(ctx, q, readings[i]); err != nil {
			return nil, err
		}
	}
	g := newGrid(counted)
	tuples := []string{tupleColumn}
	var leaves, cell, joins, codes []string
	for i := range values {
		h, table := t.copied.columns[i].Hierarchy, t.temporary("codes_"+strconv.Itoa(i))
		if err := t.writeCodes(ctx, table, h, values[i], g.place[i]); err != nil {
			return nil, err
		}
		null, nullPlace := uint32(0), 0
		if leaf, there := h.NullCode(); there {
			null, nullPlace = leaf, g.place[i][leaf]
		}
		tuples = append(tuples, fmt.Sprintf("coalesce(c%[1]d.%[2]s, %[3]d) AS %[4]s", i, leafColumn, null,
			leafOf(i)))
		cell = append(cell, fmt.Sprintf("coalesce(c%d.%s, %d)", i, cellColumn, nullPlace))
		joins = append(joins, fmt.Sprintf("LEFT JOIN %[1]s c%[2]d ON c%[2]d.%[3]s = %[4]s", table, i,
			valueColumn, readings[i]))
		leaves, codes = append(leaves, leafOf(i)), append(codes, table)
	}
	coded := fmt.Sprintf("SELECT %s, %s AS %s FROM tailor_store.tuples_%d %s", commas(tuples),
		strings.Join(cell, " + "), cellColumn, t.r.Epoch, strings.Join(joins, " "))
	t.division = &division{table: t.temporary("parts")}
	numbered := "c." + cellColumn
	if sets := t.r.setsReading("e."); sets != "" { // blocks are of people whom the same ones have
		numbered = fmt.Sprintf("%s * %d + %s", sets, g.cells(), numbered)
	}
	read, names := t.r.rowReadings("e.")
	names = append(append(names, leaves...), cellColumn)
	return g, execute(ctx, t.tx,
		fmt.Sprintf("CREATE TABLE %s (%s) AS SELECT %s FROM tailor_store.epoch_%d e JOIN (%s) c "+
			"USING (%s) ORDER BY %s", t.division.table, commas(names),
			commas(append(append(read, leaves...), numbered)), t.r.Epoch, coded, tupleColumn, numbered),
		fmt.Sprintf("CREATE INDEX ON %s (%s)", t.division.table, cellColumn), "ANALYZE "+t.division.table,
		"DROP TABLE "+commas(codes))
}

// encodeValues finds the hierarchy of a dimension over its values in the copy, and how many
// tuples have each: counted[leaf].
func (t *takingIn) encodeValues(ctx context.Context, q *Column, reading string) (
	values []string, counted []int, err error,
) {
	rows, err := t.tx.Query(ctx, fmt.Sprintf(
		"SELECT %s, count(*) FROM tailor_store.tuples_%d GROUP BY 1", reading, t.r.Epoch))
	if err != nil {
		return nil, nil, err
	}
	var value *string
	var n, nulls int
	var tuples []int
	if _, err := pgx.ForEachRow(rows, []any{&value, &n}, func() error {
		if value == nil {
			nulls = n
			return nil
		}
		values, tuples = append(values, *value), append(tuples, n)
		return nil
	}); err != nil {
		return nil, nil, err
	}
	h, err := q.Hierarchy.Build(values, nulls > 0, q.Type)
	if err != nil {
		return nil, nil, fmt.Errorf("column %q: %w", q.Name, err)
	}
	t.copied.columns = append(t.copied.columns, anonymize.Column{Name: q.Name, Hierarchy: h})
	counted = make([]int, h.Leaves())
	for v, value := range values {
		leaf, _ := h.Code(value)
		counted[leaf] += tuples[v]
	}
	if leaf, there := h.NullCode(); there {
		counted[leaf] += nulls
	}
	return values, counted, nil
}

// writeCodes makes a table of the leaves of values and of what these say of the cell.
func (t *takingIn) writeCodes(
	ctx context.Context, table string, h *anonymize.Hierarchy, values []string, place []int,
) error {
	err := execute(ctx, t.tx, fmt.Sprintf(
		`CREATE TABLE %s (%s text COLLATE "C", %s integer, %s integer)`, table, valueColumn, leafColumn,
		cellColumn))
	if err != nil {
		return err
	}
	err = copyInto(ctx, t.tx, table, func(w *copyWriter) {
		for _, value := range values {
			leaf, _ := h.Code(value)
			w.text(value)
			w.number(int(leaf))
			w.number(place[leaf])
			w.end()
		}
	})
	if err != nil {
		return err
	}
	return execute(ctx, t.tx, "ANALYZE "+table)
}

// countCells reads how many rows each cell has.
func (t *takingIn) countCells(ctx context.Context, g *grid) (cells []gridCell, err error) {
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s, count(*) FROM %s GROUP BY 1", cellColumn,
		t.division.table))
	if err != nil {
		return nil, err
	}
	var number, n int
	_, err = pgx.ForEachRow(rows, []any{&number, &n}, func() error {
		cells = append(cells, g.cell(number, n))
		return nil
	})
	return cells, err
}

// settle puts those halves together of which one cannot be shown by itself, and says
// whether what comes of that can.
func (t *takingIn) settle(ctx context.Context, p *tablePart) (can bool, err error) {
	can = true
	for _, half := range p.halves {
		does, err := t.settle(ctx, half)
		if err != nil {
			return false, err
		}
		can = can && does
	}
	if p.halves != nil && can {
		return true, nil
	}
	p.halves = nil
	if t.oneRow && (len(t.r.Requirements) == 0 || t.r.BlindCuts) {
		return p.rows >= t.r.K, nil
	}
	of, err := t.partCohort(ctx, p)
	if err != nil {
		return false, err
	}
	err = anonymize.NewPartition(of.table).Assert(requirements(t.r, of))
	if isUnmet(err) {
		return false, nil
	}
	return err == nil, err
}

// partCohort reads a part.
func (t *takingIn) partCohort(ctx context.Context, p *tablePart) (*cohort, error) {
	numbers := make([]int, len(p.cells))
	for i := range p.cells {
		numbers[i] = p.cells[i].number
	}
	of := &cohort{sensitive: make(map[string][]uint32), references: t.references}
	_, names := t.r.rowReadings("")
	for i := range t.copied.columns {
		names = append(names, leafOf(i))
	}
	question := fmt.Sprintf("SELECT %s FROM %s WHERE %s = ANY ($1) ORDER BY %s", commas(names),
		t.division.table, cellColumn, rowColumn)
	rows, err := t.tx.Query(ctx, question, numbers)
	if err != nil {
		return nil, err
	}
	if of.leaves, err = of.read(rows, t.r, len(t.copied.columns)); err != nil {
		return nil, fmt.Errorf("read a part of copy %d: %w", t.r.Epoch, err)
	}
	return of, of.encode(t.copied.columns)
}

// placings finds the blocks of part after part.
func (t *takingIn) placings(ctx context.Context) iter.Seq2[placing, error] {
	return func(yield func(placing, error) bool) {
		first := 0
		for number, p := range t.division.list {
			of, err := t.partCohort(ctx, p)
			var placed placing
			if err == nil {
				placed, err = t.placeCohort(ctx, of, newcomers)
			}
			placed.part, placed.first = number, first
			if !yield(placed, err) || err != nil {
				return
			}
			first += placed.blocks()
			t.division.done += p.rows
		}
	}
}

// measure measures the risk of each dimension as stored.
func (t *takingIn) measure(ctx context.Context) error {
	count := "count(*)"
	if !t.oneRow {
		count = fmt.Sprintf("count(DISTINCT %s)", personColumn)
	}
	for i, q := range t.r.Dimensions() {
		rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s GROUP BY %s", count, t.division.table,
			leafOf(i)))
		if err != nil {
			return err
		}
		subjects, err := pgx.CollectRows(rows, pgx.RowTo[uint32])
		if err != nil {
			return err
		}
		t.measured = append(t.measured, ecg.StoredRiskOf([]string{q.Name}, subjects, t.r.K))
	}
	return nil
}
