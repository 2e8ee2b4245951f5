package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// levelChoices are the values of a repeated flag COL=LEVEL.
type levelChoices map[string]int

func (l levelChoices) String() string { return "" }

func (l levelChoices) Set(value string) error {
	column, number, ok := strings.Cut(value, "=")
	level, err := strconv.Atoi(number)
	if !ok || column == "" || err != nil || level < 1 {
		return errors.New("wants COL=LEVEL, a level of at least 1")
	}
	if _, twice := l[column]; twice {
		return fmt.Errorf("column %q has two levels", column)
	}
	l[column] = level
	return nil
}

// classifyDimensions reports, for each number of quasi-identifiers in the order
// of falling risk, what de-identifying them gains and costs. It is part of
// classify, not of assess: its order and, where nothing else is said, its
// columns are those that classify finds, and it recodes by itself where assess
// measures what others have recoded.
func classifyDimensions(ctx context.Context, o *classifyOptions, stdout io.Writer) error {
	sheet, err := o.sheet(ctx)
	if err != nil {
		return err
	}
	qids, sensitive, err := o.attributes(sheet)
	if err != nil {
		return err
	}
	dimensions, err := identify.Dimensions(qids, sensitive)
	if err != nil {
		return err
	}
	report := newDimensionsReport(dimensions, sensitive)
	if o.format == "json" {
		encoder := json.NewEncoder(stdout)
		encoder.SetIndent("", "  ")
		encoder.SetEscapeHTML(false)
		return encoder.Encode(report)
	}
	return report.writeText(stdout)
}

// sheet reads the file, or the columns of the table.
func (o *classifyOptions) sheet(ctx context.Context) (*anonymize.Sheet, error) {
	if o.csv != "" {
		delimiter, err := parseDelimiter(o.delimiter)
		if err != nil {
			return nil, err
		}
		return openSheet(o.csv, delimiter)
	}
	names := append(splitNames(o.qid), splitNames(o.sensitive)...)
	if o.qid == "" || o.sensitive == "" {
		c, err := measureTable(ctx, o.dsn, o.table)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, k := range c.Columns {
			names = append(names, k.Name)
		}
	}
	return readTable(ctx, o.dsn, o.table, names)
}

// attributes are the quasi-identifiers by falling risk, recoded, and the
// sensitive attributes.
func (o *classifyOptions) attributes(
	sheet *anonymize.Sheet,
) ([]identify.Recoded, []anonymize.SensitiveAttribute, error) {
	columns := make(map[string]*identify.Column)
	var all []*identify.Column
	for i, name := range sheet.Header() {
		columns[name] = identify.NewColumn(name, sheet.Cells(i))
		all = append(all, columns[name])
	}
	chosen := func(names string, class identify.Class) ([]*identify.Column, error) {
		var out []*identify.Column
		for _, c := range all {
			if names == "" && c.ClassByRisk(o.thresholds) == class &&
				!strings.Contains(","+o.direct+",", ","+c.Name+",") {
				out = append(out, c)
			}
		}
		for _, name := range splitNames(names) {
			if columns[name] == nil {
				return nil, &anonymize.ProblemError{
					What:   fmt.Sprintf("there is no column %q", name),
					Remedy: "name a column as it is stored",
				}
			}
			out = append(out, columns[name])
		}
		return out, nil
	}
	quasi, err := chosen(o.qid, identify.QuasiIdentifier)
	if err != nil {
		return nil, nil, err
	}
	secret, err := chosen(o.sensitive, identify.Sensitive)
	if err != nil {
		return nil, nil, err
	}
	identify.ByRisk(quasi)
	var qids []identify.Recoded
	for _, c := range quasi {
		q, err := o.recoded(sheet, c.Name)
		if err != nil {
			return nil, nil, err
		}
		qids = append(qids, *q)
	}
	var sensitive []anonymize.SensitiveAttribute
	for _, c := range secret {
		i, err := sheet.Find(c.Name)
		if err != nil {
			return nil, nil, err
		}
		sensitive = append(sensitive, anonymize.NewSensitiveAttribute(c.Name, sheet.Cells(i)))
	}
	return qids, sensitive, nil
}

