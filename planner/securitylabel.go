package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// labelProvider is the provider of security labels that Tailor takes for its
// own.
const labelProvider = "tailor"

// SecurityLabel turns SECURITY LABEL FOR tailor ON COLUMN t.c IS 'class
// [hierarchy=NAME] [action=hide|pseudonym]' into the call of tailor.classify
// that it means. It returns "" for every other text, one with further statements
// or a comment in front among them: the server knows no such provider. Errors
// are of type *[sqlstate.Error] and quote no literal. What the caller may
// classify is up to the procedure.
func SecurityLabel(statement string) (call string, err error) {
	const first = "security"
	text := strings.TrimLeft(statement, " \t\r\n")
	if len(text) < len(first) || !strings.EqualFold(text[:len(first)], first) {
		return "", nil
	}
	text, _, err = scanBounded(statement)
	if err != nil {
		return "", nil
	}
	tree, err := pg.Parse(text)
	if err != nil || len(tree.Stmts) != 1 {
		return "", nil // the server says what is wrong
	}
	label := tree.Stmts[0].Stmt.GetSecLabelStmt()
	if label == nil || label.Provider != labelProvider {
		return "", nil
	}
	names := label.Object.GetList().GetItems()
	if label.Objtype != pg.ObjectType_OBJECT_COLUMN || len(names) < 2 {
		return "", sqlstate.New(sqlstate.FeatureNotSupported,
			"labels of the provider tailor are for columns").
			WithHint("For example: SECURITY LABEL FOR tailor ON COLUMN public.patients.age IS " +
				"'quasi_identifier hierarchy=age'.")
	}
	arguments := []string{"", literal(names[len(names)-1].GetString_().GetSval())}
	var table []string
	for _, n := range names[:len(names)-1] {
		table = append(table, `"`+strings.ReplaceAll(n.GetString_().GetSval(), `"`, `""`)+`"`)
	}
	arguments[0] = literal(strings.Join(table, ".")) + "::pg_catalog.regclass"
	words := strings.Fields(label.Label)
	if len(words) == 0 {
		return "", sqlstate.New(sqlstate.FeatureNotSupported, "a column cannot be unlabelled by itself").
			WithHint("CALL tailor.clear_draft(table); empties the draft of its policy.")
	}
	arguments = append(arguments, literal(words[0]))
	var given []string
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		if (key != "hierarchy" && key != "action") || value == "" || slices.Contains(given, key) {
			return "", sqlstate.New(sqlstate.InvalidParameterValue,
				"the label of a column is not understood").
				WithHint("It is a class, and where needed hierarchy=NAME or action=pseudonym.")
		}
		given = append(given, key)
		arguments = append(arguments, key+" => "+literal(value))
	}
	return "CALL tailor.classify(" + strings.Join(arguments, ", ") + ")", nil
}

// literal is a string constant, whatever standard_conforming_strings says.
func literal(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return " E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}
