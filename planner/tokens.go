package planner

import (
	"sort"

	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// tokenAt is the index of the first token that starts at or after an offset.
func (b *binder) tokenAt(offset int) int {
	return sort.Search(len(b.tokens), func(i int) bool { return int(b.tokens[i].Start) >= offset })
}

// clauseEnds are the tokens that end a target list at its own depth.
var clauseEnds = map[pg.Token]bool{
	pg.Token_FROM: true, pg.Token_WHERE: true, pg.Token_GROUP_P: true, pg.Token_HAVING: true,
	pg.Token_WINDOW: true, pg.Token_ORDER: true, pg.Token_LIMIT: true, pg.Token_OFFSET: true,
	pg.Token_FETCH: true, pg.Token_FOR: true, pg.Token_UNION: true, pg.Token_INTERSECT: true,
	pg.Token_EXCEPT: true, pg.Token_INTO: true, pg.Token_ASCII_59: true,
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
			if depth == 0 && clauseEnds[t.Token] && !b.partOfExpression(i) {
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
			(before == pg.Token_DISTINCT && i > 1 && (b.tokens[i-2].Token == pg.Token_IS || b.tokens[i-2].Token == pg.Token_NOT))
	case pg.Token_GROUP_P:
		return before == pg.Token_AS || before == pg.Token_ASCII_46 || before == pg.Token_WITHIN
	}
	return before == pg.Token_AS || before == pg.Token_ASCII_46
}

// groupByStart is the offset at which a grouping expression can be put before
// the one that starts at offset.
func (b *binder) groupByStart(offset int) int {
	for i := b.tokenAt(offset) - 1; i > 0; i-- {
		if b.tokens[i].Token == pg.Token_BY && b.tokens[i-1].Token == pg.Token_GROUP_P {
			if next := b.tokens[i+1].Token; next == pg.Token_DISTINCT || next == pg.Token_ALL {
				i++
			}
			return int(b.tokens[i].End)
		}
	}
	return -1
}

// start is the lowest offset noted anywhere in a tree: where its text starts,
// but for opening parentheses.
func start(node *pg.Node) int {
	lowest := -1
	walk(node.ProtoReflect(), func(m protoreflect.Message) {
		field := m.Descriptor().Fields().ByName("location")
		if field == nil {
			return
		}
		if at := int(m.Get(field).Int()); at >= 0 && (lowest < 0 || at < lowest) {
			lowest = at
		}
	})
	return lowest
}

// rangeVars lists every relation name anywhere in a statement.
func rangeVars(node *pg.Node) []*pg.RangeVar {
	var out []*pg.RangeVar
	walk(node.ProtoReflect(), func(m protoreflect.Message) {
		if rv, ok := m.Interface().(*pg.RangeVar); ok {
			out = append(out, rv)
		}
	})
	return out
}

// walk visits a message and all messages below it.
func walk(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		if field.IsList() {
			for i := range value.List().Len() {
				walk(value.List().Get(i).Message(), visit)
			}
			return true
		}
		walk(value.Message(), visit)
		return true
	})
}
