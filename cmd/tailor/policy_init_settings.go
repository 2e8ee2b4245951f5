package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// setting is a k with the l of the l-diversity that sensitive columns have beside it.
type setting struct{ k, diversity int }

// settings are the ones that are compared, the preset k among them if it is above 0. The
// chosen one is the place of the default.
func settings(preset int) (all []setting, chosen int) {
	all = []setting{{3, 2}, {draftK, draftDiversity}, {11, 4}}
	k := preset
	if k == 0 {
		k = draftK
	}
	chosen = slices.IndexFunc(all, func(g setting) bool { return g.k >= k })
	switch {
	case chosen < 0:
		all, chosen = append(all, setting{k, all[len(all)-1].diversity}), len(all)
	case all[chosen].k != k: // as diverse as the one above it, but no more than k values
		all = slices.Insert(all, chosen, setting{k, min(k, all[chosen].diversity)})
	}
	return all, chosen
}

// effect is what a setting does to a table, as policy plan measures it.
type effect struct {
	table string
	k     int
	codes bool // the table is set-valued
	*catalog.Forecast
}

// weighedRows is the number of rows above which a sample of about so many is weighed: it is
// done for each setting while somebody waits. A sample loses more than the whole.
const weighedRows = 20_000

// weigh measures each setting on the tables as they are, in one snapshot. Columns that have no
// place for a value become hidden.
func (s *survey) weigh(
	ctx context.Context, dsn string, all []setting, status func(string),
) ([][]effect, error) {
	var effects [][]effect
	err := inSnapshot(ctx, dsn, func(tx pgx.Tx) error {
		for i := 0; i < len(all); i++ {
			of, again, err := s.effects(ctx, tx, all[i], status)
			if err != nil {
				return err
			}
			if again {
				effects, i = nil, -1
				continue
			}
			effects = append(effects, of)
		}
		return nil
	})
	return effects, err
}

// effects measures one setting. again says that a column had to be hidden.
func (s *survey) effects(
	ctx context.Context, tx pgx.Tx, g setting, status func(string),
) (out []effect, again bool, err error) {
	f, err := readBack(s.compose(g))
	if err != nil {
		return nil, false, err
	}
	p := &comparison{tx: tx, file: f, present: &policyfile.File{}, out: &strings.Builder{}}
	for i := range f.Tables {
		t := &f.Tables[i]
		status(fmt.Sprintf("k = %d: what %s would lose, %d of %d tables",
			g.k, t.Name, i+1, len(f.Tables)))
		r, err := findTable(ctx, tx, t)
		if err != nil {
			return nil, false, err
		}
		shaped, err := p.shaped(ctx, f, t, r)
		if err != nil {
			return nil, false, err
		}
		forecast, err := catalog.NewForecastOf(ctx, tx, shaped, weighedRows)
		if err != nil {
			return nil, false, refusal(ctx, t.Name, err)
		}
		again = s.table(t.Name).hideUncovered(forecast.Uncovered) || again
		out = append(out, effect{t.Name, g.k, t.SetValued != nil, forecast})
	}
	return out, again, nil
}

// table finds one by name.
func (s *survey) table(name string) *surveyedTable {
	at := slices.IndexFunc(s.tables, func(t *surveyedTable) bool { return t.name == name })
	return s.tables[at]
}

// hideUncovered hides the columns whose hierarchy has no place for some value, and says
// whether it did.
func (t *surveyedTable) hideUncovered(faults []string) bool {
	found := false
	for _, fault := range faults {
		for _, c := range t.columns {
			reason, is := strings.CutPrefix(fault, c.Name+": ")
			if is && c.uncovered == "" && c.choice() == asQuasiIdentifier {
				c.uncovered, found = reason, true
			}
		}
	}
	return found
}

// readBack is a file as it will be read: a fault in it is one of this program.
func readBack(f *policyfile.File) (*policyfile.File, error) {
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		return nil, err
	}
	read, faults := policyfile.Parse(text.Bytes())
	if faults != nil {
		return nil, &policyError{
			fmt.Sprintf("the policy of these answers has a fault: %s", faults[0].Message),
			"hide the column that it names, or leave the table out",
		}
	}
	return read, nil
}

// writeEffects prints what the settings do, numbered from 1.
func writeEffects(w io.Writer, all []setting, effects [][]effect) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "\tK\tL\tTABLE\tLOSS\tHIGHEST RISK")
	for i, g := range all {
		head := fmt.Sprintf("%d\t%d\t%d", i+1, g.k, g.diversity)
		for _, e := range effects[i] {
			loss, risk := e.figures()
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", head, e.table, loss, risk)
			head = "\t\t"
		}
	}
	return table.Flush()
}

// figures are loss and risk of a table in words.
func (e *effect) figures() (loss, highest string) {
	switch {
	case e.Unmet != "":
		return "-", "left out: all together do not meet " + e.Unmet
	case e.codes:
		return "-", fmt.Sprintf("1/%d to whoever knows %d codes of somebody", e.k, setM)
	case len(e.Losses) == 0:
		return "-", "no quasi-identifiers"
	}
	highest = risk(e.Risk) + ", as stored " + risk(e.RawRisk)
	if e.Share < 1 {
		highest += fmt.Sprintf(", of a sample of %.0f %%, which loses more", 100*e.Share)
	}
	return fmt.Sprintf("%.1f %%", 100*e.Loss), highest
}

// file is the policy under the chosen setting. Tables that do not meet it are left out; it has
// the reasons, and what the settings do, in comments.
func (s *survey) file(schema string, all []setting, effects [][]effect, chosen int) (
	*policyfile.File, error,
) {
	var out []string
	for _, e := range effects[chosen] {
		if e.Unmet != "" {
			s.table(e.table).leave = true
			out = append(out, fmt.Sprintf("%s: all together do not meet %s", e.table, e.Unmet))
		}
	}
	f := s.compose(all[chosen])
	if len(f.Tables) == 0 {
		return nil, &policyError{
			"no table is left to protect", "answer otherwise, or choose a lower k",
		}
	}
	for _, t := range s.tables {
		if t.leave && !slices.ContainsFunc(effects[chosen], func(e effect) bool {
			return e.table == t.name
		}) {
			out = append(out, t.name+": "+t.whyLeft())
		}
	}
	f.Remarks = []string{
		fmt.Sprintf("A first policy of the schema %s by tailor policy init, k = %d.",
			schema, all[chosen].k),
		"Bounds, widths and groups of hierarchies are guesses: widen, round and name them.",
		"It lets nobody read yet: readers: [ROLE, …] above the columns of each table does.",
		"", "What k, with l-diversity of sensitive columns, loses if everything is asked for:",
	}
	var table strings.Builder
	if err := writeEffects(&table, all, effects); err != nil {
		return nil, err
	}
	f.Remarks = append(f.Remarks, strings.Split(strings.TrimSuffix(table.String(), "\n"), "\n")...)
	if out = slices.Concat(s.out, out); len(out) > 0 {
		f.Remarks = append(f.Remarks, "", "Left out:")
		f.Remarks = append(f.Remarks, out...)
	}
	return f, nil
}
