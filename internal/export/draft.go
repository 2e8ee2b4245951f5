package export

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

// draftName is the folder, within the one for the files, in which they are written. It also
// keeps a second export away.
const draftName = ".tailor-export"

// draft is files that get their names when all are written.
type draft struct {
	dir   string
	made  bool // the folder was not there before
	names []string
}

// newDraft makes the folder for the files, if it is not there, and the one within.
func newDraft(dir string) (*draft, error) {
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	err := os.Mkdir(dir, 0o700)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	d := &draft{dir: dir, made: err == nil}
	if err := AssertEmpty(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(filepath.Join(dir, draftName), 0o700); err != nil {
		return nil, errors.Join(err, d.discard())
	}
	return d, nil
}

// AssertEmpty fails if there is anything in a folder.
func AssertEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case len(entries) == 1 && entries[0].Name() == draftName:
		return &Fault{
			"another export to " + dir + " is under way, or was killed",
			"if none is, remove " + filepath.Join(dir, draftName),
		}
	case len(entries) > 0:
		return &Fault{"there are files in " + dir, "name a folder that is empty or not there"}
	}
	return nil
}

// write writes a file.
func (d *draft) write(name string, write func(io.Writer) error) error {
	d.names = append(d.names, name)
	return atomicfile.WriteNew(filepath.Join(d.dir, draftName, name), 0o600, write)
}

// publish gives the files their names, in the order in which they were written, or none.
func (d *draft) publish() (err error) {
	for i, name := range d.names {
		to := filepath.Join(d.dir, name)
		if _, err = os.Lstat(to); err == nil {
			err = fmt.Errorf("%s: %w", to, fs.ErrExist)
		} else {
			err = os.Rename(filepath.Join(d.dir, draftName, name), to)
		}
		if err != nil {
			for _, moved := range d.names[:i] {
				err = errors.Join(err, os.Remove(filepath.Join(d.dir, moved)))
			}
			return err
		}
	}
	d.made = false
	return nil
}

// discard removes what is not published.
func (d *draft) discard() error {
	err := os.RemoveAll(filepath.Join(d.dir, draftName))
	if d.made {
		err = errors.Join(err, os.Remove(d.dir))
	}
	return err
}
