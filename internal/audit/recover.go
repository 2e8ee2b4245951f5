package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// rescued is what a start found of a journal whose file was cut, replaced or
// moved away: how many records, the file that they were set aside as, and the
// hash of the record before them.
type rescued struct {
	records int
	name    string
	after   string
}

// recover opens the current file and finds the last line of all.
func (f *file) recover() (head, error) {
	if err := f.begin(); err != nil {
		return head{}, err
	}
	if err := f.restore(); err != nil {
		return head{}, err
	}
	info, err := f.current.Stat()
	if err != nil {
		return head{}, err
	}
	last, end, err := lastLine(f.current, info.Size())
	if err != nil {
		return head{}, err
	}
	if end < info.Size() {
		if err := f.current.Truncate(end); err != nil {
			return head{}, err
		}
	}
	f.size = end
	if err := f.sync(); err != nil {
		return head{}, err
	}
	f.journal, _ = openJournal(f.path)
	if last == nil {
		if last, err = f.lastAside(); err != nil || last == nil {
			return head{}, err
		}
	}
	l, err := unseal(last)
	if err != nil {
		return head{}, fmt.Errorf("the last line of %s: %w; set the file aside to begin a new chain",
			f.path, err)
	}
	return head{l.Log, l.Sequence, l.Hash}, nil
}

// restore gives the current file back what its journal holds: a crash of the
// machine may have taken what the file held on top of what it was flushed with.
// Where the file does not reach to where the journal begins, or is another, the
// lines are kept apart from it.
func (f *file) restore() error {
	j, err := readJournal(f.path)
	if err != nil || len(j.lines) == 0 {
		return err
	}
	fits, err := j.continues(f.current)
	if err != nil {
		return err
	}
	if !fits {
		return f.keepApart(j)
	}
	if f.givenBack, err = j.missing(f.current); err != nil || f.givenBack == 0 {
		return err
	}
	_, err = f.current.WriteAt(j.lines, j.At)
	return err
}

// keepApart sets aside the current file, where it holds anything, and after it
// the lines of a journal that do not continue it. They are the youngest that
// were promised, so the chain goes on from them, and what is missing between the
// two is missing for every verification. A crash on the way changes nothing.
func (f *file) keepApart(j *journaled) error {
	kept, err := f.lastAside()
	if err != nil {
		return err
	}
	if l, err := unseal(kept); err != nil || l.Hash != j.last.Hash {
		if err := f.setApart(j); err != nil {
			return err
		}
	}
	empty := &journal{path: journalPath(f.path)}
	if empty.file, err = os.OpenFile(empty.path, os.O_RDWR, 0); err != nil {
		return err
	}
	defer empty.close()
	return empty.clear()
}

func (f *file) setApart(j *journaled) error {
	info, err := f.current.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		if err := f.current.Sync(); err != nil {
			return err
		}
		next, err := nextAside(f.path)
		if err != nil {
			return err
		}
		if err := os.Rename(f.path, next); err != nil {
			return err
		}
		_ = f.current.Close()
		f.current = nil
	}
	next, err := nextAside(f.path)
	if err != nil {
		return err
	}
	if err := writeDurably(next, j.lines); err != nil {
		return err
	}
	f.rescued = rescued{j.records(), next, j.After}
	if f.current == nil {
		return f.begin()
	}
	return f.count()
}

// writeDurably makes a file that holds all of a text or is not there.
func writeDurably(name string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".tmp*") // with mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return syncDirectory(name)
}
