package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fileWriters are commands that write a file and need no database, by the flag
// that names it.
func fileWriters(t *testing.T) map[string][]string {
	_, files := workloadFiles(t)
	recode := append([]string{"anonymize", "--k", "2", "--subject", "id"}, files[:6]...)
	set := []string{"disassociate", "--data", setValuedFile(t, 100), "--k", "2", "--m", "2"}
	return map[string][]string{
		"anonymize --out":       append(recode, "--out"),
		"anonymize --report":    append(recode, "--report"),
		"disassociate --out":    append(set, "--out"),
		"disassociate --report": append(set, "--report"),
		"workload --report":     append(append([]string{"workload", "--k", "2"}, files...), "--report"),
	}
}

func TestOutputToADeviceLeavesTheDevice(t *testing.T) {
	for name, args := range fileWriters(t) {
		t.Run(name, func(t *testing.T) {
			device := filepath.Join(t.TempDir(), "null")
			if err := syscall.Mknod(device, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
				t.Skipf("a device cannot be made here: %v", err)
			}
			before, err := os.Lstat(device)
			if err != nil {
				t.Fatal(err)
			}
			if code, _, fault := tailor(t, append(args, device)...); code != exitSuccess {
				t.Errorf("exit %d: %s", code, fault)
			}
			after, err := os.Lstat(device)
			if err != nil || !os.SameFile(before, after) || after.Mode()&fs.ModeCharDevice == 0 {
				t.Errorf("the device has become %v, %v", after.Mode(), err)
			}
		})
	}
}

func TestOutputToALinkReachesItsTargetWithItsMode(t *testing.T) {
	for name, args := range fileWriters(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			target, link := filepath.Join(dir, "target"), filepath.Join(dir, "link")
			if err := os.WriteFile(target, []byte("old"), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("target", link); err != nil {
				t.Fatal(err)
			}
			if code, _, fault := tailor(t, append(args, link)...); code != exitSuccess {
				t.Fatalf("exit %d: %s", code, fault)
			}
			if to, err := os.Readlink(link); err != nil || to != "target" {
				t.Errorf("the link is gone: %q, %v", to, err)
			}
			info, err := os.Stat(target)
			if err != nil || info.Mode() != 0o640 || info.Size() == int64(len("old")) {
				t.Errorf("the target is %v with %d bytes, %v", info.Mode(), info.Size(), err)
			}
		})
	}
}

// asCommand makes the test binary run its arguments as a command.
const asCommand = "TAILOR_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(dispatch(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// withoutRoom runs a command that can add nothing to any file.
func withoutRoom(t *testing.T, args ...string) (code int, fault string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh",
		append([]string{"-c", `ulimit -f 0; exec "$0" "$@"`, os.Args[0]}, args...)...)
	command.Env = append(os.Environ(), asCommand+"=1")
	var errs bytes.Buffer
	command.Stderr = &errs
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode(), errs.String()
}

func TestAFullDiskLeavesTheOldFileWhole(t *testing.T) {
	for name, args := range fileWriters(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "out")
			if err := os.WriteFile(path, []byte("old"), 0o640); err != nil {
				t.Fatal(err)
			}
			code, fault := withoutRoom(t, append(args, path)...)
			if code != exitFailure || strings.Count(fault, "\n") != 1 {
				t.Errorf("exit %d: %s", code, fault)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
				t.Errorf("the file holds %q, %v", text, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
				t.Errorf("%d files are left, %v", len(left), err)
			}
		})
	}
}
