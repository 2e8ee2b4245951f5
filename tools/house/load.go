package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// listed is a package as go list tells it.
type listed struct {
	ImportPath, Dir, Export   string
	Standard, DepOnly         bool
	Module                    *struct{ Path string }
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
	EmbedFiles                []string

	fset  *token.FileSet
	files map[string]*ast.File // by name
	info  *types.Info
	types *types.Package
}

// name is the package's path within its module.
func (p *listed) name() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/")
}

// load reads and checks the packages of the module that match.
func load(patterns []string) ([]*listed, error) {
	arguments := append([]string{"list", "-deps", "-export", "-json"}, patterns...)
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	exports := make(map[string]string)
	var packages []*listed
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		p := &listed{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if !p.Standard && !p.DepOnly && p.Module != nil {
			packages = append(packages, p)
		}
	}
	for _, p := range packages {
		if err := p.check(exports); err != nil {
			return nil, fmt.Errorf("%s: %w", p.ImportPath, err)
		}
	}
	return packages, nil
}

// check parses the package's files, those of tests left out, and finds out what each
// identifier stands for.
func (p *listed) check(exports map[string]string) error {
	p.fset, p.files = token.NewFileSet(), make(map[string]*ast.File)
	var all []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		file, err := parser.ParseFile(p.fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		p.files[name] = file
		all = append(all, file)
	}
	if len(all) == 0 {
		return nil // it has tests only
	}
	p.info = &types.Info{Uses: make(map[*ast.Ident]types.Object)}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", open)}
	var err error
	p.types, err = config.Check(p.ImportPath, p.fset, all, p.info)
	return err
}
