package planner

import (
	"sort"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// tokenAt is the index of the first token that starts at or after an offset.
func (b *binder) tokenAt(offset int) int {
	return sort.Search(len(b.tokens), func(i int) bool { return int(b.tokens[i].Start) >= offset })
}

// endsClause says whether a token ends a target list at its own depth.
func endsClause(t pg.Token) bool {
	switch t {
	case pg.Token_FROM, pg.Token_WHERE, pg.Token_GROUP_P, pg.Token_HAVING,
		pg.Token_WINDOW, pg.Token_ORDER, pg.Token_LIMIT, pg.Token_OFFSET,
		pg.Token_FETCH, pg.Token_FOR, pg.Token_UNION, pg.Token_INTERSECT,
		pg.Token_EXCEPT, pg.Token_INTO, pg.Token_ASCII_59:
		return true
	}
	return false
}

// targetListEnd is the offset behind the last token of the target list whose
// last item starts at offset. A keyword that names a column (AS from, t.from)
// or is part of an operator (IS DISTINCT FROM, WITHIN GROUP) ends nothing.
func (b *binder) targetListEnd(offset int) int {
	depth, end := 0, offset
	for i := b.tokenAt(offset); i < len(b.tokens); i++ {
		t := b.tokens[i]
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			if depth--; depth < 0 {
				return end
			}
		default:
			if depth == 0 && endsClause(t.Token) && !b.partOfExpression(i) {
				return end
			}
		}
		end = int(t.End)
	}
	return end
}

// partOfExpression says whether the keyword at index i belongs to the
// expression before it.
func (b *binder) partOfExpression(i int) bool {
	if i == 0 {
		return false
	}
	before := b.tokens[i-1].Token
	switch b.tokens[i].Token {
	case pg.Token_FROM:
		return before == pg.Token_AS || before == pg.Token_ASCII_46 ||
			(before == pg.Token_DISTINCT && i > 1 &&
				(b.tokens[i-2].Token == pg.Token_IS || b.tokens[i-2].Token == pg.Token_NOT))
	case pg.Token_GROUP_P:
		return before == pg.Token_AS || before == pg.Token_ASCII_46 || before == pg.Token_WITHIN
	}
	return before == pg.Token_AS || before == pg.Token_ASCII_46
}
