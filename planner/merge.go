package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// merging says how labels come out of a query that makes one row of several.
// Rows are told apart by their values, as the query says; values that stand for
// several nodes show the labels of all that were merged.
type merging struct {
	// aggregate: labels are added as aggregates over each group.
	aggregate bool
	// sets: of grouping sets, some of which leave the column out.
	sets bool
	// wrapped: the text [start, end) is put in a query that groups its rows,
	// and the word that merged them is replaced.
	wrapped    bool
	start, end int
	word       edit
	// sides tells which groups INTERSECT or EXCEPT has, and how many rows for each.
	sides sides
	// order are the items of ORDER BY that name columns of the query's tables,
	// which are out of reach from around it.
	order []edit
}

// separator stands between the labels of values that were merged.
const separator = "' | '"

// joined is the aggregate of a label over a group.
func joined(label string) string {
	return fmt.Sprintf("pg_catalog.string_agg(DISTINCT %s, %s)", label, separator)
}

// mergeLabels chooses how labels come out of an inner query; of one that it has
// no way for, only the values come.
func (b *binder) mergeLabels(s *pg.SelectStmt, sc *scope, q *boundQuery) {
	switch {
	case s.Op == pg.SetOperation_SETOP_NONE && len(s.GroupClause) > 0 && len(s.DistinctClause) == 0:
		q.merging.aggregate = true
		q.grouping = -1
		q.columns = slices.Clone(q.columns)
		for i := range q.columns {
			if !slices.Contains(sc.entries, q.labels[i].entry) {
				q.columns[i].qid = nil // an aggregate of an outer query's column would be that query's
			}
		}
	case len(s.GroupClause) > 0 || !q.known || !b.wrap(s, sc, q):
		q.forgetLabels()
	}
}

// wrap finds the text of a DISTINCT query or of a set operation, without its
// ORDER BY and LIMIT: these stay behind the query around it.
func (b *binder) wrap(s *pg.SelectStmt, sc *scope, q *boundQuery) bool {
	first, last, ok := b.extent(s)
	if !ok {
		return false
	}
	m := merging{wrapped: true}
	if s.Op == pg.SetOperation_SETOP_NONE {
		last = b.lastToken(first, false)
		word := b.tokens[first+1]
		if word.Token != pg.Token_DISTINCT {
			return false
		}
		m.word = edit{start: int(word.Start), end: int(word.End), text: "ALL"}
	} else {
		_, left, _ := b.armExtent(s.Larg)
		word, end := b.tokens[left+1], b.tokens[left+1]
		if word.Token != setWords[s.Op] {
			return false
		}
		if next := b.tokens[left+2]; next.Token == pg.Token_DISTINCT || next.Token == pg.Token_ALL {
			end = next
		}
		m.word = edit{start: int(word.Start), end: int(end.End), text: "UNION ALL"}
		m.sides = sides{op: s.Op, all: s.All}
	}
	if m.order, ok = b.reordered(s, sc, q); !ok {
		return false
	}
	m.start, m.end = int(b.tokens[first].Start), int(b.tokens[last].End)
	q.merging = m
	return true
}

// setWords are the words of set operations.
var setWords = map[pg.SetOperation]pg.Token{
	pg.SetOperation_SETOP_UNION: pg.Token_UNION, pg.SetOperation_SETOP_INTERSECT: pg.Token_INTERSECT, pg.SetOperation_SETOP_EXCEPT: pg.Token_EXCEPT,
}

// reordered finds the items of a query's ORDER BY that mean something else from
// around it, and the numbers of the columns that they mean. ok is false where
// there are others than columns of the output, by name, by number or as they
// stand in its tables.
func (b *binder) reordered(s *pg.SelectStmt, sc *scope, q *boundQuery) (edits []edit, ok bool) {
	for _, item := range s.SortClause {
		node := item.GetSortBy().GetNode()
		if node.GetAConst().GetIval() != nil {
			continue
		}
		ref := node.GetColumnRef()
		if ref == nil || isStar(ref) {
			return nil, false
		}
		names := refNames(ref)
		if len(names) == 1 && slices.ContainsFunc(q.columns, func(c column) bool { return c.name == names[0] }) {
			continue
		}
		r, err := b.resolve(sc, ref)
		at := slices.Index(q.labels, r.origin)
		if err != nil || s.Op != pg.SetOperation_SETOP_NONE || r.entry == nil || at < 0 {
			return nil, false
		}
		first := b.tokenAt(int(ref.Location))
		edits = append(edits, edit{
			start: int(ref.Location), end: int(b.tokens[first+2*(len(names)-1)].End), text: strconv.Itoa(at + 1),
		})
	}
	return edits, true
}

