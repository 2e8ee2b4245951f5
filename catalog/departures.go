package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// absent is the table that names the rows that are shown and that the protected table
// lacks.
func (t *takingIn) absent() string {
	if t.partial {
		return fmt.Sprintf("tailor_store.absent_%d", t.r.Epoch)
	}
	return t.temporary("absent")
}

// findAbsent looks for these in a whole copy. Another one brings them along.
func (t *takingIn) findAbsent(ctx context.Context) error {
	if t.partial {
		return nil
	}
	return execute(ctx, t.tx, fmt.Sprintf(`CREATE TABLE %s AS SELECT %s FROM %s r
		WHERE NOT EXISTS (SELECT FROM tailor_store.epoch_%d e WHERE %s)`,
		t.absent(), qualified("r.", []string{personColumn, keyColumn, nthColumn}), t.chain.table("row"),
		t.r.Epoch, t.same("e", "r")), "ANALYZE "+t.absent())
}

// part lets those go who leave, and shows what has changed, where enough of a block
// have.
func (t *takingIn) part(ctx context.Context) error {
	pending := t.temporary("pending")
	list := qualified("r.", []string{personColumn, keyColumn, nthColumn, blockColumn})
	compared := fmt.Sprintf("SELECT %s, true AS leaves FROM %s",
		commas([]string{personColumn, keyColumn, nthColumn}), t.absent())
	if t.keyed {
		compared += fmt.Sprintf(" UNION ALL SELECT %s, false FROM tailor_store.epoch_%d",
			commas([]string{personColumn, keyColumn, nthColumn}), t.r.Epoch)
	}
	statement := fmt.Sprintf("CREATE TABLE %s AS SELECT %s, a.leaves FROM %s r JOIN (%s) a ON %s "+
		"WHERE a.leaves OR (a.%[6]s >> 32) <> (r.%[6]s >> 32)",
		pending, list, t.chain.table("row"), compared, t.same("a", "r"), keyColumn)
	if err := execute(ctx, t.tx, statement, "ANALYZE "+pending); err != nil {
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
	ofBlocks := t.needs()
	departures, changes := make(map[int64]bool), make(map[int64]bool) // who waits
	var acts []act
	for _, b := range blocks {
		needs := ofBlocks.in(b)
		if t.r.DeparturesAtOnce {
			var gone []act
			gone, next = b.goAtOnce(needs, next)
			acts = append(acts, gone...)
		}
		h := b.decide(needs)
		if t.r.ChangesAtOnce {
			h = b.changeAtOnce(h, needs)
		}
		t.next.wait(b, h, needs, departures, changes)
		if h.any() {
			var more []act
			more, next = b.acts(h, next, t.r.ChangesAtOnce)
			acts = append(acts, more...)
		}
	}
	t.freeBlock = &next
	t.waiting.departures, t.waiting.changes = len(departures), len(changes)
	if err := t.noteWaiting(ctx, departed, slices.Collect(maps.Keys(departures))); err != nil {
		return err
	}
	if err := t.noteWaiting(ctx, changed, slices.Collect(maps.Keys(changes))); err != nil {
		return err
	}
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
	block, class  int // that it has then
	goes, forGood bool
}

// acts carry out what happens to a block. Rows to which nothing happens stay as they
// are; to whom another thing happens, those are another block, but for changes that
// take effect in place: nobody is told whose those are. next is a free number.
func (b *block) acts(h happening, next int, inPlace bool) ([]act, int) {
	var out []act
	blocks, classes := make(map[outcome]int), make(map[string]int)
	number := func() int { next++; return next - 1 }
	for i := range b.members {
		m := &b.members[i]
		o := h.of(m)
		if o == (outcome{}) {
			continue
		}
		if inPlace && !o.gone {
			out = append(out, act{member: m, happening: h, block: b.number, class: m.class})
			continue
		}
		if _, known := blocks[o]; !known {
			blocks[o] = number()
		}
		within := fmt.Sprint(o, m.class)
		if _, known := classes[within]; !known {
			classes[within] = number()
		}
		a := act{member: m, happening: h, block: blocks[o], class: classes[within], goes: o.gone}
		out = append(out, a)
	}
	return out, next
}

// changesColumn says of a row whether what has changed in a followed column is shown. No
// column of a table has such a name.
func changesColumn(i int) string { return fmt.Sprintf(`"tailor changes %d"`, i) }

// happen carries acts out.
func (t *takingIn) happen(ctx context.Context, acts []act) error {
	acting, row := t.temporary("acting"), t.chain.table("row")
	followed := t.followed()
	columns := []string{
		personColumn + " bigint", keyColumn + " bigint", nthColumn + " bigint", `"tailor goes" boolean`,
		`"tailor with copy" integer`, `"tailor new block" integer`, `"tailor new class" integer`,
	}
	for i := range followed {
		columns = append(columns, changesColumn(i)+" boolean")
	}
	if err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", acting,
		commas(columns))); err != nil {
		return err
	}
	err := copyInto(ctx, t.tx, acting, func(w *copyWriter) {
		for _, a := range acts {
			w.number(int(a.person))
			w.number(int(a.key))
			w.number(int(a.nth))
			w.boolean(a.goes)
			copied := t.r.Epoch
			if a.forGood {
				copied = forGood
			}
			w.number(copied)
			w.number(a.block)
			w.number(a.class)
			for i := range followed {
				w.boolean(!a.goes && a.columns[i] && a.changes[i] != unchanged)
			}
			w.end()
		}
	})
	if err != nil {
		return err
	}
	about := fmt.Sprintf("(r.%[2]s, r.%[3]s, r.%[4]s) IN (SELECT %[2]s, %[3]s, %[4]s FROM %[1]s)",
		acting, personColumn, keyColumn, nthColumn)
	if err := t.touch(ctx, about); err != nil {
		return err
	}
	taken := fmt.Sprintf("DELETE FROM %s r USING %s a WHERE (r.%[3]s, r.%[4]s, r.%[5]s) = (a.%[3]s, "+
		"a.%[4]s, a.%[5]s) AND", row, acting, personColumn, keyColumn, nthColumn)
	var before, beforeChange []string
	for i, name := range followed {
		number := t.r.stored(name).Number
		before = append(before, fmt.Sprintf("(%d, %s, true)", number, t.r.hashOf("c.", name)))
		beforeChange = append(beforeChange, fmt.Sprintf("(%d, %s, c.%s)", number, t.r.hashOf("c.", name),
			changesColumn(i)))
	}
	remember := func(values []string, which string) string {
		if len(values) == 0 {
			return ""
		}
		return fmt.Sprintf(`, p AS (INSERT INTO %s SELECT c.%s, c.%s, v.number, v.hash, %d
				FROM c CROSS JOIN LATERAL (VALUES %s) v (number, hash, changes) WHERE v.changes AND %s)`,
			t.chain.table("past"), personColumn, nthColumn, t.r.Epoch, commas(values), which)
	}
	statements := []string{
		"ANALYZE " + acting,
		fmt.Sprintf(`WITH c AS (%s a."tailor goes"
				RETURNING r.*, a."tailor with copy", a."tailor new block", a."tailor new class")%s
			INSERT INTO %s SELECT %s, %s, %s, "tailor new block", "tailor new class", "tailor with copy"
				FROM c`,
			taken, remember(before, fmt.Sprintf(`c."tailor with copy" <> %d`, forGood)),
			t.chain.table("gone"), personColumn, keyColumn, nthColumn),
	}
	if len(followed) > 0 {
		// The hash of the quasi-identifiers stays that of those which the labels came from.
		list := []string{
			"q." + personColumn, fmt.Sprintf("(hashtext(ROW(%s)::text COLLATE \"C\")::bigint << 32) | "+
				"(q.%s & 4294967295)", qualified("q.", followed), keyColumn),
			"q." + nthColumn, `q."tailor new block"`, `q."tailor new class"`,
		}
		if t.r.Parent != nil {
			list = append(list, "q."+rowColumn)
		}
		list = append(append(list, "q."+strings.Join(t.r.payload(), ", q.")),
			shownColumns(t.dictionaries)...)
		inner := []string{
			"c." + personColumn, "c." + keyColumn, "c." + nthColumn, `c."tailor new block"`,
			`c."tailor new class"`,
		}
		if t.r.Parent != nil {
			inner = append(inner, "c."+rowColumn)
		}
		for _, name := range t.r.payload() {
			if i := slices.Index(followed, name); i >= 0 {
				inner = append(inner, fmt.Sprintf("CASE WHEN c.%s THEN e.%[2]s ELSE c.%[2]s END AS %[2]s",
					changesColumn(i), name))
			} else {
				inner = append(inner, "c."+name)
			}
		}
		inner = append(inner, shownColumns(t.dictionaries)...)
		changes := make([]string, len(followed))
		for i := range followed {
			changes[i] = "a." + changesColumn(i)
		}
		statements = append(statements, fmt.Sprintf(
			`WITH c AS (%s NOT a."tailor goes" RETURNING r.*, a."tailor new block", a."tailor new class",
				%s)%s
			INSERT INTO %s (%s) SELECT %s FROM (SELECT %s FROM c JOIN tailor_store.epoch_%d e ON %s) q
				ORDER BY gen_random_uuid()`,
			taken, commas(changes), remember(beforeChange, "true"), row,
			commas(append(t.r.rowColumns(), shownColumns(t.dictionaries)...)),
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
