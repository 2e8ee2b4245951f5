package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// file is the sink of JSON lines. Lines that it has taken are on the disk, here
// or in the journal, and a batch is on it as a whole or not at all: what a
// failed write left is cut off. It belongs to the log's one writer.
type file struct {
	path          string
	most, total   int64 // see Config
	lock, current *os.File
	journal       *journal // nil where it could not be made; each batch is flushed here then
	size          int64    // of what is known to be durable
	aside         int64    // bytes of the files set aside
	givenBack     int      // lines, by the journal, when the file was opened
	rescued       rescued  // by then, from a journal that does not continue the file
	doubt         bool     // a write has failed: what the disk holds is not known
}

// errFull is returned where the files hold as much as they may.
var errFull = errors.New("the audit files hold as much as audit.total_bytes allows; move those " +
	"set aside away")

// openFile takes up the file, cuts off a line that was never finished, and
// returns the head of the chain that it holds.
func openFile(path string, most, total int64) (*file, head, error) {
	f := &file{path: path, most: most, total: total}
	var err error
	if f.lock, err = os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, head{}, err
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.lock.Close()
		return nil, head{},
			fmt.Errorf("%s is written by another process: each proxy needs a file of its own", path)
	}
	h, err := f.recover()
	if err != nil {
		f.close()
		return nil, head{}, err
	}
	return f, h, nil
}

// written says whether a process writes the file now, also where that cannot be
// found out.
func written(path string) bool {
	lock, err := os.Open(path + ".lock")
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	defer func() { _ = lock.Close() }()
	return syscall.Flock(int(lock.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

// begin opens the current file, making it where there is none.
func (f *file) begin() error {
	current, err := os.OpenFile(f.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	// A device or a pipe gives back nothing, and must not be set aside.
	if info, err := current.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = current.Close()
		return errors.Join(err, fmt.Errorf("%s is not a file", f.path))
	}
	if err := syncDirectory(f.path); err != nil {
		_ = current.Close()
		return err
	}
	f.current, f.size = current, 0
	return f.count()
}

// count adds up the files that were set aside.
func (f *file) count() error {
	names, err := setAside(f.path)
	if err != nil {
		return err
	}
	f.aside = 0
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			f.aside += info.Size()
		}
	}
	return nil
}

// write makes lines durable, each of which ends with a newline.
func (f *file) write(lines []byte) error {
	if err := f.recoverFile(); err != nil {
		return err
	}
	if err := f.rotate(int64(len(lines))); err != nil {
		return err
	}
	if f.total > 0 && f.aside+f.size+int64(len(lines)) > f.total {
		if err := f.count(); err != nil || f.aside+f.size+int64(len(lines)) > f.total {
			return errors.Join(errFull, err)
		}
	}
	_, err := f.current.WriteAt(lines, f.size)
	if err == nil {
		err = f.flush(lines)
	}
	if err != nil {
		// Nothing of the batch was promised to anybody.
		f.doubt = true
		return errors.Join(err, f.current.Truncate(f.size))
	}
	f.size += int64(len(lines))
	return nil
}

// rotate sets the current file aside where it is full, or where somebody else
// has changed it, and begins a new one.
func (f *file) rotate(more int64) error {
	if f.current == nil {
		return f.begin()
	}
	there, size, err := identify(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist): // moved away: what it holds is its owner's
		if err := f.end(); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		here, _, err := identifyOpen(f.current)
		if err != nil {
			return err
		}
		if here == there && size == f.size && (f.size == 0 || f.size+more <= f.most) {
			return nil
		}
		if err := f.end(); err != nil {
			return err
		}
		next, err := nextAside(f.path)
		if err != nil {
			return err
		}
		if err := os.Rename(f.path, next); err != nil {
			return err
		}
	}
	_ = f.current.Close() // all of it is durable
	f.current = nil
	return f.begin()
}

// close leaves a file that needs no journal, unless that cannot be had.
func (f *file) close() {
	if f.journal != nil {
		if f.current == nil || f.recoverFile() == nil && f.sync() == nil {
			_ = os.Remove(f.journal.path)
		}
		f.journal.close()
	}
	if f.current != nil {
		_ = f.current.Close()
	}
	_ = f.lock.Close() // gives up the lock
}

// lastAside is the last line of the youngest file that was set aside and holds
// any.
func (f *file) lastAside() ([]byte, error) {
	names, err := setAside(f.path)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(names) {
		aside, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		info, err := aside.Stat()
		var line []byte
		if err == nil {
			line, _, err = lastLine(aside, info.Size())
		}
		_ = aside.Close()
		if err != nil || line != nil {
			return line, err
		}
	}
	return nil, nil
}

// setAside lists the files that were set aside, the oldest first.
func setAside(path string) ([]string, error) {
	names, err := filepath.Glob(escapeGlob(path) + ".[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]")
	slices.Sort(names)
	return names, err
}

func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// nextAside is the name under which the current file is to be set aside.
func nextAside(path string) (string, error) {
	names, err := setAside(path)
	if err != nil {
		return "", err
	}
	number := 0
	if len(names) > 0 {
		if _, err := fmt.Sscanf(strings.TrimPrefix(names[len(names)-1], path), ".%08d",
			&number); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s.%08d", path, number+1), nil
}

// syncDirectory makes the names in the folder of a file durable.
func syncDirectory(path string) error {
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = directory.Close() }()
	return directory.Sync()
}
