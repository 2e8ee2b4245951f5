package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// planPolicy shows what applying a file would change and what that does to risk
// and loss. It changes nothing.
func planPolicy(ctx context.Context, o *policyOptions, stdout io.Writer) error {
	f, err := readPolicy(o.file)
	if err != nil {
		return err
	}
	tried, err := tryOut(ctx, o, &application{file: f, anew: o.forgetChains})
	if err != nil {
		return err
	}
	var text strings.Builder
	var obstacles int
	err = inSnapshot(ctx, o.dsn, func(tx pgx.Tx) error {
		if err := assertInstalled(ctx, tx); err != nil {
			return err
		}
		present, err := inForce(ctx, tx)
		if err != nil {
			return refusal(ctx, "read the policies", err)
		}
		p := &comparison{
			tx: tx, file: f, present: present, anew: o.forgetChains, tried: tried, out: &text,
		}
		if err := p.plan(ctx); err != nil {
			return refusal(ctx, "plan", err)
		}
		obstacles = p.obstacles
		return nil
	})
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, text.String()); err != nil {
		return err
	}
	if obstacles > 0 {
		return &policyError{
			fmt.Sprintf("the policy cannot be applied as it is, or would have readers refused: "+
				"obstacles: %d, marked with !", obstacles),
			"mend them in the file or in the table",
		}
	}
	return nil
}

// comparison writes a plan.
type comparison struct {
	tx            pgx.Tx
	file, present *policyfile.File
	out           *strings.Builder
	anew          []string     // tables whose chains would be forgotten
	tried         *application // rehearsed, nil on a server that is read-only
	alone         []string     // tables that borrow nothing, though there is a parent

	protect, change, same, obstacles int
}

func (p *comparison) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *comparison) obstacle(format string, args ...any) {
	p.obstacles++
	p.line("  ! "+format, args...)
}

// refused names what a rehearsal was refused.
func (p *comparison) refused(about string) {
	if p.tried == nil || p.tried.refused[about] == nil {
		return
	}
	r := p.tried.refused[about]
	if r.remedy == nothingChanged {
		p.obstacle("%s", r.what)
		return
	}
	p.obstacle("%s; %s", r.what, r.remedy)
}

func (p *comparison) plan(ctx context.Context) error {
	var named []string
	for i := range p.file.Tables {
		t := &p.file.Tables[i]
		if err := assertQuery(ctx, p.tx, t); err != nil {
			return err
		}
		r, err := findTable(ctx, p.tx, t)
		if isToBeDefined(t, err) {
			p.toBeDefined(t)
			p.refused(t.Name)
			continue
		}
		if err != nil {
			return err
		}
		named = append(named, quoteTable(pgx.Identifier{r.Schema, r.Name}))
		if err := p.table(ctx, t, r); err != nil {
			return err
		}
	}
	p.refused("locks")
	for _, h := range p.file.Hierarchies {
		p.refused(fmt.Sprintf("hierarchy %q", h.Name))
	}
	if err := p.readers(ctx); err != nil {
		return err
	}
	if p.tried == nil {
		p.line("? transactions are read-only here: what activation refuses was not tried out")
	} else {
		for _, taken := range p.tried.taken {
			p.line("privileges: %s", taken)
		}
	}
	for _, t := range p.present.Tables {
		if !slices.Contains(named, t.Name) {
			p.line("%s: in force, not in this file: stays as it is", t.Name)
		}
	}
	p.line("\nPlan: %d tables to protect, %d to change, %d as they are.", p.protect, p.change, p.same)
	return nil
}

