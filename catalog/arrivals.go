package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// placing is a group of rows of the copy with the block that each of its tuples goes to.
type placing struct {
	cohort    int
	of        *cohort
	part      int                  // of a table that is partitioned in parts
	partition *anonymize.Partition // nil: all are one block
	first     int                  // the number of its first block
}

// wholeCopy stands for the table of arriving rows where all of the copy arrive.
const wholeCopy = ""

// newcomers is the number of the cohort of those that nobody has been shown before;
// those who come back are numbered behind it, by the block that they have left.
const newcomers = 0

// join shows rows that are not shown yet: those of subjects that are enough for a
// cohort, and those of k subjects who have left one block together and come back.
func (t *takingIn) join(ctx context.Context, first bool) error {
	if first {
		return t.begin(ctx)
	}
	arriving := t.temporary("arriving")
	isShown := fmt.Sprintf("EXISTS (SELECT FROM %s r WHERE %s)", t.chain.table("row"),
		t.same("e", "r"))
	if t.partial && !t.numbered { // the copy has compared them
		isShown = `e."tailor shown"`
	}
	err := execute(ctx, t.tx,
		fmt.Sprintf(`CREATE TABLE %s AS SELECT e.%s, e.%s, e.%[9]s, CASE WHEN g.%[3]s IS NULL THEN 0
				ELSE dense_rank() OVER (PARTITION BY g.%[3]s IS NULL ORDER BY g.%[4]s) END::integer
				AS %[11]s
			FROM tailor_store.epoch_%[5]d e LEFT JOIN %[7]s g ON %[8]s
				WHERE NOT %[6]s AND g.epoch IS DISTINCT FROM %[10]d`,
			arriving, rowColumn, personColumn, classColumn, t.r.Epoch, isShown,
			t.chain.table("gone"), t.same("e", "g"), nthColumn, forGood, cohortColumn),
		"ANALYZE "+arriving)
	if err != nil {
		return err
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT \"tailor cohort\", count(DISTINCT %s) FROM %s "+
		"GROUP BY 1 ORDER BY 1", personColumn, arriving))
	if err != nil {
		return err
	}
	sizes := make(map[int]int)
	var number, subjects int
	_, err = pgx.ForEachRow(rows, []any{&number, &subjects}, func() error {
		sizes[number] = subjects
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.assertNewKeys(ctx, arriving, sizes[newcomers]); err != nil {
		return err
	}
	back, err := t.together(ctx, arriving)
	if err != nil {
		return err
	}
	var g *grid
	if t.division != nil {
		if g, err = t.storeLeaves(ctx, arriving); err != nil {
			return err
		}
	}
	var cohorts, waiting []int
	for _, number := range slices.Sorted(maps.Keys(sizes)) {
		if number == newcomers && sizes[number] >= t.r.cohortSize() || back[number] {
			cohorts = append(cohorts, number)
		} else {
			waiting = append(waiting, number)
			t.waiting.arrivals += sizes[number]
		}
	}
	var placings []placing
	next, err := t.nextBlock(ctx)
	if err != nil {
		return err
	}
	inParts := false
	for _, number := range cohorts {
		if t.division != nil && number == newcomers {
			if inParts, err = t.divide(ctx, g, arriving); err != nil {
				return err
			}
			if !inParts {
				t.next.Unmet = true
				waiting = append(waiting, number)
				t.waiting.arrivals += sizes[number]
			}
			continue
		}
		p, err := t.place(ctx, arriving, number)
		if isUnmet(err) {
			t.next.Unmet = t.next.Unmet || number == newcomers
			waiting = append(waiting, number)
			t.waiting.arrivals += p.of.subjects
			continue
		}
		if err != nil {
			return err
		}
		p.first = next
		next += p.blocks()
		placings = append(placings, p)
	}
	if len(placings) > 0 || inParts {
		placed := all(placings...)
		if inParts {
			placed = both(placed, t.placings(ctx, arriving, next))
		}
		if err := t.admit(ctx, arriving, placed); err != nil {
			return err
		}
		err := execute(ctx, t.tx, fmt.Sprintf("DELETE FROM %s g USING tailor_store.epoch_%d e JOIN %s "+
			"a USING (%s) WHERE %s AND a.\"tailor cohort\" = ANY ('{%s}')",
			t.chain.table("gone"), t.r.Epoch, arriving, rowColumn, t.same("e", "g"), numbersOf(placings)))
		if err != nil {
			return err
		}
	}
	if err := t.noteArrivals(ctx, arriving, waiting); err != nil {
		return err
	}
	return execute(ctx, t.tx, "DROP TABLE "+arriving, "DROP TABLE IF EXISTS "+t.temporary("parts"))
}

// begin shows the whole copy for the first time.
func (t *takingIn) begin(ctx context.Context) error {
	if t.division != nil {
		g, err := t.storeLeaves(ctx, wholeCopy)
		if err == nil {
			_, err = t.divide(ctx, g, wholeCopy)
		}
		if err != nil {
			return err
		}
		if err := t.measureDivision(ctx); err != nil {
			return fmt.Errorf("measure risk: %w", err)
		}
		if err := t.admit(ctx, wholeCopy, t.placings(ctx, wholeCopy, 0)); err != nil {
			return err
		}
		return execute(ctx, t.tx, "DROP TABLE "+t.division.table)
	}
	p, err := t.place(ctx, wholeCopy, newcomers)
	if err != nil {
		return err
	}
	if p.of.table != nil {
		t.measured = slices.DeleteFunc(ecg.StoredRisks(ctx, p.of.table, t.r.K),
			func(s ecg.StoredRisk) bool {
				return slices.Contains(s.Attributes, setsName)
			})
	}
	return t.admit(ctx, wholeCopy, all(p))
}

// both are some placings and then others.
func both(first, then iter.Seq2[placing, error]) iter.Seq2[placing, error] {
	return func(yield func(placing, error) bool) {
		for p, err := range first {
			if !yield(p, err) {
				return
			}
		}
		then(yield)
	}
}

// all are placings that were found without a fault.
func all(placings ...placing) iter.Seq2[placing, error] {
	return func(yield func(placing, error) bool) {
		for _, p := range placings {
			if !yield(p, nil) {
				return
			}
		}
	}
}

func numbersOf(placings []placing) string {
	var numbers []string
	for _, p := range placings {
		numbers = append(numbers, strconv.Itoa(p.cohort))
	}
	return commas(numbers)
}

// isUnmet says that people cannot be shown by themselves: they wait for others.
func isUnmet(err error) bool {
	var unmet *anonymize.UnmetError
	var known *sqlstate.Error
	return errors.As(err, &unmet) || errors.As(err, &known) && known.Code == sqlstate.RiskTooHigh
}

func (p placing) blocks() int {
	if p.partition == nil {
		return 1
	}
	return p.partition.Blocks()
}

// place finds the blocks of a cohort. Who comes back is one block with those he left
// with. It fails with an [*anonymize.UnmetError] where not even all together can be
// shown.
func (t *takingIn) place(ctx context.Context, arriving string, number int) (placing, error) {
	var of *cohort
	var err error
	if t.division != nil {
		of, err = t.divisionCohort(ctx, arriving, number, nil)
	} else {
		of, err = t.copied.cohort(ctx, t.tx, t.r, t.references, arriving, number)
	}
	if err != nil {
		return placing{}, err
	}
	return t.placeCohort(ctx, of, number)
}

// placeCohort does so for one that has been read.
func (t *takingIn) placeCohort(ctx context.Context, of *cohort, number int) (placing, error) {
	p := placing{cohort: number, of: of}
	if err := assertFeasible(t.r, of); err != nil {
		return p, err
	}
	if of.table == nil {
		return p, nil
	}
	started := time.Now()
	log := t.log.With("relation", t.r.String(), "copy", t.r.Epoch, "audience", t.audience)
	if number != newcomers {
		p.partition = anonymize.NewPartition(of.table)
		return p, p.partition.Assert(requirements(t.r, of))
	}
	log.Info("making a root", "subjects", of.subjects)
	total := of.rows
	if t.division != nil {
		total = t.division.rows
	}
	if err := t.tell(ctx, makingBlocks, total); err != nil {
		return p, err
	}
	var err error
	if p.partition, err = t.root(ctx, of); err != nil {
		return p, err
	}
	log.Info("made a root", "blocks", p.partition.Blocks(), "smallest", p.partition.MinBlock(),
		"duration", time.Since(started))
	return p, nil
}

// labels are what the blocks of a placing are labelled by in one dimension.
type labels struct {
	distinct []entry
	of       []uint32 // [block] -> place in distinct
}

func (l labels) entry(block int) entry { return l.distinct[l.of[block]] }

// labels finds them in each dimension.
func (p placing) labels(dictionaries []*dictionary) []labels {
	out := make([]labels, len(dictionaries))
	for i, d := range dictionaries {
		h := p.of.table.Columns()[i].Hierarchy
		known := make(map[anonymize.Node]uint32)
		for block := range uint32(p.partition.Blocks()) {
			node := p.partition.Cover(block, i)
			place, ok := known[node]
			if !ok {
				place = uint32(len(known))
				known[node] = place
				out[i].distinct = append(out[i].distinct, entryOf(d.column, h, node))
			}
			out[i].of = append(out[i].of, place)
		}
	}
	return out
}

// draw finds what each row of a placing shows in place of its values, by dimension; nil
// where that follows from the label. The margins of a cohort are published with it; of
// people who come back there are too few for one.
func (t *takingIn) draw(ctx context.Context, p placing) ([]*anonymize.Values, error) {
	out := make([]*anonymize.Values, len(t.dictionaries))
	if p.partition == nil {
		return out, nil
	}
	counted := make([]*anonymize.Margin, len(t.dictionaries))
	var counting sync.WaitGroup
	for i, d := range t.dictionaries {
		if p.cohort == newcomers && !d.column.Middle && !d.column.NoMargin {
			counting.Go(func() { counted[i] = p.of.table.Margin(i, t.r.K, t.r.MaxShare) })
		}
	}
	counting.Wait()
	margins := make(map[int]*anonymize.Margin)
	for i, d := range t.dictionaries {
		if !d.column.Middle {
			margins[i] = counted[i]
		}
	}
	for i, v := range p.partition.Sketch().DrawAll(margins, newChance) {
		out[i] = v
	}
	for i, d := range t.dictionaries {
		if margins[i] == nil {
			continue
		}
		if err := t.publishMargin(ctx, cohortPart{t.r.Epoch, p.part}, d,
			p.of.table.Columns()[i].Hierarchy, margins[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// admit shows rows by the blocks that they are placed in. It holds one placing at a time.
func (t *takingIn) admit(
	ctx context.Context, arriving string, placings iter.Seq2[placing, error],
) error {
	placed := t.temporary("placed")
	columns := []string{rowColumn + " integer", blockColumn + " integer"}
	for i := range t.r.Requirements {
		columns = append(columns, withheldColumn(i)+" boolean")
	}
	for _, d := range t.dictionaries {
		columns = append(columns, d.own("number")+" integer",
			d.own("value")+" "+d.column.ReleaseType())
	}
	err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", placed, commas(columns)))
	if err != nil {
		return err
	}
	fits := true
	for p, err := range placings {
		if err != nil {
			return err
		}
		does, err := t.writePlacing(ctx, placed, p)
		if err != nil {
			return err
		}
		fits = fits && does
	}
	if err := t.tell(ctx, writingRelease, 0); err != nil {
		return err
	}
	switch {
	case arriving == wholeCopy:
		err = createTables(ctx, t.tx, t.r, t.chain, t.dictionaries)
	case !fits:
		err = t.renew(ctx, t.r)
	}
	if err != nil {
		return err
	}
	if err := storeEntries(ctx, t.tx, t.chain, t.dictionaries); err != nil {
		return err
	}
	return execute(ctx, t.tx, "ANALYZE "+placed, t.insertion(arriving, placed), "DROP TABLE "+placed)
}

// writePlacing writes the rows of a placing. It says whether the release as it is has room
// for their labels.
func (t *takingIn) writePlacing(ctx context.Context, placed string, p placing) (bool, error) {
	var shown []labels
	fits := true
	if p.partition != nil {
		shown = p.labels(t.dictionaries)
		for n, d := range t.dictionaries {
			fits = d.add(shown[n].distinct) && fits
		}
	}
	values, err := t.draw(ctx, p)
	if err != nil {
		return false, err
	}
	return fits, copyInto(ctx, t.tx, placed, func(w *copyWriter) {
		t.writePlaced(w, p, shown, values)
	})
}

// writePlaced writes, for each row of a placing, its number in the copy, its block, and
// the numbers and values that it is shown by.
func (t *takingIn) writePlaced(
	w *copyWriter, p placing, shown []labels, values []*anonymize.Values,
) {
	taken, withheld := make([]int32, p.blocks()), p.withheld(t.r)
	numbers := make([][]int, len(shown))
	for i, d := range t.dictionaries {
		for _, e := range shown[i].distinct {
			numbers[i] = append(numbers[i], d.number(e))
		}
	}
	for row, number := range p.of.numbers {
		block := 0
		if p.partition != nil {
			block = int(p.partition.BlockOf()[p.of.table.TupleOfRow()[row]])
		}
		w.number(int(number))
		w.number(p.first + block)
		for _, q := range t.r.Requirements {
			w.boolean(withheld != nil && withheld[q.Column][block])
		}
		for i := range shown {
			w.number(numbers[i][shown[i].of[block]])
			if v := values[i]; v != nil {
				place := v.Of[block][taken[block]]
				w.textOrNull(v.Texts[place], place > 0)
			} else {
				e := shown[i].entry(block)
				w.textOrNull(e.value, e.valued)
			}
		}
		w.end()
		taken[block]++
	}
}

// withheldColumn says of a row whether the value of which a requirement asks is not shown.
func withheldColumn(i int) string { return fmt.Sprintf(`"tailor withheld %d"`, i) }

// insertion is the statement that shows rows, in random order.
func (t *takingIn) insertion(arriving, placed string) string {
	row := t.chain.table("row")
	number, order := "e."+rowColumn, "e."+rowColumn
	if arriving != wholeCopy || t.r.Scope == "project" {
		// In the order of the copy, the rows of two projects would lie beside each other.
		number = "row_number() OVER (ORDER BY gen_random_uuid()) - 1"
		order = "gen_random_uuid()"
	}
	list := []string{
		"e." + personColumn, "e." + keyColumn, "e." + nthColumn, "p." + blockColumn,
		"p." + blockColumn,
	}
	if t.r.Parent != nil {
		list = append(list, fmt.Sprintf("(SELECT coalesce(max(%s) + 1, 0) FROM %s) + %s", rowColumn, row,
			number))
	}
	for _, name := range t.r.payload() {
		value := "e." + name
		for i, q := range t.r.Requirements {
			if name == ident(q.Column) {
				value = fmt.Sprintf("CASE WHEN NOT p.%s THEN %s END", withheldColumn(i), value)
			}
		}
		if name == t.pseudonym() && arriving != wholeCopy {
			// A number that somebody had in an earlier cohort would tell in which of them he is.
			value = fmt.Sprintf("((SELECT coalesce(max(%[1]s::bigint), 0) FROM %[2]s) + "+
				"e.%[1]s::bigint)::%[3]s", name, row, t.r.Column(t.r.Subject).Type)
		}
		list = append(list, value)
	}
	shown := shownColumns(t.dictionaries)
	for _, name := range shown {
		list = append(list, "p."+name)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM tailor_store.epoch_%d e JOIN %s p USING "+
		"(%s) ORDER BY %s", row,
		commas(append(t.r.rowColumns(), shown...)), commas(list), t.r.Epoch, placed, rowColumn, order)
}
