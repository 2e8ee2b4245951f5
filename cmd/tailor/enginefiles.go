package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// hierarchyFiles are the values of a repeated flag COL=FILE.
type hierarchyFiles map[string]string

func (h hierarchyFiles) String() string { return "" }

func (h hierarchyFiles) Set(value string) error {
	column, file, ok := strings.Cut(value, "=")
	if !ok || column == "" || file == "" {
		return errors.New("wants COL=FILE")
	}
	if _, twice := h[column]; twice {
		return fmt.Errorf("column %q has two hierarchies", column)
	}
	h[column] = file
	return nil
}

// parseDelimiter accepts one character, a backslash and t, or nothing.
func parseDelimiter(text string) (rune, error) {
	if text == `\t` {
		return '\t', nil
	}
	if r, size := utf8.DecodeRuneInString(text); size == len(text) && r != utf8.RuneError &&
		r != '"' && r != '\n' && r != '\r' {
		return r, nil
	} else if text == "" {
		return 0, nil
	}
	return 0, &anonymize.ProblemError{
		What:   "the delimiter is not one character",
		Remedy: `give one such as ';'`,
	}
}

// columnsAtMost is how many columns a file may have that is read as a whole: as
// many as a table of PostgreSQL.
const columnsAtMost = 1600

// openSheet reads a whole file.
func openSheet(name string, delimiter rune) (*anonymize.Sheet, error) {
	return readFile(name, func(r io.Reader) (*anonymize.Sheet, error) {
		return anonymize.ReadColumns(r, delimiter, func(header []string) ([]bool, error) {
			if len(header) > columnsAtMost {
				return nil, &anonymize.ProblemError{
					What: fmt.Sprintf("the file has %d columns, and a table has at most %d", len(header),
						columnsAtMost),
					Remedy: "leave out columns",
				}
			}
			return nil, nil
		})
	})
}

// openColumns reads the columns of the names, as far as the file has them.
func openColumns(name string, delimiter rune, columns []string) (*anonymize.Sheet, error) {
	return readFile(name, func(r io.Reader) (*anonymize.Sheet, error) {
		return anonymize.ReadColumns(r, delimiter, func(header []string) ([]bool, error) {
			chosen := make([]bool, len(header))
			for i, name := range header {
				chosen[i] = slices.Contains(columns, name)
			}
			return chosen, nil
		})
	})
}

func openHierarchy(name string, delimiter rune) (*anonymize.Hierarchy, error) {
	return readFile(name, func(r io.Reader) (*anonymize.Hierarchy, error) {
		return anonymize.ReadHierarchy(r, delimiter)
	})
}

func readFile[T any](name string, read func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var zero T
		return zero, err
	}
	defer func() { _ = f.Close() }() // read only
	plain, err := decompressed(name, f)
	if err != nil {
		var zero T
		return zero, fmt.Errorf("%s: %w", name, err)
	}
	value, err := read(plain)
	_ = plain.Close() // read only
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// columns reads the hierarchies, in the order of the columns of the sheet.
func (h hierarchyFiles) columns(
	sheet *anonymize.Sheet, delimiter rune,
) ([]anonymize.Column, error) {
	if len(h) == 0 {
		return nil, &anonymize.ProblemError{
			What:   "no quasi-identifiers",
			Remedy: "name at least one by --hierarchy COL=FILE",
		}
	}
	for column := range h {
		if _, err := sheet.Find(column); err != nil {
			return nil, err
		}
	}
	var columns []anonymize.Column
	for _, name := range sheet.Header() {
		file, ok := h[name]
		if !ok {
			continue
		}
		hierarchy, err := openHierarchy(file, delimiter)
		if err != nil {
			return nil, err
		}
		columns = append(columns, anonymize.Column{Name: name, Hierarchy: hierarchy})
	}
	return columns, nil
}

// complainEngine reports an error of the engine: faults of what was asked and
// of the files given are wrong usage, all else is failure.
func complainEngine(name string, stderr io.Writer, err error) int {
	var (
		problem   *anonymize.ProblemError
		hierarchy *anonymize.HierarchyError
		csv       *anonymize.CSVError
		value     *anonymize.ValueError
		label     *anonymize.LabelError
		none      *anonymize.NoSolutionError
		unmet     *anonymize.UnmetError
		database  *databaseError
	)
	hint, code := "", exitUsage
	switch {
	case errors.As(err, &problem):
		hint = problem.Remedy
	case errors.As(err, &hierarchy):
		hint = "each line is a value and its labels from level 1 up"
	case errors.As(err, &csv):
		hint = "check the file and --delimiter"
	case errors.As(err, &value), errors.As(err, &label):
		hint = "complete the hierarchy"
	case errors.As(err, &none):
		hint, code = "allow more suppression, lower k or add levels", exitFailure
	case errors.As(err, &unmet):
		hint, code = "lower k or ask for less of the other models", exitFailure
	case errors.As(err, &database):
		hint, code = database.remedy, exitFailure
	default:
		return complain(name, stderr, err)
	}
	fmt.Fprintf(stderr, "tailor %s: %s; %s\n", name, strings.ReplaceAll(err.Error(), "\n", "; "), hint)
	return code
}
