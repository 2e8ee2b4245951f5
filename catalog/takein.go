package catalog

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// A release lives on while its table changes: a copy of the table is taken in. Who is
// shown keeps block, labels and values. Who comes is shown with a cohort, which is
// partitioned by itself; who leaves, or has another payload, stays as he is shown until
// enough of his block do (docs/decisions/epochs.md).

// takingIn is the work of one transaction.
type takingIn struct {
	*Catalog
	tx           pgx.Tx
	r            *Relation
	audience     string
	chain        *Chain
	personal     bool // a person has one row, and keeps it when what it says changes
	dictionaries []*dictionary
	copied       *copied
	measured     []ecg.StoredRisk // of the table as it is; nil where that has not been looked at
	waiting      waiting
}

// waiting counts the subjects of whom the copy says something else than is shown.
type waiting struct{ arrivals, departures, changes int }

// temporary is a table of this transaction: it is dropped before that ends.
func (t *takingIn) temporary(part string) string { return t.chain.table(part) }

// same is the condition that two rows are one, in two states of the table.
func (t *takingIn) same(a, b string) string {
	if t.personal {
		return fmt.Sprintf("%s.%s = %s.%[2]s", a, personColumn, b)
	}
	return fmt.Sprintf("(%[1]s.%[3]s, %[1]s.%[4]s, %[1]s.%[5]s) = (%[2]s.%[3]s, %[2]s.%[4]s, %[2]s.%[5]s)", a, b, personColumn, keyColumn, nthColumn)
}

// run brings the release up to date. first says that nothing of it is shown yet: then
// all that there is is one cohort, and it is an error where that is too small.
func (t *takingIn) run(ctx context.Context, first bool) (err error) {
	if t.copied == nil {
		if t.copied, err = readCopy(ctx, t.tx, t.r); err != nil {
			return err
		}
	}
	if !first {
		if err := t.follow(ctx); err != nil {
			return fmt.Errorf("labels that follow: %w", err)
		}
		if err := t.part(ctx); err != nil {
			return fmt.Errorf("departures and changes: %w", err)
		}
	}
	if err := t.join(ctx, first); err != nil {
		return err
	}
	return t.assertSafe(ctx)
}

// part lets those go who leave, and shows what has changed, where enough of a block
// have.
func (t *takingIn) part(ctx context.Context) error {
	pending, event, row, of := t.temporary("pending"), t.temporary("event"), t.chain.table("row"), fmt.Sprintf("tailor_store.epoch_%d", t.r.Epoch)
	changed := "false"
	if t.personal {
		changed = fmt.Sprintf("(e.%[1]s >> 32) <> (r.%[1]s >> 32)", keyColumn)
	}
	err := execute(ctx, t.tx,
		fmt.Sprintf(`CREATE TABLE %s AS SELECT r.%s, r.%s, r.%s, r.%s, e.%[2]s IS NULL AS leaves FROM %[6]s r LEFT JOIN %[7]s e ON %[8]s WHERE e.%[2]s IS NULL OR %[9]s`,
			pending, personColumn, keyColumn, nthColumn, blockColumn, row, of, t.same("e", "r"), changed),
		"ANALYZE "+pending,
		fmt.Sprintf(`CREATE TABLE %s (%s integer, leaves boolean, changes boolean, becomes integer)`, event, blockColumn))
	if err != nil {
		return err
	}
	blocks, err := t.affected(ctx)
	if err != nil {
		return err
	}
	next, err := t.nextBlock(ctx)
	if err != nil {
		return err
	}
	needs := t.needs()
	t.waiting = waiting{}
	var events []happening
	for _, b := range blocks {
		h := b.decide(needs)
		if !h.leaves {
			t.waiting.departures += b.subjects(leaving)
		}
		if !h.changes {
			t.waiting.changes += b.subjects(changing)
		}
		if !h.leaves && !h.changes {
			continue
		}
		h.block, h.becomes = b.number, b.number
		if h.changes && h.splits {
			h.becomes, next = next, next+1
		}
		events = append(events, h)
	}
	if len(events) > 0 {
		if err := t.happen(ctx, events); err != nil {
			return err
		}
	}
	return execute(ctx, t.tx, fmt.Sprintf("DROP TABLE %s, %s", pending, event))
}

