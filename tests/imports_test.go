package tests

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hiatus-tailor/tailor/"

// allowed says which of the main packages each may import, directly or not.
var allowed = map[string][]string{
	"anonymize": {},
	"ecg":       {"anonymize"},
	"catalog":   {"anonymize", "anonymize/identify", "ecg", "internal/sqlstate", "internal/words"},
	"planner":   {"anonymize", "anonymize/identify", "ecg", "catalog", "internal/sqlstate", "internal/sqltext", "internal/words"},
	"proxy": {
		"anonymize", "anonymize/identify", "ecg", "catalog", "planner", "internal/sqlstate", "internal/sqltext",
		"internal/audit", "internal/words", "internal/metrics",
	},
}

// engine starts the names of packages that count as anonymize itself.
const engine = "anonymize/"

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
			if ok && own != name && !slices.Contains(may, own) {
				t.Errorf("%s imports %s", name, own)
			}
			if (name == "anonymize" || name == "ecg") && slices.Contains([]string{"net", "database/sql"}, dependency) {
				t.Errorf("%s is to be pure and imports %s", name, dependency)
			}
		}
	}
}
