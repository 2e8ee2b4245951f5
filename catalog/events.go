package catalog

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// member is a row of a block of which something may become visible.
type member struct {
	person, key int64
	nth         int64
	class       int  // those with the same trajectory so far have one
	leaves      bool // the copy has the row no more
	// changes says, for each column of the payload, what the copy has in place of what is
	// shown: unchanged, unseen, or which of the values that were shown before.
	changes []int
	blank   []bool // of all of its class NULL is shown in the column
	// The sensitive values that models look at, as hashes: as they are shown, and as
	// the copy has them.
	shown, now []int64
}

// What the copy has in a column of the payload. A value that was shown before is told by
// how many others have been shown since.
const (
	unchanged = iota
	unseen
	shownBefore
)

// everybody stands for all classes of a block.
const everybody = -1

// block is a block of which some rows leave or change.
type block struct {
	number  int
	members []member
}

// happening is what becomes visible of a block: that rows are gone, and what changed in
// some columns.
type happening struct {
	leaves  bool
	columns []bool
}

func (h happening) any() bool { return h.leaves || slices.Contains(h.columns, true) }

// outcome is what happens to a row: all that can be told of it.
type outcome struct {
	gone    bool
	changes string // in the columns of which changes are shown
}

func (h happening) of(m *member) outcome {
	if m.leaves && h.leaves {
		return outcome{gone: true}
	}
	o := outcome{}
	if m.changed(h) {
		visible := make([]int, len(m.changes))
		for i, what := range m.changes {
			if h.columns[i] {
				visible[i] = what
			}
		}
		o.changes = fmt.Sprint(visible)
	}
	return o
}

// changed says whether a row is shown otherwise by what happens.
func (m *member) changed(h happening) bool {
	for i, what := range m.changes {
		if what != unchanged && h.columns[i] {
			return true
		}
	}
	return false
}

// then are the sensitive values of a row once what changed in some columns is shown.
func (m *member) then(columns []bool, n needs) []int64 {
	out := slices.Clone(m.shown)
	for i, column := range n.columns {
		if column >= 0 && columns[column] {
			out[i] = m.now[i]
		}
	}
	return out
}

// needs is what each class of people must meet that is told apart by what happened to
// it.
type needs struct {
	subjects int
	share    float64 // the most of a class's rows that one subject with several may own
	models   []anonymize.ValueModel
	codes    []func(hash int64) uint32 // of each model: by which it calls values
	columns  []int                     // of each model: its column's place in the payload
	// blind says that values can be withheld, which nothing then stands for, and late of a model
	// that those of its column can be held back from all of a block ([takingIn.holdBack]).
	blind   bool
	late    map[int]bool
	nothing int64
}

// needs of a relation. A gate that looks at an average is kept where no class is
// smaller than the average may be.
func (t *takingIn) needs() needs {
	n := needs{
		subjects: t.r.K, share: 1, blind: t.r.BlindCuts, late: make(map[int]bool), nothing: t.hashOfNull,
	}
	if t.r.Gate == "average" && t.r.MaxRisk > 0 {
		n.subjects = max(n.subjects, int(math.Ceil(1/t.r.MaxRisk)))
	}
	if !t.oneRow {
		n.share = t.r.MaxShare
	}
	for _, q := range t.r.Requirements {
		n.models = append(n.models, q.model(anonymize.Sensitive{}, t.references[q.Column]))
		n.codes = append(n.codes, t.references.ofHash(q.Column))
		n.columns = append(n.columns, slices.Index(t.followed(), ident(q.Column)))
		n.late[len(n.columns)-1] = slices.Contains(t.late, q.Column)
	}
	return n
}

// in is what is needed of what happens in a block: where something is shown of a column, that
// nothing is shown of those who are left would tell that they have nothing.
func (n needs) in(b *block) needs {
	late := make(map[int]bool)
	for i, column := range n.columns {
		late[i] = n.late[i] && column >= 0 && b.isBlank(column)
	}
	n.late = late
	return n
}

// unveiled is what is needed once something is shown of columns of which nothing is: then it
// is told of those as well to whom nothing happens that they have nothing.
func (n needs) unveiled(b *block, columns []bool) (needs, func(column int) bool) {
	late := make(map[int]bool)
	fresh := make([]bool, len(columns))
	for column := range columns {
		fresh[column] = columns[column] && b.isBlank(column) &&
			slices.ContainsFunc(b.members, func(m member) bool { return m.changes[column] != unchanged })
	}
	for i, column := range n.columns {
		late[i] = n.late[i] && !(column >= 0 && fresh[column])
	}
	n.late = late
	return n, func(column int) bool { return column >= 0 && fresh[column] }
}

// class is a set of rows with the sensitive values that are shown of them.
type class struct {
	rows   map[int64]int // by subject
	all    int
	values []counted
}

