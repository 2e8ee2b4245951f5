package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// draftK is the k of a draft, and draftDiversity how many values of a sensitive column each
// block has.
const draftK, draftDiversity = 5, 3

// writeDraft writes a policy made of the suggestions. columns are in the order
// of the table.
func writeDraft(
	o *classifyOptions, c *classified, columns []*identify.Column,
) (*policyfile.File, error) {
	draft, err := newDraft(o, c, columns)
	if err != nil {
		return nil, err
	}
	return draft, atomicfile.WriteNew(o.write, 0o644, draft.Write)
}

func newDraft(
	o *classifyOptions, c *classified, columns []*identify.Column,
) (*policyfile.File, error) {
	subject := o.subject
	if subject == "" {
		subject = c.Subject
	}
	if subject == "" {
		subject = keyOf(columns)
	}
	if subject == "" {
		return nil, &anonymize.ProblemError{
			What: "the table has no key that could be the subject",
			Remedy: "name the column that says whom a row is about in --subject; where none does and each " +
				"row is about a person of its own, number the rows, in a database by ALTER TABLE … ADD " +
				"person bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
		}
	}
	file := &policyfile.File{Remarks: []string{
		fmt.Sprintf("A draft by tailor classify, from %d rows%s; alpha %g %%, beta %g %%.", c.Rows,
			sampleNote(c.Share), o.thresholds.Alpha, o.thresholds.Beta),
		identify.Caveat,
		"Columns that are not listed are hidden. Bounds and widths of hierarchies are guesses: widen " +
			"and round them.",
	}}
	if len(c.refers) > 0 {
		file.Remarks = append(file.Remarks, fmt.Sprintf("The subject is whom a row is about: k counts "+
			"those. Here it is %s; %s.", subject, strings.Join(c.refers, ", ")))
	}
	var classed []classedColumn
	for _, k := range columns {
		suggestion := k.Suggest(o.thresholds, slices.Contains(splitNames(o.direct), k.Name) ||
			k.Name == subject)
		column := classedColumn{
			Column: k, class: suggestion.Class,
			remark: fmt.Sprintf("risk rate %.2f %%: %s", k.RiskPercent(), suggestion.Reason),
		}
		if k.Name == subject {
			column.remark = "the subject"
		}
		if suggestion.Class == identify.QuasiIdentifier {
			column.hierarchy = guessHierarchy(k, c)
			if column.hierarchy == nil {
				file.Remarks = append(file.Remarks, hiddenForItsType(k))
			}
		}
		classed = append(classed, column)
	}
	var table policyfile.Table
	table, file.Hierarchies = draftTable(c.table, subject, draftK, draftDiversity, classed)
	protectTelling(&table, c, columns)
	file.Tables = []policyfile.Table{table}
	return file, nil
}

// classedColumn is a column of a draft.
type classedColumn struct {
	*identify.Column
	class     identify.Class
	hierarchy *policyfile.Hierarchy // of a quasi-identifier; nil if no kind fits the type
	remark    string
	unordered bool // no model can be asked of it
}

// draftTable makes the policy of a table, with the hierarchies that it has. Sensitive columns
// have l-diversity of so many values, or of as many as there are. What has no class, or no
// hierarchy, is left out and so hidden.
func draftTable(
	name, subject string, k, diversity int, columns []classedColumn,
) (policyfile.Table, []policyfile.Hierarchy) {
	table := policyfile.Table{
		Name: name, Subject: subject, K: k, Recoding: "auto", Scope: "table",
	}
	var hierarchies []policyfile.Hierarchy
	for _, c := range columns {
		column := policyfile.Column{Name: c.Name, Class: string(c.class), Remark: c.remark}
		switch {
		case c.class == identify.Unclassified:
			continue
		case c.class == identify.QuasiIdentifier && c.hierarchy == nil:
			continue
		case c.class == identify.QuasiIdentifier:
			column.Hierarchy = c.hierarchy.Name
			hierarchies = append(hierarchies, *c.hierarchy)
		case c.class == identify.Sensitive && c.Evidence.Values >= 2 && !c.unordered:
			table.Require = append(table.Require, policyfile.Requirement{
				Model: "l_diversity", Column: c.Name,
				Parameter: float64(min(diversity, c.Evidence.Values)),
			})
		}
		table.Columns = append(table.Columns, column)
	}
	return table, hierarchies
}

