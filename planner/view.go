package planner

import (
	"errors"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// maxViewDepth bounds views over views, which multiply.
const maxViewDepth = 16

// view puts the definition of a view over protected relations in place of its
// name, over releases. What it reads besides is then read by the reader's own
// rights and not by the view owner's.
func (b *binder) view(rv *pg.RangeVar, name catalog.Name, alias string, sc *scope) error {
	o := b.snapshot.Other(name)
	if o.Definition == "" || b.views == maxViewDepth {
		return sqlstate.New(sqlstate.FeatureNotSupported,
			"relation %q has rows of the protected table %q", rv.Relname, o.Reaches).
			WithHint("Name the protected table itself.").At(b.statement, int(rv.Location))
	}
	definition, query, err := parseView(o.Definition)
	if err != nil {
		return b.inView(err, rv)
	}
	if err := b.grow(len(o.Definition)); err != nil {
		return err
	}
	b.sources = append(b.sources, definition)
	session := b.session
	b.session.SearchPath, b.session.Temporary = []string{"pg_catalog"}, nil
	b.views++
	var bound *boundQuery
	err = b.within(definition, func() (err error) {
		bound, err = b.selectStmt(query, nil, false)
		return err
	})
	b.views--
	b.session = session
	if err != nil {
		return b.inView(err, rv)
	}
	if err := b.queryEntry(bound, alias, rv.Alias, sc); err != nil {
		return err
	}
	e := sc.entries[len(sc.entries)-1]
	e.replaced = true
	if rv.Alias == nil {
		e.schema = name.Schema
	}
	return b.replaceName(rv, edit{view: definition}, alias)
}

// parseView parses a definition as the catalog prints it: with every name
// outside of pg_catalog qualified.
func parseView(definition string) (*source, *pg.SelectStmt, error) {
	definition, tokens, err := scanBounded(definition)
	if err != nil {
		return nil, nil, err
	}
	if n := len(tokens); n > 0 && tokens[n-1].Token == pg.Token_ASCII_59 {
		definition, tokens = definition[:tokens[n-1].Start], tokens[:n-1]
	}
	tree, err := pg.Parse(definition)
	if err != nil {
		return nil, nil, parseError(err)
	}
	if len(tree.Stmts) != 1 || tree.Stmts[0].Stmt.GetSelectStmt() == nil {
		return nil, nil, sqlstate.New(sqlstate.FeatureNotSupported, "the definition is no query")
	}
	return &source{statement: definition, tokens: tokens}, tree.Stmts[0].Stmt.GetSelectStmt(), nil
}

// inView is a refusal of something in a view's definition, told at the place
// of the view's name.
func (b *binder) inView(err error, rv *pg.RangeVar) error {
	var inside *sqlstate.Error
	if !errors.As(err, &inside) {
		return err
	}
	outside := *inside
	outside.Position = 0
	if outside.Detail == "" {
		outside.Detail = "This is about the definition of view " + quoted(rv.Relname) +
			", which stands for its name."
	}
	return outside.At(b.statement, int(rv.Location))
}
