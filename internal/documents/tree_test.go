// Package documents holds the tests of the documents: that they name what there is. They need
// no server.
package documents

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the repository, as the tests of this package see it.
const root = "../.."

// tree is what documents may name.
type tree struct {
	paths    map[string]bool // files and folders, from the repository on
	bases    map[string]bool // files, without their folder
	declared map[string]bool // "name", "package.name", "Type.member", "package.Type.member"
	inFile   map[string]map[string]bool
	tests    map[string]bool
	imports  map[string]map[string]bool // of each folder: packages of the module
	sql      string                     // the text of all of extension/*.sql
	store    string                     // and of what makes names of stored tables
}

const module = "github.com/hiatus-tailor/tailor/"

// read reads the tree once.
func read(t *testing.T) *tree {
	t.Helper()
	known := &tree{
		paths: make(map[string]bool), bases: make(map[string]bool), declared: make(map[string]bool),
		inFile: make(map[string]map[string]bool), tests: make(map[string]bool),
		imports: make(map[string]map[string]bool),
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			if name == ".git" || name == "bin" {
				return fs.SkipDir
			}
			known.paths[name] = true
			return nil
		}
		known.paths[name], known.bases[d.Name()] = true, true
		switch filepath.Ext(name) {
		case ".go":
			return known.addGo(name, path)
		case ".sql":
			return known.addSQL(name, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func (k *tree) addSQL(name, path string) error {
	if filepath.Dir(name) != "extension" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	k.sql += string(text)
	k.store += string(text)
	k.inFile[name] = make(map[string]bool)
	for _, m := range created.FindAllStringSubmatch(string(text), -1) {
		k.inFile[name][m[1]] = true
	}
	return nil
}

// created is where a script makes something of Tailor's.
var created = regexp.MustCompile(
	`CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE|TABLE|VIEW|SEQUENCE|AGGREGATE)` +
		` (?:IF NOT EXISTS )?((?:tailor|research)\.\w+)`)

func (k *tree) addGo(name, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "_test.go") {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				k.tests[f.Name.Name] = true
			}
		}
		return nil
	}
	folder := filepath.Dir(name)
	if folder == "catalog" {
		k.store += string(text)
	}
	if k.imports[folder] == nil {
		k.imports[folder] = make(map[string]bool)
	}
	for _, i := range file.Imports {
		if own, ok := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), module); ok {
			k.imports[folder][own] = true
		}
	}
	k.inFile[name] = make(map[string]bool)
	for _, d := range file.Decls {
		for _, declared := range names(d) {
			k.inFile[name][declared] = true
			k.declared[declared] = true
			k.declared[file.Name.Name+"."+declared] = true
			_, member, ok := strings.Cut(declared, ".")
			if ok {
				k.inFile[name][member], k.declared[member] = true, true
			}
		}
	}
	return nil
}

// names are those that a declaration declares, members as "Type.member".
func names(d ast.Decl) (out []string) {
	if f, ok := d.(*ast.FuncDecl); ok {
		if f.Recv == nil {
			return []string{f.Name.Name}
		}
		receiver := f.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		if id, ok := receiver.(*ast.Ident); ok {
			return []string{id.Name + "." + f.Name.Name}
		}
		return nil
	}
	for _, spec := range d.(*ast.GenDecl).Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, id := range s.Names {
				out = append(out, id.Name)
			}
		case *ast.TypeSpec:
			out = append(out, s.Name.Name)
			for _, member := range members(s.Type) {
				out = append(out, s.Name.Name+"."+member)
			}
		}
	}
	return out
}

// members are the fields of a struct, or the methods of an interface. What is embedded is
// known by its own name.
func members(of ast.Expr) (out []string) {
	var list *ast.FieldList
	switch t := of.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	for _, f := range list.List {
		for _, id := range f.Names {
			out = append(out, id.Name)
		}
		embedded := f.Type
		if star, ok := embedded.(*ast.StarExpr); ok {
			embedded = star.X
		}
		if id, ok := embedded.(*ast.Ident); ok && len(f.Names) == 0 {
			out = append(out, id.Name)
		}
	}
	return out
}
