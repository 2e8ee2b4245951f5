package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// natural finds the columns that a NATURAL join merges, and names them in the
// text: releases have columns besides those that the client knows of.
func (b *binder) natural(j *pg.JoinExpr, sc *scope, from, middle int) ([]string, error) {
	left, known := sc.names(from, middle)
	right, alsoKnown := sc.names(middle, len(sc.entries))
	item := b.itemStart(j.Rarg)
	word := b.naturalToken(item)
	if err := b.spendColumns(len(left) + len(right)); err != nil {
		return nil, err
	}
	if !known || !alsoKnown || word < 0 {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"NATURAL JOIN over columns that are not known is not supported beside a protected table").
			WithHint("Name the columns with USING or ON.").At(b.statement, start(j.Rarg))
	}
	var common, list []string
	for _, name := range left {
		if !slices.Contains(right, name) || slices.Contains(common, name) {
			continue
		}
		common = append(common, name)
		list = append(list, quoted(name))
	}
	if err := b.replace(int(b.tokens[word].Start), int(b.tokens[word].End), ""); err != nil {
		return nil, err
	}
	condition := " ON true"
	if len(list) > 0 {
		condition = " USING (" + strings.Join(list, ", ") + ")"
	}
	return common, b.insert(b.fromItemEnd(int(b.tokens[item].Start)), condition)
}

// names lists the columns of a range of entries, merged ones once.
func (s *scope) names(from, to int) (names []string, known bool) {
	for _, e := range s.entries[from:to] {
		if !e.known {
			return nil, false
		}
		for _, c := range e.columns {
			names = append(names, c.name)
		}
	}
	return names, true
}

// itemWords are those that an item of FROM can start with, before the first that
// has a place in its tree.
var itemWords = []pg.Token{
	pg.Token_ASCII_40, pg.Token_LATERAL_P, pg.Token_ONLY, pg.Token_SELECT, pg.Token_DISTINCT,
	pg.Token_ALL, pg.Token_VALUES,
	pg.Token_TABLE, pg.Token_WITH, pg.Token_RECURSIVE,
}

// itemStart is the index of the first token of the right side of a join.
func (b *binder) itemStart(right *pg.Node) int {
	i := b.tokenAt(start(right))
	for i > 0 && slices.Contains(itemWords, b.tokens[i-1].Token) {
		i--
	}
	return i
}

// naturalToken is the index of the NATURAL of the join whose right side starts
// at an index, -1 where there is none.
func (b *binder) naturalToken(item int) int {
	for i := item - 1; i >= 0; i-- {
		switch b.tokens[i].Token {
		case pg.Token_NATURAL:
			return i
		case pg.Token_JOIN, pg.Token_LEFT, pg.Token_RIGHT, pg.Token_FULL, pg.Token_INNER_P,
			pg.Token_OUTER_P:
		default:
			return -1
		}
	}
	return -1
}

// usingToken is the index of a column that USING merges; it has no place in the
// tree. -1 where it is not found.
func (b *binder) usingToken(j *pg.JoinExpr, at int) int {
	i := b.tokenAt(b.fromItemEnd(int(b.tokens[b.itemStart(j.Rarg)].Start)))
	if i += 2 + 2*at; i >= len(b.tokens) || b.tokens[i-2-2*at].Token != pg.Token_USING {
		return -1
	}
	return i
}

// itemEnds are the tokens that end an item of FROM at its own depth.
var itemEnds = []pg.Token{
	pg.Token_ASCII_44, pg.Token_ASCII_59, pg.Token_NATURAL, pg.Token_JOIN, pg.Token_CROSS,
	pg.Token_LEFT, pg.Token_RIGHT,
	pg.Token_FULL, pg.Token_INNER_P, pg.Token_ON, pg.Token_USING, pg.Token_WHERE, pg.Token_GROUP_P,
	pg.Token_HAVING,
	pg.Token_WINDOW, pg.Token_ORDER, pg.Token_LIMIT, pg.Token_OFFSET, pg.Token_FETCH, pg.Token_FOR,
	pg.Token_UNION,
	pg.Token_INTERSECT, pg.Token_EXCEPT,
}

// fromItemEnd is the offset behind the item of FROM that starts at an offset,
// or inside the parentheses that it starts with.
func (b *binder) fromItemEnd(offset int) int {
	i := b.tokenAt(offset)
	for i > 0 && b.tokens[i-1].Token == pg.Token_ASCII_40 {
		i-- // "NATURAL JOIN (": what is in front of it is no join
	}
	depth, end := 0, offset
	for ; i < len(b.tokens); i++ {
		t := b.tokens[i]
		switch t.Token {
		case pg.Token_ASCII_40, pg.Token_ASCII_91:
			depth++
		case pg.Token_ASCII_41, pg.Token_ASCII_93:
			if depth--; depth < 0 {
				return end
			}
		default:
			if depth > 0 {
				break
			}
			withData := t.Token == pg.Token_WITH && i+1 < len(b.tokens) &&
				b.tokens[i+1].Token != pg.Token_ORDINALITY
			if withData || (slices.Contains(itemEnds, t.Token) && !b.partOfExpression(i)) {
				return end
			}
		}
		end = int(t.End)
	}
	return end
}
