package catalog

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Cuts that look at sensitive values tell something of them: a block that could be cut and
// was not had too few. A policy may have blocks cut by k alone (cuts: blind) and the values
// withheld where a block fails its model.
//
// Property: what is shown of quasi-identifiers is a function of quasi-identifiers alone, and
// exchanging the payloads of two people of a block changes no answer but for the order of
// rows. A block whose values are withheld has values that do not meet the model: so much is
// told. What was withheld stays so, under later policies as well, and who was shown without does
// not come back: that a block meets its model after a single change would tell what everybody else
// in it had. Tests: TestBlindCuts….

// withheld says, for each column of which a model asks, of which blocks of a placing the
// values are not shown; nil where no model asks.
func (p placing) withheld(r *Relation) map[string][]bool {
	if !r.BlindCuts || len(r.Requirements) == 0 {
		return nil
	}
	var blockOf func(row int) uint32
	switch {
	case p.partition == nil:
		blockOf = func(int) uint32 { return 0 }
	default:
		blocks, tuples := p.partition.BlockOf(), p.of.table.TupleOfRow()
		blockOf = func(row int) uint32 { return blocks[tuples[row]] }
	}
	return withheldOf(r, p.of, p.blocks(), blockOf)
}

func withheldOf(
	r *Relation, of *cohort, blocks int, blockOf func(row int) uint32,
) map[string][]bool {
	out := make(map[string][]bool)
	for _, q := range r.Requirements {
		if out[q.Column] == nil {
			out[q.Column] = make([]bool, blocks)
		}
		model := q.model(anonymize.Sensitive{}, of.references[q.Column])
		// A missing value looks like one that is withheld, and stands for nothing in all checks.
		isMissing := func(value int64) bool { return value == missing }
		for block, values := range of.sensitiveOf(q.Column, blocks, blockOf) {
			out[q.Column][block] = out[q.Column][block] || !values.meets(model, byCode, isMissing)
		}
	}
	return out
}

// withheldShare is the part of a column's rows that would be withheld.
func withheldShare(r *Relation, of *cohort, p *anonymize.Partition) map[string]float64 {
	shares := make(map[string]float64)
	for column, blocks := range (placing{of: of, partition: p}).withheld(r) {
		for block, withheld := range blocks {
			if withheld {
				shares[column] += float64(p.Rows(uint32(block))) / float64(of.table.Rows())
			}
		}
	}
	return shares
}

// readWithholdable finds the columns whose values the release may withhold, or hold back.
func (t *takingIn) readWithholdable(ctx context.Context) error {
	rows, err := t.tx.Query(ctx, "SELECT tailor.withholdable($1)", t.chain.number)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, name := range names {
		if slices.Contains(t.followed(), ident(name)) {
			t.withholdable = append(t.withholdable, ident(name))
		}
	}
	if err != nil {
		return err
	}
	if rows, err = t.tx.Query(ctx, "SELECT tailor.late_columns($1)", t.chain.number); err != nil {
		return err
	}
	t.late, err = pgx.CollectRows(rows, pgx.RowTo[string])
	return err
}

// nothing is the hash of NULL ([hashOf]), which a withheld value is shown as.
func (t *takingIn) nothing(ctx context.Context) (hash int64, err error) {
	err = t.tx.QueryRow(ctx, "SELECT "+hashOf("NULL")).Scan(&hash)
	return hash, err
}
