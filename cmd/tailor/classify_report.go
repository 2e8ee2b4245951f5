package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
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
	_, err := fmt.Fprintf(w, "\n%s\n", r.Caveat)
	return err
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