func (c *class) add(person int64, values []int64) {
	if c.rows == nil {
		c.rows, c.values = make(map[int64]int), make([]counted, len(values))
		for i := range values {
			c.values[i] = make(counted)
		}
	}
	c.rows[person]++
	c.all++
	for i, v := range values {
		c.values[i].add(v, person)
	}
}

// meets says whether nobody of a class can be told from the others. A class without
// rows has nobody.
func (n needs) meets(c *class) bool {
	if c.all == 0 {
		return true
	}
	if len(c.rows) < n.subjects {
		return false
	}
	for _, rows := range c.rows {
		if rows > 1 && float64(rows) > n.share*float64(c.all) {
			return false
		}
	}
	return n.meetsModels(c, func(int) bool { return true })
}

// meetsModels says so of the models of some columns, by their places in the payload.
func (n needs) meetsModels(c *class, asked func(column int) bool) bool {
	for i := range n.models {
		if asked(n.columns[i]) && !n.meetsModel(c, i) {
			return false
		}
	}
	return true
}

// meetsModel says so of one of the models.
func (n needs) meetsModel(c *class, i int) bool {
	without := n.blind || len(c.values[i]) == 1 && n.late[i]
	return c.values[i].meets(n.models[i], n.codes[i], func(value int64) bool {
		return without && value == n.nothing
	})
}

// allows says whether something may happen to a block. Whoever knows of everybody when
// he came and went, and sees what of the payload changes when, can tell apart those to
// whom another thing happens: each such class meets what a block meets, by the values
// that were shown and by those that will be. The same holds within each class that
// could be told apart before. One to all of which the same happens may be few, but what
// becomes visible of it meets the models, too.
func (b *block) allows(h happening, n needs) bool {
	type told struct {
		before, after class
		like          *member // one of them
	}
	all, within := make(map[outcome]*told), make(map[int]map[outcome]*told)
	for i := range b.members {
		m := &b.members[i]
		o := h.of(m)
		if within[m.class] == nil {
			within[m.class] = make(map[outcome]*told)
		}
		then := m.shown
		if !o.gone {
			then = m.then(h.columns, n)
		}
		for _, of := range []map[outcome]*told{all, within[m.class]} {
			if of[o] == nil {
				of[o] = &told{like: m}
			}
			of[o].before.add(m.person, m.shown)
			of[o].after.add(m.person, then)
		}
	}
	safe := func(of map[outcome]*told) bool {
		for o, c := range of {
			if !n.meets(&c.before) || !o.gone && !n.meets(&c.after) {
				return false
			}
		}
		return true
	}
	for _, of := range within {
		if len(of) > 1 && !safe(of) {
			return false
		}
		for o, c := range of {
			becomesVisible := func(column int) bool {
				return column >= 0 && h.columns[column] && c.like.changes[column] != unchanged
			}
			if !o.gone && !n.meetsModels(&c.after, becomesVisible) {
				return false
			}
		}
	}
	return safe(all) && b.mayUnveil(h, n)
}

// mayUnveil says whether those who stay meet the models of columns of which nothing is shown, and
// of which something is to be.
func (b *block) mayUnveil(h happening, n needs) bool {
	unveiled, fresh := n.unveiled(b, h.columns)
	if !slices.ContainsFunc(n.columns, fresh) {
		return true
	}
	rest := map[int]*class{everybody: {}} // who stays, by class
	for i := range b.members {
		m := &b.members[i]
		if h.of(m).gone {
			continue
		}
		if rest[m.class] == nil {
			rest[m.class] = &class{}
		}
		then := m.then(h.columns, n)
		rest[everybody].add(m.person, then)
		rest[m.class].add(m.person, then)
	}
	for _, c := range rest {
		if c.all > 0 && !unveiled.meetsModels(c, fresh) {
			return false
		}
	}
	return true
}

// decide chooses what becomes visible of a block: departures, and columns in the order of
// how many have changed in them, as far as that is allowed.
func (b *block) decide(n needs) happening {
	columns := 0
	for i := range b.members {
		columns = max(columns, len(b.members[i].changes))
	}
	changed := make([]int, columns)
	leaves := false
	for i := range b.members {
		leaves = leaves || b.members[i].leaves
		for column, what := range b.members[i].changes {
			if what != unchanged {
				changed[column]++
			}
		}
	}
	h := happening{columns: make([]bool, columns)}
	leave := func() {
		if leaves && !h.leaves {
			h.leaves = true
			h.leaves = b.allows(h, n)
		}
	}
	order := make([]int, columns)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(changed[y], changed[x]) })
	show := func(blank bool) {
		for _, column := range order {
			if changed[column] > 0 && b.isBlank(column) == blank {
				h.columns[column] = true
				h.columns[column] = b.allows(h, n)
			}
		}
	}
	leave()
	show(false)
	leave()
	if !b.waits(h) { // what is new may say the same as a column of which a change waits
		show(true)
	}
	return h
}

// isBlank says whether nothing is shown of a column.
func (b *block) isBlank(column int) bool {
	return !slices.ContainsFunc(b.members, func(m member) bool {
		return len(m.blank) == 0 || !m.blank[column]
	})
}