// hiddenForItsType says of a column that nobody is shown why, and what can be shown instead.
func hiddenForItsType(k *identify.Column) string {
	return fmt.Sprintf("%s stays hidden: no hierarchy fits its type, %s; what is computed from it "+
		"can be shown (a number, a date, a code).", k.Name, k.Type)
}

// protectTelling makes columns sensitive that would be shown as they are and determine a
// sensitive one, or follow from it, each with a model of its own.
func protectTelling(t *policyfile.Table, c *classified, columns []*identify.Column) {
	for _, d := range c.dependencies {
		for _, pair := range [][2]string{{d.From, d.To}, {d.To, d.From}} {
			column, of := t.Column(pair[0]), t.Column(pair[1])
			if column == nil || of == nil || column.Class != "non_sensitive" || of.Class != "sensitive" {
				continue
			}
			column.Class = "sensitive"
			column.Remark = fmt.Sprintf("%s tells %s, with %.2f %% exceptions", d.From, d.To, d.Exceptions)
			at := slices.IndexFunc(columns, func(k *identify.Column) bool { return k.Name == column.Name })
			t.Require = append(t.Require, policyfile.Requirement{
				Model: "l_diversity", Column: column.Name,
				Parameter: float64(max(2, min(3, columns[at].Evidence.Values))),
			})
		}
	}
}

// keyOf is the first column with a value of its own in every row.
func keyOf(columns []*identify.Column) string {
	for _, k := range columns {
		if k.Rows > 0 && k.Missing == 0 && k.Distinct == k.Rows {
			return k.Name
		}
	}
	return ""
}

// guessHierarchy makes one from type, shape and range, nil where no kind fits
// the type.
func guessHierarchy(k *identify.Column, c *classified) *policyfile.Hierarchy {
	h := &policyfile.Hierarchy{Name: k.Name}
	e := &k.Evidence
	base := k.BaseType()
	switch {
	case isCode(k) && listCodes(h, c):
	case e.Range != nil:
		h.Type = "interval"
		h.Widths, h.Lower, h.Upper, h.Remark = humanIntervals(e.Range)
	case base == "date" || base == "timestamp":
		h.Type, h.Levels = "date", []string{"month", "year", "decade"}
		if base == "timestamp" {
			h.Levels = append([]string{"hour", "day"}, h.Levels...)
		}
		if e.FirstDay != "" {
			h.LowerDay, h.UpperDay = e.FirstDay[:3]+"0-01-01", e.LastDay[:3]+"9-12-31"
		}
		h.Remark = "units of the calendar; bounds are whole decades"
	case len(k.Labels) > 0:
		h.Type, h.Remark = "table",
			"labels of the type in their order: shown or withheld; add a column of groups"
		for _, label := range k.Labels {
			h.Paths = append(h.Paths, []string{label})
		}
	case base == "boolean":
		h.Type, h.Paths = "table", [][]string{{"true"}, {"false"}}
	case base == "" || base == "text" || base == "character varying" || base == "character":
		h.Type = "prefix"
		if h.Keep, h.Remark = guessPrefix(e); h.Keep == nil {
			proposeGroups(h, c)
		}
	default:
		return nil
	}
	return h
}

// guessPrefix keeps meaningful parts of dates and codes, and nothing of others:
// those are shown or withheld.
func guessPrefix(e *identify.Evidence) (keep []int, reason string) {
	switch {
	case e.All(identify.Day):
		return []int{len("2006-01"), len("2006"), len("200")}, "texts that are dates: month, year, decade"
	case e.All(identify.Digits) && e.MinLength == e.MaxLength:
		for n := e.MaxLength - 1; n >= 1; n-- {
			keep = append(keep, n)
		}
		return keep, fmt.Sprintf("codes of %d digits: one less at each level", e.MaxLength)
	case e.All(identify.ICD9) || e.All(identify.ICD10):
		return []int{3, 2, 1}, "codes of the ICD: category first"
	}
	if keep, kind := e.Prefixes(); keep != nil {
		return keep, string(kind) + ": areas of fewer characters, one within the other"
	}
	return nil, "other text: shown or withheld"
}