// happen carries events out.
func (t *takingIn) happen(ctx context.Context, events []happening) error {
	pending, event, row, gone := t.temporary("pending"), t.temporary("event"), t.chain.table("row"), t.chain.table("gone")
	err := copyInto(ctx, t.tx, event, func(w *copyWriter) {
		for _, h := range events {
			w.number(h.block)
			w.boolean(h.leaves)
			w.boolean(h.changes)
			w.number(h.becomes)
			w.end()
		}
	})
	if err != nil {
		return err
	}
	identified := fmt.Sprintf("(r.%[1]s, r.%[2]s, r.%[3]s) = (w.%[1]s, w.%[2]s, w.%[3]s) AND v.%[4]s = w.%[4]s", personColumn, keyColumn, nthColumn, blockColumn)
	statements := []string{
		"ANALYZE " + event,
		fmt.Sprintf(`WITH gone AS (DELETE FROM %s r USING %s w, %s v WHERE %s AND w.leaves AND v.leaves RETURNING r.%s, r.%s, r.%s, r.%s)
			INSERT INTO %s SELECT gone.*, %d FROM gone`, row, pending, event, identified, personColumn, keyColumn, nthColumn, blockColumn, gone, t.r.Epoch),
	}
	if t.personal {
		// What is shown now is of the copy, except who it is about: labels, and the hash of
		// the quasi-identifiers that they came from. The rows change their places.
		list := []string{"c." + personColumn, fmt.Sprintf("(e.%[1]s & ~4294967295) | (c.%[1]s & 4294967295)", keyColumn), "c." + nthColumn, "c.becomes"}
		if t.r.Parent != nil {
			list = append(list, "c."+rowColumn)
		}
		for _, name := range t.r.payload() {
			from := "e."
			if name == t.pseudonym() {
				from = "c."
			}
			list = append(list, from+name)
		}
		for _, name := range shownColumns(t.dictionaries) {
			list = append(list, "c."+name)
		}
		statements = append(statements, fmt.Sprintf(`WITH c AS (DELETE FROM %s r USING %s w, %s v WHERE %s AND NOT w.leaves AND v.changes RETURNING r.*, v.becomes)
			INSERT INTO %[1]s (%[5]s) SELECT %[6]s FROM c JOIN tailor_store.epoch_%[7]d e USING (%[8]s) ORDER BY gen_random_uuid()`,
			row, pending, event, identified, strings.Join(append(t.r.rowColumns(), shownColumns(t.dictionaries)...), ", "), strings.Join(list, ", "), t.r.Epoch, personColumn))
	}
	return execute(ctx, t.tx, statements...)
}

// pseudonym is the column that shows a number in place of the subject, quoted; "" for none.
func (t *takingIn) pseudonym() string {
	for i := range t.r.Columns {
		if t.r.Columns[i].Pseudonym {
			return ident(t.r.Columns[i].Name)
		}
	}
	return ""
}

