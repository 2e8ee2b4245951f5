package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// rowKey is what a keyed row is known by.
type rowKey struct{ person, nth int64 }

// history is what was shown before, as hashes: by row and followed column, the latest
// last.
type history map[rowKey][][]int64

// shownAs says which of the values that were shown before of a row in a column one is.
func (past history) shownAs(row rowKey, column int, value int64) int {
	var before []int64
	if of := past[row]; of != nil {
		before = of[column]
	}
	for i, earlier := range slices.Backward(before) {
		if earlier == value {
			return shownBefore + len(before) - 1 - i
		}
	}
	return unseen
}

// last is what was shown last before, 0 if nothing was.
func (past history) last(row rowKey, column int) int64 {
	if of := past[row]; of != nil && len(of[column]) > 0 {
		return of[column][len(of[column])-1]
	}
	return 0
}

// past reads what was shown before of people that a table has.
func (t *takingIn) past(ctx context.Context, of string) (history, error) {
	out := make(history)
	places := make(map[int]int)
	for place, name := range t.followed() {
		places[t.r.stored(name).Number] = place
	}
	rows, err := t.tx.Query(ctx, fmt.Sprintf("SELECT %[1]s, %[2]s, number, hash FROM %[3]s WHERE "+
		"(%[1]s, %[2]s) IN (SELECT %[1]s, %[2]s FROM %[4]s) ORDER BY epoch",
		personColumn, nthColumn, t.chain.table("past"), of))
	if err != nil {
		return nil, err
	}
	var row rowKey
	var hash int64
	var number int
	_, err = pgx.ForEachRow(rows, []any{&row.person, &row.nth, &number, &hash}, func() error {
		if out[row] == nil {
			out[row] = make([][]int64, len(places))
		}
		if place, shown := places[number]; shown {
			out[row][place] = append(out[row][place], hash)
		}
		return nil
	})
	return out, err
}

// sameSubject says whether two policies tell people apart by one column, under whichever name.
func sameSubject(now, past *Relation) bool {
	x, y := now.Column(now.Subject), past.Column(past.Subject)
	return now.Subject == past.Subject || x != nil && y != nil && x.Number == y.Number
}

// sameDimensions says whether what was shown under one policy can be carried to
// another.
func sameDimensions(now, past *Relation) bool {
	return slices.EqualFunc(now.Dimensions(), past.Dimensions(), func(x, y *Column) bool {
		return x.Name == y.Name && x.Number == y.Number && x.Type == y.Type
	})
}