// groupRows is how many rows a proposed group has at least.
const groupRows = 20 * draftK

// proposeGroups makes a list of groups, if the column has few values and all of
// them are known.
func proposeGroups(h *policyfile.Hierarchy, c *classified) {
	if c.Cells.Share < 1 {
		return
	}
	grouping := identify.Group(c.shown, h.Name, groupRows, max(c.named, draftK))
	if grouping == nil {
		return
	}
	h.Type, h.Paths = "table", grouping.Paths
	h.Remark = "values whose rows are alike in the other columns; name the groups, move values, add " +
		"those that may come"
	switch {
	case grouping.List != "":
		h.Remark = grouping.List
	case grouping.Ordered:
		h.Remark = "values in their order; name the groups, add values that may come"
	}
}

// codesAtMost is how many values whole numbers have that are taken for codes or small counts.
const codesAtMost = 12

// isCode says whether few whole numbers are shared by many rows each, as those of codes are:
// ranges would have ends that nobody has, and tell too little of loss.
func isCode(k *identify.Column) bool {
	r := k.Evidence.Range
	return r != nil && r.Whole && r.Low >= 0 && r.High < 100 && k.Distinct <= codesAtMost &&
		k.Rows >= groupRows*k.Distinct
}

// listCodes makes a list of the values, with groups if there are enough of them. It is false
// where not all rows were looked at, and where all say the same.
func listCodes(h *policyfile.Hierarchy, c *classified) bool {
	column := slices.Index(c.shown.Names, h.Name)
	if c.Cells.Share < 1 || column < 0 {
		return false
	}
	if proposeGroups(h, c); h.Paths != nil {
		return true
	}
	for _, value := range c.shown.Texts[column] {
		if value != "" {
			h.Paths = append(h.Paths, []string{value})
		}
	}
	slices.SortFunc(h.Paths, func(a, b []string) int {
		return cmp.Or(cmp.Compare(len(a[0]), len(b[0])), cmp.Compare(a[0], b[0]))
	})
	h.Type, h.Remark = "table", "few whole numbers: shown or withheld; add values that may come"
	return true
}

// humanIntervals proposes three widths from the middle of the distribution,
// each 1, 2 or 5 times a power of ten, and bounds on whole ranges of the widest
// one, so that no bound tells an extreme value. reason says so in round numbers.
func humanIntervals(r *identify.Range) (widths []float64, lower, upper *float64, reason string) {
	span, part := r.Ninetieth-r.Tenth, "the middle 80 % of the rows span"
	if span <= 0 {
		span, part = max(r.High-r.Low, 1), "most values are one; all span"
	}
	least := 0.0
	if r.Whole {
		least = 2
	}
	first, digit := humanNumber(max(span/16, least))
	factors := []float64{1, 2, 4}
	if digit == 2 {
		factors = []float64{1, 5, 10}
	}
	for _, f := range factors {
		widths = append(widths, first*f)
	}
	widest := widths[len(widths)-1]
	low, high := widest*math.Floor(r.Low/widest), widest*(math.Floor(r.High/widest)+1)
	if r.Whole {
		high--
	}
	about, _ := humanNumber(span)
	reason = fmt.Sprintf("%s up to %.15g: about %.0f ranges of %.15g there, wider ones of %.15g and "+
		"%.15g; bounds are whole ranges of the widest",
		part, about, math.Ceil(span/first), widths[0], widths[1], widths[2])
	return widths, &low, &high, reason
}

// humanNumber rounds up to the next 1, 2 or 5 times a power of ten.
func humanNumber(v float64) (number, digit float64) {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, digit := range []float64{1, 2, 5} {
		if v <= digit*power*(1+1e-9) {
			return digit * power, digit
		}
	}
	return 10 * power, 1
}
