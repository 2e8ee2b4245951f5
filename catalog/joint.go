package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/ecg"
)

// Codes can be published together with quasi-identifiers of the parent: its subjects are
// parted into groups along these, and codes are disassociated within groups. Whoever
// knows the columns and m codes of a subject finds k records that may be its own,
// (k, k^m)-anonymity (docs/decisions/joint.md).

// people are the subjects of a joint publication in their groups.
type people struct {
	partition *anonymize.Partition // its blocks are the groups
	groupOf   []uint32             // of each subject
	order     []uint32             // of groups: near ones share what is rare
}

// groupsOf is how many subjects share their labels at least.
func (r *Relation) groupSize() int { return max(r.K, cmp.Or(r.SetValued.Joint.GroupSize, 40*r.K)) }

// readPeople parts the subjects of an epoch into groups.
func readPeople(ctx context.Context, tx pgx.Tx, r *Relation) (*people, error) {
	dimensions := r.Dimensions()
	var names []string
	for _, d := range dimensions {
		names = append(names, ident(d.storedName()))
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(
		`SELECT %s FROM tailor_store.demographics_%d ORDER BY "tailor subject"`, commas(names), r.Epoch))
	if err != nil {
		return nil, err
	}
	read, err := collectTexts(rows, len(dimensions))
	if err != nil {
		return nil, err
	}
	if len(read) == 0 || len(read[0].ofRow) == 0 {
		return nil, &anonymize.UnmetError{Requirement: fmt.Sprintf("%d-anonymity", r.groupSize())}
	}
	columns, leaves, err := encode(dimensions, read)
	if err != nil {
		return nil, err
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		return nil, err
	}
	p := &people{}
	p.partition, err = ecg.MakeRoot(ctx, table, ecg.RootPlan{
		Requirements: []anonymize.Requirement{anonymize.BlockK{K: r.groupSize()}},
		Gate:         ecg.HighestRisk(r.groupSize()), Recoding: ecg.Local,
	})
	if err != nil {
		return nil, err
	}
	for _, tuple := range table.TupleOfRow() {
		p.groupOf = append(p.groupOf, p.partition.BlockOf()[tuple])
	}
	p.sort(r)
	return p, nil
}

// sort puts groups next to each other whose labels are near: by the columns that matter
// most first, in the order of their values.
func (p *people) sort(r *Relation) {
	var columns []int
	for _, name := range r.SetValued.Joint.Columns {
		columns = append(columns, p.partition.Table().Column(r.Parent.Lends(name)))
	}
	for g := range uint32(p.partition.Blocks()) {
		p.order = append(p.order, g)
	}
	slices.SortFunc(p.order, func(x, y uint32) int {
		for _, column := range columns {
			h := p.partition.Table().Columns()[column].Hierarchy
			firstX, lastX := h.Range(p.partition.Cover(x, column))
			firstY, lastY := h.Range(p.partition.Cover(y, column))
			if c := cmp.Or(cmp.Compare(firstX, firstY), cmp.Compare(lastX, lastY)); c != 0 {
				return c
			}
		}
		return 0
	})
}

// sorted lists the records of each group, in order. Nothing but their codes decides
// which comes first.
func (p *people) sorted(records []coded) [][]int32 {
	of := make([][]int32, p.partition.Blocks())
	for subject, group := range p.groupOf {
		of[group] = append(of[group], int32(subject))
	}
	var out [][]int32
	for _, group := range p.order {
		slices.SortFunc(of[group], func(x, y int32) int { return records[x].compare(records[y]) })
		out = append(out, of[group])
	}
	return out
}

// members are the places of each group's records, which reconstruction lists by cluster
// and place says where they have got.
func (p *people) members(form *published.Form, clusterOf, place []int32) [][]int32 {
	groupOf := make([]uint32, len(form.Clusters))
	for subject, cluster := range clusterOf {
		groupOf[cluster] = p.groupOf[subject]
	}
	out := make([][]int32, p.partition.Blocks())
	at := 0
	for cluster := range form.Clusters {
		for range form.Clusters[cluster].Size {
			out[groupOf[cluster]] = append(out[groupOf[cluster]], place[at])
			at++
		}
	}
	return out
}

// publishedGroups are the labels of the groups of a publication, as it is stored. How many
// people are in each, people_N says.
type publishedGroups struct {
	*ecg.Shown
	Texts [][]string // [attribute][number]: the label, and the value if it shows one
}

// readPublishedGroups reads those of a publication, nil if there are none.
func readPublishedGroups(
	ctx context.Context, db pgx.Tx, publication int,
) (*publishedGroups, error) {
	var document []byte
	err := db.QueryRow(ctx, "SELECT groups FROM tailor.publication WHERE epoch = $1",
		publication).Scan(&document)
	if err != nil || document == nil {
		return nil, err
	}
	out := &publishedGroups{}
	return out, json.Unmarshal(document, out)
}

