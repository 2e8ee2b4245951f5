package fidelity

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"
)

// Column is a column of an answer.
type Column struct {
	Name string
	Type uint32 // the number of its type
}

// Answer is what a query returned, as text; a nil cell is NULL.
type Answer struct {
	Columns []Column
	Rows    [][][]byte
}

// Groups counts the groups of two answers: the rows, told apart by their keys.
type Groups struct {
	True    int `json:"true"`    // of the true answer
	Matched int `json:"matched"` // of them, those that the release's answer has
	Missing int `json:"missing"` // of them, those that it lacks
	Extra   int `json:"extra"`   // those that only the release's answer has
	// MissingSmall are the missing groups of fewer people than asked for, ExtraSmall the groups
	// of the release alone that it says are smaller. Both are 0 if no column counts people.
	MissingSmall int `json:"missing_small"`
	ExtraSmall   int `json:"extra_small"`
}

func (g *Groups) add(other Groups) {
	g.True += other.True
	g.Matched += other.Matched
	g.Missing += other.Missing
	g.Extra += other.Extra
	g.MissingSmall += other.MissingSmall
	g.ExtraSmall += other.ExtraSmall
}

// Comparison is how two answers to one query differ.
type Comparison struct {
	Keys     []string `json:"keys"`
	Measures []string `json:"measures"`
	// People is the measure that counts the people, or rows, of a group; "" for none.
	People string `json:"people"`
	Groups Groups `json:"groups"`
	// Large are the cells of groups of at least so many people as asked for, and all cells if
	// nothing counts people; Small are the others.
	Large Cells `json:"large"`
	Small Cells `json:"small"`
}

// ErrNotComparable is the error of answers whose rows or columns cannot be matched.
var ErrNotComparable = errors.New("not comparable")

// Compare matches the rows of two answers by their keys, in any order. atLeast is how many people
// a group has that is not small. Columns that are no aggregates are keys; if no column is one, and
// the query neither groups nor asks for distinct rows, numbers are measures and the rest keys.
func Compare(truth, release *Answer, s *Statement, atLeast float64) (*Comparison, error) {
	if len(truth.Columns) != len(release.Columns) {
		return nil, fmt.Errorf("%w: the true answer has %d columns, the release's %d",
			ErrNotComparable, len(truth.Columns), len(release.Columns))
	}
	m := newMatcher(truth, release, s, atLeast)
	known, err := m.index(truth)
	if err != nil {
		return nil, err
	}
	others, err := m.index(release)
	if err != nil {
		return nil, err
	}
	m.Groups.True = len(known)
	for _, key := range slices.Sorted(maps.Keys(known)) {
		row := known[key]
		other, ok := others[key]
		small := m.isSmall(row)
		if !ok {
			m.Groups.Missing++
			m.Groups.MissingSmall += count(small)
			continue
		}
		m.Groups.Matched++
		m.cells(row, other, small)
	}
	for key, row := range others {
		if _, ok := known[key]; !ok {
			m.Groups.Extra++
			m.Groups.ExtraSmall += count(m.isSmall(row))
		}
	}
	m.Large.sumUp()
	m.Small.sumUp()
	return &m.Comparison, nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// matcher knows the roles of the columns of two answers.
type matcher struct {
	Comparison
	columns        []Column
	keys, measures []int
	people         int // -1 for none
	atLeast        float64
}

func newMatcher(truth, release *Answer, s *Statement, atLeast float64) *matcher {
	m := &matcher{
		Comparison: Comparison{Keys: []string{}, Measures: []string{}},
		columns:    truth.Columns,
		people:     -1,
		atLeast:    atLeast,
	}
	outputs := s.Outputs
	isMeasure := func(o Output) bool { return o.Role == Measure }
	byText := len(outputs) == len(truth.Columns) &&
		(s.Distinct || slices.ContainsFunc(outputs, isMeasure))
	best := 0
	for i, c := range truth.Columns {
		measure := isNumber(c.Type) && isNumber(release.Columns[i].Type) && !s.Distinct
		if byText {
			measure = isMeasure(outputs[i])
			if measure && outputs[i].Count > best && isNumber(c.Type) {
				best, m.people, m.People = outputs[i].Count, i, c.Name
			}
		}
		if measure {
			m.measures, m.Measures = append(m.measures, i), append(m.Measures, c.Name)
		} else {
			m.keys, m.Keys = append(m.keys, i), append(m.Keys, c.Name)
		}
	}
	return m
}

// isNumber says whether values of a type are compared as numbers.
func isNumber(oid uint32) bool {
	switch oid {
	case pgtype.Int2OID,
		pgtype.Int4OID,
		pgtype.Int8OID,
		pgtype.Float4OID,
		pgtype.Float8OID,
		pgtype.NumericOID:
		return true
	}
	return false
}

// index finds the rows of an answer by their keys. An answer without measures is a set: rows that
// are there twice count once.
func (m *matcher) index(a *Answer) (map[string][][]byte, error) {
	rows := make(map[string][][]byte, len(a.Rows))
	for _, row := range a.Rows {
		key := m.keyOf(row)
		if _, twice := rows[key]; twice && len(m.measures) > 0 {
			if len(m.keys) == 0 {
				return nil, fmt.Errorf(
					"%w: nothing tells the rows apart; select what they are grouped by",
					ErrNotComparable,
				)
			}
			return nil, fmt.Errorf("%w: rows have the same %s; ask for one row a group, with GROUP BY",
				ErrNotComparable, strings.Join(m.Keys, ", "))
		}
		rows[key] = row
	}
	return rows, nil
}

// keyOf is the same for rows of the same group, and for no others.
func (m *matcher) keyOf(row [][]byte) string {
	var b strings.Builder
	for _, i := range m.keys {
		if row[i] == nil {
			b.WriteString("-;")
			continue
		}
		v := m.keyText(i, row[i])
		b.WriteString(strconv.Itoa(len(v)))
		b.WriteByte(';')
		b.WriteString(v)
	}
	return b.String()
}

// keyText is the value of a key; 2.50 is 2.5.
func (m *matcher) keyText(i int, v []byte) string {
	text := string(v)
	if m.columns[i].Type == pgtype.NumericOID && strings.Contains(text, ".") {
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// isSmall says whether a row is of a group of fewer people than asked for.
func (m *matcher) isSmall(row [][]byte) bool {
	if m.people < 0 {
		return false
	}
	people, ok := number(row[m.people])
	return !ok || people < m.atLeast
}

func number(v []byte) (float64, bool) {
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil || math.IsInf(f, 0)
}

// cells compares the measures of two rows of one group.
func (m *matcher) cells(truth, release [][]byte, small bool) {
	into := &m.Large
	if small {
		into = &m.Small
	}
	for _, i := range m.measures {
		a, b := truth[i], release[i]
		switch {
		case a == nil && b == nil:
		case !isNumber(m.columns[i].Type):
			into.Other++
			into.Differing += count(a == nil || b == nil || string(a) != string(b))
		default:
			x, known := number(a)
			y, shown := number(b)
			if !known || !shown {
				into.Undefined++
				continue
			}
			into.add(Worst{Group: m.group(truth), Measure: m.columns[i].Name, True: x, Release: y})
		}
	}
}

// group are the values of a row's keys.
func (m *matcher) group(row [][]byte) []string {
	out := make([]string, len(m.keys))
	for j, i := range m.keys {
		out[j] = "NULL"
		if row[i] != nil {
			out[j] = m.keyText(i, row[i])
		}
	}
	return out
}
