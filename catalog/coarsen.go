package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// A stricter policy makes blocks join, and never regroups them: any other line than
// one along which they were shown would tell people apart whom the blocks left together.

// part is a block as it is coarsened: its people, and in each dimension how they are
// shown.
type part struct {
	number int
	into   *part // the part that it has joined
	class  class
	shown  []showing
}

// showing is how a part is shown in a dimension.
type showing struct {
	label  int            // its number, while that stays
	node   anonymize.Node // of the present hierarchy; the root where it has no such label
	found  bool           // it has
	alters bool           // the node is to be shown, and not the label
}

// becomes has a node shown.
func (s *showing) becomes(node anonymize.Node) { s.node, s.found, s.alters = node, true, true }

// alters says whether a part is to be shown in another way.
func (p *part) alters() bool {
	return slices.ContainsFunc(p.shown, func(s showing) bool { return s.alters })
}

// entry is what a part is shown by in a dimension.
func (t *takingIn) entry(p *part, dimension int) entry {
	s, d := p.shown[dimension], t.dictionaries[dimension]
	switch {
	case s.alters:
		return entryOf(d.column, t.copied.columns[dimension].Hierarchy, s.node)
	case s.label == 0:
		return entry{}
	}
	return d.entries[s.label-1]
}

// enter numbers what parts are shown by. It says whether what there is of the release
// has room for that.
func (t *takingIn) enter(parts []*part) bool {
	fits := true
	for i, d := range t.dictionaries {
		var entries []entry
		for _, p := range parts {
			if p.into == nil {
				entries = append(entries, t.entry(p, i))
			}
		}
		fits = d.add(entries) && fits
	}
	return fits
}

// whole is the part that a part has become.
func (p *part) whole() *part {
	for p.into != nil {
		p = p.into
	}
	return p
}

// coarsen has the blocks of a release meet another policy than the one that they were
// made under: blocks that fall short join others, and labels of hierarchies that have
// changed are those of the present ones.
func (t *takingIn) coarsen(ctx context.Context, was *Relation) error {
	if len(t.copied.columns) < len(t.dictionaries) {
		return nil // the copy has nobody: those who are shown leave
	}
	parts, err := t.parts(ctx)
	if err != nil {
		return err
	}
	changed, err := t.label(ctx, was, parts)
	if err != nil {
		return err
	}
	if err := t.poolMargins(ctx, was, changed); err != nil {
		return err
	}
	needs := t.needs()
	joining{takingIn: t, needs: needs}.run(parts)
	if t.r.recoding() == ecg.FullDomain {
		t.level(parts)
	}
	for _, p := range parts {
		if p.into == nil && !needs.meets(&p.class) {
			return &anonymize.UnmetError{Requirement: "the policy"}
		}
	}
	return t.reshow(ctx, parts, changed)
}

// reshow writes what is shown of the rows of parts that have changed. changed are the
// dimensions that have another hierarchy.
func (t *takingIn) reshow(ctx context.Context, parts []*part, changed []int) error {
	if !t.enter(parts) {
		if err := t.renew(ctx, t.r); err != nil {
			return err
		}
	}
	if err := storeEntries(ctx, t.tx, t.chain, t.dictionaries); err != nil {
		return err
	}
	placed, row := t.temporary("placed"), t.chain.table("row")
	columns := []string{blockColumn + " integer", "becomes integer"}
	sets := []string{blockColumn + " = p.becomes"}
	for _, d := range t.dictionaries {
		columns = append(columns, d.own("number")+" "+d.numberType())
		sets = append(sets, fmt.Sprintf("%[1]s = p.%[1]s", d.own("number")))
		if d.column.Middle {
			sets = append(sets, fmt.Sprintf("%s = (SELECT value::%s FROM %s WHERE dimension = %d AND "+
				"number = p.%s)", d.own("value"), d.column.ReleaseType(), t.chain.table("entry"),
				d.column.Number, d.own("number")))
		}
	}
	if err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", placed,
		commas(columns))); err != nil {
		return err
	}
	err := copyInto(ctx, t.tx, placed, func(w *copyWriter) {
		for _, p := range parts {
			whole := p.whole()
			if p == whole && !p.alters() {
				continue
			}
			w.number(p.number)
			w.number(whole.number)
			for i, d := range t.dictionaries {
				w.number(d.number(t.entry(whole, i)))
			}
			w.end()
		}
	})
	if err != nil {
		return err
	}
	err = execute(ctx, t.tx, "ANALYZE "+placed, fmt.Sprintf("UPDATE %s r SET %s FROM %s p WHERE "+
		"r.%[4]s = p.%[4]s", row, commas(sets), placed, blockColumn))
	if err != nil {
		return err
	}
	altered := slices.ContainsFunc(parts, func(p *part) bool { return p.into != nil || p.alters() })
	for i, d := range t.dictionaries {
		switch {
		case d.column.Middle:
		case slices.Contains(changed, i):
			err = t.redraw(ctx, parts, i)
		case altered:
			err = t.reshuffle(ctx, i)
		}
		if err != nil {
			return err
		}
	}
	return execute(ctx, t.tx, "DROP TABLE "+placed)
}