// nextBlock is a number above those of all blocks that there are and were.
func (t *takingIn) nextBlock(ctx context.Context) (next int, err error) {
	err = t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce(max(b) + 1, 0) FROM (SELECT max(%[1]s) AS b FROM %[2]s UNION ALL SELECT max(%[1]s) FROM %[3]s) q`,
		blockColumn, t.chain.table("row"), t.chain.table("gone"))).Scan(&next)
	return next, err
}

// placing is a group of rows of the copy with the block that each of its tuples goes to.
type placing struct {
	cohort    int
	of        *cohort
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
	err := execute(ctx, t.tx,
		fmt.Sprintf(`CREATE TABLE %s AS SELECT e.%s, e.%s, CASE WHEN g.%[3]s IS NULL THEN 0
				ELSE dense_rank() OVER (PARTITION BY g.%[3]s IS NULL ORDER BY g.%[4]s, g.epoch) END::integer AS cohort
			FROM tailor_store.epoch_%[5]d e LEFT JOIN %[6]s r ON %[7]s LEFT JOIN %[8]s g ON %[9]s WHERE r.%[3]s IS NULL`,
			arriving, rowColumn, personColumn, blockColumn, t.r.Epoch, t.chain.table("row"), t.same("e", "r"), t.chain.table("gone"), t.same("e", "g")),
		"ANALYZE "+arriving)
	if err != nil {
		return err
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT cohort, count(DISTINCT %s) FROM %s GROUP BY 1 ORDER BY 1", personColumn, arriving))
	if err != nil {
		return err
	}
	var cohorts []int
	var number, subjects int
	_, err = pgx.ForEachRow(rows, []any{&number, &subjects}, func() error {
		least := t.r.K
		if number == newcomers {
			least = t.r.cohortSize()
		}
		if subjects >= least {
			cohorts = append(cohorts, number)
		} else {
			t.waiting.arrivals += subjects
		}
		return nil
	})
	if err != nil {
		return err
	}
	var placings []placing
	next, err := t.nextBlock(ctx)
	if err != nil {
		return err
	}
	for _, number := range cohorts {
		p, err := t.place(ctx, arriving, number)
		if isUnmet(err) {
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
	if len(placings) > 0 {
		if err := t.admit(ctx, arriving, placings); err != nil {
			return err
		}
		err := execute(ctx, t.tx, fmt.Sprintf("DELETE FROM %s g USING tailor_store.epoch_%d e JOIN %s a USING (%s) WHERE %s AND a.cohort = ANY ('{%s}')",
			t.chain.table("gone"), t.r.Epoch, arriving, rowColumn, t.same("e", "g"), numbersOf(placings)))
		if err != nil {
			return err
		}
	}
	return execute(ctx, t.tx, "DROP TABLE "+arriving)
}

// begin shows the whole copy for the first time.
func (t *takingIn) begin(ctx context.Context) error {
	p, err := t.place(ctx, wholeCopy, newcomers)
	if err != nil {
		return err
	}
	if p.of.table != nil {
		t.measured = ecg.StoredRisks(ctx, p.of.table, t.r.K)
	}
	return t.admit(ctx, wholeCopy, []placing{p})
}

func numbersOf(placings []placing) string {
	var numbers []string
	for _, p := range placings {
		numbers = append(numbers, strconv.Itoa(p.cohort))
	}
	return strings.Join(numbers, ", ")
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
	of, err := t.copied.cohort(ctx, t.tx, t.r, arriving, number)
	if err != nil {
		return placing{}, err
	}
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
	if p.partition, err = ecg.MakeRoot(ctx, of.table, t.r.rootPlan(t.audience, of)); err != nil {
		return p, err
	}
	log.Info("made a root", "blocks", p.partition.Blocks(), "smallest", p.partition.MinBlock(), "duration", time.Since(started))
	return p, nil
}

// entries are what each block of a placing is shown by, [dimension][block].
func (p placing) entries(dictionaries []*dictionary) [][]entry {
	out := make([][]entry, len(dictionaries))
	for i, d := range dictionaries {
		h := p.of.table.Columns()[i].Hierarchy
		known := make(map[anonymize.Node]entry)
		for block := range uint32(p.partition.Blocks()) {
			node := p.partition.Cover(block, i)
			e, ok := known[node]
			if !ok {
				e = entryOf(d.column, h, node)
				known[node] = e
			}
			out[i] = append(out[i], e)
		}
	}
	return out
}

// admit shows rows by the blocks that they are placed in.
func (t *takingIn) admit(ctx context.Context, arriving string, placings []placing) error {
	all := make([][][]entry, len(placings))
	fits := true
	for i, p := range placings {
		if p.partition == nil {
			continue
		}
		all[i] = p.entries(t.dictionaries)
		for n, d := range t.dictionaries {
			fits = d.add(all[i][n]) && fits
		}
	}
	switch {
	case arriving == wholeCopy:
		if err := createTables(ctx, t.tx, t.r, t.chain, t.dictionaries); err != nil {
			return err
		}
	case !fits:
		if err := t.renew(ctx, t.r); err != nil {
			return err
		}
	}
	if err := storeEntries(ctx, t.tx, t.chain, t.dictionaries); err != nil {
		return err
	}
	placed := t.temporary("placed")
	numbers := make([]string, len(t.dictionaries))
	for i, d := range t.dictionaries {
		numbers[i] = d.own("number") + " " + d.numberType()
	}
	err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", placed, strings.Join(append([]string{
		"cohort integer", tupleColumn + " integer", blockColumn + " integer"}, numbers...), ", ")))
	if err != nil {
		return err
	}
	err = copyInto(ctx, t.tx, placed, func(w *copyWriter) {
		for i, p := range placings {
			if p.partition == nil {
				w.number(p.cohort)
				w.number(0)
				w.number(p.first)
				w.end()
				continue
			}
			blockOf := p.partition.BlockOf()
			for tuple, stored := range p.of.stored {
				block := int(blockOf[tuple])
				w.number(p.cohort)
				w.number(int(stored))
				w.number(p.first + block)
				for n, d := range t.dictionaries {
					w.number(d.number(all[i][n][block]))
				}
				w.end()
			}
		}
	})
	if err != nil {
		return err
	}
	return execute(ctx, t.tx, "ANALYZE "+placed, t.insertion(arriving, placed), "DROP TABLE "+placed)
}

// insertion is the statement that shows rows, in random order.
func (t *takingIn) insertion(arriving, placed string) string {
	row := t.chain.table("row")
	from := fmt.Sprintf("tailor_store.epoch_%d e JOIN %s p USING (%s)", t.r.Epoch, placed, tupleColumn)
	number, order := "e."+rowColumn, "e."+rowColumn
	if arriving != wholeCopy {
		from = fmt.Sprintf("tailor_store.epoch_%d e JOIN %s a USING (%s) JOIN %s p USING (cohort, %s)", t.r.Epoch, arriving, rowColumn, placed, tupleColumn)
	}
	if arriving != wholeCopy || t.r.Scope == "project" {
		// In the order of the copy, the rows of two projects would lie beside each other.
		number = "row_number() OVER (ORDER BY gen_random_uuid()) - 1"
		order = "gen_random_uuid()"
	}
	list := []string{"e." + personColumn, "e." + keyColumn, "e." + nthColumn, "p." + blockColumn}
	if t.r.Parent != nil {
		list = append(list, fmt.Sprintf("(SELECT coalesce(max(%s) + 1, 0) FROM %s) + %s", rowColumn, row, number))
	}
	for _, name := range t.r.payload() {
		value := "e." + name
		if name == t.pseudonym() && arriving != wholeCopy {
			// Who has a number keeps it; others get one above those that there are.
			subject := t.r.Column(t.r.Subject)
			value = fmt.Sprintf("coalesce(k.%[1]s, ((SELECT coalesce(max(%[1]s::bigint), 0) FROM %[2]s) + e.%[1]s::bigint)::%[3]s)", name, row, subject.Type)
			from += fmt.Sprintf(" LEFT JOIN (SELECT DISTINCT ON (%[1]s) %[1]s, %[2]s FROM %[3]s ORDER BY %[1]s) k ON k.%[1]s = e.%[1]s", personColumn, name, row)
		}
		list = append(list, value)
	}
	shown, joins := t.chain.shownFrom(t.dictionaries)
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s%s ORDER BY %s", row,
		strings.Join(append(t.r.rowColumns(), shownColumns(t.dictionaries)...), ", "), strings.Join(append(list, shown...), ", "), from, joins, order)
}
