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
	// Written is the file of the draft, and Proposals its hierarchies.
	Written   string              `json:"written,omitempty"`
	Proposals []proposedHierarchy `json:"hierarchies,omitempty"`
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
}

// shortClasses are the names of classes that the literature uses.
var shortClasses = map[identify.Class]string{
	identify.Sensitive: "SA", identify.QuasiIdentifier: "QID", identify.NonSensitive: "NSA",
}

func newClassifyReport(o *classifyOptions, c *classified) *classifyReport {
	r := &classifyReport{
		Table: c.table, Rows: c.Rows, SampleShare: c.Share, Alpha: o.thresholds.Alpha, Beta: o.thresholds.Beta,
		Columns: []classifyColumn{}, Caveat: identify.Caveat,
	}
	direct := splitNames(o.direct)
	for _, k := range c.Columns {
		named := slices.Contains(direct, k.Name)
		suggestion := k.Suggest(o.thresholds, named)
		column := classifyColumn{
			Name: k.Name, Type: k.Type, Missing: math.Round(100*k.MissingPercent()) / 100, Distinct: k.Distinct,
			GDistinct: k.GDistinct, Risk: k.RiskPercent(), Suggested: string(suggestion.Class), Because: suggestion.Reason,
		}
		if !named {
			column.ByRisk = shortClasses[k.ClassByRisk(o.thresholds)]
		}
		r.Columns = append(r.Columns, column)
	}
	return r
}

func (r *classifyReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(r)
}

func (r *classifyReport) writeText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d rows%s; alpha %g %%, beta %g %%\n\n", r.Table, r.Rows, sampleNote(r.SampleShare), r.Alpha, r.Beta)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COLUMN\tMISSING\tVALUES\tRISK RATE\tBY RISK\tSUGGESTED\tBECAUSE")
	for _, c := range r.Columns {
		fmt.Fprintf(table, "%s\t%.1f %%\t%d\t%.2f %%\t%s\t%s\t%s\n", c.Name, c.Missing, c.Distinct, c.Risk,
			orDash(c.ByRisk), orDash(c.Suggested), c.Because)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s\n", r.Caveat)
	if r.Written == "" {
		return nil
	}
	fmt.Fprintf(w, "\n%s has the draft of a policy, with hierarchies for you to widen and round:\n", r.Written)
	for _, p := range r.Proposals {
		fmt.Fprintf(table, "%s\t%s\t%s\n", p.Column, p.Definition, p.Because)
	}
	return table.Flush()
}

func sampleNote(share float64) string {
	if share >= 1 {
		return ""
	}
	return fmt.Sprintf(", measured on a random sample of %.2g %% (risk rates of a sample are higher)", 100*share)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