// recoded shows a column at its level.
func (o *classifyOptions) recoded(sheet *anonymize.Sheet, name string) (*identify.Recoded, error) {
	i, err := sheet.Find(name)
	if err != nil {
		return nil, err
	}
	q := &identify.Recoded{Name: name, Before: sheet.Cells(i), After: make([]string, sheet.Rows())}
	file, ok := o.hierarchies[name]
	if !ok {
		return nil, &anonymize.ProblemError{What: fmt.Sprintf("quasi-identifier %q has no hierarchy",
			name), Remedy: "give --hierarchy " + name + "=FILE"}
	}
	delimiter, err := parseDelimiter(o.delimiter)
	if err != nil {
		return nil, err
	}
	h, err := openHierarchy(file, delimiter)
	if err != nil {
		return nil, err
	}
	level := max(1, o.levels[name])
	if level >= h.Height() {
		return nil, &anonymize.ProblemError{What: fmt.Sprintf("the hierarchy of %q has no level %d", name,
			level), Remedy: fmt.Sprintf("its highest is %d", h.Height()-1)}
	}
	for row, cell := range q.Before {
		leaf, ok := h.Code(cell)
		if !ok {
			return nil, &anonymize.ProblemError{
				What: fmt.Sprintf(
					"the hierarchy of %q has no place for the value of row %d", name, row+1),
				Remedy: "complete the hierarchy",
			}
		}
		q.After[row] = h.Label(anonymize.Node{Level: level, Group: h.Generalize(leaf, level)})
	}
	return q, nil
}

// dimensionsReport is what `tailor classify --dimensions` prints.
type dimensionsReport struct {
	Sensitive  []string          `json:"sensitive"`
	Dimensions []dimensionReport `json:"dimensions"`
	// Chosen counts from 1; 0: no dimension reaches k = 2.
	Chosen int    `json:"chosen_dimension"`
	Rule   string `json:"rule"`
}

type dimensionReport struct {
	Dimension   int      `json:"dimension"`
	Columns     []string `json:"de_identified"`
	KBefore     int      `json:"k_original"`
	K           int      `json:"k"`
	PrivacyGain int      `json:"privacy_gain"`
	Classes     int      `json:"equivalence_classes"`
	LBefore     []int    `json:"l_original"`
	L           []int    `json:"l"`
	TBefore     []figure `json:"t_original"`
	T           []figure `json:"t"`
	WorstT      figure   `json:"t_worst"`
	Nats        figure   `json:"nue_nats"`
	Percent     figure   `json:"nue_percent"`
	Inverse     figure   `json:"inverse_nue_percent"`
}

const dimensionRule = "of the dimensions with k of at least 2, in their order, each takes the " +
	"place of the one before where its privacy gain " +
	"and its inverse entropy are both at least as high; as inverse entropy only falls, that is the " +
	"first with k of at least 2, ties aside"

func newDimensionsReport(
	dimensions []identify.Dimension, sensitive []anonymize.SensitiveAttribute,
) *dimensionsReport {
	r := &dimensionsReport{
		Sensitive: []string{}, Dimensions: []dimensionReport{},
		Chosen: identify.Choose(dimensions) + 1, Rule: dimensionRule,
	}
	for _, s := range sensitive {
		r.Sensitive = append(r.Sensitive, s.Name)
	}
	figures := func(values []float64) []figure {
		out := []figure{}
		for _, v := range values {
			out = append(out, figure(v))
		}
		return out
	}
	for i, d := range dimensions {
		r.Dimensions = append(r.Dimensions, dimensionReport{
			Dimension: i + 1, Columns: d.DeIdentified, KBefore: d.KBefore, K: d.K,
			PrivacyGain: d.PrivacyGain, Classes: d.Classes,
			LBefore: d.LBefore, L: d.L, TBefore: figures(d.TBefore), T: figures(d.T),
			WorstT: figure(d.WorstT()),
			Nats:   figure(d.Nats), Percent: figure(d.Percent), Inverse: figure(d.Inverse),
		})
	}
	return r
}

func (r *dimensionsReport) writeText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DIMENSION\tLAST DE-IDENTIFIED\tK\tGAIN\tL\tT\tENTROPY\tINVERSE")
	for _, d := range r.Dimensions {
		fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%v\t%v\t%.2f %%\t%.2f %%\n", d.Dimension,
			d.Columns[len(d.Columns)-1], d.K, d.PrivacyGain,
			d.L, d.WorstT, float64(d.Percent), float64(d.Inverse))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r.Chosen == 0 {
		_, err := fmt.Fprintf(w, "\nNo dimension reaches k of 2. The rule: %s.\n", r.Rule)
		return err
	}
	_, err := fmt.Fprintf(w, "\nDimension %d is chosen: %s.\n", r.Chosen, r.Rule)
	return err
}
