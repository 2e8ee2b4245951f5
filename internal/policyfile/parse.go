package policyfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxSize is the size of a file, in bytes, above which it is not read.
const MaxSize = 16 << 20

// Parse reads a file. It returns the File where there are no faults, and all
// faults in the order of the file otherwise. A file that is no YAML has one.
func Parse(source []byte) (*File, []Fault) {
	if len(source) > MaxSize {
		return nil, []Fault{{
			1, 1, fmt.Sprintf("the file has more than %d bytes", MaxSize),
			"keep code lists in tables, and name them by source",
		}}
	}
	var document yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(source))
	if err := decoder.Decode(&document); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, []Fault{{1, 1, "the file is empty", "it starts with version: 1"}}
		}
		return nil, []Fault{syntaxFault(err)}
	}
	var second yaml.Node
	switch err := decoder.Decode(&second); {
	case err == nil:
		return nil, []Fault{{
			max(1, second.Line), max(1, second.Column), "a second document",
			"keep one document in a file",
		}}
	case !errors.Is(err, io.EOF):
		return nil, []Fault{syntaxFault(err)}
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return nil, []Fault{{1, 1, "the file is empty", "it starts with version: 1"}}
	}
	r := &reader{}
	f := r.file(document.Content[0])
	if len(r.faults) > 0 {
		sortFaults(r.faults)
		return nil, r.faults
	}
	return f, nil
}

var syntaxPlace = regexp.MustCompile(`line (\d+)(?:, column (\d+))?`)

// syntaxFault keeps the place of an error of the YAML reader, and its reason.
func syntaxFault(err error) Fault {
	text := strings.Join(strings.Fields(err.Error()), " ")
	f := Fault{
		Line: 1, Column: 1, Message: "not YAML: " + strings.TrimPrefix(text, "yaml: "),
		Hint: "check indents, quotes and brackets",
	}
	if m := syntaxPlace.FindStringSubmatch(text); m != nil {
		f.Line, _ = strconv.Atoi(m[1])
		if m[2] != "" {
			f.Column, _ = strconv.Atoi(m[2])
		}
	}
	return f
}

func (r *reader) file(n *yaml.Node) *File {
	f := &File{}
	keys := r.keys(n, "the file", []string{"version", "tables"}, []string{"hierarchies"})
	if e, ok := keys["version"]; ok && r.whole(e.value, "version", 1) > 1 {
		r.fault(e.value, "this program reads version 1", "unknown version")
	}
	if e, ok := keys["hierarchies"]; ok {
		for _, h := range r.mapping(e.value, "hierarchies") {
			r.checkName(h.at, h.key, "the name of a hierarchy")
			if strings.HasPrefix(h.key, Reserved) {
				r.fault(h.at, "choose another name, or use a built-in hierarchy without defining it",
					"names that start with %q are not for files", Reserved)
			}
			f.Hierarchies = append(f.Hierarchies, r.hierarchy(h))
		}
	}
	if e, ok := keys["tables"]; ok {
		relations := make(map[string]string)
		for _, t := range r.mapping(e.value, "tables") {
			f.Tables = append(f.Tables, r.table(f, t))
			relation := r.tableName(t)
			if other, taken := relations[relation]; taken {
				r.fault(t.at, "the schema research shows one table of a name", "table %s has the name of %s",
					t.key, other)
			}
			relations[relation] = t.key
		}
		r.sameReaders(f)
		r.ofTables(f)
	}
	return f
}

// Names as SQL reads them: folded to lower case where they are not quoted.
var qualified = regexp.MustCompile(
	`^([A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*|"(?:[^"]|"")+")\.` +
		`([A-Za-z_\x80-\xff][A-Za-z0-9_$\x80-\xff]*|"(?:[^"]|"")+")$`)

// tableName checks the name of a table and returns the part behind the schema.
func (r *reader) tableName(e entry) string {
	parts := qualified.FindStringSubmatch(e.key)
	if parts == nil {
		r.fault(e.at, "write schema.table, quoted as in SQL", "%q is no name of a table", e.key)
		return e.key
	}
	name := unquoted(parts[2])
	r.checkName(e.at, name, "the name of a table")
	return name
}

// unquoted is a name as PostgreSQL stores it, given as SQL has it.
func unquoted(name string) string {
	if name[0] == '"' {
		return strings.ReplaceAll(name[1:len(name)-1], `""`, `"`)
	}
	return strings.ToLower(name)
}

// sameReaders refuses lists that differ: a reader reads every protected table.
func (r *reader) sameReaders(f *File) {
	var first *Table
	for i := range f.Tables {
		t := &f.Tables[i]
		if t.Readers == nil {
			continue
		}
		if first == nil {
			first = t
		}
		if !slices.Equal(slices.Sorted(slices.Values(t.Readers)),
			slices.Sorted(slices.Values(first.Readers))) {
			r.faults = append(r.faults, Fault{
				t.Line, 1, fmt.Sprintf("the readers of %s are not those of %s", t.Name, first.Name),
				"a reader reads all protected tables of the database: give every table the same list",
			})
		}
	}
}
