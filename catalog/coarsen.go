package catalog

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// A stricter policy makes blocks join, and never regroups them: any other line than
// one along which they were shown would tell people apart whom the blocks left together.

// part is a block as it is coarsened: its people, and in each dimension the node that
// covers them.
type part struct {
	number int
	into   *part // the part that it has joined
	class  class
	nodes  []anonymize.Node
	alters bool // it is to be shown in another way
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
	parts, err := t.parts(ctx)
	if err != nil {
		return err
	}
	if err := t.label(ctx, was, parts); err != nil {
		return err
	}
	joining{takingIn: t, needs: t.needs()}.run(parts)
	if t.r.recoding() == ecg.FullDomain {
		t.level(parts)
	}
	entries := make(map[*part][]entry)
	fits := true
	for _, p := range parts {
		w := p.whole()
		if p == w && !t.needs().meets(&p.class) {
			return &anonymize.UnmetError{Requirement: "the policy"}
		}
		if entries[w] == nil && (w.alters || p != w) {
			for i, d := range t.dictionaries {
				entries[w] = append(entries[w], entryOf(d.column, t.copied.columns[i].Hierarchy, w.nodes[i]))
				fits = d.add(entries[w][i:]) && fits
			}
		}
	}
	if !fits {
		if err := t.renew(ctx, t.r); err != nil {
			return err
		}
	}
	if err := storeEntries(ctx, t.tx, t.chain, t.dictionaries); err != nil {
		return err
	}
	return t.reshow(ctx, parts, entries)
}

// reshow writes what is shown of the rows of parts that have changed.
func (t *takingIn) reshow(ctx context.Context, parts []*part, entries map[*part][]entry) error {
	placed, row := t.temporary("placed"), t.chain.table("row")
	columns := []string{blockColumn + " integer", "becomes integer"}
	sets := []string{blockColumn + " = p.becomes"}
	for _, d := range t.dictionaries {
		columns = append(columns, d.own("number")+" "+d.numberType())
		sets = append(sets, fmt.Sprintf("%[1]s = p.%[1]s", d.own("number")),
			fmt.Sprintf("%s = (SELECT value::%s FROM %s WHERE dimension = %d AND number = p.%s)", d.own("value"), d.column.ReleaseType(), t.chain.table("entry"), d.column.Number, d.own("number")))
	}
	if err := execute(ctx, t.tx, fmt.Sprintf("CREATE TABLE %s (%s)", placed, commas(columns))); err != nil {
		return err
	}
	err := copyInto(ctx, t.tx, placed, func(w *copyWriter) {
		for _, p := range parts {
			whole := p.whole()
			if p == whole && entries[whole] == nil {
				continue
			}
			w.number(p.number)
			w.number(whole.number)
			for i, d := range t.dictionaries {
				w.number(d.number(entries[whole][i]))
			}
			w.end()
		}
	})
	if err != nil {
		return err
	}
	return execute(ctx, t.tx, "ANALYZE "+placed, fmt.Sprintf("UPDATE %s r SET %s FROM %s p WHERE r.%[4]s = p.%[4]s", row, commas(sets), placed, blockColumn), "DROP TABLE "+placed)
}

// parts reads the blocks of the release, with the nodes of their labels.
func (t *takingIn) parts(ctx context.Context) ([]*part, error) {
	columns := []string{blockColumn, personColumn}
	for _, d := range t.dictionaries {
		columns = append(columns, d.own("number"))
	}
	for _, q := range t.r.Requirements {
		columns = append(columns, fmt.Sprintf("hashtextextended(coalesce('=' || %s::text, ''), 0)", ident(q.Column)))
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s ORDER BY 1", commas(columns), t.chain.table("row")))
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
				node, found := find[i](int(values[2+i]))
				p.nodes, p.alters = append(p.nodes, node), p.alters || !found
			}
			out = append(out, p)
		}
		out[len(out)-1].class.add(values[1], values[2+dimensions:])
		return nil
	})
	return out, err
}

