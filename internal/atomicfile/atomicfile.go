// Package atomicfile writes files that are there in whole or not at all.
package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Write makes or replaces a file with what write produces. The file appears
// under its name only when all of it is on disk; on an error nothing is left
// behind and an older file stays as it was. A new file has the mode 0600.
func Write(path string, write func(io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if err := write(f); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