// extent is the first and the last token of a query without its WITH and
// without ORDER BY and LIMIT. ok is false for a text of another form.
func (b *binder) extent(s *pg.SelectStmt) (first, last int, ok bool) {
	if s.Op == pg.SetOperation_SETOP_NONE {
		first = b.selectToken(s)
		if first < 0 {
			return 0, 0, false
		}
		return first, b.lastToken(first, len(s.SortClause) > 0 || s.LimitCount != nil || s.LimitOffset != nil), true
	}
	first, _, ok = b.armExtent(s.Larg)
	if !ok {
		return 0, 0, false
	}
	_, last, ok = b.armExtent(s.Rarg)
	return first, last, ok
}

// armExtent is the extent of an arm of a set operation with its parentheses.
func (b *binder) armExtent(s *pg.SelectStmt) (first, last int, ok bool) {
	if s.WithClause != nil {
		return 0, 0, false
	}
	first, last, ok = b.extent(s)
	if !ok {
		return 0, 0, false
	}
	for first > 0 && last+1 < len(b.tokens) &&
		b.tokens[first-1].Token == pg.Token_ASCII_40 && b.tokens[last+1].Token == pg.Token_ASCII_41 {
		first, last = first-1, last+1
	}
	return first, last, true
}

// selectToken is the index of a simple query's SELECT, -1 where it has none.
func (b *binder) selectToken(s *pg.SelectStmt) int {
	if len(s.TargetList) == 0 || s.TargetList[0].GetResTarget().GetLocation() < 0 {
		return -1
	}
	i := b.tokenAt(int(s.TargetList[0].GetResTarget().Location)) - 1
	if i > 0 && (b.tokens[i].Token == pg.Token_DISTINCT || b.tokens[i].Token == pg.Token_ALL) {
		i--
	}
	if i < 0 || b.tokens[i].Token != pg.Token_SELECT {
		return -1
	}
	return i
}

// lastToken is the last one of the simple query that starts at index i; tail
// says that it goes to the end of the parentheses that it stands in.
func (b *binder) lastToken(i int, tail bool) int {
	depth := 0
	for i++; i < len(b.tokens); i++ {
		switch t := b.tokens[i].Token; t {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		case pg.Token_ASCII_59, pg.Token_UNION, pg.Token_INTERSECT, pg.Token_EXCEPT:
			if depth == 0 && !b.partOfExpression(i) {
				return i - 1
			}
		case pg.Token_ORDER, pg.Token_LIMIT, pg.Token_OFFSET, pg.Token_FETCH, pg.Token_FOR:
			if depth == 0 && !tail && !b.partOfExpression(i) {
				return i - 1
			}
		}
		if depth < 0 {
			return i - 1
		}
	}
	return len(b.tokens) - 1
}

// openWrap replaces the word that merged the rows, and starts the query around.
func (b *binder) openWrap(q *boundQuery) error {
	for _, e := range append(q.merging.order, q.merging.word) {
		if err := b.edit(e); err != nil {
			return err
		}
	}
	values, labels := q.names()
	var names, shown []string
	for i, value := range values {
		names = append(names, value+" AS "+quoted(q.columns[i].name))
	}
	for _, label := range labels {
		shown = append(shown, q.merging.sides.label(label)+" AS "+label)
	}
	inner := ""
	if q.merging.sides.all {
		inner = " FROM (SELECT " + strings.Join(slices.Concat(values, shown, []string{q.merging.sides.copies()}), ", ")
		shown = labels
	}
	if q.side > 0 {
		shown = append(slices.Clone(shown), strconv.Itoa(q.side))
	}
	return b.insert(q.merging.start, "SELECT "+strings.Join(slices.Concat(names, shown), ", ")+inner+" FROM (")
}

// names are those that the query around gives the columns, and the labels.
func (q *boundQuery) names() (values, labels []string) {
	for i := range q.columns {
		values = append(values, fmt.Sprintf("tailor_%d", i+1))
		if q.carried[i] {
			labels = append(labels, labelName(i))
		}
	}
	return values, labels
}

// closeWrap ends the query around.
func (b *binder) closeWrap(q *boundQuery) error {
	values, labels := q.names()
	columns := slices.Concat(values, labels)
	end := fmt.Sprintf(") AS tailor_merged (%s) GROUP BY %s%s", strings.Join(slices.Concat(columns, q.merging.sides.column()), ", "),
		strings.Join(values, ", "), q.merging.sides.having())
	if q.merging.sides.all {
		end += fmt.Sprintf(") AS tailor_counted (%s, tailor_rows), pg_catalog.generate_series(1, tailor_rows)", strings.Join(columns, ", "))
	}
	return b.trail(q.merging.end, end)
}
