package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
	keyed        bool // a row goes on when what it says changes
	oneRow       bool // a person has one
	dictionaries []*dictionary
	copied       *copied
	measured     []ecg.StoredRisk // of the table as it is; nil where that has not been looked at
	waiting      waiting
	slot         *int // of tailor.progress; nil where all are taken
}

// waiting counts the subjects of whom the copy says something else than is shown.
type waiting struct{ arrivals, departures, changes int }

// Phases of tailor.progress, by their places in tailor.phases().
const (
	makingBlocks   = 9
	writingRelease = 10
)

// tell says in tailor.progress what is being done.
func (t *takingIn) tell(ctx context.Context, phase int) error {
	if phase == makingBlocks {
		if err := t.tx.QueryRow(ctx, `SELECT tailor.start_progress($1::oid::regclass)`, t.r.OID).Scan(&t.slot); err != nil {
			return err
		}
	}
	_, err := t.tx.Exec(ctx, `CALL tailor.note_progress($1, $2::oid::regclass, $3)`, t.slot, t.r.OID, phase)
	return err
}

// temporary is a table of this transaction: it is dropped before that ends.
func (t *takingIn) temporary(part string) string { return t.chain.table(part) }

// same is the condition that two rows are one, in two states of the table.
func (t *takingIn) same(a, b string) string {
	if t.keyed {
		return fmt.Sprintf("(%[1]s.%[3]s, %[1]s.%[4]s) = (%[2]s.%[3]s, %[2]s.%[4]s)", a, b, personColumn, nthColumn)
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
	pending := t.temporary("pending")
	changed := "false"
	if t.keyed {
		changed = fmt.Sprintf("(e.%[1]s >> 32) <> (r.%[1]s >> 32)", keyColumn)
	}
	err := execute(ctx, t.tx,
		fmt.Sprintf(`CREATE TABLE %s AS SELECT r.%s, r.%s, r.%s, r.%s, e.%[2]s IS NULL AS leaves FROM %[6]s r LEFT JOIN tailor_store.epoch_%[7]d e ON %[8]s WHERE e.%[2]s IS NULL OR %[9]s`,
			pending, personColumn, keyColumn, nthColumn, blockColumn, t.chain.table("row"), t.r.Epoch, t.same("e", "r"), changed),
		"ANALYZE "+pending)
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
	departures, changes := make(map[int64]bool), make(map[int64]bool) // who waits
	var acts []act
	for _, b := range blocks {
		h := b.decide(needs)
		for i := range b.members {
			m := &b.members[i]
			if m.leaves && !h.leaves {
				departures[m.person] = true
			}
			for column, what := range m.changes {
				if what != unchanged && !h.columns[column] {
					changes[m.person] = true
				}
			}
		}
		if h.any() {
			var more []act
			more, next = b.acts(h, next)
			acts = append(acts, more...)
		}
	}
	t.waiting.departures, t.waiting.changes = len(departures), len(changes)
	if len(acts) > 0 {
		if err := t.happen(ctx, acts); err != nil {
			return err
		}
	}
	return execute(ctx, t.tx, "DROP TABLE "+pending)
}

// act is what happens to a row: it goes, or is shown otherwise in some columns.
type act struct {
	*member
	happening
	block, class int // that it has then
}

// acts carry out what happens to a block. Rows to which nothing happens stay as they
// are; to whom another thing happens, those are another block. next is a free number.
func (b *block) acts(h happening, next int) ([]act, int) {
	var out []act
	blocks, classes := make(map[outcome]int), make(map[string]int)
	number := func() int { next++; return next - 1 }
	for i := range b.members {
		m := &b.members[i]
		o := h.of(m)
		if o == (outcome{}) {
			continue
		}
		if _, known := blocks[o]; !known {
			blocks[o] = number()
		}
		within := fmt.Sprint(o, m.class)
		if _, known := classes[within]; !known {
			classes[within] = number()
		}
		out = append(out, act{m, h, blocks[o], classes[within]})
	}
	return out, next
}

// happen carries acts out.
func (t *takingIn) happen(ctx context.Context, acts []act) error {
	acting, row := t.temporary("acting"), t.chain.table("row")
	followed := t.followed()
	columns := []string{personColumn + " bigint", keyColumn + " bigint", nthColumn + " bigint", "leaves boolean", "block integer", "class integer"}
	for i := range followed {
		columns = append(columns, fmt.Sprintf("changes_%d boolean", i))
	}
	if err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", acting, commas(columns))); err != nil {
		return err
	}
	err := copyInto(ctx, t.tx, acting, func(w *copyWriter) {
		for _, a := range acts {
			w.number(int(a.person))
			w.number(int(a.key))
			w.number(int(a.nth))
			w.boolean(a.member.leaves)
			w.number(a.block)
			w.number(a.class)
			for i := range followed {
				w.boolean(!a.member.leaves && a.columns[i] && a.changes[i] != unchanged)
			}
			w.end()
		}
	})
	if err != nil {
		return err
	}
	taken := fmt.Sprintf("DELETE FROM %s r USING %s a WHERE (r.%[3]s, r.%[4]s, r.%[5]s) = (a.%[3]s, a.%[4]s, a.%[5]s) AND", row, acting, personColumn, keyColumn, nthColumn)
	var before, beforeChange []string
	for i, name := range followed {
		number := t.r.Columns[slices.IndexFunc(t.r.Columns, func(c Column) bool { return ident(c.Name) == name })].Number
		before = append(before, fmt.Sprintf("(%d, %s, true)", number, hashOf("c."+name)))
		beforeChange = append(beforeChange, fmt.Sprintf("(%d, %s, c.changes_%d)", number, hashOf("c."+name), i))
	}
	remember := func(values []string) string {
		if len(values) == 0 {
			return ""
		}
		return fmt.Sprintf(", p AS (INSERT INTO %s SELECT c.%s, c.%s, v.number, v.hash, %d FROM c CROSS JOIN LATERAL (VALUES %s) v (number, hash, changes) WHERE v.changes)",
			t.chain.table("past"), personColumn, nthColumn, t.r.Epoch, commas(values))
	}
	statements := []string{
		"ANALYZE " + acting,
		fmt.Sprintf(`WITH c AS (%s a.leaves RETURNING r.*, a.block, a.class)%s INSERT INTO %s SELECT %s, %s, %s, block, class, %d FROM c`,
			taken, remember(before), t.chain.table("gone"), personColumn, keyColumn, nthColumn, t.r.Epoch),
	}
	if len(followed) > 0 {
		// The hash of the quasi-identifiers stays that of those which the labels came from.
		list := []string{
			"q." + personColumn, fmt.Sprintf("(hashtext(ROW(%s)::text COLLATE \"C\")::bigint << 32) | (q.%s & 4294967295)", qualified("q.", followed), keyColumn),
			"q." + nthColumn, "q.block", "q.class",
		}
		if t.r.Parent != nil {
			list = append(list, "q."+rowColumn)
		}
		list = append(append(list, "q."+strings.Join(t.r.payload(), ", q.")), shownColumns(t.dictionaries)...)
		inner := []string{"c." + personColumn, "c." + keyColumn, "c." + nthColumn, "c.block", "c.class"}
		if t.r.Parent != nil {
			inner = append(inner, "c."+rowColumn)
		}
		for _, name := range t.r.payload() {
			if i := slices.Index(followed, name); i >= 0 {
				inner = append(inner, fmt.Sprintf("CASE WHEN c.changes_%d THEN e.%[2]s ELSE c.%[2]s END AS %[2]s", i, name))
			} else {
				inner = append(inner, "c."+name)
			}
		}
		inner = append(inner, shownColumns(t.dictionaries)...)
		changes := make([]string, len(followed))
		for i := range followed {
			changes[i] = fmt.Sprintf("a.changes_%d", i)
		}
		statements = append(statements, fmt.Sprintf(`WITH c AS (%s NOT a.leaves RETURNING r.*, a.block, a.class, %s)%s
			INSERT INTO %s (%s) SELECT %s FROM (SELECT %s FROM c JOIN tailor_store.epoch_%d e ON %s) q ORDER BY gen_random_uuid()`,
			taken, commas(changes), remember(beforeChange), row, commas(append(t.r.rowColumns(), shownColumns(t.dictionaries)...)),
			commas(list), commas(inner), t.r.Epoch, t.same("e", "c")))
	}
	return execute(ctx, t.tx, append(statements, "DROP TABLE "+acting)...)
}

