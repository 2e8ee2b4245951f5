package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// page puts a report in words.
func (r *report) page() *page {
	p := &page{
		Title: "What Tailor released from " + r.Database,
		Lead: []string{fmt.Sprintf("%s to %s, made %s by %s. What is protected, and released, is "+
			"as it was when the report was made.", day(r.Since), day(r.Until), day(r.Made),
			r.MadeBy)},
	}
	r.summary(p)
	attackers(p)
	r.protectedTables(p)
	r.mayRead(p)
	r.didRead(p)
	r.residualRisk(p)
	r.knownExceptions(p)
	r.whatChanged(p)
	r.howFarBehind(p)
	r.refused(p)
	r.foremost(p)
	r.recordWhole(p)
	howToRead(p)
	return p
}

func (r *report) summary(p *page) {
	c := p.chapter("Summary")
	if len(r.Tables) == 0 {
		c.say("No table is protected.")
	} else {
		smallest, people := r.smallest()
		c.say("Protected: %s. Readers: %s. Nobody is shown these tables themselves, but releases "+
			"of them, in which people cannot be told apart in classes.",
			counted(len(r.Tables), "table", "tables"), counted(len(r.Readers), "role", "roles"))
		if people > 0 {
			c.say("The smallest class of all releases has %d people: whoever looks for somebody "+
				"there is right with a chance of %s at most.", smallest, inPercent(1/float64(smallest)))
		}
	}
	c.say("Statements answered with de-identified data: %d. Refused, refused logins among them: "+
		"%d. Failed: %d. Without a protected table: %d.", r.Sum.Released, r.Sum.Refused,
		r.Sum.Failed, r.Sum.Passed)
	if r.Sum.MinBlock > 0 {
		c.say("The smallest class that anybody was shown in the period had %d people: the highest "+
			"risk of re-identification was %s. The mean loss of information was %s, the greatest "+
			"%s.", r.Sum.MinBlock, riskFigure(r.Sum.MaxRisk), inPercent(r.Sum.MeanLoss),
			inPercent(r.Sum.MaxLoss))
	}
	if n := len(r.Exceptions); n > 0 {
		c.say("%s to the guarantee: see Known exceptions.", counted(n, "exception", "exceptions"))
	}
	switch {
	case r.Verification == nil:
		c.warn("The record of what was asked could not be verified.")
	case len(r.Verification.Faults) > 0:
		c.warn("The record of what was asked has faults: see Is the record whole?")
	case len(r.Verification.Chains) == 0:
		c.warn("The database holds no record of what was asked: if the proxy keeps it in a file " +
			"alone, this report does not know who read.")
	}
	if n := r.unseen(); n > 0 {
		c.warn("Of %s the releases are not described, since %s has not the rights of their owner.",
			counted(n, "table", "tables"), r.MadeBy)
	}
}

// unseen counts the tables whose releases the report knows nothing of.
func (r *report) unseen() (n int) {
	for _, t := range r.Tables {
		if !t.Seen {
			n++
		}
	}
	return n
}

// smallest is the smallest class of all releases, and how many people they show.
func (r *report) smallest() (class, people int64) {
	for _, t := range r.Tables {
		for _, v := range t.Releases {
			people += v.Subjects
			if v.Subjects > 0 && (class == 0 || v.Smallest < class) {
				class = v.Smallest
			}
		}
	}
	return class, people
}

func attackers(p *page) {
	c := p.chapter("Against whom the data is protected")
	c.say("The reader who is feared has access as any reader has, and wants to find out whose a " +
		"row is, or what a certain person's row holds. Such a reader is assumed")
	c.list(
		"to know how Tailor works, its source included;",
		"to know that a person is in the table, and all of the person's quasi-identifiers (age, "+
			"postal code and the like), exactly;",
		"to ask any number of questions, to keep the answers for years, and to compare those of "+
			"different days;",
		"to pool accounts and answers with all other readers of the same release.",
	)
	c.say("It is protected that such a reader cannot tell the people of a class apart: a class has " +
		"at least k people in every answer, and in all answers together. What the models of a " +
		"table bound besides stands with the table. Columns that are hidden are shown to nobody.")
	c.say("It is not protected against people who may read the tables themselves: their owners, " +
		"administrators of the database server and of its machine.")
}

// protectedTables describes each.
func (r *report) protectedTables(p *page) {
	c := p.chapter("What is protected, and how")
	if len(r.Tables) == 0 {
		c.say("No table is protected.")
		return
	}
	c.say("Of each table: the policy in force, what of each column is shown, and what is released " +
		"now. Exact is the share of rows that show the value of the table; the loss is the mean " +
		"share of a column's range that a row leaves open.")
	for i := range r.Tables {
		r.Tables[i].describe(p)
	}
}

