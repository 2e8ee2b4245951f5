package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// origin is a column of a range entry. Without an entry it is none.
type origin struct {
	entry *entry
	at    int
}

// qid is the quasi-identifier that the column is, nil for none.
func (o origin) qid() *catalog.Column {
	if o.entry == nil {
		return nil
	}
	return o.entry.columns[o.at].qid
}

// label is the reference to the column's label, from inside the query whose
// FROM list holds the entry.
func (o origin) label() string {
	name := labelName(o.at)
	if o.entry.relation != nil {
		name = o.qid().LabelColumn()
	}
	return quoted(o.entry.alias) + "." + quoted(name)
}

// labelName is the name under which a query carries the label of a column.
func labelName(at int) string { return fmt.Sprintf("tailor_label_of_%d", at+1) }

// carry asks a query to output the label of a column, and the queries that it
// reads to hand it the label. Only what the client is shown is asked for.
func (b *binder) carry(q *boundQuery, at int) {
	if q.carried == nil {
		q.carried = make([]bool, len(q.columns))
		b.carrying = append(b.carrying, q)
	}
	if q.carried[at] {
		return
	}
	q.carried[at] = true
	for _, arm := range q.arms {
		b.carry(arm, at)
	}
	if o := q.labelAt(at); o.entry != nil && o.entry.query != nil {
		b.carry(o.entry.query, o.at)
	}
}

func (q *boundQuery) labelAt(at int) origin {
	if at < len(q.labels) {
		return q.labels[at]
	}
	return origin{}
}

// showLabels wraps the outermost query so that the client gets labels where
// its target list holds bare quasi-identifiers. The order of rows is kept: the wrapper only
// projects.
func (b *binder) showLabels(q *boundQuery, start, end int) error {
	if !hasLabels(q.columns) {
		return nil
	}
	if !q.known {
		return unknownStar()
	}
	if len(q.columns) == 0 { // which PostgreSQL allows, but in no list of names
		return nil
	}
	var inner, outer []string
	for i, c := range q.columns {
		inner = append(inner, fmt.Sprintf("tailor_%d", i+1))
		from := inner[i]
		if c.qid != nil {
			b.carry(q, i)
			from = labelName(i)
		}
		outer = append(outer, from+" AS "+quoted(c.name))
	}
	if err := b.insert(b.textStart(start), "SELECT "+strings.Join(outer, ", ")+" FROM ("); err != nil {
		return err
	}
	return b.trail(b.textEnd(end), "\n) AS tailor_answer ("+strings.Join(inner, ", ")+")")
}

func unknownStar() *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported,
		"the columns that \"*\" stands for are not known").
		WithHint("Name the columns.")
}

// addLabels edits the target lists of the queries that carry labels. Those that
// are inside of others come behind them in the list.
func (b *binder) addLabels() error {
	for _, q := range b.carrying {
		if err := b.within(q.text, func() error { return b.addLabelsOf(q) }); err != nil {
			return err
		}
	}
	return nil
}

func (b *binder) addLabelsOf(q *boundQuery) error {
	if q.whole != nil {
		return q.whole
	}
	if len(q.arms) > 0 {
		return nil
	}
	width := len(q.columns)
	var list []edit
	var numbered []origin
	for i, carried := range q.carried {
		if !carried {
			continue
		}
		width++
		o := q.labels[i]
		parts := q.labelParts(o)
		parts[0].text = ", " + parts[0].text
		parts[len(parts)-1].text += " AS " + labelName(i)
		list = append(list, parts...)
		if q.byNumber(o) && !slices.Contains(numbered, o) {
			numbered = append(numbered, o)
		}
	}
	if width > maxColumns {
		return b.tooManyColumns(width)
	}
	for _, e := range list {
		e.start, e.end = q.listEnd, q.listEnd
		if err := b.edit(e); err != nil {
			return err
		}
	}
	for _, o := range numbered {
		if err := b.groupByNumber(q, o); err != nil {
			return err
		}
	}
	return nil
}

// labelParts is the expression for a column's label in the query's target list.
func (q *boundQuery) labelParts(o origin) []edit {
	if q.byNumber(o) {
		return o.labelByNumber()
	}
	return []edit{{text: o.label()}}
}

// value is the reference to the column itself.
func (o origin) value() string {
	return quoted(o.entry.alias) + "." + quoted(o.entry.columns[o.at].name)
}

// textStart is the offset of the first token at or after an offset.
func (b *binder) textStart(offset int) int {
	if i := b.tokenAt(offset); i < len(b.tokens) {
		return int(b.tokens[i].Start)
	}
	return offset
}

// textEnd is the offset behind the last token before an offset that is not a
// semicolon.
func (b *binder) textEnd(offset int) int {
	for i := b.tokenAt(offset) - 1; i >= 0; i-- {
		if t := b.tokens[i]; t.Token != pg.Token_ASCII_59 {
			return int(t.End)
		}
	}
	return offset
}
