package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// place is where a query names a column by itself: in its target list, in GROUP BY or
// in ORDER BY. A query whose rows are the answer, which merges rows by a quasi-identifier,
// and which names that nowhere else behind WHERE, merges them by the number of its label
// in place of its value: in GROUP BY stands the number, and in the other places what the
// number stands for, looked up once for each group.
type place struct {
	origin
	start, end int
	key        bool   // in GROUP BY
	written    bool   // as a reference to the column, and not as one to the output
	name       string // that the output column has of the column, "" for none
}

// mention notes that an expression of the target list or behind it names a column.
func (e *entry) mention(at int) {
	if e.mentions == nil {
		e.mentions = make([]int, len(e.columns))
	}
	e.mentions[at]++
}

// names notes a reference that stands by itself, and says whether it did: it must be
// certain what it means, and be written as short as the release's name is.
func (b *binder) names(ref *pg.ColumnRef, sc *scope, q *boundQuery, p place) bool {
	parts := len(ref.GetFields())
	if p.qid() == nil || parts > 2 || len(sc.merges) > 0 || !q.known ||
		!slices.Contains(sc.entries, p.entry) {
		return false
	}
	if parts == 1 && !sc.certain(last(ref.GetFields())) {
		return false
	}
	p.start = int(ref.Location)
	first := b.tokenAt(p.start)
	end := first + 2*(parts-1)
	for p.name != "" && b.tokens[first-1].Token == pg.Token_ASCII_40 &&
		b.tokens[end+1].Token == pg.Token_ASCII_41 {
		first, end = first-1, end+1 // "(age)": a name stands behind the parentheses
	}
	p.start, p.end = int(b.tokens[first].Start), int(b.tokens[end].End)
	q.places = append(q.places, p)
	return true
}

// certain says whether the FROM list has at most one column of a name: of two,
// PostgreSQL is to say that the name is ambiguous.
func (s *scope) certain(name string) bool {
	found := false
	for _, e := range s.entries {
		if !e.known {
			return false
		}
		for _, c := range e.columns {
			if c.name == name && found {
				return false
			}
			found = found || c.name == name
		}
	}
	return true
}

// namesKey notes the place of a grouping expression that stands for a column.
func (b *binder) namesKey(item *pg.Node, sc *scope, q *boundQuery, p place) {
	p.key = true
	if ref := item.GetColumnRef(); ref != nil {
		if !b.names(ref, sc, q, p) {
			p.entry.mention(p.at)
		}
		return
	}
	t := b.tokens[b.tokenAt(start(item))]
	p.start, p.end = int(t.Start), int(t.End)
	q.places = append(q.places, p)
}

// byNumber says whether the query is grouped by the number of a column's label and
// not by the column.
func (q *boundQuery) byNumber(o origin) bool {
	if o.qid() == nil || !slices.Contains(q.grouped, o) {
		return false
	}
	if o.entry.relation == nil || !o.entry.relation.Lists(o.qid()) ||
		o.entry.via != nil && q.distinct {
		return false
	}
	alone := 0
	for _, p := range q.places {
		if p.origin == o && p.written {
			alone++
		}
	}
	return o.entry.mentions == nil || alone == o.entry.mentions[o.at]
}

// isText says that what labels of a quasi-identifier stand for is themselves.
func isText(o origin) bool { return o.qid().Category == "S" }

// groupByNumber edits the places of a column that the query groups by number.
func (b *binder) groupByNumber(q *boundQuery, o origin) error {
	for _, p := range q.places {
		if p.origin != o {
			continue
		}
		if p.key {
			if err := b.replace(p.start, p.end, o.number()); err != nil {
				return err
			}
			continue
		}
		parts := o.valueByNumber()
		if p.name != "" {
			parts[len(parts)-1].text += " AS " + quoted(p.name)
		}
		for i, e := range parts {
			e.start, e.end = p.start, p.start
			if i == len(parts)-1 {
				e.end = p.end
			}
			if err := b.edit(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// number is the reference to the number of the column's label, or to the label itself of
// what one table shows of another.
func (o origin) number() string {
	if o.entry.via != nil {
		return o.label()
	}
	return quoted(o.entry.alias) + "." + quoted(o.qid().NumberColumn())
}

// listed is the list, by the numbers of labels, that a column of labels holds.
func (o origin) listed(column, before, behind string) []edit {
	return []edit{
		{text: before + "(SELECT " + quoted(column) + " FROM"},
		{relation: o.entry.relation, labels: true, text: ")" + behind},
	}
}

// valueByNumber is the value that the number of a column's label stands for; of what one
// table shows of another, the least value of the group.
func (o origin) valueByNumber() []edit {
	if o.entry.via != nil {
		return []edit{{text: "pg_catalog.min(" + o.value() + ")"}}
	}
	if isText(o) {
		return o.listed(o.qid().LabelColumn(), "", " OPERATOR(pg_catalog.->>) "+o.number())
	}
	return o.listed(o.qid().ValuesColumn(), "", "["+o.number()+"]")
}

// labelByNumber is the label of a number. NULL, and a row that a join has added, has none.
func (o origin) labelByNumber() []edit {
	if o.entry.via != nil {
		return []edit{{text: o.label()}}
	}
	return o.listed(o.qid().LabelColumn(), "", " OPERATOR(pg_catalog.->>) "+o.number())
}
