package planner

import (
	"encoding/base64"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// preparing is PREPARE of a query. The server keeps the whole text that it
// stands in, so it has to be the only statement of it.
func (b *binder) preparing(p *pg.PrepareStmt, start, end int) (*command, error) {
	if p.Query.GetSelectStmt() == nil {
		return nil, nil
	}
	if !b.alone {
		return nil, sqlstate.New(sqlstate.FeatureNotSupported,
			"PREPARE over a protected table cannot stand beside other statements").
			WithHint("Send PREPARE on its own.").At(b.statement, b.textStart(start))
	}
	for _, t := range b.tokens {
		if n := b.number(t); n > MostParameters {
			return nil, sqlstate.New(sqlstate.ProgramLimitExceeded,
				"PREPARE over a protected table takes at most %d parameters", MostParameters).
				WithHint("Pass lists as arrays: = ANY ($1).").At(b.statement, int(t.Start))
		}
	}
	b.plan.Prepares = p.Name
	return &command{query: p.Query.GetSelectStmt(), start: b.behind(pg.Token_AS, start), end: end}, nil
}

// MostParameters bounds those of a statement that is prepared by SQL.
const MostParameters = 400

// number is that of the parameter which a token is, 0 for any other token.
func (s *source) number(t *pg.ScanToken) (n int) {
	if t.Token != pg.Token_PARAM {
		return 0
	}
	for _, digit := range s.statement[t.Start+1 : t.End] {
		n = min(10*n+int(digit-'0'), MostParameters+1)
	}
	return n
}

// Keep is the text of a rewritten PREPARE with the client's own behind it, in a
// comment. The server keeps both as the statement's text, for as long as it
// keeps the statement: what EXECUTE stands for is asked of the server.
func Keep(rewritten, statement string) string {
	return rewritten + "\n/* tailor keeps " +
		base64.StdEncoding.EncodeToString([]byte(statement)) + " */"
}

// KeptForm finds, as a regular expression of PostgreSQL, what [Keep] has added.
const KeptForm = `\n/\* tailor keeps ([A-Za-z0-9+/=]+) \*/$`

// Prepared is a statement that was prepared by SQL.
type Prepared struct {
	Kept  string   // that KeptForm finds
	Types []string // of parameters, by their names with schemas
}

// opened is a prepared statement's query, ready to be put in place of EXECUTE.
type opened struct {
	query  string
	params []param
	types  []string
}

// param is a parameter in a query.
type param struct {
	start, end int
	number     int
	bare       bool // an output column by itself, which has no name
}

// open reads the text of a PREPARE. ok is false for one that was not kept here.
func (p *Prepared) open() (o opened, ok bool) {
	text, err := base64.StdEncoding.DecodeString(p.Kept)
	if err != nil {
		return o, false
	}
	source, tree, ok := scanned(string(text))
	if !ok || len(tree.Stmts) != 1 {
		return o, false
	}
	statement := tree.Stmts[0].Stmt.GetPrepareStmt()
	if statement.GetQuery().GetSelectStmt() == nil {
		return o, false
	}
	b := &binder{source: source}
	from := b.textStart(b.behind(pg.Token_AS, 0))
	bare := bareParameters(statement.Query)
	o = opened{query: source.statement[from:b.textEnd(len(source.statement))], types: p.Types}
	for _, t := range source.tokens {
		if t.Token != pg.Token_PARAM {
			continue
		}
		n := source.number(t)
		if n < 1 || n > len(p.Types) {
			return o, false
		}
		o.params = append(o.params, param{
			int(t.Start) - from, int(t.End) - from, n,
			slices.Contains(bare, int(t.Start)),
		})
	}
	return o, true
}

// bareParameters are the places of parameters that are output columns of the
// query or of one inside of it, and have no name there.
func bareParameters(query *pg.Node) (places []int) {
	visit(query, func(target *pg.ResTarget) {
		if target.Name != "" {
			return
		}
		node := target.Val
		for below := node; below != nil; {
			node = below
			if below = node.GetCollateClause().GetArg(); below == nil {
				below = node.GetAIndirection().GetArg()
			}
		}
		if p := node.GetParamRef(); p != nil {
			places = append(places, int(p.Location))
		}
	})
	return places
}

// scanned is a text with its tokens and its tree. ok is false for one that is
// too large, or that cannot be told apart without settings.
func scanned(text string) (s *source, tree *pg.ParseResult, ok bool) {
	text, tokens, err := scanBounded(text)
	if err != nil || slices.ContainsFunc(tokens, func(t *pg.ScanToken) bool {
		return t.Token == pg.Token_UIDENT || t.Token == pg.Token_USCONST
	}) {
		return nil, nil, false
	}
	if tree, err = pg.Parse(text); err != nil {
		return nil, nil, false
	}
	return &source{statement: text, tokens: tokens}, tree, true
}
