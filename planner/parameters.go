package planner

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// parameters are Tailor's configuration parameters, with the values that each
// can have, the default first; nil for any. PostgreSQL takes them for variables
// of the user's own, which can have all names and values.
var parameters = map[string][]string{
	"tailor.representation": {"auto", "label", "value"},
	"tailor.notices":        {"on", "off"},
	"tailor.recoding":       {"auto", "local", "full_domain"},
	"tailor.project":        nil,
	"tailor.upstream":       {"auto", "primary"}, // of the login
}

// Parameter returns a value of a configuration parameter of Tailor as it is
// declared: case does not count, and notices have all forms of PostgreSQL's
// booleans. Other values are errors (22023), as are other names that begin with
// "tailor." (42704); values of parameters that are not Tailor's are returned as
// they are. Errors are of type *[sqlstate.Error] and hold no value.
func Parameter(name, value string) (string, error) {
	name = strings.ToLower(name)
	allowed, err := declared(name)
	switch {
	case err != nil || allowed == nil:
		return value, err
	case name == "tailor.notices":
		value = boolean(value)
	default:
		value = strings.ToLower(value)
	}
	if !slices.Contains(allowed, value) {
		return "", sqlstate.New(sqlstate.InvalidParameterValue, "invalid value for parameter %q", name).
			WithHint("Available values: %s.", strings.Join(allowed, ", "))
	}
	return value, nil
}

// declared are the values that a parameter can have, nil for any.
func declared(name string) ([]string, error) {
	allowed, ok := parameters[strings.ToLower(name)]
	if ok || !strings.HasPrefix(strings.ToLower(name), "tailor.") {
		return allowed, nil
	}
	return nil, sqlstate.New(sqlstate.UndefinedObject,
		"unrecognized configuration parameter %q", name).
		WithHint("Tailor's are %s.", strings.Join(slices.Sorted(maps.Keys(parameters)), ", "))
}

// boolean is on or off for what PostgreSQL takes for it, "" for anything else:
// all beginnings of the words that have one meaning.
func boolean(value string) string {
	value = strings.ToLower(strings.TrimSpace(value))
	is := func(word string, least int) bool {
		return len(value) >= least && strings.HasPrefix(word, value)
	}
	switch {
	case is("on", 2), is("true", 1), is("yes", 1), value == "1":
		return "on"
	case is("off", 2), is("false", 1), is("no", 1), value == "0":
		return "off"
	}
	return ""
}

// Parameters checks what a text sets, resets or shows of Tailor's configuration
// parameters, where it says so by itself; see [Parameter] for the errors. For a
// SHOW it returns the query that answers it, whether the parameter is set or
// not: the server knows none that is not. For all other texts it returns "".
func Parameters(statement string) (query string, err error) {
	text, _, err := scanBounded(statement)
	if err != nil {
		return "", nil // the server says what is wrong
	}
	tree, err := pg.Parse(text)
	if err != nil {
		return "", nil
	}
	note := func(failed error) {
		if err == nil {
			err = failed
		}
	}
	for _, stmt := range tree.Stmts {
		visit(stmt.Stmt, func(set *pg.VariableSetStmt) { note(checkSet(set)) })
		visit(stmt.Stmt, func(f *pg.FuncCall) { note(checkCall(f)) })
		if show := stmt.Stmt.GetVariableShowStmt(); show != nil {
			_, failed := declared(show.Name)
			note(failed)
		}
	}
	if err != nil || len(tree.Stmts) != 1 {
		return "", err
	}
	name := strings.ToLower(tree.Stmts[0].Stmt.GetVariableShowStmt().GetName())
	allowed, ok := parameters[name]
	if !ok {
		return "", nil
	}
	shown := fmt.Sprintf("pg_catalog.current_setting(%s, true)", literal(name))
	if allowed != nil {
		shown = fmt.Sprintf("COALESCE(NULLIF(pg_catalog.lower(%s), ''), %s)", shown, literal(allowed[0]))
	} else {
		shown = fmt.Sprintf("COALESCE(%s, '')", shown)
	}
	return fmt.Sprintf(`SELECT %s AS "%s"`, shown, name), nil
}

// checkSet checks SET and RESET, by themselves or within another statement.
func checkSet(set *pg.VariableSetStmt) error {
	if err := assertSettable(set.Name); err != nil {
		return err
	}
	if set.Kind != pg.VariableSetKind_VAR_SET_VALUE {
		_, err := declared(set.Name)
		return err
	}
	var values []string
	for _, argument := range set.Args {
		value, _ := constant(argument)
		values = append(values, value)
	}
	_, err := Parameter(set.Name, strings.Join(values, ", "))
	return err
}

// assertSettable refuses to set what is the login's.
func assertSettable(name string) error {
	if !strings.EqualFold(name, "tailor.upstream") {
		return nil
	}
	return sqlstate.New(sqlstate.CannotChangeParameter,
		"parameter %q cannot be changed now", "tailor.upstream").
		WithHint("Log in with it: PGOPTIONS='-c tailor.upstream=primary'.")
}

// checkCall checks a call of set_config whose arguments are constants. NULL
// resets.
func checkCall(f *pg.FuncCall) error {
	if last(f.Funcname) != "set_config" || len(f.Args) < 2 {
		return nil
	}
	set, ok := constant(f.Args[0])
	if !ok {
		return nil
	}
	if err := assertSettable(set); err != nil {
		return err
	}
	to, ok := constant(f.Args[1])
	if !ok {
		_, err := declared(set)
		return err
	}
	_, err := Parameter(set, to)
	return err
}

// constant is the text of a constant; ok is false for NULL and everything else.
func constant(node *pg.Node) (text string, ok bool) {
	for node.GetTypeCast() != nil {
		node = node.GetTypeCast().Arg
	}
	c := node.GetAConst()
	switch {
	case c.GetSval() != nil:
		return c.GetSval().Sval, true
	case c.GetIval() != nil:
		return fmt.Sprint(c.GetIval().Ival), true
	case c.GetFval() != nil:
		return c.GetFval().Fval, true
	}
	return "", false
}
