package tests

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// filesIn are the names in a folder, and nothing if it is not there.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestAnExportThatEndsHalfWayLeavesNothing: an export has written the file of one table and
// waits for the other, when it is ended. No file has its final name; but for one that was
// killed, nothing is left at all, and the next export needs only to be started.
func TestAnExportThatEndsHalfWayLeavesNothing(t *testing.T) {
	s, _ := ownStand(t, "halfway")
	for _, c := range []struct {
		claim string
		end   func(t *testing.T, export *exec.Cmd, p *testProxy)
		says  string
		left  string
	}{
		{"Ctrl-C", func(_ *testing.T, e *exec.Cmd, _ *testProxy) {
			_ = e.Process.Signal(os.Interrupt)
		}, "interrupt", ""},
		{"SIGTERM", func(_ *testing.T, e *exec.Cmd, _ *testProxy) {
			_ = e.Process.Signal(syscall.SIGTERM)
		}, "terminated", ""},
		{"killed", func(_ *testing.T, e *exec.Cmd, _ *testProxy) {
			_ = e.Process.Kill()
		}, "", ".tailor-export"},
		{"the proxy is killed", func(_ *testing.T, _ *exec.Cmd, p *testProxy) {
			p.kill()
		}, "connection failed", ""},
		{"the server ends the session", func(t *testing.T, _ *exec.Cmd, p *testProxy) {
			mustExec(t, p.superuser(t), `SELECT pg_terminate_backend(pid) FROM pg_locks WHERE NOT granted`)
		}, "57P01", ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			p := s.serve(t)
			user := s.reader(t)
			reader := connect(t, p.dsn(user))
			blocker := s.superuser(t)
			tables := rowsOf(t, blocker, "SELECT relation FROM tailor.protection ORDER BY relation::text")
			for _, table := range tables { // whose releases the proxy has read, then
				answeredSoon(t, reader, "SELECT FROM "+strings.Trim(table, "[]"))
			}
			mustExec(t, blocker, "BEGIN")
			last := one[string](t, blocker,
				`SELECT format('tailor_store.chain_%s_row', max(chain)) FROM tailor.chain `+
					`WHERE relation = $1::regclass`,
				"public."+strings.Trim(tables[len(tables)-1], "[]"))
			mustExec(t, blocker, "LOCK TABLE "+last+" IN ACCESS EXCLUSIVE MODE",
				pgx.QueryExecModeSimpleProtocol)
			dir := filepath.Join(t.TempDir(), "out")
			var stderr bytes.Buffer
			export := exec.Command(binary, "export", "--dsn", p.dsn(user), "--out", dir)
			export.Stderr = &stderr
			if err := export.Start(); err != nil {
				t.Fatal(err)
			}
			direct := s.superuser(t)
			waitFor(t, func() bool {
				return one[bool](t, direct,
					`SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass)`, last)
			})
			c.end(t, export, p)
			done := make(chan error, 1)
			go func() { done <- export.Wait() }()
			select {
			case err := <-done:
				if err == nil {
					t.Error("the export ended without a fault")
				}
			case <-time.After(20 * time.Second):
				_ = export.Process.Kill()
				t.Fatal("the export goes on")
			}
			if code := export.ProcessState.ExitCode(); code != 1 && c.left == "" {
				t.Errorf("exit code %d", code)
			}
			if told := stderr.String(); !strings.Contains(told, c.says) || strings.Count(told, "\n") > 1 ||
				c.left == "" && told == "" {
				t.Errorf("it says %q, want %q", told, c.says)
			}
			if got := strings.Join(filesIn(t, dir), " "); got != c.left {
				t.Errorf("left behind: %s", got)
			}
			if c.left == "" {
				if _, err := os.Lstat(dir); !os.IsNotExist(err) {
					t.Errorf("the folder is there: %v", err)
				}
				return
			}
			mustExec(t, blocker, "ROLLBACK")
			_, says, code := tailor(t, "export", "--dsn", p.dsn(user), "--out", dir)
			if code != 1 || !strings.Contains(says, filepath.Join(dir, c.left)) || !strings.Contains(says,
				"remove") {
				t.Errorf("the next export: exit code %d: %s", code, says)
			}
			if err := os.RemoveAll(filepath.Join(dir, c.left)); err != nil {
				t.Fatal(err)
			}
			exportTo(t, dir, "--dsn", p.dsn(user))
		})
	}
}

// TestAnExportToAFullDiskLeavesNothing and says what is wrong: the kernel bounds the size of
// the files.
func TestAnExportToAFullDiskLeavesNothing(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	for _, format := range []string{"csv", "sql", "parquet"} {
		for _, size := range []int{1, 2000, 20000} {
			for _, made := range []bool{false, true} {
				dir := filepath.Join(t.TempDir(), "out")
				if made {
					if err := os.Mkdir(dir, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				export := exec.Command("prlimit", fmt.Sprintf("--fsize=%d", size), binary, "export", "--dsn",
					p.dsn(user), "--out", dir+"/", "--format", format)
				output, err := export.CombinedOutput()
				told := string(output)
				if err == nil || export.ProcessState.ExitCode() != 1 ||
					!strings.Contains(told, "file too large") ||
					!strings.Contains(told, "nothing was written") || strings.Count(told, "\n") != 1 {
					t.Errorf("%s, %d bytes: %v %s", format, size, err, told)
				}
				if left := filesIn(t, dir); len(left) > 0 {
					t.Errorf("%s, %d bytes: %q is left", format, size, left)
				}
				if _, err := os.Lstat(dir); made != (err == nil) {
					t.Errorf("%s, %d bytes: the folder: %v", format, size, err)
				}
			}
		}
	}
}

// TestAnExportToAPlaceThatCannotBeWritten says so, and not that the connection failed.
func TestAnExportToAPlaceThatCannotBeWritten(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{file, filepath.Join(file, "below"), "/proc/nowhere"} {
		_, stderr, code := tailor(t, "export", "--dsn", p.dsn(user), "--out", out)
		if code != 1 || !strings.Contains(stderr, out) || strings.Contains(stderr, "connection") ||
			strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", out, code, stderr)
		}
	}
}