// parts reads the blocks of the release, with the nodes of their labels.
func (t *takingIn) parts(ctx context.Context) ([]*part, error) {
	columns := []string{blockColumn, personColumn}
	for _, d := range t.dictionaries {
		columns = append(columns, d.own("number"))
	}
	for _, q := range t.r.Requirements {
		columns = append(columns, t.r.hashOf("", ident(q.Column)))
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY 1", commas(columns),
		t.chain.table("row")))
	if err != nil {
		return nil, err
	}
	find := t.finders()
	var out []*part
	values := make([]int64, len(columns))
	into := make([]any, len(values))
	for i := range values {
		into[i] = &values[i]
	}
	dimensions := len(t.dictionaries)
	_, err = pgx.ForEachRow(rows, into, func() error {
		number := int(values[0])
		if len(out) == 0 || out[len(out)-1].number != number {
			p := &part{number: number}
			for i := range dimensions {
				p.shown = append(p.shown, t.showing(i, int(values[2+i]), find[i]))
			}
			out = append(out, p)
		}
		out[len(out)-1].class.add(values[1], values[2+dimensions:])
		return nil
	})
	return out, err
}

// finders find, for each dimension, the node of the present hierarchy that has a label.
func (t *takingIn) finders() []func(label string) (anonymize.Node, bool) {
	var out []func(string) (anonymize.Node, bool)
	for i := range t.dictionaries {
		h := t.copied.columns[i].Hierarchy
		nodes := make(map[string]anonymize.Node)
		for level := range h.Height() {
			for group := range uint32(h.Groups(level)) {
				node := anonymize.Node{Level: level, Group: group}
				if _, known := nodes[h.Label(node)]; !known {
					nodes[h.Label(node)] = node
				}
			}
		}
		out = append(out, func(label string) (anonymize.Node, bool) {
			node, found := nodes[label]
			return node, found
		})
	}
	return out
}

// showing is how a dimension shows a label by its number.
func (t *takingIn) showing(
	dimension, number int, find func(label string) (anonymize.Node, bool),
) showing {
	h := t.copied.columns[dimension].Hierarchy
	s := showing{label: number, node: h.Root()}
	if number > 0 {
		if node, found := find(t.dictionaries[dimension].entries[number-1].label); found {
			s.node, s.found = node, true
		}
	} else if leaf, ok := h.NullCode(); ok {
		s.node, s.found = anonymize.Node{Group: leaf}, true
	}
	return s
}

// level shows each dimension at the level of the widest label.
func (t *takingIn) level(parts []*part) {
	for i := range t.dictionaries {
		h := t.copied.columns[i].Hierarchy
		level := 0
		for _, p := range parts {
			level = max(level, p.whole().shown[i].node.Level)
		}
		for _, p := range parts {
			if p.into != nil || p.shown[i].node.Level == level {
				continue
			}
			first, _ := h.Range(p.shown[i].node)
			p.shown[i].becomes(anonymize.Node{Level: level, Group: h.Generalize(first, level)})
		}
	}
}

