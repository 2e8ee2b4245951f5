package atomicfile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

// onlyEntries fails if the folder holds anything else.
func onlyEntries(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	if strings.Join(found, " ") != strings.Join(names, " ") {
		t.Errorf("the folder holds %q, want %q", found, names)
	}
}

func wantFile(t *testing.T, path, want string, mode os.FileMode) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, want)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != mode {
		t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, mode)
	}
}

func TestADeviceIsWrittenToAndStaysADevice(t *testing.T) {
	dir := t.TempDir()
	device := filepath.Join(dir, "null")
	if err := syscall.Mknod(device, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		t.Skipf("a device cannot be made here: %v", err)
	}
	if err := os.Chmod(device, 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "sink")
	if err := os.Symlink("null", link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{device, link} {
		if err := atomicfile.Write(path, 0o600, text("gone")); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	info, err := os.Lstat(device)
	if err != nil || info.Mode() != fs.ModeDevice|fs.ModeCharDevice|0o666 {
		t.Errorf("the device has become %v, %v", info.Mode(), err)
	}
	onlyEntries(t, dir, "null", "sink")
}

func TestAPipeIsWrittenToAndStaysAPipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o640); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that neither side waits
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := atomicfile.Write(pipe, 0o600, text("through")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(pipe); err != nil || info.Mode() != fs.ModeNamedPipe|0o640 {
		t.Fatalf("the pipe has become %v, %v", info.Mode(), err)
	}
	got := make([]byte, len("through"))
	if _, err := io.ReadFull(r, got); err != nil || string(got) != "through" {
		t.Errorf("the pipe gave %q, %v", got, err)
	}
	onlyEntries(t, dir, "pipe")
}

func TestAnOpenDescriptorIsContinuedWhereItStands(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := filepath.Join("/dev/fd", strconv.Itoa(int(f.Fd())))
	if _, err := os.Stat(name); err != nil {
		t.Skip("no /dev/fd here")
	}
	for _, write := range []func() error{
		func() error { return text("before,")(f) },
		func() error { return atomicfile.Write(name, 0o600, text("between,")) },
		func() error { return text("after")(f) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	wantFile(t, path, "before,between,after", 0o644&^umask())
}

func TestALinkLeadsToItsTarget(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"far", "near"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	target, near := filepath.Join(dir, "far", "target"), filepath.Join(dir, "near")
	for link, to := range map[string]string{"one": "two", "two": "../far/target"} {
		if err := os.Symlink(to, filepath.Join(near, link)); err != nil {
			t.Fatal(err)
		}
	}
	// The first makes the target of a link that dangles.
	for _, s := range []string{"first", "second"} {
		if err := atomicfile.Write(filepath.Join(near, "one"), 0o600, text(s)); err != nil {
			t.Fatal(err)
		}
		wantFile(t, target, s, 0o600)
	}
	onlyEntries(t, near, "one", "two")
	onlyEntries(t, filepath.Join(dir, "far"), "target")
	if to, err := os.Readlink(filepath.Join(near, "one")); err != nil || to != "two" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	circle := filepath.Join(near, "circle")
	if err := os.Symlink("circle", circle); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(circle, 0o600, text("never")); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
}

func TestAFileThatWasThereKeepsModeAndOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o664); err != nil {
		t.Fatal(err)
	}
	owned := os.Chown(path, 12345, 23456) == nil
	if err := atomicfile.Write(path, 0o600, text("second")); err != nil {
		t.Fatal(err)
	}
	wantFile(t, path, "second", 0o664)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := info.Sys().(*syscall.Stat_t); owned && (s.Uid != 12345 || s.Gid != 23456) {
		t.Errorf("the file belongs to %d and %d", s.Uid, s.Gid)
	}
}

func TestAFileThatMayNotBeWrittenStays(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everything")
	}
	path := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(path, []byte("first"), 0o400); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(path, 0o600, text("second")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	wantFile(t, path, "first", 0o400)
}

func TestAFolderIsNoFile(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "sub")
	if err := os.Mkdir(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{sub, sub + "/", ""} {
		if err := atomicfile.Write(path, 0o600, text("never")); err == nil {
			t.Errorf("%q was written", path)
		}
	}
	onlyEntries(t, dir, "sub")
}

func TestTheLongestNameIsWritten(t *testing.T) {
	dir := t.TempDir()
	name := strings.Repeat("x", 255)
	if err := atomicfile.Write(filepath.Join(dir, name), 0o600, text("long")); err != nil {
		t.Fatal(err)
	}
	onlyEntries(t, dir, name)
}

func TestANewFileReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	path, link, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir,
		"pipe")
	if err := errors.Join(os.WriteFile(path, []byte("first"), 0o600), os.Symlink("nowhere", link),
		syscall.Mkfifo(pipe, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, link, pipe} {
		if err := atomicfile.WriteNew(path, 0o600, text("second")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	wantFile(t, path, "first", 0o600)
	if err := atomicfile.WriteNew(filepath.Join(dir, "new"), 0o600, text("new")); err != nil {
		t.Error(err)
	}
	wantFile(t, filepath.Join(dir, "new"), "new", 0o600)
	onlyEntries(t, dir, "file", "link", "new", "pipe")
}

func umask() os.FileMode {
	mask := syscall.Umask(0)
	syscall.Umask(mask)
	return os.FileMode(mask)
}
