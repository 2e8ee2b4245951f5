package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// A data set of a relation's subjects has no partition of its own. What it says of them
// is carried along in the relation's copy and release, as columns of the payload, so that
// the rules by which that lives on hold for both together. What is shown of the data set
// is read off the release whenever that is written (docs/decisions/datasets.md).

// dataSetDocument is what the policy of a relation says of a data set of its subjects.
type dataSetDocument struct {
	Member  string             `json:"member"` // the column that says who is in it
	Number  int                `json:"number"`
	Columns []carriedDocument  `json:"columns"`
	Require []requiredDocument `json:"require"`
}

// carriedDocument is a column of a data set as its parent's copies have it.
type carriedDocument struct {
	columnDocument
	Of string `json:"of"` // its name in the data set
}

// requiredDocument is a model that a policy demands.
type requiredDocument struct {
	Model     string  `json:"model"`
	Column    string  `json:"column"`
	Parameter float64 `json:"parameter"`
	C         float64 `json:"c"`
	Distance  string  `json:"distance"`
}

// carry takes what the policy says of data sets.
func (r *Relation) carry(sets []dataSetDocument) {
	for _, s := range sets {
		r.carried = append(r.carried, Column{
			Name: s.Member, Number: s.Number, Type: "boolean", Category: "B",
			Class: NonSensitive, member: true,
		})
		for i := range s.Columns {
			r.carried = append(r.carried, s.Columns[i].column())
		}
		for _, q := range s.Require {
			r.Requirements = append(r.Requirements, Requirement(q))
		}
	}
}

// memberColumns say, in copies and releases, which data sets a subject is in, quoted.
func (r *Relation) memberColumns() []string {
	var out []string
	for i := range r.carried {
		if r.carried[i].member {
			out = append(out, ident(r.carried[i].Name))
		}
	}
	return out
}

// setsName is what partitions call which data sets have a subject.
const setsName = "tailor sets"

// setsColumn is a dimension of a cohort by which its root is cut first, and which is
// shown by nothing.
func setsColumn(sets []uint32) (anonymize.Column, []uint32, error) {
	var paths [][]string
	var values []string
	for i := range slices.Max(sets) + 1 {
		values = append(values, strconv.Itoa(int(i)))
		paths = append(paths, values[i:i+1])
	}
	definition, err := json.Marshal(tableDefinition{Paths: paths})
	if err != nil {
		return anonymize.Column{}, nil, err
	}
	spec := &HierarchySpec{Name: setsName, Kind: "table", Definition: definition}
	h, err := spec.Build(values, false, "text")
	if err != nil {
		return anonymize.Column{}, nil, err
	}
	leaves := make([]uint32, len(sets))
	for row, set := range sets {
		leaves[row], _ = h.Code(values[set])
	}
	return anonymize.Column{Name: setsName, Hierarchy: h}, leaves, nil
}

// root partitions a cohort. Where data sets have some of its people, each block is of
// people whom the same ones have, but for those who are too few of that kind: who is in a
// data set may be known, and a block shows its rows there if all are in it.
func (t *takingIn) root(ctx context.Context, of *cohort) (*anonymize.Partition, error) {
	if of.sets == nil || of.rows != of.subjects {
		plan := t.r.rootPlan(t.audience, of)
		plan.Progress = t.tellShare(ctx, of.rows)
		return ecg.MakeRoot(ctx, of.table, plan)
	}
	blockOfRow, blocks := make([]uint32, of.rows), 0
	kinds, err := t.kinds(of)
	if err != nil {
		return nil, err
	}
	for _, rows := range kinds {
		part, err := of.part(t.copied.columns, rows)
		if err != nil {
			return nil, err
		}
		root, err := ecg.MakeRoot(ctx, part.table, t.r.rootPlan(t.audience, part))
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			blockOfRow[row] = uint32(blocks) + root.BlockOf()[part.table.TupleOfRow()[i]]
		}
		blocks += root.Blocks()
	}
	return anonymize.Divided(of.table, blockOfRow, blocks)
}

