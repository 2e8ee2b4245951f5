package main

import (
	"fmt"
	"slices"
	"strings"
)

// residualRisk says what is left, with its measure.
func (r *report) residualRisk(p *page) {
	c := p.chapter("Residual risk")
	c.say("The prosecutor risk is the chance of being right for somebody who knows that a person is " +
		"in the table, finds the person's class and picks one of its people: 1 / people in the " +
		"class. The highest is that of the smallest class; the average is over all people shown.")
	g := c.table("table", "release for", "people#", "classes#", "smallest class#", "highest risk#",
		"average risk#")
	for i := range r.Tables {
		t := &r.Tables[i]
		for _, v := range t.Releases {
			if v.Subjects == 0 || v.Smallest == 0 {
				g.row(t.Name, audience(v.Audience), fmt.Sprint(v.Subjects), "–", "–", "–", "–")
				continue
			}
			classes, average := fmt.Sprint(v.Classes), riskFigure(float64(v.Classes)/float64(v.Subjects))
			if t.Policy.SetValued {
				classes = "–"
			}
			if t.Policy.SetValued || v.Rows != v.Subjects {
				average = "–"
			}
			g.row(t.Name, audience(v.Audience), fmt.Sprint(v.Subjects), classes,
				fmt.Sprint(v.Smallest), riskFigure(1/float64(v.Smallest)), average)
		}
	}
	if len(g.Rows) == 0 {
		c.Blocks[len(c.Blocks)-1] = block{Text: "Nothing is released that this report may " +
			"describe."}
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		if slices.ContainsFunc(t.Releases, func(v reportedRelease) bool {
			return v.Rows != v.Subjects && !t.Policy.SetValued
		}) {
			c.say("In %s people have several rows, in one class or in several, so there is no "+
				"average. Whoever takes any row of a class to be somebody's is right with a chance "+
				"of %s at most, the largest share of its rows that one person may own.", t.Name,
				inPercent(t.document.maxShare()))
		}
	}
	c.say("Of sets of codes the smallest class is how many records may at least be somebody's, for " +
		"whoever knows as many of the codes as the policy says.")
	var models []string
	for i := range r.Tables {
		t := &r.Tables[i]
		for _, m := range t.Policy.Models {
			models = append(models, t.Name+": "+m.Text)
		}
	}
	if models != nil {
		c.say("What the models bound of sensitive values, in each class:")
		c.list(models...)
	} else {
		c.say("No table has a model: k bounds who a row is about, and nothing bounds what the " +
			"people of a class have in common.")
	}
	c.say("What is not bounded:")
	c.list(notBounded...)
	if r.unmodelled() != nil {
		c.say("Sensitive columns without a model, of which the people of a class may all have the "+
			"same value: %s.", strings.Join(r.unmodelled(), ", "))
	}
}

// notBounded is true of every installation.
var notBounded = []string{
	"What somebody knows of sensitive values. Whoever knows some people's values strikes them from " +
		"a class, and is left with the others'; whoever knows that most people with some trait " +
		"have a disease learns that of a class with the trait. Models compare with what all " +
		"readers can count, not with such knowledge.",
	"What columns that are shown as they are tell of each other: a ward tells of a diagnosis. Each " +
		"model is about one column.",
	"Pooled projects. What readers of two projects with releases of their own find out together; " +
		"with one release for all readers there is nothing to pool.",
	"Aggregates. How all people together are distributed is published, and true: a rate of a " +
		"group applies to each of its people, whether or not that person is in the table.",
	"Other sources. Whoever holds another table with the same people and the same values of columns " +
		"that are shown as they are can link the two by them.",
	"That somebody is in the table at all, where the table is about a trait that all of it share.",
}

// unmodelled are the sensitive columns that no model is about.
func (r *report) unmodelled() []string {
	var out []string
	for i := range r.Tables {
		d := &r.Tables[i].document
		if d.SetValued != nil || d.DataSetOf != nil {
			continue
		}
		of := make(map[string]bool)
		for _, q := range d.Require {
			of[q.Column] = true
		}
		for _, c := range d.Columns {
			if c.Class == "sensitive" && !of[c.Name] {
				out = append(out, r.Tables[i].Name+"."+c.Name)
			}
		}
	}
	return out
}

