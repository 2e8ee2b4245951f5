package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// fragmentStarts are the tokens behind which the items of a clause stand.
var fragmentStarts = map[pg.Token]bool{
	pg.Token_SELECT: true, pg.Token_WHERE: true, pg.Token_ON: true, pg.Token_HAVING: true, pg.Token_BY: true,
	pg.Token_FROM: true, pg.Token_USING: true, pg.Token_VALUES: true, pg.Token_LIMIT: true, pg.Token_OFFSET: true,
	pg.Token_DISTINCT: true, pg.Token_ASCII_59: true,
}

// fragmentEnds are the tokens, besides those that end a target list, that end
// the item of a clause at its own depth.
var fragmentEnds = map[pg.Token]bool{
	pg.Token_JOIN: true, pg.Token_LEFT: true, pg.Token_RIGHT: true, pg.Token_INNER_P: true,
	pg.Token_FULL: true, pg.Token_CROSS: true, pg.Token_NATURAL: true,
}

// longestFragment bounds what is kept of a condition, in bytes.
const longestFragment = 160

// item is a run of tokens with its text.
type item struct {
	from, to int
	text     string
}

// fragment is the condition or list item in which a column reference stands,
// without its literals and comments: what an audit record may hold. It is for
// people to read and decides nothing.
func (b *binder) fragment(location int) string {
	at := b.tokenAt(location)
	if at >= len(b.tokens) {
		return ""
	}
	if last := &b.source.fragment; last.from <= at && at < last.to {
		return last.text // the references of one item come one after the other
	}
	first := b.fragmentStart(at)
	from, to := first, len(b.tokens)
	depth, found, between := 0, false, false
	for i := first; i < len(b.tokens); i++ {
		t := b.tokens[i]
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth--
		case pg.Token_BETWEEN:
			between = between || depth == 0
		}
		ends := depth < 0 || depth == 0 && (clauseEnds[t.Token] || fragmentEnds[t.Token]) && !b.partOfExpression(i)
		splits := depth == 0 && (t.Token == pg.Token_ASCII_44 || t.Token == pg.Token_AND && !between)
		if ends || splits {
			if found || ends {
				to = i
				break
			}
			from = i + 1
			continue
		}
		if t.Token == pg.Token_AND && depth == 0 {
			between = false
		}
		found = found || i == at
	}
	if !found {
		return ""
	}
	b.source.fragment = item{from, to, b.redacted(b.tokens[from:to])}
	return b.source.fragment.text
}

// fragmentStart is the index of the first token of the clause around a token.
func (b *binder) fragmentStart(at int) int {
	depth := 0
	for i := at - 1; i >= 0; i-- {
		switch t := b.tokens[i].Token; t {
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			depth++
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth = max(depth-1, 0) // out of the parentheses around the token
		default:
			if depth == 0 && fragmentStarts[t] && !b.partOfExpression(i) {
				return i + 1
			}
		}
	}
	return 0
}

// redacted is the text of tokens with a question mark for each literal.
func (b *binder) redacted(tokens []*pg.ScanToken) string {
	var out strings.Builder
	for i, t := range tokens {
		if i > 0 && t.Start > tokens[i-1].End {
			out.WriteByte(' ')
		}
		switch t.Token {
		case pg.Token_ICONST, pg.Token_FCONST, pg.Token_SCONST, pg.Token_BCONST, pg.Token_XCONST, pg.Token_USCONST:
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
