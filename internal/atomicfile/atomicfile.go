// Package atomicfile writes files that are there in whole or not at all, and
// replaces nothing but files.
package atomicfile

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Write makes or replaces a file with what write produces. Links are followed.
// The file appears under its name only when all of it is on disk; on an error
// nothing is left behind and an older file stays as it was, and a new one has
// the mode, less the umask. A file that is replaced keeps its mode, and its
// owner where that is allowed; one that may not be written stays. What is no
// file (a device, a pipe, /dev/stdout) is written to as it is.
func Write(path string, mode os.FileMode, write func(io.Writer) error) error {
	path, info, err := resolve(path)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(path, "/proc/"):
		return inPlace(path, write)
	case info == nil:
		return replace(path, mode, nil, write)
	case info.Mode().IsRegular():
		if err := writable(path); err != nil {
			return err
		}
		return replace(path, 0o600, info, write)
	}
	return inPlace(path, write)
}

// WriteNew is Write for a name that is not taken, not even by a link; the error
// is fs.ErrExist otherwise.
func WriteNew(path string, mode os.FileMode, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}
	}
	return Write(path, mode, write)
}

// resolve follows links to the name that they end at, in a folder without
// links, and tells what is there: nil for nothing. Names in /proc are left as
// they are, since the kernel resolves what they stand for.
func resolve(path string) (string, fs.FileInfo, error) {
	given := path
	for range 40 { // as the kernel does
		dir, base := filepath.Split(path)
		if base == "" {
			return "", nil, &fs.PathError{Op: "write", Path: given, Err: syscall.EISDIR}
		}
		if dir == "" {
			dir = "."
		}
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", nil, err
		}
		path = filepath.Join(dir, base)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return path, nil, nil
		case err != nil:
			return "", nil, err
		case info.Mode()&fs.ModeSymlink == 0, strings.HasPrefix(path, "/proc/"):
			return path, info, nil
		}
		to, err := os.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		if path = to; !filepath.IsAbs(to) {
			path = dir + string(filepath.Separator) + to // not cleaned: a part may be a link
		}
	}
	return "", nil, &fs.PathError{Op: "write", Path: given, Err: syscall.ELOOP}
}

// writable says whether an open for writing would be allowed.
func writable(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// inPlace writes to what is there. A descriptor of this process is continued
// where it stands, as the shell does.
func inPlace(path string, write func(io.Writer) error) error {
	var f *os.File
	own, isOwn := strings.CutPrefix(path, fmt.Sprintf("/proc/%d/fd/", os.Getpid()))
	if number, err := strconv.Atoi(own); isOwn && err == nil {
		fd, err := syscall.Dup(number)
		if err != nil {
			return &fs.PathError{Op: "open", Path: path, Err: err}
		}
		f = os.NewFile(uintptr(fd), path)
	} else if f, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// replace writes a file beside the path, and gives it the path's name when it
// is on disk. old is the file that has the name now, or nil.
func replace(
	path string, mode os.FileMode, old fs.FileInfo, write func(io.Writer) error,
) (err error) {
	beside := filepath.Join(filepath.Dir(path), ".tailor-"+rand.Text())
	f, err := os.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	err = write(f)
	if err == nil && old != nil {
		err = keep(f, old)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// keep gives a file the owner and the mode of an old one. If the group cannot
// be kept, the new group may do no more than others may.
func keep(f *os.File, old fs.FileInfo) error {
	mode := old.Mode().Perm()
	owner, ok := old.Sys().(*syscall.Stat_t)
	if ok && f.Chown(int(owner.Uid), int(owner.Gid)) != nil && f.Chown(-1, int(owner.Gid)) != nil {
		mode = mode&^0o070 | mode&0o007<<3
	}
	return f.Chmod(mode)
}