// waits says whether somebody's departure, or change of a column of which something is shown,
// does not happen.
func (b *block) waits(h happening) bool {
	for i := range b.members {
		m := &b.members[i]
		if m.leaves && !h.leaves {
			return true
		}
		for column, what := range m.changes {
			if what != unchanged && !h.columns[column] && !b.isBlank(column) {
				return true
			}
		}
	}
	return false
}

// hashOf is an expression for a hash of a value.
func hashOf(value string) string {
	return fmt.Sprintf("hashtextextended(coalesce('=' || %s::text, ''), 0)", value)
}

// hashOf is an expression for a hash of what a column of the payload, by its quoted name, says:
// numbers that are equal are one value, however many zeros they end in.
func (r *Relation) hashOf(of, name string) string {
	value := of + name
	c := r.stored(name)
	if c != nil && strings.HasPrefix(c.Type, "numeric") && !strings.HasSuffix(c.Type, "[]") {
		value = fmt.Sprintf("trim_scale(%s)", value)
	}
	return hashOf(value)
}

// affected reads the blocks of which some rows leave or change.
func (t *takingIn) affected(ctx context.Context) ([]*block, error) {
	past, err := t.past(ctx, t.temporary("pending"))
	if err != nil {
		return nil, err
	}
	list := []string{
		"r." + blockColumn, "r." + personColumn, "r." + keyColumn, "r." + nthColumn, "r." + classColumn,
		"CASE WHEN w.leaves IS NULL THEN 0 WHEN w.leaves THEN 1 ELSE 2 END",
	}
	from := fmt.Sprintf("%[1]s r LEFT JOIN %[2]s w ON (w.%[3]s, w.%[4]s, w.%[5]s) = (r.%[3]s, "+
		"r.%[4]s, r.%[5]s) LEFT JOIN tailor_store.epoch_%[6]d e ON NOT w.leaves AND %[7]s",
		t.chain.table("row"), t.temporary("pending"), personColumn, keyColumn, nthColumn, t.r.Epoch,
		t.same("e", "r"))
	for _, q := range t.r.Requirements {
		list = append(list, t.r.hashOf("r.", ident(q.Column)),
			fmt.Sprintf("CASE WHEN w.leaves THEN 0 ELSE %s END", t.r.hashOf("e.", ident(q.Column))))
	}
	followed := t.followed()
	for _, column := range followed {
		list = append(list, fmt.Sprintf("bool_and(r.%s IS NULL) OVER (PARTITION BY r.%s)::integer",
			column, classColumn))
	}
	for _, column := range followed {
		for _, of := range []string{"r.", "e."} {
			list = append(list, fmt.Sprintf("CASE WHEN NOT w.leaves THEN %s ELSE 0 END",
				t.r.hashOf(of, column)))
		}
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE r.%[3]s IN (SELECT %[3]s FROM "+
		"%[4]s) ORDER BY 1",
		commas(list), from, blockColumn, t.temporary("pending")))
	if err != nil {
		return nil, err
	}
	var out []*block
	values := make([]int64, len(list))
	into := make([]any, len(list))
	for i := range values {
		into[i] = &values[i]
	}
	_, err = pgx.ForEachRow(rows, into, func() error {
		if number := int(values[0]); len(out) == 0 || out[len(out)-1].number != number {
			out = append(out, &block{number: number})
		}
		m := member{
			person: values[1], key: values[2], nth: values[3], class: int(values[4]),
			leaves: values[5] == 1,
		}
		rest := values[6:]
		for range t.r.Requirements {
			m.shown, m.now = append(m.shown, rest[0]), append(m.now, rest[1])
			if values[5] != 2 {
				m.now[len(m.now)-1] = rest[0]
			}
			rest = rest[2:]
		}
		var stay []string
		for i, column := range followed {
			m.blank = append(m.blank, rest[i] == 1)
			if rest[i] == 1 && slices.Contains(t.withholdable, column) {
				stay = append(stay, column)
			}
		}
		for i, q := range t.r.Requirements {
			if slices.Contains(stay, ident(q.Column)) {
				m.now[i] = m.shown[i]
			}
		}
		rest = rest[len(followed):]
		for column, name := range followed {
			m.changes = append(m.changes, unchanged)
			if values[5] == 2 && rest[0] != rest[1] && !slices.Contains(stay, name) {
				m.changes[column] = past.shownAs(rowKey{m.person, m.nth}, column, rest[1])
			}
			rest = rest[2:]
		}
		b := out[len(out)-1]
		b.members = append(b.members, m)
		return nil
	})
	return out, err
}

// followed are the columns of the payload that a row may show otherwise in another
// copy, quoted.
func (t *takingIn) followed() []string {
	if !t.keyed {
		return nil
	}
	return slices.DeleteFunc(t.r.payload(), func(name string) bool { return name == t.pseudonym() })
}