func (p *comparison) table(ctx context.Context, t *policyfile.Table, r *catalog.Relation) error {
	now := tableOf(p.present, r)
	changes := difference(p.present, now, p.file, t)
	inForce, err := isInForce(ctx, p.tx, p.file, t, p.present, r)
	if err != nil {
		return err
	}
	anew := slices.Contains(p.anew, t.Name)
	along := p.tried != nil && slices.Contains(p.tried.activated, t.Name)
	was, is := periodOf(now), t.Period()
	switch {
	case now == nil:
		p.protect++
		p.line("%s: to be protected", t.Name)
	case inForce && !along && !anew && was == is:
		p.same++
		p.line("%s: as it is", t.Name)
	default:
		p.change++
		p.line("%s: to be changed", t.Name)
		switch {
		case anew || len(changes) > 0:
		case along && inForce:
			p.line("  ~ what it borrows from its parent has changed")
		case !inForce:
			p.line("  ~ the table has another shape than when its policy was activated")
		}
	}
	for _, c := range changes {
		p.line("  %s", c)
	}
	if anew {
		p.line("  ~ shown anew: the guarantee over what was shown before is given up")
	}
	if is != was {
		p.line("  refresh: %s -> %s", orNever(was), orNever(is))
	}
	p.refused(t.Name)
	var hidden []string
	for _, c := range r.Columns {
		if t.Column(c.Name) == nil {
			hidden = append(hidden, c.Name)
		}
	}
	if len(hidden) > 0 {
		p.line("  without a class, hidden: %s", strings.Join(hidden, ", "))
	}
	if len(t.Seed) > 0 {
		var known bool
		if err := p.tx.QueryRow(ctx,
			`SELECT pg_catalog.to_regprocedure('tailor.seed(regclass,jsonb)') IS NOT NULL`).
			Scan(&known); err != nil {
			return err
		}
		if !known {
			p.obstacle("chain.seed: the SQL side of this database knows no seeds")
		}
	}
	if t.DataSet != nil {
		p.line("  shown by the blocks of %s: risk and loss are those", t.DataSet.Of)
		return nil
	}
	if !anew {
		if err := p.goesOn(ctx, t, r, inForce); err != nil {
			return err
		}
	}
	if err := p.sharedNames(ctx, t); err != nil {
		return err
	}
	if err := p.ends(ctx, t, r); err != nil {
		return err
	}
	if err := p.figures(ctx, t, now, r, inForce && !along); err != nil {
		return err
	}
	return p.jointly(ctx, t, r)
}

// ends says which ends the hierarchies of dates have that the file gives none, and which
// whole decades hold the data. Loss is a share of what lies between the ends.
func (p *comparison) ends(ctx context.Context, t *policyfile.Table, r *catalog.Relation) error {
	for i := range t.Columns {
		c := &t.Columns[i]
		h := p.file.Hierarchy(c.Hierarchy)
		given := h == nil || h.Type != "date" || h.LowerDay != "" && h.UpperDay != ""
		if given || r.Column(c.Name) == nil {
			continue
		}
		var lower, upper *string
		column := pgx.Identifier{c.Name}.Sanitize()
		err := p.tx.QueryRow(ctx, fmt.Sprintf(`
			SELECT pg_catalog.date_trunc('decade', min(%[1]s))::date::text,
				(pg_catalog.date_trunc('decade', max(%[1]s)) + interval '10 years - 1 day')::date::text
			FROM %[2]s`,
			column, pgx.Identifier{r.Schema, r.Name}.Sanitize())).Scan(&lower, &upper)
		if err != nil {
			return err
		}
		data := ""
		if lower != nil && upper != nil {
			data = fmt.Sprintf(`; whole decades around the data are lower: %q, upper: %q`, *lower, *upper)
		}
		p.line("  %s: hierarchy %s has the ends %s and %s, and loss counts by them%s", c.Name, h.Name,
			cmp.Or(h.LowerDay, catalog.DefaultLowerDay), cmp.Or(h.UpperDay, catalog.DefaultUpperDay), data)
	}
	return nil
}

func orNever(period string) string {
	if period == "" {
		return "never"
	}
	return period
}

