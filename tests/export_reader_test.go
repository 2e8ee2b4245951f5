package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportsAreOfReleases: who is shown tables, with a proxy or without one, is refused, and so is
// a reader whose connection leads past the proxy.
func TestExportsAreOfReleases(t *testing.T) {
	p := shared.serve(t)
	reader := p.dsn(shared.reader(t))
	past := strings.Replace(reader, p.address, shared.cluster.Address(), 1)
	for dsn, want := range map[string]string{
		shared.cluster.SuperuserDSN("hospital"): "is no reader", p.dsn("dba"): "is no reader",
		past: "leads to PostgreSQL and not to a proxy",
	} {
		out := filepath.Join(t.TempDir(), "out")
		code, _, stderr := tool(t, "export", "--dsn", dsn, "--table", "patients", "--out", out)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d, %s, want %q", code, stderr, want)
		}
		if _, err := os.Stat(filepath.Join(out, "manifest.json")); err == nil {
			t.Errorf("%s: files are written", want)
		}
	}
}
