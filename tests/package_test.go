package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// shipped says what of the package has which mode. Nothing in it is for everybody to write.
var shipped = map[string]os.FileMode{
	"usr/bin/tailor":                               0o755,
	"etc/tailor":                                   0o750,
	"etc/tailor/tailor.yaml":                       0o640,
	"lib/systemd/system/tailor.service":            0o644,
	"usr/share/bash-completion/completions/tailor": 0o644,
	"usr/share/doc/tailor":                         0o755,
	"usr/share/doc/tailor/copyright":               0o644,
	"usr/share/doc/tailor/changelog.gz":            0o644,
	"usr/share/doc/tailor/licenses.gz":             0o644,
	"usr/share/doc/tailor/runbook.md":              0o644,
	"usr/share/man/man1":                           0o755,
	"usr/share/man/man1/tailor.1.gz":               0o644,
	"usr/share/man/man1/tailor-serve.1.gz":         0o644,
	"usr/share/man/man1/tailor-policy-plan.1.gz":   0o644,
}

// TestThePackageIsUnpackedAndServes: the package of this machine, with the file of configuration
// that is in it but for the addresses.
func TestThePackageIsUnpackedAndServes(t *testing.T) {
	soakOnly(t)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip(err)
	}
	out, dir := t.TempDir(), t.TempDir()
	run := func(in, name string, args ...string) {
		t.Helper()
		command := exec.Command(name, args...)
		command.Dir = in
		command.Env = append(os.Environ(), "DIST="+out, "ARCHS="+runtime.GOARCH)
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, output)
		}
	}
	run("..", "scripts/dist")
	run(out, "sha256sum", "--check", "--strict", "SHA256SUMS")
	for _, kind := range []string{"*.deb", "*.cdx.json"} {
		if made, _ := filepath.Glob(filepath.Join(out, kind)); len(made) != 1 {
			t.Fatalf("%d files %s", len(made), kind)
		}
	}
	packages, _ := filepath.Glob(filepath.Join(out, "*.deb"))
	run(out, "dpkg-deb", "--extract", packages[0], dir)
	for name, want := range shipped {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v, want %v", name, info, err, want)
		}
	}
	p := shared.serveBinary(t, filepath.Join(dir, "usr/bin/tailor"), "--config",
		filepath.Join(dir, "etc/tailor/tailor.yaml"), "--metrics", "127.0.0.1:0")
	conn := connect(t, p.dsn(shared.reader(t)))
	if n := one[int](t, conn, "SELECT count(*) FROM patients"); n != patients {
		t.Errorf("%d patients", n)
	}
	base := strings.TrimPrefix(p.operations(t), "http://")
	run(dir, filepath.Join(dir, "usr/bin/tailor"), "health", "--metrics", base)
}
