package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// reference is what the blocks of a release are held against by models of likeness: the
// distribution of a column over the pairs of a subject and a value, in the copy that the release
// is made of, and in what it shows when it comes under another policy. It stays until then, so
// that blocks that meet a model meet it when they join (docs/decisions/models.md). Under blind
// cuts missing values stand for nothing and are no part of it.
type reference struct {
	of *anonymize.Reference
	// codes are of hashes of values ([Relation.hashOf]): [missing] for NULL, the others
	// from 1 in the order of the column's type.
	codes map[int64]uint32
	next  uint32 // above all codes
}

// references are those of a release, by column.
type references map[string]*reference

// refer measures the references of a release and stores them.
func (t *takingIn) refer(ctx context.Context, first bool) error {
	_, err := t.tx.Exec(ctx, `DELETE FROM tailor.reference WHERE chain = $1`, t.chain.number)
	if err != nil {
		return err
	}
	for _, name := range t.r.likened() {
		from, which, count := t.chain.table("row"), "true", "count(*)"
		if first {
			from = fmt.Sprintf("tailor_store.epoch_%d", t.r.Epoch)
		}
		if t.r.BlindCuts {
			which = ident(name) + " IS NOT NULL"
		}
		if !t.oneRow {
			count = fmt.Sprintf("count(DISTINCT %s)", personColumn)
		}
		_, err := t.tx.Exec(ctx, fmt.Sprintf(`
			INSERT INTO tailor.reference (chain, column_name, hash, code, share)
			SELECT $1, $2, hash, CASE WHEN value IS NULL THEN %d
					ELSE row_number() OVER (PARTITION BY value IS NULL ORDER BY value, hash) END,
				n / sum(n) OVER ()
			FROM (SELECT %s AS value, %s AS hash, %s::float8 AS n FROM %s WHERE %s GROUP BY 1, 2) v`,
			missing, ident(name), t.r.hashOf("", ident(name)), count, from, which), t.chain.number, name)
		if err != nil {
			return fmt.Errorf("measure the reference of a column: %w", err)
		}
	}
	return nil
}

// readReferences reads those of a release.
func (t *takingIn) readReferences(ctx context.Context) error {
	t.references = make(references)
	for _, name := range t.r.likened() {
		rows, err := t.tx.Query(ctx, `SELECT hash, code, share FROM tailor.reference
			WHERE chain = $1 AND column_name = $2 ORDER BY code`, t.chain.number, name)
		if err != nil {
			return err
		}
		to := &reference{codes: make(map[int64]uint32), next: missing + 1}
		shares := []float64{0} // of missing values
		for rows.Next() {
			var hash int64
			var code uint32
			var share float64
			if err := rows.Scan(&hash, &code, &share); err != nil {
				return err
			}
			to.codes[hash] = code
			if code == missing {
				shares[missing] = share
				continue
			}
			shares = append(shares, share)
			to.next = code + 1
		}
		if err := rows.Err(); err != nil {
			return err
		}
		to.of = anonymize.NewReference(shares, missing+1, len(shares))
		t.references[name] = to
	}
	return nil
}

// sensitiveValue is an expression for a number of a sensitive value, from which [codeIn] has its
// code: its hash, where there is a reference.
func (r *Relation) sensitiveValue(of, name string) string {
	if slices.Contains(r.likened(), name) {
		return r.hashOf(of, ident(name))
	}
	return sensitiveCode(of + ident(name))
}

// code is that of a value of a column by what [Relation.sensitiveValue] has of it. What a
// reference lacks gets codes of its own behind, kept in further.
func (all references) code(column string, value int64, further map[int64]uint32) uint32 {
	to := all[column]
	if to == nil {
		return uint32(value)
	}
	if code, known := to.codes[value]; known {
		return code
	}
	if _, known := further[value]; !known {
		further[value] = to.next + uint32(len(further))
	}
	return further[value]
}

// refer takes a cohort itself as what its blocks are held against.
func (e *cohort) refer(r *Relation) {
	e.references = make(references)
	for _, name := range r.likened() {
		all := e.sensitiveOf(name, 1, func(int) uint32 { return 0 })[0]
		if r.BlindCuts {
			delete(all, missing)
		}
		shares, pairs := []float64{0}, 0.0
		for code, subjects := range all {
			for len(shares) <= int(code) {
				shares = append(shares, 0)
			}
			shares[code] = float64(len(subjects))
			pairs += float64(len(subjects))
		}
		for code := range shares {
			shares[code] /= max(pairs, 1)
		}
		e.references[name] = &reference{of: anonymize.NewReference(shares, missing+1, len(shares))}
	}
}
