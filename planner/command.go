package planner

import (
	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Cursor is a cursor that a statement declares over releases.
type Cursor struct {
	Name string
	Hold bool // beyond the transaction
}

// command is a statement around a query: where the query's text lies, and
// whether its rows are for the client to see.
type command struct {
	query      *pg.SelectStmt
	start, end int
	kept       bool // the rows stay on the server, as values
	explains   bool // PostgreSQL tells its plan, and not the rows
}

// commandOf finds the query of a statement that may hold one over protected
// relations, nil for any other statement.
func (b *binder) commandOf(s *pg.RawStmt, start, end int) (*command, error) {
	switch n := s.Stmt.GetNode().(type) {
	case *pg.Node_SelectStmt:
		into := intoOf(n.SelectStmt)
		if into == nil {
			return &command{query: n.SelectStmt, start: start, end: end}, nil
		}
		return b.keptCommand(n.SelectStmt, into, start, end)
	case *pg.Node_CreateTableAsStmt:
		if n.CreateTableAsStmt.Objtype != pg.ObjectType_OBJECT_TABLE {
			return nil, nil
		}
		return b.keptCommand(n.CreateTableAsStmt.Query.GetSelectStmt(), n.CreateTableAsStmt.Into,
			start, end)
	case *pg.Node_DeclareCursorStmt:
		c := &command{
			query: n.DeclareCursorStmt.Query.GetSelectStmt(),
			start: b.behind(pg.Token_FOR, start), end: end,
		}
		hold := n.DeclareCursorStmt.Options&cursorHold != 0
		b.plan.Cursors = append(b.plan.Cursors, Cursor{Name: n.DeclareCursorStmt.Portalname, Hold: hold})
		return c, nil
	case *pg.Node_PrepareStmt:
		return b.preparing(n.PrepareStmt, start, end)
	case *pg.Node_CopyStmt:
		return b.copyOut(n.CopyStmt, start)
	case *pg.Node_ExplainStmt:
		query := n.ExplainStmt.Query.GetSelectStmt()
		if query == nil || intoOf(query) != nil {
			return nil, nil
		}
		return &command{
			query: query, start: b.explained(start, len(n.ExplainStmt.Options) > 0), end: end,
			kept: true, explains: true,
		}, nil
	}
	return nil, nil
}

// cursorHold is CURSOR_OPT_HOLD of PostgreSQL's parsenodes.h.
const cursorHold = 0x20

// intoOf is the INTO clause of a query, which its first SELECT holds.
func intoOf(s *pg.SelectStmt) *pg.IntoClause {
	for s.Op != pg.SetOperation_SETOP_NONE {
		s = s.Larg
	}
	return s.IntoClause
}

// keptCommand is a query whose rows go into a table. Only a temporary one
// stays with the session, whose role has been shown them.
func (b *binder) keptCommand(
	query *pg.SelectStmt, into *pg.IntoClause, start, end int,
) (*command, error) {
	if into.GetRel().GetRelpersistence() != "t" {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"answers about a protected table can only be kept in a temporary table").
			WithHint("Write CREATE TEMP TABLE or SELECT INTO TEMP: others could read a lasting one.").
			At(b.statement, int(into.GetRel().GetLocation()))
	}
	return &command{query: query, start: start, end: end, kept: true}, nil
}

// copyOut is COPY of a query to the client, in any format.
func (b *binder) copyOut(c *pg.CopyStmt, start int) (*command, error) {
	if c.Query == nil || c.IsFrom {
		return nil, nil
	}
	if c.Filename != "" || c.IsProgram {
		return nil, sqlstate.New(sqlstate.InsufficientPrivilege,
			"answers about a protected table cannot be written to a file of the server").
			WithHint("COPY (SELECT ...) TO STDOUT sends them to the client.")
	}
	open := b.tokenAt(b.behind(pg.Token_COPY, start))
	return &command{
		query: c.Query.GetSelectStmt(),
		start: int(b.tokens[open].End), end: int(b.tokens[b.closing(open)].Start),
	}, nil
}

// explained is the offset at which the query of an EXPLAIN starts, behind its
// options.
func (b *binder) explained(start int, options bool) int {
	i := b.tokenAt(b.behind(pg.Token_EXPLAIN, start))
	if options && b.tokens[i].Token == pg.Token_ASCII_40 {
		i = b.closing(i) + 1
	}
	for b.tokens[i].Token == pg.Token_ANALYZE || b.tokens[i].Token == pg.Token_VERBOSE {
		i++
	}
	return int(b.tokens[i].Start)
}

// behind is the offset behind the first token of a kind at or after an offset.
func (b *binder) behind(kind pg.Token, offset int) int {
	for i := b.tokenAt(offset); i < len(b.tokens); i++ {
		if b.tokens[i].Token == kind {
			return int(b.tokens[i].End)
		}
	}
	return offset
}

// closing is the index of the parenthesis that closes the one at index i.
func (b *binder) closing(i int) int {
	depth := 0
	for ; i < len(b.tokens)-1; i++ {
		switch b.tokens[i].Token {
		case pg.Token_ASCII_40:
			depth++
		case pg.Token_ASCII_41:
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return i
}
