package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// difference lists, one line each, what the policy of a table would change.
// now is nil where the table has none. Definitions of hierarchies count, their
// names do not. Readers are no part of a table.
func difference(
	present *policyfile.File, now *policyfile.Table, file *policyfile.File, then *policyfile.Table,
) []string {
	var out []string
	setting := func(key, was, is string) {
		switch {
		case was == is:
		case was == "":
			out = append(out, fmt.Sprintf("+ %s: %s", key, is))
		case is == "":
			out = append(out, fmt.Sprintf("- %s: %s", key, was))
		default:
			out = append(out, fmt.Sprintf("~ %s: %s -> %s", key, was, is))
		}
	}
	if now == nil {
		now = &policyfile.Table{}
	}
	setting("subject", optional(now.Subject != "", now.Subject), then.Subject)
	setting("k", optional(now.K > 0, fmt.Sprint(now.K)), fmt.Sprint(then.K))
	setting("recoding", now.Recoding, then.Recoding)
	setting("gate", now.Gate.String(), then.Gate.String())
	setting("max_share", share(now.MaxShare), share(then.MaxShare))
	setting("cohort", optional(now.Cohort > 0, fmt.Sprint(now.Cohort)),
		optional(then.Cohort > 0, fmt.Sprint(then.Cohort)))
	setting("cuts", optional(now.BlindCuts, "blind"), optional(then.BlindCuts, "blind"))
	setting("departures", atOnce(now.DeparturesAtOnce), atOnce(then.DeparturesAtOnce))
	setting("changes", atOnce(now.ChangesAtOnce), atOnce(then.ChangesAtOnce))
	setting("indexes", now.Indexes.String(), then.Indexes.String())
	setting("set_valued", now.SetValued.String(), then.SetValued.String())
	setting("data_set", now.DataSet.String(), then.DataSet.String())
	setting("chain", optional(now.Scope != "", now.Chain()), then.Chain())
	setting("rows", shown(now.AggregateOnly), shown(then.AggregateOnly))
	for _, q := range then.Require {
		if !slices.Contains(now.Require, q) {
			out = append(out, "+ require: "+q.String())
		}
	}
	for _, q := range now.Require {
		if !slices.Contains(then.Require, q) {
			out = append(out, "- require: "+q.String())
		}
	}
	for _, c := range then.Columns {
		was := ""
		if before := now.Column(c.Name); before != nil {
			was = columnText(present, before)
		}
		setting(c.Name, was, columnText(file, &c))
	}
	for _, c := range now.Columns {
		if then.Column(c.Name) == nil {
			out = append(out, fmt.Sprintf("- %s: %s (would be hidden)", c.Name, c.String()))
		}
	}
	return out
}

// share is the value of the key max_share, where it is there.
func share(of float64) string { return optional(of > 0, strconv.FormatFloat(of, 'f', -1, 64)) }

// atOnce is the value of the keys departures and changes, if it is not at its default.
func atOnce(effect bool) string { return optional(effect, "at_once") }

// shown is the value of the key rows, where it is not at its default.
func shown(aggregateOnly bool) string { return optional(aggregateOnly, "false") }

func optional(there bool, text string) string {
	if !there {
		return ""
	}
	return text
}

// columnText is a class with the hierarchy written out.
func columnText(f *policyfile.File, c *policyfile.Column) string {
	h := f.Hierarchy(c.Hierarchy)
	if h == nil {
		return c.String()
	}
	return fmt.Sprintf("%s by %s", c.Class, h)
}