// number is that of a label of an attribute, which is added if it is new. 0 is NULL's.
func (g *publishedGroups) number(attribute int, e entry) uint32 {
	if e.isNull() {
		return 0
	}
	text := fmt.Sprintf("%q %q %t", e.label, e.value, e.valued)
	at := slices.Index(g.Texts[attribute], text)
	if at < 0 {
		at = len(g.Texts[attribute])
		g.Texts[attribute] = append(g.Texts[attribute], text)
		g.Labels[attribute] = append(g.Labels[attribute], e.lost)
	}
	return uint32(at)
}

// storePeople writes, for each record of a cohort, the labels of its group and the values
// that it shows, and adds the groups to those of the publication.
func (p *publication) storePeople(ctx context.Context, tx pgx.Tx, r *Relation, of *people) error {
	var columns []string
	dimensions := r.Dimensions()
	table := fmt.Sprintf("tailor_store.people_%d", p.number)
	groups := p.before.groups
	if groups == nil {
		var known []string
		for _, d := range dimensions {
			columns = append(columns, fmt.Sprintf("%s %s, %s text", ident(d.Name), d.ReleaseType(),
				ident(d.LabelColumn())))
			known = append(known, fmt.Sprintf("%s boolean", ident(d.ExactColumn())))
			if d.IsMeasured() {
				known = append(known, fmt.Sprintf("%[1]s %[3]s, %[2]s %[3]s", ident(d.LowColumn()),
					ident(d.HighColumn()), d.ReleaseType()))
			}
		}
		err := execute(ctx, tx, fmt.Sprintf(`CREATE TABLE %s (%s %s NOT NULL,
			cluster integer NOT NULL, family integer NOT NULL, %s)`, table, rowColumn,
			r.Column(r.Subject).Type, commas(columns)),
			fmt.Sprintf("CREATE TABLE tailor_store.family_%d (family integer NOT NULL, %s)",
				p.number, commas(slices.Concat(columns, known))),
			fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", table),
			fmt.Sprintf("ALTER TABLE tailor_store.family_%d REPLICA IDENTITY FULL", p.number))
		if err != nil {
			return err
		}
		groups = &publishedGroups{Shown: &ecg.Shown{Classes: make([][]uint32, len(dimensions))}}
		for _, d := range dimensions {
			groups.Attributes = append(groups.Attributes, d.Name)
			groups.Labels = append(groups.Labels, []ecg.Label{{Exact: true}})
			groups.Texts = append(groups.Texts, []string{""})
		}
	}
	sketch, shown := of.partition.Sketch(), newDictionaries(r)
	sketch.Large = true
	labels, margins := make([]labels, len(dimensions)), make(map[int]*anonymize.Margin)
	for i, d := range dimensions {
		switch {
		case d.Middle:
		case d.NoMargin:
			margins[i] = nil
		default:
			margins[i] = of.partition.Table().Margin(i, r.K, 1)
		}
	}
	values := sketch.DrawAll(margins, newChance)
	for i, l := range (placing{partition: of.partition, of: &cohort{table: of.partition.Table()}}).
		labels(shown) {
		labels[i] = l
		for g := range of.partition.Blocks() {
			groups.Classes[i] = append(groups.Classes[i], groups.number(i, l.entry(g)))
		}
	}
	err := p.fill(ctx, tx, "people", func(w *copyWriter) {
		// In the order of the records, which is random.
		type member struct{ group, nth int }
		memberOf := make([]member, len(p.records))
		for group, places := range p.members {
			for nth, place := range places {
				memberOf[place] = member{group, nth}
			}
		}
		for place, m := range memberOf {
			w.number(int(p.records[place].number))
			w.number(p.before.clusters + int(p.records[place].cluster))
			w.number(groups.Blocks + m.group)
			for i := range dimensions {
				e := labels[i].entry(m.group)
				if v := values[i]; v != nil {
					at := v.Of[m.group][m.nth]
					w.textOrNull(v.Texts[at], at > 0)
				} else {
					w.textOrNull(e.value, e.valued)
				}
				w.textOrNull(e.label, !e.isNull())
			}
			w.end()
		}
	})
	if err == nil {
		err = p.storeFamilies(ctx, tx, dimensions, labels, groups.Blocks, of.partition.Blocks())
	}
	if err != nil {
		return fmt.Errorf("people: %w", err)
	}
	groups.Blocks += of.partition.Blocks()
	document, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, "UPDATE tailor.publication SET groups = $2 WHERE epoch = $1",
		p.number, document); err != nil {
		return err
	}
	return execute(ctx, tx, "ANALYZE "+table)
}

