package audit

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
)

// lastLine is the last whole line of a file of a size, nil for none, and the
// offset of its end: what comes after was never finished.
func lastLine(file io.ReaderAt, size int64) (line []byte, end int64, err error) {
	const step = 64 << 10
	var tail []byte
	for from := size; from > 0; {
		n := min(step, from)
		from -= n
		piece := make([]byte, n, int(n)+len(tail))
		if _, err := file.ReadAt(piece, from); err != nil {
			return nil, 0, err
		}
		tail = append(piece, tail...)
		stop := bytes.LastIndexByte(tail, '\n')
		if stop < 0 {
			continue
		}
		start := bytes.LastIndexByte(tail[:stop], '\n')
		if start >= 0 || from == 0 {
			return tail[start+1 : stop], from + int64(stop) + 1, nil
		}
	}
	return nil, 0, nil
}

// files lists what a log has written, the oldest first.
func files(path string) ([]string, error) {
	names, err := setAside(path)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err == nil {
		names = append(names, path)
	} else if len(names) == 0 {
		return nil, err
	}
	return names, nil
}

// eachLine calls a function with every whole line of a file, with where it is,
// and says whether something unfinished comes after the last one.
func eachLine(name string, do func(number int, line []byte) error) (torn bool, err error) {
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReaderSize(file, 256<<10)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return len(line) > 0, nil
		}
		if err != nil {
			return false, err
		}
		if err := do(number, line[:len(line)-1]); err != nil {
			return false, err
		}
	}
}

// firstSequence is that of the first line of a file, 0 for none.
func firstSequence(name string) (int64, error) {
	var first int64
	_, err := eachLine(name, func(_ int, line []byte) error {
		l, err := unseal(line)
		if err != nil {
			return err
		}
		first = l.Sequence
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return first, err
}

// errEnough ends a walk over lines.
var errEnough = errors.New("enough")

// linesAfter calls a function with batches of the lines of a chain that come
// after a sequence number.
func linesAfter(path string, after head, batch int, do func(lines [][]byte) error) error {
	names, err := files(path)
	if err != nil {
		return err
	}
	// The youngest file that begins no later than what is looked for.
	from := 0
	for i := len(names) - 1; i > 0 && from == 0; i-- {
		first, err := firstSequence(names[i])
		if err != nil {
			return err
		}
		if first > 0 && first <= after.Sequence+1 {
			from = i
		}
	}
	var lines [][]byte
	flush := func() error {
		if len(lines) == 0 {
			return nil
		}
		err := do(lines)
		lines = nil
		return err
	}
	for _, name := range names[from:] {
		if _, err := eachLine(name, func(_ int, line []byte) error {
			l, err := unseal(line)
			if err != nil {
				return err
			}
			if l.Log != after.Log || l.Sequence <= after.Sequence {
				return nil
			}
			if lines = append(lines, line); len(lines) == batch {
				return flush()
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return flush()
}