// finders find, for each dimension, the node of the present hierarchy that a label by
// its number is of; the root where there is none.
func (t *takingIn) finders() []func(number int) (anonymize.Node, bool) {
	var out []func(int) (anonymize.Node, bool)
	for i, d := range t.dictionaries {
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
		out = append(out, func(number int) (anonymize.Node, bool) {
			label := anonymize.Null
			if number > 0 {
				label = d.entries[number-1].label
			}
			if node, found := nodes[label]; found {
				return node, true
			}
			return h.Root(), false
		})
	}
	return out
}

// label finds the nodes of blocks again in the dimensions whose hierarchies have
// changed: those that cover the values that the copy has of the blocks' people.
func (t *takingIn) label(ctx context.Context, was *Relation, parts []*part) error {
	var changed []int
	for i, q := range t.r.Dimensions() {
		if !reflect.DeepEqual(q.Hierarchy, was.Dimensions()[i].Hierarchy) {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	of := make(map[int]*part)
	for _, p := range parts {
		of[p.number] = p
	}
	type ends struct{ lo, hi uint32 }
	covered := make(map[*part][]ends)
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT DISTINCT r.%s, e.%s FROM %s r JOIN tailor_store.epoch_%d e ON %s",
		blockColumn, tupleColumn, t.chain.table("row"), t.r.Epoch, t.same("e", "r")))
	if err != nil {
		return err
	}
	var number int
	var tuple uint32
	_, err = pgx.ForEachRow(rows, []any{&number, &tuple}, func() error {
		p := of[number]
		known := covered[p] != nil
		if !known {
			covered[p] = make([]ends, len(changed))
		}
		for n, i := range changed {
			leaf, e := t.copied.leaves[i][tuple], &covered[p][n]
			if !known {
				*e = ends{leaf, leaf}
			}
			e.lo, e.hi = min(e.lo, leaf), max(e.hi, leaf)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range parts {
		p.alters = true
		for n, i := range changed {
			h := t.copied.columns[i].Hierarchy
			p.nodes[i] = h.Root() // nobody of the block is left to tell
			if covered[p] != nil {
				p.nodes[i] = h.Cover(covered[p][n].lo, covered[p][n].hi)
			}
		}
	}
	return nil
}

// level shows each dimension at the level of the widest label.
func (t *takingIn) level(parts []*part) {
	for i := range t.dictionaries {
		h := t.copied.columns[i].Hierarchy
		level := 0
		for _, p := range parts {
			level = max(level, p.whole().nodes[i].Level)
		}
		for _, p := range parts {
			if p.into != nil || p.nodes[i].Level == level {
				continue
			}
			first, _ := h.Range(p.nodes[i])
			p.nodes[i], p.alters = anonymize.Node{Level: level, Group: h.Generalize(first, level)}, true
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
				a, _ := h.Range(x.nodes[i])
				b, _ := h.Range(y.nodes[i])
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
		if growth := j.growth(p, q); best == nil || growth < least || growth == least && q.number < best.number {
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
		together := h.Share(cover(h, p.nodes[i], q.nodes[i]))
		growth += together*float64(p.class.all+q.class.all) - h.Share(p.nodes[i])*float64(p.class.all) - h.Share(q.nodes[i])*float64(q.class.all)
	}
	return growth
}

// join has a part join another.
func (j joining) join(p, into *part) {
	for i := range into.nodes {
		into.nodes[i] = cover(j.copied.columns[i].Hierarchy, p.nodes[i], into.nodes[i])
	}
	for person, rows := range p.class.rows {
		into.class.rows[person] += rows
	}
	into.class.all += p.class.all
	for i, values := range p.class.values {
		for v := range values {
			into.class.values[i][v] = struct{}{}
		}
	}
	p.into, into.alters = into, true
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
