package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/catalog"
)

// undoing says which columns that are shown as they are undo the recoding: by
// values that single rows out, or that tell a quasi-identifier. k counts
// neither.
func (o *anonymizeOptions) undoing(sheet *anonymize.Sheet) []string {
	warnings := []string{}
	var names []string
	var cells [][]string
	for c, name := range sheet.Header() {
		if o.classes[name].shown() {
			names, cells = append(names, name), append(cells, sheet.Cells(c))
		}
	}
	rows := identify.NewRows(names, cells, sheet.Rows(), catalog.SampleRows)
	for _, name := range names {
		if o.classes[name] == quasi {
			continue
		}
		for _, set := range identify.Combine(rows.Of([]string{name})).Minimal {
			warnings = append(
				warnings,
				fmt.Sprintf(
					"%q is shown as it is, and %.0f %% of the rows have a value of their own in it",
					name, set.Percent,
				),
			)
		}
	}
	dependencies, _ := identify.Depend(rows)
	for _, d := range dependencies {
		if o.classes[d.From] != quasi && o.classes[d.To] == quasi {
			warnings = append(
				warnings,
				fmt.Sprintf("%q is shown as it is, and tells %q, which is recoded", d.From, d.To),
			)
		}
	}
	return warnings
}

// tellUndoing warns in one line.
func tellUndoing(w io.Writer, warnings []string) {
	if len(warnings) == 0 {
		return
	}
	list := strings.Join(warnings[:min(len(warnings), namedAtMost)], "; ")
	if more := len(warnings) - namedAtMost; more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	fmt.Fprintf(
		w, "tailor anonymize: warning: %s; name such columns in --qid or leave them out\n", list,
	)
}