// figures shows what a chain that is refined along all quasi-identifiers would
// show, under the policy in force and under that of the file, which may be the same. Then
// no other models are tried out.
func (p *comparison) figures(
	ctx context.Context, t, now *policyfile.Table, r *catalog.Relation, same bool,
) error {
	var missing int
	name := pgx.Identifier{r.Schema, r.Name}.Sanitize()
	if err := p.tx.QueryRow(ctx, fmt.Sprintf("SELECT count(*) FROM %s WHERE %s IS NULL", name,
		pgx.Identifier{t.Subject}.Sanitize())).Scan(&missing); err != nil {
		return err
	}
	if missing > 0 {
		p.obstacle("subject %s is NULL in %d rows", t.Subject, missing)
	}
	then, err := p.forecast(ctx, p.file, t, r)
	if err != nil {
		return err
	}
	for _, u := range then.Uncovered {
		p.obstacle("%s", u)
	}
	if then.Unmet != "" {
		p.obstacle("the table as a whole does not meet %s: every query would be refused (KA001)",
			then.Unmet)
	}
	if len(then.Losses) == 0 {
		p.line("  %d rows, %d subjects", then.Rows, then.Subjects)
		return nil
	}
	var is *catalog.Forecast // of the policy in force, unless it has to be made
	if same {
		is = then
	}
	before, err := p.before(ctx, now, r, is)
	if err != nil {
		return err
	}
	note := ""
	if then.Share < 1 {
		note = fmt.Sprintf(", figures from a sample of %.0f %% of the subjects", 100*then.Share)
	}
	p.line("  %d rows, %d subjects looked at%s", then.Rows, then.Subjects, note)
	p.line("  highest risk: %s as stored, %s then%s", risk(then.RawRisk), risk(then.Risk),
		before(func(f *catalog.Forecast) string {
			return risk(f.Risk)
		}))
	var losses []string
	i := 0
	for _, c := range r.Columns {
		if k := t.Column(c.Name); k != nil && k.Class == "quasi_identifier" {
			losses = append(losses, fmt.Sprintf("%s %.1f %%", c.Name, 100*then.Losses[i]))
			i++
		}
	}
	p.line("  loss if everything is asked for: %.1f %% then (%s)%s", 100*then.Loss,
		strings.Join(losses, ", "),
		before(func(f *catalog.Forecast) string { return fmt.Sprintf("%.1f %%", 100*f.Loss) }))
	for _, column := range slices.Sorted(maps.Keys(then.Withheld)) {
		p.line("  %s is withheld in %.1f %% of the rows then", column, 100*then.Withheld[column])
	}
	if err := p.telling(ctx, t, r); err != nil || same {
		return err
	}
	return p.models(ctx, t, r)
}

// mostPairs are those of columns that a plan compares: some 2 ms each.
const mostPairs = 3000

// telling names the columns that would be shown as they are, with no model, and determine a
// sensitive one or follow from it.
func (p *comparison) telling(ctx context.Context, t *policyfile.Table, r *catalog.Relation) error {
	var sensitive, shown []string
	for _, c := range t.Columns {
		switch c.Class {
		case "sensitive":
			sensitive = append(sensitive, c.Name)
		case "non_sensitive":
			shown = append(shown, c.Name)
		}
	}
	if n := len(sensitive) * len(shown); n > mostPairs {
		p.line("  ? whether columns that are shown as they are tell sensitive ones was not looked at: "+
			"there are %d pairs", n)
		return nil
	}
	rows, err := p.tx.Query(ctx, `SELECT teller, told, exceptions
		FROM tailor.telling_columns($1::oid::regclass, $2, $3)`, r.OID, sensitive, shown)
	if err != nil {
		return err
	}
	var teller, told string
	var exceptions float64
	_, err = pgx.ForEachRow(rows, []any{&teller, &told, &exceptions}, func() error {
		column, how, other := teller, "tells", told
		if slices.Contains(sensitive, teller) {
			column, how, other = told, "follows from", teller
		}
		p.line("  ? %s is shown as it is and %s %s, which is sensitive, but for %.1f %% of the rows; "+
			"classify it as sensitive, with a model of its own", column, how, other, 100*exceptions)
		return nil
	})
	return err
}

