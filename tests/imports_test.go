package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hiatus-tailor/tailor/"

// allowed says which of the main packages each may import, directly or not.
var allowed = map[string][]string{
	"anonymize": {},
	"ecg":       {"anonymize"},
	"catalog": {
		"anonymize", "anonymize/identify", "ecg", "internal/sqlstate",
		"internal/ahocorasick",
	},
	"planner": {
		"anonymize", "anonymize/identify", "ecg", "catalog", "internal/sqlstate",
		"internal/sqltext", "internal/ahocorasick",
	},
	"proxy": {
		"anonymize", "anonymize/identify", "ecg", "catalog", "planner", "internal/sqlstate",
		"internal/sqltext",
		"internal/audit", "internal/ahocorasick", "internal/metrics",
	},
}

// engine starts the names of packages that count as anonymize itself.
const engine = "anonymize/"

// leaves starts the names of packages of the proxy's own, which import nothing of it.
const leaves = "proxy/internal/"

func TestImportsPointOneWay(t *testing.T) {
	for name, may := range allowed {
		output, err := exec.Command("go", "list", "-deps", module+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		for dependency := range strings.FieldsSeq(string(output)) {
			own, ok := strings.CutPrefix(dependency, module)
			if strings.HasPrefix(own, engine) {
				own = "anonymize"
			}
			if strings.HasPrefix(own, leaves) {
				own = "proxy"
			}
			if ok && own != name && !slices.Contains(may, own) {
				t.Errorf("%s imports %s", name, own)
			}
			if (name == "anonymize" || name == "ecg") &&
				slices.Contains([]string{"net", "database/sql"}, dependency) {
				t.Errorf("%s is to be pure and imports %s", name, dependency)
			}
		}
	}
}

// TestCommandsWriteFilesByOnePackage: what replaces devices and links, or leaves half a
// file, is no matter of one command (cmd/tailor/outfiles_test.go tries those without a
// database).
func TestCommandsWriteFilesByOnePackage(t *testing.T) {
	files, err := filepath.Glob("../cmd/tailor/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("no commands: %v", err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range []string{"os.Create(", "os.WriteFile(", "os.OpenFile(", "os.Rename("} {
			if strings.Contains(string(text), call) {
				t.Errorf("%s calls %s…): internal/atomicfile writes files", file, call)
			}
		}
	}
}
