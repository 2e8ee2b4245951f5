package audit

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file of records is set aside when it is full; a device must not be.
func TestAnAuditFileIsAFile(t *testing.T) {
	for name, mode := range map[string]uint32{
		"null": syscall.S_IFCHR | 0o666,
		"pipe": syscall.S_IFIFO | 0o600,
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := syscall.Mknod(path, mode, 1<<8|3); err != nil {
			t.Skipf("a device cannot be made here: %v", err)
		}
		before, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := openFile(path, 100, 0)
		if err == nil {
			_ = f.write([]byte(strings.Repeat("x", 80) + "\n"))
			_ = f.write([]byte(strings.Repeat("x", 80) + "\n"))
			f.close()
			t.Errorf("%s was taken for a file", name)
		} else if !strings.Contains(err.Error(), "not a file") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(path); err != nil || !os.SameFile(before, after) ||
			after.Mode()&fs.ModeType == 0 {
			t.Errorf("%s has become %v, %v", name, after, err)
		}
	}
}