// kinds are the rows of a cohort by the data sets that have them, the smallest first.
// Those of which there cannot be a block are put together, with others if need be.
func (t *takingIn) kinds(of *cohort) ([][]int, error) {
	bySet := make([][]int, slices.Max(of.sets)+1)
	for row, set := range of.sets {
		bySet[set] = append(bySet[set], row)
	}
	slices.SortFunc(bySet, func(x, y []int) int {
		return cmp.Or(cmp.Compare(len(x), len(y)), slices.Compare(x, y))
	})
	var out [][]int
	var rest []int
	for _, rows := range bySet {
		part, err := of.part(t.copied.columns, rows)
		if err != nil {
			return nil, err
		}
		if assertFeasible(t.r, part) == nil {
			out = append(out, rows)
		} else {
			rest = append(rest, rows...)
		}
	}
	for len(rest) > 0 {
		part, err := of.part(t.copied.columns, rest)
		if err != nil {
			return nil, err
		}
		if len(out) == 0 || assertFeasible(t.r, part) == nil {
			return append(out, rest), nil
		}
		rest, out = append(rest, out[0]...), out[1:]
	}
	return out, nil
}

// part is a cohort of some of the rows.
func (e *cohort) part(columns []anonymize.Column, rows []int) (*cohort, error) {
	out := &cohort{
		rows: len(rows), subjects: len(rows), sensitive: make(map[string][]uint32),
		references: e.references,
	}
	pick := func(codes []uint32) []uint32 {
		some := make([]uint32, len(rows))
		for i, row := range rows {
			some[i] = codes[row]
		}
		return some
	}
	for name, codes := range e.sensitive {
		out.sensitive[name] = pick(codes)
	}
	out.recode()
	leaves := make([][]uint32, len(columns))
	for i := range columns {
		leaves[i] = pick(e.leaves[i])
	}
	var err error
	out.table, err = anonymize.NewTable(columns, leaves, nil)
	return out, err
}

// heedParents has data sets be refused where the relations are that they are read off.
func heedParents(protected []*Relation) {
	for _, r := range protected {
		if r.DataSetOf == 0 {
			continue
		}
		at := slices.IndexFunc(protected, func(p *Relation) bool { return p.OID == r.DataSetOf })
		if at < 0 {
			r.Stale = true
			continue
		}
		r.Stale, r.startsAnew = r.Stale || protected[at].Stale, protected[at].startsAnew
	}
}

// openDataSet reads the chain of a data set. Where it does not serve, the release that it
// is read off is brought up to date, and it with that.
func (c *Catalog) openDataSet(
	ctx context.Context, r *Relation, audience string, serves func(stored) bool,
) (*Chain, error) {
	chain := &Chain{
		version: r.Catalog, policy: r.Version, opened: time.Now(), granted: make(map[string]bool),
	}
	does, err := c.readServed(ctx, r, audience, chain, serves)
	if err != nil {
		return nil, err
	}
	if !does {
		snapshot, err := c.Snapshot()
		if err != nil {
			return nil, err
		}
		parent := snapshot.relation(r.DataSetOf)
		if parent == nil {
			return nil, ErrOvertaken(r)
		}
		if _, err := c.openChain(ctx, parent, audience, parent.isUpToDate); err != nil {
			return nil, err
		}
		if does, err = c.readServed(ctx, r, audience, chain, serves); err != nil {
			return nil, err
		}
		if !does {
			return nil, ErrOvertaken(r)
		}
	}
	c.see(chain)
	return chain, nil
}

// peopleColumn is, in the release of a data set, the number of its parent's subjects that
// the labels of a row are of: the row can be any of theirs.
const peopleColumn = `"tailor people"`

// derivation is a data set whose release is read off another one.
type derivation struct {
	r            *Relation
	document     dataSetDocument
	chain        *Chain
	dictionaries []*dictionary
	labelled     []*dictionary // those of the parent that its own are
}

