package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// nodeCollector is what a statement names anywhere in it. Trees are large: what is
// asked of all of a statement is asked of this.
type nodeCollector struct {
	relations []*pg.RangeVar
	calls     []*pg.FuncCall
}

func collectNodes(stmt *pg.Node) (found nodeCollector) {
	walk(stmt.ProtoReflect(), func(m proto.Message) {
		switch m := m.(type) {
		case *pg.RangeVar:
			found.relations = append(found.relations, m)
		case *pg.FuncCall:
			found.calls = append(found.calls, m)
		}
	})
	return found
}

// start is the lowest offset noted anywhere in a tree: where its text starts,
// but for opening parentheses.
func start(node *pg.Node) int {
	lowest := -1
	walk(node.ProtoReflect(), func(m proto.Message) {
		located, ok := m.(interface{ GetLocation() int32 })
		if !ok {
			return
		}
		if at := int(located.GetLocation()); at >= 0 && (lowest < 0 || at < lowest) {
			lowest = at
		}
	})
	return lowest
}

// visit calls do for every message of a kind in a tree.
func visit[M proto.Message](node *pg.Node, do func(M)) {
	if node == nil {
		return
	}
	walk(node.ProtoReflect(), func(m proto.Message) {
		if found, ok := m.(M); ok {
			do(found)
		}
	})
}

// walk visits a message and all messages below it, but for those that hold the
// text of a name or of a literal.
func walk(m protoreflect.Message, do func(proto.Message)) {
	message := m.Interface()
	do(message)
	switch message.(type) {
	case *pg.ColumnRef, *pg.A_Const, *pg.String:
		return // most of a tree
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.Message() == nil {
			return true
		}
		if field.IsList() {
			list := value.List()
			for i := range list.Len() {
				walk(list.Get(i).Message(), do)
			}
			return true
		}
		walk(value.Message(), do)
		return true
	})
}
