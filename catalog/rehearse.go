package catalog

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// Rehearsable says whether [Rehearse] can show what releases of a relation would be: it
// has a root of its own, along its own columns, and no more rows than are read at once.
func (r *Relation) Rehearsable(rows int) bool {
	own := r.SetValued == nil && r.DataSetOf == 0 && r.Parent == nil
	return own && !r.AggregateOnly && !r.BlindCuts && rows <= ForecastRows
}

// LoadPolicies reads the relations that are protected by policies in force, for a member
// of tailor_admin: their names, policies and columns, not their releases.
func LoadPolicies(ctx context.Context, tx pgx.Tx) ([]*Relation, error) {
	rows, err := tx.Query(ctx, `SELECT c.oid, n.nspname::text, c.relname::text, p.policy
		FROM tailor.policies p JOIN pg_catalog.pg_class c ON c.oid = p.relation
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		WHERE p.policy IS NOT NULL ORDER BY 2, 3`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Relation, error) {
		r := &Relation{}
		var document []byte
		if err := row.Scan(&r.OID, &r.Schema, &r.Name, &document); err != nil {
			return nil, err
		}
		_, err := r.adopt(document)
		return r, err
	})
}

// Names of temporary tables that Rehearse makes on its way.
const rehearsedRows, rehearsedValues, rehearsedRow = "tailor rows", "tailor values", "tailor row"

// Rehearse makes a temporary table of a relation's name, which stands before it in the
// session: its rows as readers would be shown them if the root were made now with another
// k, values drawn anew. It needs the rights of the table's owner, and nothing of it is
// kept or shown. It fails with an [*anonymize.UnmetError] if the table does not meet k.
func Rehearse(ctx context.Context, tx pgx.Tx, r *Relation, k int) error {
	with := *r
	with.K = k
	table, rows, values := ident(r.Name), ident(rehearsedRows), ident(rehearsedValues)
	number := ident(rehearsedRow)
	err := execute(ctx, tx,
		fmt.Sprintf("DROP TABLE IF EXISTS pg_temp.%s, pg_temp.%s, pg_temp.%s", table, rows, values),
		fmt.Sprintf(`CREATE TEMP TABLE %s AS
			SELECT row_number() OVER () AS %s, b.* FROM %s b WHERE b.%s IS NOT NULL`,
			rows, number, pgx.Identifier{r.Schema, r.Name}.Sanitize(), ident(r.Subject)))
	if err != nil {
		return err
	}
	p, err := rehearsedRoot(ctx, tx, &with)
	if err != nil {
		return err
	}
	qids := with.QuasiIdentifiers()
	var declared, set []string
	for i, q := range qids {
		declared = append(declared, fmt.Sprintf("v%d %s", i, q.ReleaseType()))
		set = append(set, fmt.Sprintf("%s = v.v%d", ident(q.Name), i))
	}
	err = execute(ctx, tx,
		fmt.Sprintf("CREATE TEMP TABLE %s (%s bigint, %s)", values, number, commas(declared)))
	if err != nil {
		return err
	}
	err = copyInto(ctx, tx, "pg_temp."+values, func(w *copyWriter) { writeRehearsed(w, &with, p) })
	if err != nil {
		return err
	}
	return execute(ctx, tx, "ANALYZE pg_temp."+values,
		fmt.Sprintf("CREATE TEMP TABLE %s AS SELECT * FROM pg_temp.%s", table, rows),
		fmt.Sprintf("UPDATE pg_temp.%s b SET %s FROM pg_temp.%s v WHERE b.%[4]s = v.%[4]s",
			table, strings.Join(set, ", "), values, number),
		fmt.Sprintf("ALTER TABLE pg_temp.%s DROP COLUMN %s", table, number),
		"ANALYZE pg_temp."+table,
		fmt.Sprintf("DROP TABLE pg_temp.%s, pg_temp.%s", rows, values))
}

// rehearsedRoot partitions the rows that are numbered.
func rehearsedRoot(ctx context.Context, tx pgx.Tx, r *Relation) (*anonymize.Partition, error) {
	read, e, subjectOfRow, err := readTable(
		ctx, tx, r, &Forecast{Share: 1}, "pg_temp."+ident(rehearsedRows),
		"ORDER BY b."+ident(rehearsedRow))
	if err != nil {
		return nil, fmt.Errorf("read the table: %w", err)
	}
	columns, leaves, err := encode(r.QuasiIdentifiers(), read)
	if err != nil {
		return nil, err
	}
	e.rows, e.subjects = len(subjectOfRow), distinct(subjectOfRow)
	if e.subjects == e.rows {
		subjectOfRow = nil
	}
	e.subjectOfRow = subjectOfRow
	if e.table, err = anonymize.NewTable(columns, leaves, subjectOfRow); err != nil {
		return nil, err
	}
	return ecg.MakeRoot(ctx, e.table, r.rootPlan(everyone, e))
}

// writeRehearsed writes the number of each row with the values that it shows.
func writeRehearsed(w *copyWriter, r *Relation, p *anonymize.Partition) {
	sketch, table := p.Sketch(), p.Table()
	qids := r.QuasiIdentifiers()
	values := make([]*anonymize.Values, len(qids))
	for i, q := range qids {
		if q.Middle {
			continue
		}
		var margin *anonymize.Margin
		if !q.NoMargin {
			margin = table.Margin(i, r.K, r.MaxShare)
		}
		values[i] = sketch.Draw(i, margin, newChance())
	}
	next := make([]int, p.Blocks()) // row of each block
	for row, tuple := range table.TupleOfRow() {
		block := p.BlockOf()[tuple]
		w.number(row + 1)
		for i, q := range qids {
			if values[i] == nil {
				text, ok := released(q, table.Columns()[i].Hierarchy, p.Cover(block, i))
				w.textOrNull(text, ok)
				continue
			}
			place := values[i].Of[block][next[block]]
			w.textOrNull(values[i].Texts[place], place > 0)
		}
		w.end()
		next[block]++
	}
}
