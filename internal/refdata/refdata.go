// Package refdata finds the reference data that tests and benchmarks compare
// with. It lies beside the repository, is not part of it, and may be absent.
package refdata

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a reference file, such as "arx/adult/adult.csv".
// Where the file is absent the test is skipped, or fails when CI=true.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(repositoryRoot(t), "..", "shared", "data", filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("reference data is absent: %s", name)
		}
		t.Skipf("reference data is absent: %s", name)
	}
	return path
}

// repositoryRoot is the closest folder above the working folder with a go.mod.
func repositoryRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the working folder")
		}
		dir = parent
	}
}