// storeFamilies writes what the labels of groups cover, by which conditions are judged. The
// first group has the number first.
func (p *publication) storeFamilies(
	ctx context.Context, tx pgx.Tx, dimensions []*Column, of []labels, first, groups int,
) error {
	table := fmt.Sprintf("tailor_store.family_%d", p.number)
	err := p.fill(ctx, tx, "family", func(w *copyWriter) {
		for g := range groups {
			w.number(first + g)
			for i := range dimensions {
				e := of[i].entry(g)
				w.textOrNull(e.value, e.valued)
				w.textOrNull(e.label, !e.isNull())
			}
			for i, d := range dimensions {
				e := of[i].entry(g)
				w.boolean(e.lost.Exact)
				if d.IsMeasured() {
					w.textOrNull(e.low, e.bounded)
					w.textOrNull(e.high, e.bounded)
				}
			}
			w.end()
		}
	})
	if err != nil {
		return err
	}
	return execute(ctx, tx, "ANALYZE "+table)
}

// readGroups reads what a joint publication shows of its columns: of groups that have
// lost clusters, of whom is left.
func (c *Catalog) readGroups(ctx context.Context, r *Relation, chain *Chain) (*ecg.Root, error) {
	shown := &ecg.Shown{Classes: make([][]uint32, len(r.Dimensions()))}
	one := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, c.pool, one, func(tx pgx.Tx) error {
		groups, err := readPublishedGroups(ctx, tx, chain.publication)
		if err != nil {
			return err
		}
		shown.Attributes, shown.Labels = groups.Attributes, groups.Labels
		if len(groups.Texts) == 0 { // of an earlier version
			*shown = *groups.Shown
			return nil
		}
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT family, count(*)
			FROM tailor_store.people_%d GROUP BY 1 ORDER BY 1`, chain.publication))
		if err != nil {
			return err
		}
		var group, people uint32
		_, err = pgx.ForEachRow(rows, []any{&group, &people}, func() error {
			for i := range shown.Classes {
				shown.Classes[i] = append(shown.Classes[i], groups.Classes[i][group])
			}
			shown.Rows, shown.Subjects = append(shown.Rows, people), append(shown.Subjects, people)
			return nil
		})
		if len(shown.Subjects) > 0 {
			shown.Blocks, shown.MinBlock = len(shown.Subjects), int(slices.Min(shown.Subjects))
		}
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrOvertaken(r) // withdrawn since
	}
	if err != nil {
		return nil, fmt.Errorf("read groups: %w", err)
	}
	// A group of which clusters are gone has one left, and that has k people.
	return ecg.NewRoot(shown, ecg.HighestRisk(r.K), ecg.Local, nil), nil
}

// createPeopleView is the statement that defines what a joint publication shows of the
// parent: a row for each of its subjects, under the parent's own names.
func (c *Chain) createPeopleView(r *Relation) string {
	subject := r.Column(r.Subject)
	list := []string{
		fmt.Sprintf("e.%s::%s AS %s", rowColumn, subject.Type, ident(r.Parent.Subject)),
		"e.family AS " + FamilyColumn,
	}
	var labels []string
	for i := range r.borrowed {
		column := &r.Parent.Columns[i]
		list = append(list, fmt.Sprintf("e.%s AS %s", ident(r.borrowed[i].Name), ident(column.Name)))
		labels = append(labels, fmt.Sprintf("e.%s AS %s", ident(r.borrowed[i].LabelColumn()),
			ident(column.LabelColumn())))
	}
	return c.publishedView(ParentView(c.name()), append(list, labels...), "people")
}

// FamilyColumn is the number of the group that a subject of a joint publication is in. No
// statement of a reader can name it.
const FamilyColumn = "tailor_label_family"

// createFamiliesView is the statement that defines what a joint publication shows of its
// groups: a row for each, with the labels and what they cover, under the parent's own names.
func (c *Chain) createFamiliesView(r *Relation) string {
	list := []string{"e.family AS " + FamilyColumn}
	for i := range r.borrowed {
		own, shown := &r.borrowed[i], &r.Parent.Columns[i]
		add := func(from, as string) {
			list = append(list, fmt.Sprintf("e.%s AS %s", ident(from), ident(as)))
		}
		add(own.Name, shown.Name)
		add(own.LabelColumn(), shown.LabelColumn())
		add(own.ExactColumn(), shown.ExactColumn())
		if own.IsMeasured() {
			add(own.LowColumn(), shown.LowColumn())
			add(own.HighColumn(), shown.HighColumn())
		}
	}
	return c.publishedView(LabelView(c.name()), list, "family")
}
