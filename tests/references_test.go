package tests

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// citation is a key in a comment: the name of an author and a year. One paper
// has no year that we are sure of.
var citation = regexp.MustCompile(`\[([A-Z][A-Za-z]+[0-9]{4}[a-z]?|Chen)\]`)

// initials are keys of another style, such as [OLA2009], which ours is not.
var initials = regexp.MustCompile(`\[[A-Z]{2,}[0-9]{4}\]`)

func TestEveryKeyThatIsCitedStandsInTheReferences(t *testing.T) {
	text, err := os.ReadFile("../docs/references.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		if cell, ok := strings.CutPrefix(line, "| ["); ok {
			key, _, _ := strings.Cut(cell, "]")
			listed[key]++
		}
	}
	for key, n := range listed {
		if n > 1 {
			t.Errorf("[%s] stands for %d works", key, n)
		}
	}
	cited := make(map[string]bool)
	cite := func(where, text string) {
		for _, match := range citation.FindAllStringSubmatch(text, -1) {
			cited[match[1]] = true
			if listed[match[1]] == 0 {
				t.Errorf("%s cites [%s], which is not in docs/references.md", where, match[1])
			}
		}
		if key := initials.FindString(text); key != "" {
			t.Errorf("%s: %s is no author and year", where, key)
		}
	}
	err = filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			for line := range strings.Lines(string(text)) {
				if !strings.HasPrefix(line, "| [") { // a reference itself
					cite(path, line)
				}
			}
			return err
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		for _, group := range file.Comments {
			for _, line := range group.List {
				if path != filepath.Join("..", "tests", "references_test.go") {
					cite(files.Position(line.Pos()).String(), line.Text)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range listed {
		if !cited[key] {
			t.Errorf("[%s] is listed and nowhere cited", key)
		}
	}
}