func (r *report) knownExceptions(p *page) {
	c := p.chapter("Known exceptions")
	if len(r.Exceptions) == 0 {
		c.say("None that the policies, the erasures and the rights of readers tell of.")
	}
	c.list(r.Exceptions...)
	c.say("tailor doctor looks for further ways past Tailor, and says how to close them; it is no " +
		"part of this report.")
	if len(r.Erasures) == 0 {
		return
	}
	c.say("Erasures on request:")
	g := c.table("table", "how", "in the period#", "ever#", "other people taken along#")
	for _, e := range r.Erasures {
		how := "with the class"
		if e.Departures == "at_once" {
			how = "at once"
		}
		g.row(e.Table, how, fmt.Sprint(e.InPeriod), fmt.Sprint(e.Ever), fmt.Sprint(e.Others))
	}
}

func (r *report) whatChanged(p *page) {
	c := p.chapter("What has changed")
	if r.Compared != nil {
		c.say("Since the report of %s.", day(*r.Compared))
	} else {
		c.say("Since %s. Who could read then, and how large releases were, is known only from an "+
			"earlier report (--previous).", day(r.Since))
	}
	switch {
	case len(r.Changes) > 0:
	case r.Compared != nil:
		c.say("No policy, reader, release or exception has changed.")
	default:
		c.say("No policy has changed.")
	}
	for _, change := range r.Changes {
		when := "between the two reports"
		if change.Time != nil {
			when = day(*change.Time)
		}
		by := ""
		if change.By != "" {
			by = ", by " + change.By
		}
		c.say("%s, %s%s: %s", change.Of, when, by, change.What)
		c.list(change.Lines...)
	}
	if len(r.Copies) > 0 {
		c.say("Copies of tables that were made in the period, to bring releases up to date:")
		g := c.table("table", "copies#", "last")
		for _, v := range r.Copies {
			g.row(v.Table, fmt.Sprint(v.Copies), day(v.Last))
		}
	}
}

func (r *report) howFarBehind(p *page) {
	c := p.chapter("How far releases are behind")
	c.say("Who has come, gone or changed is shown together with others, and waits for them.")
	g := c.table("table", "release for", "as of", "shown#", "wait to be shown", "to go",
		"to be shown as they are now", "have left#", "next")
	for _, t := range r.Tables {
		for _, v := range t.Releases {
			next := v.Next
			if v.Behind {
				next = strings.TrimPrefix(next+"; a newer copy or policy is not shown yet", "; ")
			}
			g.row(t.Name, audience(v.Audience), day(v.Copied), fmt.Sprint(v.Subjects),
				v.Arrivals.String(), v.Departures.String(), v.Changes.String(),
				inPercent(v.Stale), orNothing(next))
		}
	}
	if len(g.Rows) == 0 {
		c.Blocks = []block{{Text: "Nothing is released that this report may describe."}}
	}
}

// reportGlossary are the terms that a reader of the report meets.
var reportGlossary = [][2]string{
	{"answered, refused, failed", "a statement got de-identified rows; was not allowed, or is not " +
		"understood over protected tables; went wrong in the database"},
	{"class", "people who look the same in what readers are shown of their quasi-identifiers"},
	{"direct identifier", "a column that names a person; hidden, or replaced by a number"},
	{"exact", "the share of rows that show the value that the table has"},
	{"k", "the fewest people of a class"},
	{"loss", "how much detail is gone: the mean share of a column's range that a row leaves open; " +
		"0 % is all detail, 100 % none"},
	{"model", "what the sensitive values of a class must be like, besides k"},
	{"non-sensitive", "a column that neither helps to recognize somebody nor must stay secret; " +
		"shown as it is"},
	{"principal", "the role that somebody logged in with"},
	{"project", "a group of readers with a declared purpose"},
	{"quasi-identifier", "a column that helps to recognize a person together with others, such as " +
		"age; shown with less detail"},
	{"release", "what readers are shown in place of a protected table"},
	{"risk", "the chance of picking the right person of a class: 1 / people in it"},
	{"sensitive", "a column whose value must not be learnt about a person"},
	{"withheld", "a value that is left out, since its class does not meet a model without that"},
}

func howToRead(p *page) {
	c := p.chapter("How to read this report")
	c.say("Begin with the summary and the known exceptions: they say what was promised and what " +
		"was not. Hold k, the models and the residual risk against what was approved; hold who " +
		"may read against whom access was granted; then look at what has changed. A risk of " +
		"0.200 means that somebody who looks for a person who is known to be in the table " +
		"is right one time in five at most.")
	c.say("Everything is counted in people, not in rows. The report shows no values of protected " +
		"tables; names of tables, columns and roles it does.")
	g := c.table("term", "meaning")
	for _, v := range reportGlossary {
		g.row(v[0], v[1])
	}
}