// models says what each model of the sensitive columns would lose, beside the one that is asked
// for and the next stricter one.
func (p *comparison) models(ctx context.Context, t *policyfile.Table, r *catalog.Relation) error {
	relation, err := p.shaped(ctx, p.file, t, r)
	if err != nil {
		return err
	}
	c, err := catalog.NewComparison(ctx, p.tx, relation)
	if err != nil || c == nil || len(c.Alternatives) == 0 {
		return err
	}
	sample := ""
	if c.Share < 1 {
		sample = fmt.Sprintf(" of a sample of %d subjects, which loses more than all", c.Subjects)
	}
	p.line("  models, each alone beside k, which alone loses %.1f %%%s:", 100*c.Loss, sample)
	for i, a := range c.Alternatives {
		figure := fmt.Sprintf("loses %.1f %%", 100*a.Loss)
		switch {
		case a.Unmet:
			figure = "is not met by all together"
		case t.BlindCuts:
			figure = fmt.Sprintf("withholds %.1f %%", 100*a.Withheld)
		}
		switch {
		case a.Asked:
			figure += ", asked for"
		case i > 0 && c.Alternatives[i-1].Asked:
			figure += ", the next stricter one"
		}
		p.line("    %s %s", policyfile.Requirement(a.Requirement).Phrase(), figure)
	}
	if c.Skipped > 0 {
		p.line("    %d more for which there was no time", c.Skipped)
	}
	return nil
}

// before returns what writes a figure of the policy in force, where there is
// one; f is its forecast, nil where that has not been made.
func (p *comparison) before(
	ctx context.Context, now *policyfile.Table, r *catalog.Relation, f *catalog.Forecast,
) (func(figure func(*catalog.Forecast) string) string, error) {
	if now == nil {
		return func(func(*catalog.Forecast) string) string { return "" }, nil
	}
	if f == nil {
		var err error
		if f, err = p.forecast(ctx, p.present, now, r); err != nil {
			return nil, err
		}
	}
	return func(figure func(*catalog.Forecast) string) string {
		if len(f.Losses) == 0 {
			return "; none now, the policy in force does not fit the table"
		}
		return ", " + figure(f) + " now"
	}, nil
}

func risk(v float64) string {
	return fmt.Sprintf("1/%.0f", math.Round(1/v))
}

// shaped is a table as its policy in a file would have it.
func (p *comparison) shaped(
	ctx context.Context, f *policyfile.File, t *policyfile.Table, r *catalog.Relation,
) (*catalog.Relation, error) {
	relation := *r
	relation.Subject, relation.K, relation.Recoding, relation.Scope = t.Subject, t.K, t.Recoding,
		t.Scope
	relation.BlindCuts = t.BlindCuts
	relation.MaxShare = cmp.Or(t.MaxShare, catalog.DefaultShare)
	relation.Seeds = []catalog.Seed{{Combinations: t.Seed}} // the policy's own has no name
	relation.Requirements = nil
	for _, q := range t.Require {
		if r.Column(q.Column) != nil {
			relation.Requirements = append(relation.Requirements, catalog.Requirement(q))
		}
	}
	relation.Columns = slices.Clone(r.Columns)
	for i := range relation.Columns {
		c := &relation.Columns[i]
		k := t.Column(c.Name)
		if k == nil {
			continue
		}
		c.Class = catalog.Class(k.Class)
		if h := f.Hierarchy(k.Hierarchy); h != nil {
			definition, err := p.definition(ctx, h)
			if err != nil {
				return nil, err
			}
			c.Hierarchy = &catalog.HierarchySpec{Name: h.Name, Kind: h.Type, Definition: definition}
		}
	}
	return &relation, nil
}

// definition is a hierarchy with its list read from its source.
func (p *comparison) definition(
	ctx context.Context, h *policyfile.Hierarchy,
) (json.RawMessage, error) {
	if h.Source == "" {
		return json.RawMessage(h.Definition()), nil
	}
	var columns []string
	for _, c := range h.Columns {
		columns = append(columns, pgx.Identifier{c}.Sanitize()+"::text")
	}
	var source string
	if err := p.tx.QueryRow(ctx, `SELECT $1::text::pg_catalog.regclass::text`, h.Source).
		Scan(&source); err != nil {
		return nil, refusal(ctx, fmt.Sprintf("hierarchy %q", h.Name), err)
	}
	var paths json.RawMessage
	err := p.tx.QueryRow(ctx,
		fmt.Sprintf(`SELECT coalesce(jsonb_agg(jsonb_build_array(%s)), '[]') FROM %s`,
			strings.Join(columns, ", "), source)).Scan(&paths)
	if err != nil {
		return nil, refusal(ctx, fmt.Sprintf("hierarchy %q", h.Name), err)
	}
	return json.Marshal(map[string]json.RawMessage{"paths": paths})
}
