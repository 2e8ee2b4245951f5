package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// boundStar is a "*" or "t.*" in a target list. It is expanded at the end,
// when it is known which subqueries carry labels, which are not for showing.
type boundStar struct {
	text       *source
	start, end int
	entries    []*entry
	list       []string // what it stands for, where that is settled already
	head, tail string   // what stands around it in place of TABLE
}

// star binds "*" or "t.*" and notes the columns that it covers.
func (b *binder) star(ref *pg.ColumnRef, from []*pg.Node, sc *scope, bound *boundQuery) error {
	star := &boundStar{text: b.source}
	if ref.Location < 0 {
		word := b.tokens[b.tableToken(from)]
		star.head, star.tail = "SELECT ", " FROM"
		star.start, star.end = int(word.Start), int(word.End)
		bound.listEnd = star.end
	} else {
		star.start = int(ref.Location)
		star.end = int(b.tokens[b.tokenAt(star.start)+2*len(refNames(ref))].End)
	}
	if names := refNames(ref); len(names) > 0 {
		e := sc.named(names)
		if e == nil {
			bound.known = false
			return nil
		}
		if !sc.reaches(e) {
			return b.shadowed(ref, e)
		}
		if len(names) > 2 && names[0] != b.session.Database {
			return b.otherDatabase(int(ref.Location))
		}
		star.entries = []*entry{e}
	} else {
		star.entries = sc.entries
	}
	b.stars = append(b.stars, star)
	bound.keyed = starred(bound.keyed, star.entries)
	if len(refNames(ref)) == 0 && len(sc.merges) > 0 {
		return b.mergedStar(ref, sc, bound, star)
	}
	for _, e := range star.entries {
		for i := range e.columns {
			if err := b.starColumn(resolved{origin: origin{e, i}}, e.columns[i].name, ref,
				bound); err != nil {
				return err
			}
		}
		bound.known = bound.known && e.known
	}
	return nil
}

// tableToken is the index of the TABLE in front of the relation that it lists.
func (b *binder) tableToken(from []*pg.Node) int {
	i := b.tokenAt(int(from[0].GetRangeVar().GetLocation()))
	for i > 0 && b.tokens[i].Token != pg.Token_TABLE {
		i--
	}
	return i
}

// starColumn adds one of the columns that a star stands for.
func (b *binder) starColumn(r resolved, name string, star *pg.ColumnRef, bound *boundQuery) error {
	c, label := column{name: name, provenance: r.provenance()}, origin{}
	b.gathered = &c.bases
	b.useAll(r.all(), ecg.Projection)
	b.gathered = nil
	for _, o := range r.all() {
		o.entry.mention(o.at)
		if err := b.payload(o, star); err != nil {
			return err
		}
	}
	if r.qid() != nil && bound.known {
		c.qid, label = r.qid(), r.origin
	}
	bound.add(c, label)
	if len(bound.columns) > maxColumns {
		return b.tooManyColumns(len(bound.columns))
	}
	return nil
}

// mergedStar expands "*" over joins with USING or NATURAL: each join lists the
// columns that it merges, then the others of its left and of its right side.
func (b *binder) mergedStar(
	ref *pg.ColumnRef, sc *scope, bound *boundQuery, star *boundStar,
) error {
	for at := 0; at < len(sc.entries); {
		j := sc.widestJoin(at)
		for _, c := range sc.listed(at, j) {
			if !c.known {
				return unknownStar().At(b.statement, int(ref.Location))
			}
			if c.merged && (sc.merge(c.name, 0, len(sc.entries)) != c.merge || sc.outside(c.name, at, j)) {
				return sqlstate.New(sqlstate.FeatureNotSupported,
					"\"*\" over columns merged more than once cannot be expanded").
					WithHint("Name the columns, or use t.* for each table.").At(b.statement, int(ref.Location))
			}
			star.list = append(star.list, c.reference())
			if err := b.starColumn(c.resolved, c.name, ref, bound); err != nil {
				return err
			}
		}
		at = j
	}
	return nil
}