// deriveDataSets writes what is shown of the data sets of a relation as its release has
// it. edition says that the release is stored in tables that it was not stored in before.
func (t *takingIn) deriveDataSets(ctx context.Context, edition bool) error {
	rows, err := t.tx.Query(ctx,
		`SELECT p.relation::oid, n.nspname::text, c.relname::text, p.active, s.document
		FROM tailor.policy_version v CROSS JOIN jsonb_array_elements(v.policy -> 'data_sets') s (document)
		JOIN pg_class c ON c.oid = to_regclass(format('%I.%I', s.document ->> 'schema',
			s.document ->> 'name'))
		JOIN pg_namespace n ON n.oid = c.relnamespace JOIN tailor.protection p ON p.relation = c.oid
		WHERE v.relation = $1 AND v.version = $2 ORDER BY (s.document ->> 'number')::integer`, t.r.OID,
		t.r.Version)
	if err != nil {
		return err
	}
	sets, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*derivation, error) {
		d := &derivation{r: &Relation{}}
		return d, row.Scan(&d.r.OID, &d.r.Schema, &d.r.Name, &d.r.Version, &d.document)
	})
	if err != nil {
		return err
	}
	for _, d := range sets {
		past, err := loadPast(ctx, t.tx, d.r, d.r.Version)
		if err != nil {
			return err
		}
		d.r = past
		d.r.DataSetOf = t.r.OID
		d.r.Epoch = t.r.Epoch
		if err := t.derive(ctx, d, edition); err != nil {
			return fmt.Errorf("data set %s: %w", d.r, err)
		}
	}
	return nil
}

// derive writes what is shown of one data set.
func (t *takingIn) derive(ctx context.Context, d *derivation, edition bool) error {
	if err := d.adoptLabels(t.dictionaries); err != nil {
		return err
	}
	d.chain = &Chain{}
	var version int
	err := t.tx.QueryRow(ctx, `SELECT chain, edition, generation, version FROM tailor.chain
		WHERE relation = $1 AND audience = $2 FOR UPDATE`, d.r.OID, t.audience).
		Scan(&d.chain.number, &d.chain.edition, &d.chain.generation, &version)
	fresh := errors.Is(err, pgx.ErrNoRows)
	switch {
	case fresh:
		err = t.tx.QueryRow(ctx, `INSERT INTO tailor.chain
				(relation, audience, epoch, version, first_version, keyed, blocks, min_block, layout)
			VALUES ($1, $2, $3, $4, $4, true, 0, 0, $5) RETURNING chain`,
			d.r.OID, t.audience, t.r.Epoch, d.r.Version, releaseLayout).Scan(&d.chain.number)
	case err == nil && (edition || version != d.r.Version):
		fresh = true
		d.chain.edition = max(d.chain.edition, d.chain.generation) + 1
	}
	if err != nil {
		return err
	}
	if fresh {
		err = execute(ctx, t.tx, d.createTables(t)...)
	} else {
		err = execute(ctx, t.tx, "DELETE FROM "+d.chain.table("row"))
		if err == nil && len(d.dictionaries) > 0 {
			err = execute(ctx, t.tx, "DELETE FROM "+d.chain.table("entry"))
		}
	}
	if err != nil {
		return err
	}
	if err := storeEntries(ctx, t.tx, d.chain, d.dictionaries); err != nil {
		return err
	}
	if err := execute(ctx, t.tx, d.insertion(t), "ANALYZE "+d.chain.table("row")); err != nil {
		return err
	}
	if fresh {
		if err := publishTables(ctx, t.tx, d.r, d.chain, d.dictionaries); err != nil {
			return err
		}
	}
	return t.noteDataSet(ctx, d)
}

// adoptLabels has the data set's quasi-identifiers be labelled as the parent's are, of
// which they have the names.
func (d *derivation) adoptLabels(parent []*dictionary) error {
	d.dictionaries = newDictionaries(d.r)
	for _, own := range d.dictionaries {
		at := slices.IndexFunc(parent, func(p *dictionary) bool {
			return p.column.Name == own.column.Name
		})
		if at < 0 || parent[at].column.ReleaseType() != own.column.ReleaseType() {
			return sqlstate.New(sqlstate.PolicyStale,
				"column %q of data set %q is no quasi-identifier of its parent any more",
				own.column.Name, d.r.Name).
				WithHint("A database administrator calls tailor.activate('%s').", d.r)
		}
		own.named, own.wide = parent[at].named, parent[at].wide
		own.entries = slices.Clone(parent[at].entries)
		d.labelled = append(d.labelled, parent[at])
	}
	return nil
}

// columns are those of the data set's rows, and what they are in the parent's release.
func (d *derivation) columns() (own, of []string) {
	for _, name := range []string{
		personColumn, keyColumn, nthColumn, blockColumn, classColumn,
		rowColumn,
	} {
		own, of = append(own, name), append(of, "e."+name)
	}
	for _, name := range d.r.payload() {
		at := slices.IndexFunc(d.document.Columns, func(c carriedDocument) bool {
			return ident(c.Of) == name
		})
		own, of = append(own, name), append(of, "e."+ident(d.document.Columns[at].Name))
	}
	for i, dictionary := range d.dictionaries {
		for _, part := range []string{"number", "value"} {
			own, of = append(own, dictionary.own(part)), append(of, "e."+d.labelled[i].own(part))
		}
	}
	return own, of
}