func (t *reportedTable) describe(p *page) {
	c := p.part(t.Name)
	c.say("Version %d of the policy, by %s, in force since %s. k = %d: nobody can be told from "+
		"fewer than %s.", t.Version, t.Author, day(t.Since), t.Policy.K,
		counted(t.Policy.K-1, "other person", "other people"))
	var items []string
	for _, m := range t.Policy.Models {
		items = append(items, sentence(m))
	}
	for _, s := range t.Policy.Settings {
		items = append(items, sentence(s))
	}
	c.list(append(items, "Erasure on request: the whole class of the person goes and is not shown "+
		"again, unless an erasure at once is asked for, which is an exception.")...)
	if len(t.Releases) < 2 {
		g := c.table("column", "class", "how it is shown", "exact#", "loss#")
		for _, column := range t.Policy.Columns {
			exact, loss := "–", "–"
			if len(t.Releases) == 1 && !t.Policy.SetValued && column.Class != "direct identifier" {
				exact, loss = t.Releases[0].measures(column.Name)
			}
			g.row(column.Name, column.Class, column.Shown, exact, loss)
		}
	} else {
		g := c.table("column", "class", "how it is shown")
		for _, column := range t.Policy.Columns {
			g.row(column.Name, column.Class, column.Shown)
		}
		g = c.table("release for", "column", "exact#", "loss#")
		for _, v := range t.Releases {
			for _, column := range v.Columns {
				exact, loss := v.measures(column.Name)
				g.row(audience(v.Audience), column.Name, exact, loss)
			}
		}
	}
	switch {
	case !t.Seen:
		c.say("Who owns the table can have a report that says what is released of it.")
		return
	case len(t.Releases) == 0:
		c.say("Nothing of it is released.")
		return
	}
	for _, v := range t.Releases {
		c.say("%s", v.inWords(t))
	}
}

func sentence(s plainSetting) string {
	return strings.ToUpper(s.Name[:1]) + s.Name[1:] + ": " + s.Text
}

// measures are how exact a column is, and what it loses; dashes if it is not shown.
func (v *reportedRelease) measures(column string) (exact, loss string) {
	for _, c := range v.Columns {
		if c.Name == column {
			return inPercent(c.Exact), inPercent(c.Loss)
		}
	}
	return "–", "–"
}

// inWords says what is released now.
func (v *reportedRelease) inWords(t *reportedTable) string {
	s := fmt.Sprintf("Released now, for %s: %s of %s, as the table was on %s. ",
		audience(v.Audience), counted(v.Rows, "row", "rows"),
		counted(v.Subjects, "person", "people"), day(v.Copied))
	switch {
	case v.Subjects == 0:
		return s + "Nobody is shown."
	case t.Policy.SetValued:
		return s + fmt.Sprintf("Whoever knows as many codes of somebody as the policy says finds "+
			"at least %d records that may be that person's. Which codes a person has together is "+
			"partly drawn at random.", v.Smallest)
	default:
		s += fmt.Sprintf("Classes: %d, the smallest of %s, ", v.Classes,
			counted(v.Smallest, "person", "people"))
		if v.Smallest >= int64(t.Policy.K) {
			s += "none below k."
		} else {
			s += "which is below k of the policy in force; see How far releases are behind."
		}
	}
	var withheld []string
	for _, c := range v.Columns {
		for _, column := range t.Policy.Columns {
			if column.Name == c.Name && column.Class == "sensitive" && c.Exact < 1 {
				withheld = append(withheld, fmt.Sprintf("%s of %s", inPercent(1-c.Exact), c.Name))
			}
		}
	}
	if withheld != nil {
		return s + " Values that are withheld: " + strings.Join(withheld, ", ") + "."
	}
	return s + " No sensitive values are withheld."
}

func (r *report) mayRead(p *page) {
	c := p.chapter("Who may read")
	if len(r.Readers) == 0 {
		c.say("Nobody.")
		return
	}
	c.say("Readers may read the releases of all protected tables of the database, and nothing of " +
		"the tables themselves; exceptions stand below. Members of a group read as the group.")
	g := c.table("role", "kind", "projects")
	for _, v := range r.Readers {
		kind := "group"
		if v.LogsIn {
			kind = "logs in"
		}
		g.row(v.Role, kind, orNothing(v.Projects))
	}
	if len(r.Projects) > 0 {
		g := c.table("project", "table", "roles that read for it")
		for _, v := range r.Projects {
			g.row(v.Project, v.Table, orNothing(strings.Join(v.Readers, ", ")))
		}
	}
}

