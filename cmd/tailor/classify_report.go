package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// classifyReport is what `tailor classify` prints.
type classifyReport struct {
	Table       string           `json:"table"`
	Rows        int              `json:"rows"`
	SampleShare float64          `json:"sample_share"` // 1: every row was looked at
	Alpha       float64          `json:"alpha"`
	Beta        float64          `json:"beta"`
	Columns     []classifyColumn `json:"columns"` // by falling risk rate
	Caveat      string           `json:"caveat"`
	// Sets of columns that single people out, looked for in CellShare of the rows.
	CellShare float64      `json:"rows_share_of_sets"`
	Sets      []columnSet  `json:"singling_out"`
	Worst     []columnSet  `json:"worst_sets_by_size"`
	AllSets   bool         `json:"all_sets_examined"`
	Dependent []dependency `json:"dependencies"`
	AllPairs  bool         `json:"all_dependencies_examined"`
	// Written is the file of the draft, and Proposals its hierarchies.
	Written   string              `json:"written,omitempty"`
	Proposals []proposedHierarchy `json:"hierarchies,omitempty"`
}

// columnSet is a set of columns and the percentage of the rows that equal no
// other row in them.
type columnSet struct {
	Columns []string `json:"columns"`
	Percent float64  `json:"rows_alone_percent"`
}

type dependency struct {
	From       string  `json:"from"`
	To         string  `json:"to"`
	Exceptions float64 `json:"exceptions_percent"`
}

type proposedHierarchy struct {
	Column     string `json:"column"`
	Definition string `json:"definition"` // as in a policy file
	Because    string `json:"reason"`
}

// propose adds what the draft says of hierarchies.
func (r *classifyReport) propose(file string, draft *policyfile.File) {
	r.Written = file
	for i := range draft.Hierarchies {
		h := &draft.Hierarchies[i]
		r.Proposals = append(r.Proposals, proposedHierarchy{h.Name, h.String(), h.Remark})
	}
}

type classifyColumn struct {
	Name    string  `json:"name"`
	Type    string  `json:"type,omitempty"`
	Missing float64 `json:"missing_percent"`
	// Distinct values, and the sum of g-distinct over them; what is missing
	// counts as one value.
	Distinct  int     `json:"distinct_values"`
	GDistinct float64 `json:"g_distinct_sum"`
	Risk      float64 `json:"risk_percent"`
	// ByRisk is the class by the risk rate alone: SA, QID, NSA; empty for direct
	// identifiers that were named and for columns with too many missing values.
	ByRisk    string `json:"class_by_risk"`
	Suggested string `json:"suggested_class"` // empty: to be left hidden
	Because   string `json:"reason"`
	// Confidence is high, medium or low; WouldChange says what would change the
	// suggestion.
	Confidence  string `json:"confidence"`
	WouldChange string `json:"would_change"`
}

// shortClasses are the names of classes that the literature uses.
var shortClasses = map[identify.Class]string{
	identify.Sensitive: "SA", identify.QuasiIdentifier: "QID", identify.NonSensitive: "NSA",
}

func newClassifyReport(o *classifyOptions, c *classified) *classifyReport {
	r := &classifyReport{
		Table: c.table, Rows: c.Rows, SampleShare: c.Share, Alpha: o.thresholds.Alpha,
		Beta:    o.thresholds.Beta,
		Columns: []classifyColumn{}, Caveat: identify.Caveat,
	}
	direct := splitNames(o.direct)
	for _, k := range c.Columns {
		named := slices.Contains(direct, k.Name)
		suggestion := k.Suggest(o.thresholds, named)
		column := classifyColumn{
			Name: k.Name, Type: k.Type, Missing: math.Round(100*k.MissingPercent()) / 100,
			Distinct:  k.Distinct,
			GDistinct: k.GDistinct, Risk: k.RiskPercent(), Suggested: string(suggestion.Class),
			Because:    suggestion.Reason,
			Confidence: string(suggestion.Confidence), WouldChange: suggestion.WouldChange,
		}
		if !named {
			column.ByRisk = shortClasses[k.ClassByRisk(o.thresholds)]
		}
		r.Columns = append(r.Columns, column)
	}
	r.addSets(c)
	return r
}

// addSets adds what the columns tell together.
func (r *classifyReport) addSets(c *classified) {
	r.CellShare, r.AllSets, r.AllPairs = c.Cells.Share, c.combinations.Complete, c.allPairs
	r.Sets, r.Worst, r.Dependent = []columnSet{}, []columnSet{}, []dependency{}
	round := func(percent float64) float64 { return math.Round(100*percent) / 100 }
	for _, s := range c.combinations.Minimal {
		r.Sets = append(r.Sets, columnSet{s.Columns, round(s.Percent)})
	}
	for _, s := range c.combinations.Worst {
		r.Worst = append(r.Worst, columnSet{s.Columns, round(s.Percent)})
	}
	for _, d := range c.dependencies {
		r.Dependent = append(r.Dependent, dependency{d.From, d.To, round(d.Exceptions)})
	}
}

func (r *classifyReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func (r *classifyReport) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d rows%s; alpha %g %%, beta %g %%\n\n", r.Table, r.Rows,
		sampleNote(r.SampleShare), r.Alpha, r.Beta)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COLUMN\tMISSING\tVALUES\tRISK RATE\tBY RISK\tSUGGESTED\tSURE\tBECAUSE")
	for _, c := range r.Columns {
		fmt.Fprintf(table, "%s\t%.1f %%\t%d\t%.2f %%\t%s\t%s\t%s\t%s\n", c.Name, c.Missing, c.Distinct,
			c.Risk,
			orDash(c.ByRisk), orDash(c.Suggested), c.Confidence, c.Because)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := r.writeChanges(w); err != nil {
		return err
	}
	r.writeSets(w)
	fmt.Fprintf(w, "\n%s\n", r.Caveat)
	if r.Written == "" {
		return nil
	}
	fmt.Fprintf(w, "\n%s has the draft of a policy, with hierarchies for you to widen and round:\n",
		r.Written)
	for _, p := range r.Proposals {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Column, p.Definition, p.Because)
	}
	return table.Flush()
}

func sampleNote(share float64) string {
	if share >= 1 {
		return ""
	}
	return fmt.Sprintf(", measured on a random sample of %.2g %% (risk rates of a sample are higher)",
		100*share)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
