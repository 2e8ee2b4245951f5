package utility

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
)

// Taxonomy is a classification of codes: a tree of fixed height in which a
// code has one ancestor per level, such as category, section and chapter of
// ICD-9-CM.
type Taxonomy struct {
	levels int
	paths  map[string][]string
	order  map[string]int
}

// Levels is the number of levels above the codes.
func (t *Taxonomy) Levels() int { return t.levels }

// Ancestor is the group of a code at a level, counted from 1, and whether the
// taxonomy has the code.
func (t *Taxonomy) Ancestor(code string, level int) (string, bool) {
	path, ok := t.paths[code]
	if !ok {
		return "", false
	}
	return path[level-1], true
}

// Distance says how far two codes are apart, in (0, 1]: j/(levels+1) where
// their closest common ancestor is at level j, 1 where there is none.
func (t *Taxonomy) Distance(a, b string) float64 {
	pa, pb := t.paths[a], t.paths[b]
	for j := range t.levels {
		if pa != nil && pb != nil && pa[j] == pb[j] {
			return float64(j+1) / float64(t.levels+1)
		}
	}
	return 1
}

// ReadTaxonomy reads a CSV file with a header. column names the codes, levels
// names their ancestors from the closest up; other columns are ignored. Line
// order is the order of the codes.
func ReadTaxonomy(r io.Reader, column string, levels ...string) (*Taxonomy, error) {
	in := csv.NewReader(r)
	header, err := in.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the header of the taxonomy: %w", err)
	}
	at := make(map[string]int, len(header))
	for i, name := range header {
		at[name] = i
	}
	var index []int
	for _, name := range append([]string{column}, levels...) {
		i, ok := at[name]
		if !ok {
			return nil, fmt.Errorf("the taxonomy has no column %q", name)
		}
		index = append(index, i)
	}
	t := &Taxonomy{levels: len(levels), paths: make(map[string][]string), order: make(map[string]int)}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the taxonomy: %w", err)
		}
		path := make([]string, len(levels))
		for j, i := range index[1:] {
			path[j] = row[i]
		}
		code := row[index[0]]
		t.paths[code] = path
		t.order[code] = len(t.order)
	}
}