func (r *report) didRead(p *page) {
	c := p.chapter("Who read what")
	c.say("From %s to %s, by the audit log. %s", day(r.Since), day(r.Until), r.verified())
	g := c.table("principal", "table", "answered#", "refused#", "failed#", "rows#",
		"smallest class#", "mean loss#", "first", "last")
	for _, t := range r.Reads {
		if t.Relation == "" && t.Released+t.Refused+t.Failed == 0 {
			continue
		}
		rows, smallest, loss := "–", "–", "–"
		if t.Released > 0 {
			rows, loss = strconv.FormatInt(t.Rows, 10), inPercent(t.MeanLoss)
		}
		if t.MinBlock > 0 {
			smallest = strconv.FormatInt(t.MinBlock, 10)
		}
		g.row(t.Principal, orNothing(t.Relation), fmt.Sprint(t.Released), fmt.Sprint(t.Refused),
			fmt.Sprint(t.Failed), rows, smallest, loss, day(t.First), day(t.Last))
	}
	if len(g.Rows) == 0 {
		c.Blocks[len(c.Blocks)-1] = block{Text: "Nobody asked for a protected table."}
	}
	if len(r.Exports) == 0 {
		return
	}
	c.say("Written to files by tailor export, for whom the statement names:")
	g = c.table("time", "principal", "table", "recipient", "rows#")
	for _, e := range r.Exports {
		rows := "–"
		if e.Rows != nil {
			rows = strconv.FormatInt(*e.Rows, 10)
		}
		g.row(day(e.Time), e.Principal, e.Table, e.Recipient, rows)
	}
}

// verified says how far the log can be trusted.
func (r *report) verified() string {
	switch {
	case r.Verification == nil:
		return "The chain of its records was not verified."
	case len(r.Verification.Faults) > 0:
		return "The chain of its records was verified and is not whole."
	case len(r.Verification.Chains) == 0:
		return "It holds no records."
	}
	return "The chain of its records was verified: it is whole, as far as the database alone can " +
		"tell."
}

func (r *report) refused(p *page) {
	c := p.chapter("What was refused or failed")
	if len(r.Refusals) == 0 {
		c.say("Nothing.")
		return
	}
	g := c.table("verdict", "SQLSTATE", "statements#")
	for _, v := range r.Refusals {
		g.row(v.Verdict, v.SQLState, fmt.Sprint(v.Count))
	}
}

func (r *report) foremost(p *page) {
	c := p.chapter("The riskiest answers")
	if len(r.Riskiest) == 0 {
		c.say("None.")
	} else {
		c.say("At most %d, one of each kind, without the values that were asked for. A stage is a "+
			"combination of quasi-identifiers that a statement touches.", mostShown)
	}
	for i := range r.Riskiest {
		statement(p, &r.Riskiest[i])
	}
	c = p.chapter("The answers that lost most")
	shown := func(e audit.Entry) bool {
		return slices.ContainsFunc(r.Riskiest, func(o audit.Entry) bool { return o.ID == e.ID })
	}
	others := slices.DeleteFunc(slices.Clone(r.Costliest), shown)
	switch {
	case len(r.Costliest) == 0:
		c.say("None.")
	case len(others) == 0:
		c.say("Those above.")
	default:
		c.say("At most %d, but for those above.", mostShown)
	}
	for i := range others {
		statement(p, &others[i])
	}
}

func statement(p *page, e *audit.Entry) {
	c := p.part(fmt.Sprintf("%s, %s: risk %s, loss %s", e.Principal, day(e.Time),
		riskFigure(e.AggregateRisk), inPercent(e.AggregateLoss)))
	c.code(e.SQL)
	c.say("%s, policy version %d, epoch %d, chain %d; smallest class %d; record %s",
		strings.Join(e.Relations, ", "), e.PolicyVersion, e.Epoch, e.Chain, e.MinBlock, e.ID)
	if len(e.Stages) == 0 {
		return
	}
	g := c.table("stage", "quasi-identifiers", "condition", "risk before#", "risk after#", "loss#")
	for _, s := range e.Stages {
		g.row(fmt.Sprintf("%v %v", s.Name, s.Place), strings.Join(s.Attributes, ", "), s.Condition,
			riskFigure(s.RiskBefore), riskFigure(s.RiskAfter), inPercent(s.Loss))
	}
}

func (r *report) recordWhole(p *page) {
	c := p.chapter("Is the record whole?")
	v := r.Verification
	if v == nil {
		c.warn("It is not known: the log could not be read as a whole. tailor audit --verify says " +
			"why.")
		return
	}
	if len(v.Faults) > 0 {
		c.warn("No. %s found:", counted(len(v.Faults), "fault was", "faults were"))
		c.list(v.Faults...)
	} else {
		c.say("Yes, as far as the database alone can tell: every record is as it was written, and " +
			"none is missing. The heads below are worth noting elsewhere; tailor audit --verify " +
			"--anchor asks for them.")
	}
	var items []string
	for _, chain := range v.Chains {
		items = append(items, fmt.Sprintf("chain %s: records %d to %d, head %s", chain.Log,
			chain.First, chain.Last, chain.Head))
	}
	c.list(append(items, v.Notes...)...)
}

func orNothing(s string) string {
	if s == "" {
		return "–"
	}
	return s
}
