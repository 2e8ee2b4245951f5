package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const architecture = "docs/architecture.md"

var (
	fence = regexp.MustCompile("(?ms)^```.*?^```$")
	code  = regexp.MustCompile("`([^`]+)`")
	// placed is a file with what it declares: `file.go`: `name`, `name`.
	placed = regexp.MustCompile("`([^`]+\\.(?:go|sql))`: ((?:`[^`]+`(?:, | and )?)+)")
	// identifier may have a package or a type before it.
	identifier = regexp.MustCompile(`^\w+(\.\w+){0,2}$`)
	// stored is a table of tailor_store, with N for its number.
	stored = regexp.MustCompile(`^(?:chain_N_([a-z]+)|([a-z]+)_N)$`)
)

// TestArchitectureNamesWhatThereIs: whatever stands between backticks is a file, a folder, an
// identifier, a test, a target of make, or something that the SQL side makes; and what stands
// behind a file is declared there.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	known := read(t)
	text := prose(t, architecture)
	for _, m := range code.FindAllStringSubmatch(text, -1) {
		if !known.has(m[1]) {
			t.Errorf("%s: there is no `%s`", architecture, m[1])
		}
	}
	found := placed.FindAllStringSubmatch(text, -1)
	if len(found) < 50 {
		t.Errorf("only %d files are named with what they declare: has their form changed?", len(found))
	}
	for _, m := range found {
		for _, name := range code.FindAllStringSubmatch(m[2], -1) {
			if !known.inFile[m[1]][name[1]] {
				t.Errorf("%s: `%s` declares no `%s`", architecture, m[1], name[1])
			}
		}
	}
}

// prose is a document without its drawings, in one line.
func prose(t *testing.T, name string) string {
	t.Helper()
	return strings.Join(strings.Fields(fence.ReplaceAllString(document(t, name), "")), " ")
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// has says whether there is what a text between backticks names.
func (k *tree) has(name string) bool {
	if target, ok := strings.CutPrefix(name, "make "); ok {
		makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
		return err == nil && strings.Contains(string(makefile), "\n"+target+":")
	}
	if prefix, ok := strings.CutSuffix(name, "…"); ok {
		for test := range k.tests {
			if strings.HasPrefix(test, prefix) {
				return true
			}
		}
		return false
	}
	if m := stored.FindStringSubmatch(name); m != nil {
		if m[1] != "" {
			return strings.Contains(k.store, `table("`+m[1]+`")`) ||
				strings.Contains(k.store, `release + "_`+m[1]+`"`)
		}
		return m[2] == "chain" || strings.Contains(k.store, "tailor_store."+m[2]+"_%")
	}
	if strings.HasPrefix(name, "tailor.") || strings.HasPrefix(name, "research.") {
		for file, made := range k.inFile {
			if strings.HasSuffix(file, ".sql") && made[name] {
				return true
			}
		}
		return strings.Contains(textOf("planner/parameters.go"), `"`+name+`"`)
	}
	if schemas[name] || k.tests[name] || k.paths[strings.TrimSuffix(name, "/")] || k.bases[name] {
		return true
	}
	return identifier.MatchString(name) && k.declared[name]
}

// schemas and roles that the SQL side makes.
var schemas = map[string]bool{
	"tailor": true, "tailor_store": true, "tailor_release": true, "research": true,
	"tailor_owner": true, "tailor_reader": true, "tailor_admin": true,
}

// textOf is a file of the tree, "" for none.
func textOf(name string) string {
	text, _ := os.ReadFile(filepath.Join(root, name))
	return string(text)
}

// drawnPackages are those whose arrows are drawn.
var drawnPackages = []string{"anonymize", "ecg", "catalog", "planner", "proxy", "internal/audit"}

var arrow = regexp.MustCompile(`(?m)^\s+(\S+) --> (\S+)$`)

// TestTheDrawingOfPackagesHasTheirImports: an arrow is an import, and each import of one of
// the main packages is an arrow. anonymize stands for the packages below it.
func TestTheDrawingOfPackagesHasTheirImports(t *testing.T) {
	known := read(t)
	drawing, _, _ := strings.Cut(document(t, architecture), "\n## One protected query")
	drawn := make(map[string]map[string]bool)
	for _, m := range arrow.FindAllStringSubmatch(drawing, -1) {
		if drawn[m[1]] == nil {
			drawn[m[1]] = make(map[string]bool)
		}
		drawn[m[1]][m[2]] = true
	}
	for _, name := range drawnPackages {
		imported := make(map[string]bool)
		for other := range known.imports[name] {
			if strings.HasPrefix(other, "anonymize/") {
				other = "anonymize"
			}
			imported[other] = true
		}
		for other := range imported {
			if !drawn[name][other] {
				t.Errorf("%s imports %s, which is not drawn", name, other)
			}
		}
		for other := range drawn[name] {
			if !imported[other] {
				t.Errorf("%s does not import %s, as is drawn", name, other)
			}
		}
	}
}
