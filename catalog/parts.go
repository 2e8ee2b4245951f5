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

// division is that of a copy of which more rows are to be shown than are partitioned at
// once. Each part is a cohort: it is cut along all quasi-identifiers by itself, and has margins
// of its own. PostgreSQL holds the rows with the leaves of their values, by cells, so that no
// more than a part is read at a time (docs/decisions/parts.md).
type division struct {
	values  [][]string // of each dimension in the copy
	counted [][]int    // rows of the copy by dimension and leaf
	table   string     // of the rows that are to be shown
	rows    int        // of those that nobody has been shown before
	done    int        // of these that are placed
	list    []*tablePart
}

// Names of the columns of the tables that parts are read from.
const (
	cellColumn  = `"tailor cell"`
	valueColumn = `"tailor value"`
	leafColumn  = `"tailor leaf"`
	rowsColumn  = `"tailor rows"` // how many of the copy's rows have a tuple
	// cohortColumn is that of tables of arriving rows.
	cohortColumn = `"tailor cohort"`
)

// leafOf is the column of a dimension's leaves.
func leafOf(dimension int) string { return fmt.Sprintf(`"tailor leaf %d"`, dimension) }

// tooManyRows says whether the copy is to be partitioned part by part. One level a column
// is chosen for all rows at once.
func (t *takingIn) tooManyRows(ctx context.Context) (are bool, err error) {
	if len(t.r.Dimensions()) == 0 || t.r.recoding() == ecg.FullDomain {
		return false, nil
	}
	// Of a copy of what differs, epoch.rows counts the rows of the table.
	err = t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT rows > $2 AND EXISTS (
			SELECT FROM tailor_store.epoch_%d OFFSET $2) FROM tailor.epoch WHERE epoch = $1`, t.r.Epoch),
		t.r.Epoch, t.PartRows).Scan(&are)
	return are, err
}

// beginDivision finds the hierarchies over all values of the copy.
func (t *takingIn) beginDivision(ctx context.Context) error {
	readings, err := t.divisionReadings(ctx)
	if err != nil {
		return err
	}
	t.copied, t.division = &copied{}, &division{table: t.temporary("parts")}
	for i, q := range t.r.Dimensions() {
		if err := t.encodeValues(ctx, q, readings[i]); err != nil {
			return err
		}
	}
	return nil
}

// divisionReadings are expressions for the dimensions. Values are told apart by their bytes.
func (t *takingIn) divisionReadings(ctx context.Context) ([]string, error) {
	readings, err := readingsOf(ctx, t.tx, t.r, t.r.Dimensions())
	for i := range readings {
		readings[i] = "(" + readings[i] + `) COLLATE "C"`
	}
	return readings, err
}

// divide divides those rows that nobody has been shown before into parts that can be shown
// by themselves. could says that there are such parts.
func (t *takingIn) divide(ctx context.Context, g *grid, arriving string) (could bool, err error) {
	cells, err := t.countCells(ctx, g, arriving)
	if err != nil {
		return false, fmt.Errorf("count cells of copy %d: %w", t.r.Epoch, err)
	}
	whole := divide(cells, t.PartRows)
	t.division.rows = whole.rows
	t.division.list, could, err = whole.settle(func(p *tablePart) (bool, error) {
		return t.canBeShown(ctx, p, arriving)
	})
	t.log.Info("divided a table", "relation", t.r.String(), "copy", t.r.Epoch, "rows", whole.rows,
		"parts", len(t.division.list))
	return could, err
}

// storeLeaves writes the rows that are to be shown with the leaves of their values, in the
// order of the cells of a grid.
func (t *takingIn) storeLeaves(ctx context.Context, arriving string) (*grid, error) {
	readings, err := t.divisionReadings(ctx)
	if err != nil {
		return nil, err
	}
	g := newGrid(t.division.counted)
	tuples := []string{tupleColumn}
	var leaves, cell, joins, codes []string
	for i, values := range t.division.values {
		h, table := t.copied.columns[i].Hierarchy, t.temporary("codes_"+strconv.Itoa(i))
		if err := t.writeCodes(ctx, table, h, values, g.place[i]); err != nil {
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
	read, names := t.r.rowReadings("e.")
	further, from := append(leaves, cellColumn), fmt.Sprintf("tailor_store.epoch_%d e", t.r.Epoch)
	if arriving != wholeCopy {
		further = append(further, cohortColumn)
		from += fmt.Sprintf(" JOIN %s a USING (%s)", arriving, rowColumn)
	}
	return g, execute(ctx, t.tx,
		fmt.Sprintf("CREATE TABLE %s (%s) AS SELECT %s FROM %s JOIN (%s) c USING (%s) ORDER BY %s",
			t.division.table, commas(append(names, further...)), commas(append(read, further...)), from,
			coded, tupleColumn, cellColumn),
		fmt.Sprintf("CREATE INDEX ON %s (%s)", t.division.table, cellColumn), "ANALYZE "+t.division.table,
		"DROP TABLE "+commas(codes))
}

// encodeValues finds the hierarchy of a dimension over its values in the copy, and how many
// rows have each.
func (t *takingIn) encodeValues(ctx context.Context, q *Column, reading string) error {
	rows, err := t.tx.Query(ctx, fmt.Sprintf(
		"SELECT %s, sum(%s) FROM tailor_store.tuples_%d GROUP BY 1", reading, rowsColumn, t.r.Epoch))
	if err != nil {
		return err
	}
	var value *string
	var n, nulls int
	var values []string
	var of []int
	missing := false
	if _, err := pgx.ForEachRow(rows, []any{&value, &n}, func() error {
		if value == nil {
			missing, nulls = true, n
			return nil
		}
		values, of = append(values, *value), append(of, n)
		return nil
	}); err != nil {
		return err
	}
	h, err := q.Hierarchy.Build(values, missing, q.Type)
	if err != nil {
		return fmt.Errorf("column %q: %w", q.Name, err)
	}
	counted := make([]int, h.Leaves())
	for v, value := range values {
		leaf, _ := h.Code(value)
		counted[leaf] += of[v]
	}
	if leaf, there := h.NullCode(); there {
		counted[leaf] += nulls
	}
	t.copied.columns = append(t.copied.columns, anonymize.Column{Name: q.Name, Hierarchy: h})
	t.division.values = append(t.division.values, values)
	t.division.counted = append(t.division.counted, counted)
	return nil
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

// countCells reads how many of the rows that nobody has been shown before each cell has.
func (t *takingIn) countCells(ctx context.Context, g *grid, arriving string) (
	cells []gridCell, err error,
) {
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s, count(*) FROM %s WHERE %s GROUP BY 1",
		cellColumn, t.division.table, inCohort(arriving, newcomers)))
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

// inCohort is the condition that a row of a division is in a cohort of those that arrive.
func inCohort(arriving string, number int) string {
	if arriving == wholeCopy {
		return "true"
	}
	return fmt.Sprintf("%s = %d", cohortColumn, number)
}

// canBeShown says whether a part can be a cohort of its own: it has subjects enough for one, and
// meets the policy as one block. Parts of few rows would cost more than they save.
func (t *takingIn) canBeShown(ctx context.Context, p *tablePart, arriving string) (bool, error) {
	subjects := max(t.r.cohortSize(), t.needs().subjects)
	if p.rows < max(subjects, min(t.PartRows/16, t.division.rows)) {
		return false, nil
	}
	if t.oneRow && (len(t.r.Requirements) == 0 || t.r.BlindCuts) {
		return true, nil
	}
	of, err := t.divisionCohort(ctx, arriving, newcomers, p)
	if err != nil || of.subjects < subjects {
		return false, err
	}
	if err = assertFeasible(t.r, of); err == nil {
		err = anonymize.NewPartition(of.table).Assert(requirements(t.r, of))
	}
	if isUnmet(err) {
		return false, nil
	}
	return err == nil, err
}

// divisionCohort reads a cohort of those that arrive, or a part of it.
func (t *takingIn) divisionCohort(
	ctx context.Context, arriving string, number int, p *tablePart,
) (*cohort, error) {
	of := &cohort{sensitive: make(map[string][]uint32), references: t.references}
	_, names := t.r.rowReadings("")
	for i := range t.copied.columns {
		names = append(names, leafOf(i))
	}
	question := fmt.Sprintf("SELECT %s FROM %s WHERE %s", commas(names), t.division.table,
		inCohort(arriving, number))
	var args []any
	if p != nil {
		cells := make([]int, len(p.cells))
		for i := range p.cells {
			cells[i] = p.cells[i].number
		}
		question, args = question+fmt.Sprintf(" AND %s = ANY ($1)", cellColumn), []any{cells}
	}
	rows, err := t.tx.Query(ctx, question+" ORDER BY "+rowColumn, args...)
	if err != nil {
		return nil, err
	}
	if of.leaves, err = of.read(rows, t.r, len(t.copied.columns)); err != nil {
		return nil, fmt.Errorf("read a part of copy %d: %w", t.r.Epoch, err)
	}
	return of, of.encode(t.copied.columns)
}

// placings finds the blocks of part after part. first is the number of the first.
func (t *takingIn) placings(
	ctx context.Context, arriving string, first int,
) iter.Seq2[placing, error] {
	return func(yield func(placing, error) bool) {
		for number, p := range t.division.list {
			of, err := t.divisionCohort(ctx, arriving, newcomers, p)
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

// measureDivision measures the risk of each dimension as stored.
func (t *takingIn) measureDivision(ctx context.Context) error {
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
