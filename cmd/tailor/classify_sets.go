package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// listedAtMost is how many sets or dependencies the text lists; JSON has all.
const listedAtMost = 8

// writeChanges says what would change the suggestions, columns of the same
// answer together.
func (r *classifyReport) writeChanges(w io.Writer) error {
	var answers []string
	columns := make(map[string][]string)
	for _, c := range r.Columns {
		if columns[c.WouldChange] == nil {
			answers = append(answers, c.WouldChange)
		}
		columns[c.WouldChange] = append(columns[c.WouldChange], c.Name)
	}
	fmt.Fprintln(w, "\nWhat would change a suggestion:")
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, answer := range answers {
		fmt.Fprintf(table, "%s\t%s\n", strings.Join(columns[answer], ", "), answer)
	}
	return table.Flush()
}

// writeSets says what the columns tell together.
func (r *classifyReport) writeSets(w io.Writer) {
	switch worst := len(r.Worst); {
	case len(r.Sets) > 0:
		fmt.Fprintf(w, "\nSets of columns that single people out%s:\n", sampleNote(r.CellShare))
		for _, s := range r.Sets[:min(len(r.Sets), listedAtMost)] {
			fmt.Fprintf(
				w, "%.1f %% of the rows equal no other in %s\n", s.Percent,
				strings.Join(s.Columns, ", "),
			)
		}
		more(w, len(r.Sets))
	case worst > 0:
		fmt.Fprintf(
			w,
			"\nNo set of at most %d columns singles out half of the rows%s; %s comes nearest: %.1f %%\n",
			identify.SetColumns, sampleNote(r.CellShare),
			strings.Join(r.Worst[worst-1].Columns, ", "), r.Worst[worst-1].Percent,
		)
	}
	if !r.AllSets {
		fmt.Fprintln(
			w,
			"There are more sets than were looked at; those of columns with many values came first.",
		)
	}
	if len(r.Dependent) > 0 {
		fmt.Fprintln(w, "\nColumns that tell others; where one is shown, the other is:")
		for _, d := range r.Dependent[:min(len(r.Dependent), listedAtMost)] {
			fmt.Fprintf(
				w, "%s tells %s, with %.2f %% exceptions%s\n",
				d.From, d.To, d.Exceptions, r.proposal(d),
			)
		}
		more(w, len(r.Dependent))
	}
	if !r.AllPairs {
		fmt.Fprintln(w, "There are more pairs of columns than were looked at.")
	}
}

// proposal is a class for a column that determines a sensitive one, or follows from it.
func (r *classifyReport) proposal(d dependency) string {
	class := make(map[string]string)
	for _, c := range r.Columns {
		class[c.Name] = c.Suggested
	}
	other := d.To
	switch {
	case class[d.To] == string(identify.Sensitive) && class[d.From] != string(identify.Sensitive):
		other = d.From
	case class[d.From] != string(identify.Sensitive) || class[d.To] == string(identify.Sensitive):
		return ""
	}
	return fmt.Sprintf(
		"; one is sensitive: generalize or hide %s, or classify it as sensitive with a model of its own",
		other,
	)
}

func more(w io.Writer, n int) {
	if n > listedAtMost {
		fmt.Fprintf(w, "and %d more, which --format json lists\n", n-listedAtMost)
	}
}
