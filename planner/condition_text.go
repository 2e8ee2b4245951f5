package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// startsItems says whether the items of a clause stand behind a token.
func startsItems(t pg.Token) bool {
	switch t {
	case pg.Token_SELECT, pg.Token_WHERE, pg.Token_ON, pg.Token_HAVING, pg.Token_BY,
		pg.Token_FROM, pg.Token_USING, pg.Token_VALUES, pg.Token_LIMIT, pg.Token_OFFSET,
		pg.Token_DISTINCT, pg.Token_ASCII_59:
		return true
	}
	return false
}

// endsItem says whether a token ends the item of a clause at its own depth.
func endsItem(t pg.Token) bool {
	switch t {
	case pg.Token_JOIN, pg.Token_LEFT, pg.Token_RIGHT, pg.Token_INNER_P, pg.Token_FULL, pg.Token_CROSS,
		pg.Token_NATURAL:
		return true
	}
	return endsClause(t)
}

// longestFragment bounds what is kept of a condition, in bytes.
const longestFragment = 160

// conditionTexts finds the items of a text's clauses. Each token is looked at a few
// times, however many references there are.
type conditionTexts struct {
	starts  []int        // for each token, the first one of the clause around it
	reached map[int]item // by the first token of a clause, the item last asked for
	last    item         // that was asked for, whatever its clause
	text    string       // of the last one
}

// item is a run of tokens between the separators of a clause.
type item struct {
	from, to int
	between  bool // the AND of a BETWEEN is still to come
	final    bool // no other item follows
}

func (i item) holds(at int) bool { return i.from <= at && at < i.to }

// conditionText is the condition or list item in which a column reference stands,
// without its literals and comments: what an audit record may hold. It is for
// people to read and decides nothing.
func (b *binder) conditionText(location int) string {
	at := b.tokenAt(location)
	if at >= len(b.tokens) {
		return ""
	}
	f := &b.fragments
	if f.last.holds(at) {
		return f.text // the references of one item come one after the other
	}
	if f.starts == nil {
		f.starts, f.reached = b.clauseStarts(), make(map[int]item)
	}
	first := f.starts[at]
	i, known := f.reached[first]
	if !known || at < i.from {
		i = b.itemFrom(first, false)
	}
	for at >= i.to && !i.final {
		i = b.itemFrom(i.to+1, i.between)
	}
	f.reached[first] = i
	if !i.holds(at) {
		return ""
	}
	f.last, f.text = i, b.redacted(b.tokens[i.from:i.to])
	return f.text
}

// itemFrom is the item that starts at an index. between says that it does so
// before the AND of a BETWEEN.
func (b *binder) itemFrom(from int, between bool) item {
	depth := 0
	for i := from; i < len(b.tokens); i++ {
		t := b.tokens[i].Token
		switch t {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		case pg.Token_BETWEEN:
			between = between || depth == 0
		}
		switch {
		case depth < 0, depth == 0 && endsItem(t) && !b.partOfExpression(i):
			return item{from: from, to: i, final: true}
		case depth > 0:
		case t == pg.Token_ASCII_44, t == pg.Token_AND && !between:
			return item{from: from, to: i, between: between}
		case t == pg.Token_AND:
			between = false
		}
	}
	return item{from: from, to: len(b.tokens), final: true}
}

// clauseStarts finds for each token the first one of the clause around it.
func (b *binder) clauseStarts() []int {
	starts := make([]int, len(b.tokens))
	current, around := 0, []int(nil)
	for i, t := range b.tokens {
		starts[i] = current
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			around = append(around, current)
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			if n := len(around); n > 0 {
				current, around = around[n-1], around[:n-1]
			}
		default:
			if startsItems(t.Token) && !b.partOfExpression(i) {
				current = i + 1
			}
		}
	}
	return starts
}

// redacted is the text of tokens with a question mark for each literal.
func (b *binder) redacted(tokens []*pg.ScanToken) string {
	var out strings.Builder
	for i, t := range tokens {
		if i > 0 && t.Start > tokens[i-1].End {
			out.WriteByte(' ')
		}
		switch t.Token {
		case pg.Token_ICONST, pg.Token_FCONST, pg.Token_SCONST, pg.Token_BCONST, pg.Token_XCONST,
			pg.Token_USCONST:
			out.WriteByte('?')
		default:
			out.WriteString(b.statement[t.Start:t.End])
		}
		if out.Len() > longestFragment {
			return strings.ToValidUTF8(out.String()[:longestFragment], "") + " ..."
		}
	}
	return out.String()
}