// neighbourhood is how many parts on either side, in the order of each dimension, are
// looked at for one that another joins.
const neighbourhood = 32

// joining lets parts that fall short join others.
type joining struct {
	*takingIn
	needs
}

func (j joining) run(parts []*part) {
	var short []*part
	for _, p := range parts {
		if !j.meets(&p.class) {
			short = append(short, p)
		}
	}
	if len(short) == 0 {
		return
	}
	orders := j.orders(parts)
	for _, p := range short {
		for p = p.whole(); !j.meets(&p.class); {
			other := j.nearest(p, parts, orders)
			if other == nil {
				return // all are one
			}
			j.join(other, p)
		}
	}
}

// order is the places of parts along a dimension.
type order struct {
	parts []*part
	at    map[*part]int
}

func (j joining) orders(parts []*part) []order {
	orders := make([]order, max(1, len(j.dictionaries)))
	for d := range orders {
		sorted := slices.Clone(parts)
		slices.SortStableFunc(sorted, func(x, y *part) int {
			for n := range j.dictionaries {
				i := (d + n) % len(j.dictionaries)
				h := j.copied.columns[i].Hierarchy
				a, _ := h.Range(x.shown[i].node)
				b, _ := h.Range(y.shown[i].node)
				if order := cmp.Compare(a, b); order != 0 {
					return order
				}
			}
			return cmp.Compare(x.number, y.number)
		})
		orders[d] = order{sorted, make(map[*part]int, len(sorted))}
		for at, p := range sorted {
			orders[d].at[p] = at
		}
	}
	return orders
}

// nearest is the part for which the loss of both together grows the least, of those
// near by in some dimension; nil where there is no other.
func (j joining) nearest(p *part, parts []*part, orders []order) *part {
	var best *part
	var least float64
	look := func(q *part) bool {
		if q = q.whole(); q == p {
			return false
		}
		if growth := j.growth(p, q); best == nil || growth < least ||
			growth == least && q.number < best.number {
			best, least = q, growth
		}
		return true
	}
	for _, o := range orders {
		for _, step := range []int{-1, 1} {
			looked := 0
			for at := o.at[p] + step; at >= 0 && at < len(o.parts) && looked < neighbourhood; at += step {
				if look(o.parts[at]) {
					looked++
				}
			}
		}
	}
	for i := 0; best == nil && i < len(parts); i++ {
		look(parts[i])
	}
	return best
}

// growth is the loss that two parts together have more than by themselves.
func (j joining) growth(p, q *part) float64 {
	growth := 0.0
	for i := range j.dictionaries {
		h := j.copied.columns[i].Hierarchy
		a, b := p.shown[i].node, q.shown[i].node
		growth += h.Share(cover(h, a, b))*float64(p.class.all+q.class.all) - h.Share(a)*float64(
			p.class.all) - h.Share(b)*float64(q.class.all)
	}
	return growth
}

// join has a part join another.
func (j joining) join(p, into *part) {
	for i := range into.shown {
		mine, theirs := &into.shown[i], &p.shown[i]
		if mine.alters || theirs.alters || mine.label != theirs.label {
			mine.becomes(cover(j.copied.columns[i].Hierarchy, mine.node, theirs.node))
		}
	}
	for person, rows := range p.class.rows {
		into.class.rows[person] += rows
	}
	into.class.all += p.class.all
	for i, values := range p.class.values {
		for v, subjects := range values {
			for person := range subjects {
				into.class.values[i].add(v, person)
			}
		}
	}
	p.into = into
}

// cover is the narrowest node that covers two.
func cover(h *anonymize.Hierarchy, x, y anonymize.Node) anonymize.Node {
	a, b := h.Range(x)
	c, d := h.Range(y)
	node := h.Cover(min(a, c), max(b, d))
	if node.Level < max(x.Level, y.Level) { // a node can have the leaves of one below it
		return anonymize.Node{Level: max(x.Level, y.Level), Group: h.Generalize(a, max(x.Level, y.Level))}
	}
	return node
}
