package audit

import (
	"encoding/json"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/internal/sqltext"
)

// longestOfTools bounds the texts of which it is asked what they read: those of tools have a
// few thousand bytes.
const longestOfTools = 16 << 10

// CatalogsOnly says whether a text is a query that reads catalogs (pg_catalog and
// information_schema) and no other relation, as tools send them to draw their lists. It goes by
// names, and is for lists to fold such statements away: it says nothing about who may do what.
// A text that cannot be parsed, and one that reads no relation, is none.
func CatalogsOnly(text string) bool {
	if text == "" || len(text) > longestOfTools || sqltext.Slow(text) {
		return false
	}
	parsed, err := pg.ParseToJSON(text)
	if err != nil {
		return false
	}
	var tree struct {
		Stmts []struct {
			Stmt map[string]any `json:"stmt"`
		} `json:"stmts"`
	}
	if json.Unmarshal([]byte(parsed), &tree) != nil || len(tree.Stmts) != 1 {
		return false
	}
	if _, query := tree.Stmts[0].Stmt["SelectStmt"]; !query {
		return false
	}
	found := namesIn{queries: make(map[string]bool)}
	found.add(tree.Stmts[0].Stmt)
	return found.catalogsOnly()
}

// namesIn are the names of a tree.
type namesIn struct {
	relations [][2]string     // schema, empty if it is not said, and name
	queries   map[string]bool // of WITH
	foreign   bool            // it writes, locks, or calls what is in another schema
}

func (n *namesIn) add(node any) {
	switch node := node.(type) {
	case []any:
		for _, child := range node {
			n.add(child)
		}
	case map[string]any:
		for kind, child := range node {
			fields, _ := child.(map[string]any)
			switch kind {
			case "RangeVar":
				schema, _ := fields["schemaname"].(string)
				name, _ := fields["relname"].(string)
				n.relations = append(n.relations, [2]string{schema, name})
			case "CommonTableExpr":
				name, _ := fields["ctename"].(string)
				n.queries[name] = true
			case "FuncCall":
				n.foreign = n.foreign || !ofCatalogs(fields["funcname"])
			case "InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt", "intoClause",
				"lockingClause":
				n.foreign = true
			}
			n.add(child)
		}
	}
}

// ofCatalogs says whether the name of a function has no schema, or that of a catalog.
func ofCatalogs(name any) bool {
	parts, _ := name.([]any)
	if len(parts) < 2 {
		return true
	}
	first, _ := parts[0].(map[string]any)
	text, _ := first["String"].(map[string]any)
	schema, _ := text["sval"].(string)
	return isCatalog(schema)
}

func isCatalog(schema string) bool {
	return schema == "pg_catalog" || schema == "information_schema"
}

func (n *namesIn) catalogsOnly() bool {
	catalogs := 0
	for _, relation := range n.relations {
		schema, name := relation[0], relation[1]
		switch {
		case schema == "" && n.queries[name]:
		case isCatalog(schema), schema == "" && strings.HasPrefix(name, "pg_"):
			catalogs++
		default:
			return false
		}
	}
	return catalogs > 0 && !n.foreign
}