// selection is the query that reads the data set's rows off the parent's release.
func (d *derivation) selection(t *takingIn) string {
	own, of := d.columns()
	var alike []string
	for _, dictionary := range d.labelled {
		alike = append(alike, "e."+dictionary.own("number"))
	}
	people := "count(*) OVER ()"
	if len(alike) > 0 {
		people = fmt.Sprintf("count(*) OVER (PARTITION BY %s)", commas(alike))
	}
	list := make([]string, len(own))
	for i := range own {
		list[i] = of[i] + " AS " + own[i]
	}
	return fmt.Sprintf(`SELECT %s, %s
		FROM (SELECT %s, %s::integer AS %[2]s, e.%[5]s AS "tailor member" FROM %[6]s e) q
		WHERE "tailor member" AND %[7]s IN (%[8]s)`,
		commas(own), peopleColumn, commas(list), people, ident(d.document.Member),
		t.chain.table("row"), classColumn, d.classes(t))
}

// classes is the query for the classes of the parent's release whose rows the data set
// shows. Who is in it may be known, and what both show as it is tells which rows of the
// release are in it: so all of those who could not be told apart until now are.
func (d *derivation) classes(t *takingIn) string {
	return fmt.Sprintf("SELECT %s FROM %s GROUP BY 1 HAVING bool_and(coalesce(%s, false))",
		classColumn, t.chain.table("row"), ident(d.document.Member))
}

// insertion shows them, in an order of their own.
func (d *derivation) insertion(t *takingIn) string {
	own, _ := d.columns()
	return fmt.Sprintf("INSERT INTO %s (%s, %s) %s ORDER BY gen_random_uuid()",
		d.chain.table("row"), commas(own), peopleColumn, d.selection(t))
}

// createTables are the statements that make the tables of an edition, without rows. Who
// has gone, and what was shown before, is known of the parent's release.
func (d *derivation) createTables(t *takingIn) []string {
	statements := []string{
		fmt.Sprintf("CREATE TABLE %s AS %s WITH NO DATA", d.chain.table("row"), d.selection(t)),
		fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", d.chain.table("row")),
		fmt.Sprintf("ALTER TABLE %s ADD %s smallint NOT NULL DEFAULT 0", d.chain.table("row"),
			gateColumn),
	}
	if len(d.dictionaries) > 0 {
		statements = append(statements, createEntries(d.chain))
		statements = append(statements, d.chain.createLists(d.dictionaries)...)
	}
	return statements
}

// noteDataSet writes what the chain of a data set has become. Its smallest block is that
// of the parent's subjects who have labels with somebody in the data set.
func (t *takingIn) noteDataSet(ctx context.Context, d *derivation) error {
	of := &takingIn{Catalog: t.Catalog, tx: t.tx, r: d.r, chain: d.chain, dictionaries: d.dictionaries}
	columns, err := of.statistics(ctx)
	if err != nil {
		return fmt.Errorf("sum up columns: %w", err)
	}
	_, err = t.tx.Exec(ctx,
		fmt.Sprintf(`UPDATE tailor.chain m SET epoch = $2, generation = m.generation + 1,
			edition = $3, version = $4, layout = $5,
			changed = now(), columns = $6, stored = n.stored, next = '{"of": true}',
			departures = n.departures, changes = n.changes,
			arrivals = (SELECT count(*) FROM %[3]s WHERE %[2]s) - (SELECT count(*) FROM %[1]s),
			rows = (SELECT count(*) FROM %[1]s), subjects = (SELECT count(*) FROM %[1]s),
			(blocks, min_block) = (SELECT count(*), coalesce(min(people), 0) FROM (
				SELECT count(*) AS people, bool_or(%[2]s) AS has FROM %[3]s GROUP BY %[4]s) b WHERE has)
		FROM tailor.chain n WHERE m.chain = $1 AND n.chain = $7`,
			d.chain.table("row"), ident(d.document.Member), t.chain.table("row"), blockColumn),
		d.chain.number, t.r.Epoch, d.chain.edition, d.r.Version, releaseLayout, columns, t.chain.number)
	return err
}
