package audit

import "syscall"

// flush makes lines durable that stand at the end of the current file: in the
// journal, or the file itself where that has no room.
func (f *file) flush(lines []byte) error {
	if f.journal != nil && f.journal.takes(len(lines)) {
		return f.journal.add(lines, f.current, f.size)
	}
	if err := f.sync(); err != nil {
		return err
	}
	if f.journal != nil && !f.journal.named() {
		f.journal.close()
		f.journal = nil
	}
	if f.journal == nil {
		f.journal, _ = openJournal(f.path)
	}
	return nil
}

// sync makes the current file durable by itself.
func (f *file) sync() error {
	err := syscall.Fdatasync(int(f.current.Fd()))
	if err == nil && f.journal != nil {
		f.journal.used = 0
	}
	return err
}

// end makes the current file durable and its journal empty, before another file
// takes its name.
func (f *file) end() error {
	if err := f.sync(); err != nil {
		f.doubt = true
		return err
	}
	if f.journal == nil {
		return nil
	}
	return f.journal.clear()
}

// recoverFile comes to a known state after a failure. A kernel that failed to write a
// page may take it for written, so what the journal holds is written again;
// and what a failed write left in the journal is not to come back from there.
func (f *file) recoverFile() error {
	if !f.doubt || f.current == nil {
		return nil
	}
	if f.journal != nil {
		j, err := readJournal(f.path)
		if err != nil {
			return err
		}
		if _, err := f.current.WriteAt(j.lines[:min(len(j.lines), int(f.journal.used))],
			j.At); err != nil {
			return err
		}
	}
	if err := f.current.Truncate(f.size); err != nil {
		return err
	}
	if err := f.end(); err != nil {
		return err
	}
	f.doubt = false
	return nil
}
