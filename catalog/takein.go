package catalog

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/ecg"
)

// A release lives on while its table changes: a copy of the table is taken in. Who is
// shown keeps block, labels and values. Who comes is shown with a cohort, which is
// partitioned by itself; who leaves, or has another payload, stays as he is shown until
// enough of his block do (docs/decisions/epochs.md).

// takingIn is the work of one transaction.
type takingIn struct {
	*Catalog
	tx           pgx.Tx
	r            *Relation
	audience     string
	chain        *Chain
	keyed        bool // a row goes on when what it says changes
	oneRow       bool // a person has one
	numbered     bool // rows are known by a number beside their subject
	dictionaries []*dictionary
	copied       *copied
	division     *division        // nil where all rows are partitioned at once
	references   references       // that blocks are held against
	partial      bool             // the copy has what differs from the release, and no other rows
	freeBlock    *int             // what nextBlock is; nil where that has not been looked at
	measured     []ecg.StoredRisk // of the table as it is; nil where that has not been looked at
	waiting      waiting
	next         nextRelease
	sums         sums
	hashOfNull   int64    // as payloads are hashed
	withholdable []string // columns of which values may be withheld, quoted
	late         []string // and that may be held back ([takingIn.holdBack])
	slot         *int     // of tailor.progress; nil where all are taken
}

// waiting counts the subjects of whom the copy says something else than is shown.
type waiting struct{ arrivals, departures, changes int }

// Phases of tailor.progress, by their places in tailor.phases().
const (
	makingBlocks   = 9
	writingRelease = 10
)

// tell says in tailor.progress what is being done, and with how many rows; 0 where that
// is not known.
func (t *takingIn) tell(ctx context.Context, phase, rows int) error {
	_, err := t.tx.Exec(ctx, `CALL tailor.note_progress($1, $2::oid::regclass, $3, $4)`, t.slot,
		t.r.OID, phase, rows)
	return err
}

// tellShare says how much of a phase is done. That it cannot is no matter here: then
// the next statement fails.
func (t *takingIn) tellShare(ctx context.Context, rows int) func(share float64) {
	return func(share float64) {
		if t.slot != nil {
			done := share * float64(rows)
			if t.division != nil {
				done += float64(t.division.done)
			}
			_, _ = t.tx.Exec(ctx,
				`SELECT setval(format('tailor.progress_%s_rows', $1::integer)::regclass,
					greatest(1, $2::bigint))`,
				*t.slot, int64(done))
		}
	}
}

// temporary is a table of this transaction: it is dropped before that ends.
func (t *takingIn) temporary(part string) string { return t.chain.table(part) }

// same is the condition that two rows are one, in two states of the table.
func (t *takingIn) same(a, b string) string {
	if t.keyed {
		return fmt.Sprintf("(%[1]s.%[3]s, %[1]s.%[4]s) = (%[2]s.%[3]s, %[2]s.%[4]s)", a, b, personColumn,
			nthColumn)
	}
	return fmt.Sprintf("(%[1]s.%[3]s, %[1]s.%[4]s, %[1]s.%[5]s) = (%[2]s.%[3]s, %[2]s.%[4]s, "+
		"%[2]s.%[5]s)", a, b, personColumn, keyColumn, nthColumn)
}

// run brings the release up to date. first says that nothing of it is shown yet: then
// all that there is is one cohort, and it is an error where that is too small.
func (t *takingIn) run(ctx context.Context, first bool) (err error) {
	if t.copied == nil {
		are, err := t.tooManyRows(ctx)
		switch {
		case err != nil:
		case are:
			err = t.beginDivision(ctx)
		default:
			t.copied, err = readCopy(ctx, t.tx, t.r)
		}
		if err != nil {
			return err
		}
	}
	if !first {
		if err := t.touch(ctx, "false"); err != nil { // none so far
			return fmt.Errorf("cells: %w", err)
		}
		if err := t.findAbsent(ctx); err != nil {
			return fmt.Errorf("rows that are gone: %w", err)
		}
		if err := t.rekey(ctx); err != nil {
			return fmt.Errorf("rows with other keys: %w", err)
		}
		if err := t.part(ctx); err != nil {
			return fmt.Errorf("departures and changes: %w", err)
		}
	}
	if err := t.join(ctx, first); err != nil {
		return err
	}
	if !first && !t.partial {
		if err := execute(ctx, t.tx, "DROP TABLE "+t.absent()); err != nil {
			return err
		}
	}
	if err := t.showAverages(ctx); err != nil {
		return fmt.Errorf("averages: %w", err)
	}
	return t.assertSafe(ctx)
}

// pseudonym is the column that shows a number in place of the subject, quoted; "" for none.
func (t *takingIn) pseudonym() string {
	for i := range t.r.Columns {
		if t.r.Columns[i].Pseudonym {
			return ident(t.r.Columns[i].Name)
		}
	}
	return ""
}

// nextBlock is a number above those of all blocks and classes that there are and were.
func (t *takingIn) nextBlock(ctx context.Context) (int, error) {
	if t.freeBlock != nil {
		return *t.freeBlock, nil
	}
	var next int
	err := t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT coalesce(max(b) + 1, 0) FROM (
			SELECT max(greatest(%[1]s, %[2]s)) AS b FROM %[3]s UNION ALL
				SELECT max(greatest(%[1]s, %[2]s)) FROM %[4]s) q`,
		blockColumn, classColumn, t.chain.table("row"), t.chain.table("gone"))).Scan(&next)
	t.freeBlock = &next
	return next, err
}
