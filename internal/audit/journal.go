package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// journal makes lines durable that the file holds but the disk may not have
// yet. Its space was written once and is written over since, so that a flush
// changes no size and no map of blocks, which saves a third of its time. The
// file meanwhile ends where its last line ends, as any tool expects; it is
// flushed itself each time the journal is full, and given back from the journal
// what a crash of the machine took.
type journal struct {
	path string
	file *os.File
	used int64 // bytes of lines since the start; 0 where the start is not written yet
}

// journalStart is the first block of a journal, in JSON: the file that the lines
// belong to, where they begin in it, and the hash before the first, without
// which lines of an earlier round could be taken for this one's.
type journalStart struct {
	Inode uint64 `json:"inode"`
	At    int64  `json:"at"`
	After string `json:"after"`
}

const (
	journalBytes     = 256 << 10
	journalStartSize = 512 // one sector, which the disk writes as a whole or not at all
)

func journalPath(path string) string { return path + ".journal" }

// openJournal makes a journal, or takes up an old one, whose lines are not
// needed any more.
func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(journalPath(path), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != journalBytes {
		if _, err = file.WriteAt(make([]byte, journalBytes), 0); err == nil {
			err = errors.Join(file.Truncate(journalBytes), file.Sync(), syncDirectory(path))
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, errors.Join(err, os.Remove(journalPath(path)))
	}
	return &journal{path: journalPath(path), file: file}, nil
}

// takes says whether so many more bytes have room, where a start will find them.
func (j *journal) takes(more int) bool {
	return journalStartSize+j.used+int64(more) <= journalBytes && j.named()
}

// named says whether the journal still has its name.
func (j *journal) named() bool {
	here, _, err := identifyOpen(j.file)
	there, _, missing := identify(j.path)
	return err == nil && missing == nil && here == there
}

// add makes lines durable that stand at an offset of a file. Where it fails,
// the next lines take their place.
func (j *journal) add(lines []byte, file *os.File, at int64) error {
	text, offset := lines, journalStartSize+j.used
	if j.used == 0 {
		start, err := startOf(lines, file, at)
		if err != nil {
			return err
		}
		text, offset = append(start, lines...), 0
	}
	if _, err := j.file.WriteAt(text, offset); err != nil {
		return err
	}
	if err := syscall.Fdatasync(int(j.file.Fd())); err != nil {
		return err
	}
	j.used += int64(len(lines))
	return nil
}

// startOf is the first block before lines.
func startOf(lines []byte, file *os.File, at int64) ([]byte, error) {
	first, _, _ := bytes.Cut(lines, []byte{'\n'})
	var l link
	if err := json.Unmarshal(first, &l); err != nil {
		return nil, err
	}
	here, _, err := identifyOpen(file)
	if err != nil {
		return nil, err
	}
	start, err := json.Marshal(journalStart{here.inode, at, l.PreviousHash})
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%-*s\n", journalStartSize-1, start), nil
}

// clear makes the journal durably empty.
func (j *journal) clear() error {
	j.used = 0
	if _, err := j.file.WriteAt(make([]byte, journalStartSize), 0); err != nil {
		return err
	}
	return syscall.Fdatasync(int(j.file.Fd()))
}

func (j *journal) close() { _ = j.file.Close() }

// journaled is what a journal holds: lines, where they begin in which file, and
// the hash before the first. Where there are no lines the rest says nothing.
type journaled struct {
	journalStart
	lines       []byte
	first, last *link
}

// readJournal reads the journal beside a file, whichever file its lines belong
// to; no lines where there is no journal.
func readJournal(path string) (*journaled, error) {
	all, err := os.ReadFile(journalPath(path))
	if errors.Is(err, os.ErrNotExist) || err == nil && len(all) < journalStartSize {
		return &journaled{}, nil
	}
	if err != nil {
		return nil, err
	}
	j := &journaled{}
	if json.Unmarshal(all[:journalStartSize], &j.journalStart) != nil {
		return &journaled{}, nil
	}
	rest := all[journalStartSize:]
	last := head{Hash: j.After}
	whole := 0
	for {
		line, _, found := bytes.Cut(rest[whole:], []byte{'\n'})
		if !found {
			break
		}
		l, err := unseal(line)
		if err != nil || l.PreviousHash != last.Hash ||
			whole > 0 && (l.Log != last.Log || l.Sequence != last.Sequence+1) {
			break // of an earlier round, or never finished
		}
		if whole == 0 {
			j.first = l
		}
		j.last = l
		last = head{l.Log, l.Sequence, l.Hash}
		whole += len(line) + 1
	}
	j.lines = rest[:whole]
	return j, nil
}

// records is the number of lines.
func (j *journaled) records() int { return bytes.Count(j.lines, []byte{'\n'}) }

// continues says whether the lines belong where the journal says in this file:
// what stands before them there is what came before them.
func (j *journaled) continues(file *os.File) (bool, error) {
	here, size, err := identifyOpen(file)
	if err != nil || size < j.At {
		return false, err
	}
	if j.At > 0 {
		line, end, err := lastLine(file, j.At)
		if err != nil || line == nil || end != j.At {
			return false, err
		}
		l, err := unseal(line)
		return err == nil && l.Hash == j.After, nil
	}
	if here.inode == j.Inode {
		return true, nil
	}
	lacking, err := j.missing(file) // a copy of the file holds them
	return lacking == 0, err
}

// missing says how many of the lines a file lacks, or has otherwise.
func (j *journaled) missing(file *os.File) (int, error) {
	held := make([]byte, len(j.lines))
	n, err := file.ReadAt(held, j.At)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	same := 0
	for same < n && held[same] == j.lines[same] {
		same++
	}
	return bytes.Count(j.lines[same:], []byte{'\n'}), nil
}
