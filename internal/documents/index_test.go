package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a link of Markdown to a file: neither to another site nor within the document.
var link = regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)\s]*)?\)`)

// links are the files that a document links to, from the repository on.
func links(t *testing.T, name string) (out []string) {
	t.Helper()
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(document(t, name), ""), -1) {
		out = append(out, filepath.Join(filepath.Dir(name), m[1]))
	}
	return out
}

// TestEveryDocumentIsInTheIndex: each file below docs/ is linked from docs/README.md; one that
// is no Markdown may be so by its folder.
func TestEveryDocumentIsInTheIndex(t *testing.T) {
	linked := make(map[string]bool)
	for _, name := range links(t, "docs/README.md") {
		linked[name] = true
	}
	for name := range read(t).paths {
		info, err := os.Stat(filepath.Join(root, name))
		switch {
		case !strings.HasPrefix(name, "docs/") || name == "docs/README.md" || err != nil || info.IsDir():
		case linked[name]:
		case filepath.Ext(name) != ".md" && linked[filepath.Dir(name)]:
		default:
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// TestLinksLeadSomewhere: what documents link to is there.
func TestLinksLeadSomewhere(t *testing.T) {
	known := read(t)
	for name := range known.paths {
		folder := filepath.Dir(name)
		if filepath.Ext(name) != ".md" || folder != "." && !strings.HasPrefix(folder, "docs") {
			continue
		}
		for _, target := range links(t, name) {
			if !known.paths[target] {
				t.Errorf("%s links to %s, which is not there", name, target)
			}
		}
	}
}

var status = regexp.MustCompile(`\A# .+\n\nStatus: [^\n]* (?:since|from) \d{4}-\d\d-\d\d\b`)

// TestDecisionsSayTheirStatus: below the title stands what has become of a decision, and since
// when.
func TestDecisionsSayTheirStatus(t *testing.T) {
	for name := range read(t).paths {
		if strings.HasPrefix(name, "docs/decisions/") && !status.MatchString(document(t, name)) {
			t.Errorf("%s does not say its status and since when below its title", name)
		}
	}
}