// qualified is a list of columns of a relation.
func qualified(of string, columns []string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = of + c
	}
	return commas(out)
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

// nextBlock is a number above those of all blocks and classes that there are and were.
func (t *takingIn) nextBlock(ctx context.Context) (next int, err error) {
	err = t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce(max(b) + 1, 0) FROM (
			SELECT max(greatest(%[1]s, %[2]s)) AS b FROM %[3]s UNION ALL SELECT max(greatest(%[1]s, %[2]s)) FROM %[4]s) q`,
		blockColumn, classColumn, t.chain.table("row"), t.chain.table("gone"))).Scan(&next)
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
		fmt.Sprintf(`CREATE TABLE %s AS SELECT e.%s, e.%s, e.%[10]s, CASE WHEN g.%[3]s IS NULL THEN 0
				ELSE dense_rank() OVER (PARTITION BY g.%[3]s IS NULL ORDER BY g.%[4]s) END::integer AS cohort
			FROM tailor_store.epoch_%[5]d e LEFT JOIN %[6]s r ON %[7]s LEFT JOIN %[8]s g ON %[9]s WHERE r.%[3]s IS NULL`,
			arriving, rowColumn, personColumn, classColumn, t.r.Epoch, t.chain.table("row"), t.same("e", "r"), t.chain.table("gone"), t.same("e", "g"), nthColumn),
		"ANALYZE "+arriving)
	if err != nil {
		return err
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT cohort, count(DISTINCT %s) FROM %s GROUP BY 1 ORDER BY 1", personColumn, arriving))
	if err != nil {
		return err
	}
	sizes := make(map[int]int)
	var number, subjects int
	_, err = pgx.ForEachRow(rows, []any{&number, &subjects}, func() error { sizes[number] = subjects; return nil })
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
	var cohorts []int
	for _, number := range slices.Sorted(maps.Keys(sizes)) {
		if number == newcomers && sizes[number] >= t.r.cohortSize() || back[number] {
			cohorts = append(cohorts, number)
		} else {
			t.waiting.arrivals += sizes[number]
		}
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
	if err := t.tell(ctx, writingRelease); err != nil {
		return err
	}
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
		"cohort integer", tupleColumn + " integer", blockColumn + " integer",
	}, numbers...), ", ")))
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
	list := []string{"e." + personColumn, "e." + keyColumn, "e." + nthColumn, "p." + blockColumn, "p." + blockColumn}
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