// listed is a column as "*" lists it.
type listed struct {
	resolved
	name   string
	known  bool
	merged bool
	merge  *merge
}

func (c *listed) reference() string {
	if c.merged {
		return quoted(c.name)
	}
	return c.value()
}

// widestJoin is the end of the join with merged columns that starts with an
// entry, or of the entry alone.
func (s *scope) widestJoin(from int) int {
	to := from + 1
	for i := range s.merges {
		if m := &s.merges[i]; m.from <= from && m.to > to {
			to = m.to
		}
	}
	return to
}

// listed lists the columns of the entries [from, to) in the order of "*".
func (s *scope) listed(from, to int) []listed {
	var out []listed
	middle := -1
	for i := range s.merges {
		if m := &s.merges[i]; m.from == from && m.to == to {
			out = append(out, listed{resolved: m.column, name: m.name, known: true, merged: true, merge: m})
			middle = m.middle
		}
	}
	if middle < 0 {
		for at := from; at < to; {
			end := s.widestWithin(at, from, to)
			if end == at+1 {
				out = append(out, s.entries[at].listed()...)
			} else {
				out = append(out, s.listed(at, end)...)
			}
			at = end
		}
		return out
	}
	merged := len(out)
	for _, c := range append(s.side(from, middle), s.side(middle, to)...) {
		if !slices.ContainsFunc(out[:merged], func(m listed) bool { return m.name == c.name }) {
			out = append(out, c)
		}
	}
	return out
}

// side lists one side of a join.
func (s *scope) side(from, to int) []listed {
	if to == from+1 {
		return s.entries[from].listed()
	}
	return s.listed(from, to)
}

// widestWithin is the end of the widest join that starts with an entry and is
// smaller than the range.
func (s *scope) widestWithin(at, from, to int) int {
	end := at + 1
	for i := range s.merges {
		m := &s.merges[i]
		if m.from == at && m.to <= to && (m.from != from || m.to != to) && m.to > end {
			end = m.to
		}
	}
	return end
}

func (e *entry) listed() []listed {
	if !e.known {
		return []listed{{}}
	}
	out := make([]listed, len(e.columns))
	for i, c := range e.columns {
		out[i] = listed{resolved: resolved{origin: origin{e, i}, found: true}, name: c.name, known: true}
	}
	return out
}

// outside says whether an entry outside of a range has a column of a name.
func (s *scope) outside(name string, from, to int) bool {
	for i, e := range s.entries {
		if (i < from || i >= to) && e.find(name) >= 0 {
			return true
		}
	}
	return false
}

// expandStars edits each star that covers a column which is not for showing.
func (b *binder) expandStars() error {
	for _, s := range b.stars {
		if err := b.within(s.text, func() error { return b.expandStar(s) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) expandStar(s *boundStar) error {
	if !slices.ContainsFunc(s.entries, (*entry).carriesLabels) {
		return nil
	}
	list := s.list
	if list == nil {
		for _, e := range s.entries {
			if !e.carriesLabels() {
				list = append(list, quoted(e.alias)+".*")
				continue
			}
			if !e.known {
				return unknownStar().At(b.statement, s.start)
			}
			seen := make(map[string]bool, len(e.columns))
			for _, c := range e.columns {
				if seen[c.name] {
					return sqlstate.New(sqlstate.FeatureNotSupported,
						"\"*\" over two columns of the same name cannot be expanded").
						WithHint("Give each column of the subquery a name of its own.").At(b.statement, s.start)
				}
				seen[c.name] = true
				list = append(list, quoted(e.alias)+"."+quoted(c.name))
			}
		}
	}
	if err := b.replace(s.start, s.end, s.head+strings.Join(list, ", ")); err != nil || s.tail == "" {
		return err
	}
	return b.trail(s.end, s.tail)
}

// carriesLabels says whether an entry has columns besides those that its
// names stand for.
func (e *entry) carriesLabels() bool {
	return e.relation != nil || (e.query != nil && e.query.carried != nil)
}
