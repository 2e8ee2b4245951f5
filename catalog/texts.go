package catalog

import (
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// texts are the values of a column, as text, of some rows. Each distinct one is kept once.
type texts struct {
	values []string // by number, without NULL
	ofRow  []uint32 // [row] -> number; nullText for NULL
	number map[string]uint32
	null   bool
}

const nullText = ^uint32(0)

func newTexts(columns int) []*texts {
	out := make([]*texts, columns)
	for i := range out {
		out[i] = &texts{number: make(map[string]uint32)}
	}
	return out
}

// add adds the value of another row; nil is NULL.
func (t *texts) add(value []byte) {
	if value == nil {
		t.null = true
		t.ofRow = append(t.ofRow, nullText)
		return
	}
	number, known := t.number[string(value)]
	if !known {
		number = uint32(len(t.values))
		t.values = append(t.values, string(value))
		t.number[t.values[number]] = number
	}
	t.ofRow = append(t.ofRow, number)
}

// collectTexts reads a column of the answer for each of some.
func collectTexts(rows pgx.Rows, columns int) ([]*texts, error) {
	out := newTexts(columns)
	values, into := make([]pgtype.DriverBytes, columns), make([]any, columns)
	for i := range values {
		into[i] = &values[i]
	}
	_, err := pgx.ForEachRow(rows, into, func() error {
		for i := range values {
			out[i].add(values[i])
		}
		return nil
	})
	return out, err
}

// encode builds a column's hierarchy over its values and finds the leaf of each row. It
// uses the texts up.
func (t *texts) encode(q *Column) (anonymize.Column, []uint32, error) {
	h, err := q.Hierarchy.Build(t.values, t.null, q.Type)
	if err != nil {
		return anonymize.Column{}, nil, fmt.Errorf("column %q: %w", q.Name, err)
	}
	leaf := make([]uint32, len(t.values))
	for number, value := range t.values {
		leaf[number], _ = h.Code(value)
	}
	null, _ := h.NullCode()
	for row, number := range t.ofRow {
		if number == nullText {
			t.ofRow[row] = null
		} else {
			t.ofRow[row] = leaf[number]
		}
	}
	return anonymize.Column{Name: q.Name, Hierarchy: h}, t.ofRow, nil
}

// encode does so for each of some columns.
func encode(qids []*Column, read []*texts) ([]anonymize.Column, [][]uint32, error) {
	columns, leaves := make([]anonymize.Column, len(qids)), make([][]uint32, len(qids))
	for i, q := range qids {
		var err error
		if columns[i], leaves[i], err = read[i].encode(q); err != nil {
			return nil, nil, err
		}
	}
	return columns, leaves, nil
}
