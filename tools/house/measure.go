package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// longest is how many characters a line may have.
const longest = 100

// house is what is measured of a package, or of several.
type house struct {
	name string
	// files, and their lines: with code on them, and all. SQL that is embedded counts.
	files, code, lines int
	group              []string // files of the largest group
	types              []typeSize
	long, longInTests  int // lines
}

// typeSize is a type with the number of its methods, and of the files that they stand in.
type typeSize struct {
	name           string
	methods, files int
}

func (h *house) add(o *house) {
	h.files, h.code, h.lines = h.files+o.files, h.code+o.code, h.lines+o.lines
	h.long, h.longInTests = h.long+o.long, h.longInTests+o.longInTests
}

// largestTypes are those with the most methods, as a text.
func (h *house) largestTypes(most int) string {
	var out []string
	for _, t := range h.types[:min(most, len(h.types))] {
		out = append(out, fmt.Sprintf("%s %d (%d)", t.name, t.methods, t.files))
	}
	return strings.Join(out, ", ")
}

func measure(p *listed) (*house, error) {
	h := &house{name: cmp.Or(p.name(), ".")}
	for _, name := range slices.Concat(p.GoFiles, p.CgoFiles, p.EmbedFiles) {
		sql := filepath.Ext(name) == ".sql"
		if filepath.Ext(name) != ".go" && !sql {
			continue
		}
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		h.files++
		h.lines += linesOf(text)
		if sql {
			h.code += codeLinesOfSQL(text)
		} else {
			h.code += codeLines(text)
		}
		h.long += longLines(text)
	}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		h.longInTests += longLines(text)
	}
	if p.types != nil {
		h.group = largestGroup(p.needs())
		h.types = p.typeSizes()
	}
	return h, nil
}

// needs says which files of the package each file needs.
func (p *listed) needs() map[string][]string {
	needs := make(map[string][]string)
	for name, file := range p.files {
		others := make(map[string]bool)
		ast.Inspect(file, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if other := p.declaredIn(p.info.Uses[id]); other != "" && other != name {
					others[other] = true
				}
			}
			return true
		})
		needs[name] = nil
		for other := range others {
			needs[name] = append(needs[name], other)
		}
		slices.Sort(needs[name])
	}
	return needs
}

// declaredIn is the file of the package that declares an object; "" for what is local to a
// function, and for what is another package's.
func (p *listed) declaredIn(object types.Object) string {
	if object == nil || object.Pkg() != p.types {
		return ""
	}
	// Methods and fields have no scope, parameters are never used in another file.
	if scope := object.Parent(); scope != nil && scope != p.types.Scope() {
		return ""
	}
	return filepath.Base(p.fset.Position(object.Pos()).Filename)
}

// typeSizes are the types with methods, those with the most first.
func (p *listed) typeSizes() []typeSize {
	methods, files := make(map[string]int), make(map[string]map[string]bool)
	for name, file := range p.files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			receiver := receiverOf(f.Recv.List[0].Type)
			if files[receiver] == nil {
				files[receiver] = make(map[string]bool)
			}
			methods[receiver]++
			files[receiver][name] = true
		}
	}
	var out []typeSize
	for name, n := range methods {
		out = append(out, typeSize{name, n, len(files[name])})
	}
	slices.SortFunc(out, func(x, y typeSize) int {
		return cmp.Or(cmp.Compare(y.methods, x.methods), strings.Compare(x.name, y.name))
	})
	return out
}

// receiverOf is the name of a receiver's type.
func receiverOf(e ast.Expr) string {
	for {
		switch t := e.(type) {
		case *ast.StarExpr:
			e = t.X
		case *ast.IndexExpr:
			e = t.X
		case *ast.IndexListExpr:
			e = t.X
		case *ast.Ident:
			return t.Name
		default:
			return "?"
		}
	}
}
