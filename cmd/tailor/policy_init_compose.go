package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// The letters that answer what a column is.
const (
	asQuasiIdentifier byte = 'q'
	asSensitive       byte = 's'
	asKept            byte = 'k'
	asHidden          byte = 'h'
	asCodes           byte = 'c'
)

// classOf is the class that a letter stands for.
var classOf = map[byte]identify.Class{
	asQuasiIdentifier: identify.QuasiIdentifier, asSensitive: identify.Sensitive,
	asKept: identify.NonSensitive, asHidden: identify.DirectIdentifier,
	asCodes: identify.Sensitive,
}

// letter stands for what classify suggests. What has no class, or no hierarchy, is hidden.
func (c *surveyedColumn) letter() byte {
	switch {
	case c.says.Class == identify.QuasiIdentifier && c.hierarchy != nil:
		return asQuasiIdentifier
	case c.says.Class == identify.Sensitive:
		return asSensitive
	case c.says.Class == identify.NonSensitive:
		return asKept
	}
	return asHidden
}

// reason is why a class is suggested.
func (c *surveyedColumn) reason() string {
	switch {
	case c.suggested == asCodes:
		return c.says.Reason + ", and people have several of them"
	case c.says.Class == identify.QuasiIdentifier && c.hierarchy == nil:
		return c.says.Reason + "; " + c.lack() + ", so it is hidden"
	}
	return c.says.Reason
}

// lack is why a column has no hierarchy.
func (c *surveyedColumn) lack() string {
	if c.endless {
		return "NaN and infinite values have no place in a hierarchy"
	}
	return "no hierarchy fits the type " + c.Type
}

// isCode says that values may be the codes of a set-valued table.
func (c *surveyedColumn) isCode() bool {
	base, _, _ := strings.Cut(c.Type, "(")
	return slices.Contains([]string{
		"text", "character varying", "character", "smallint", "integer", "bigint",
	}, base)
}

// choice is the letter that counts: the answer, else the suggestion.
func (c *surveyedColumn) choice() byte {
	switch {
	case c.uncovered != "":
		return asHidden
	case c.answer != 0:
		return c.answer
	}
	return c.suggested
}

// remark says in the file why a column has its class.
func (c *surveyedColumn) remark() string {
	switch {
	case c.uncovered != "":
		return "hidden: " + c.uncovered
	case c.answer != 0 && c.answer != c.suggested:
		return fmt.Sprintf("as answered; suggested was %s: %s", wordOf[c.suggested], c.reason())
	}
	return fmt.Sprintf("%s confidence: %s", c.says.Confidence, c.reason())
}

// set is the column whose codes are a set, nil if there is none.
func (t *surveyedTable) set() *surveyedColumn {
	for _, c := range t.columns {
		if c.Name != t.subject && c.choice() == asCodes {
			return c
		}
	}
	return nil
}

const besideCodes = "hidden: beside codes nothing else can be shown"

// classes are the columns as they were chosen.
func (t *surveyedTable) classes() []classedColumn {
	set := t.set()
	var out []classedColumn
	for _, c := range t.columns {
		class := classedColumn{
			Column: c.Column, class: classOf[c.choice()], remark: c.remark(),
			unordered: c.unordered || set != nil, // sets have no blocks that could meet a model
		}
		switch {
		case c.Name == t.subject:
			class.class, class.remark = identify.DirectIdentifier, "whom a row is about"
		case set != nil && c != set:
			class.class = identify.DirectIdentifier
			class.remark = besideCodes
		case class.class == identify.QuasiIdentifier:
			class.hierarchy = c.hierarchy
		}
		out = append(out, class)
	}
	return out
}

// compose makes the policy of the tables that are not left out, under one setting.
func (s *survey) compose(g setting) *policyfile.File {
	f := &policyfile.File{}
	shown := make(map[tableColumn]map[string]string) // by root, the table that shows a name
	for _, t := range s.tables {
		if t.leave {
			continue
		}
		root := s.root(t)
		if shown[root] == nil {
			shown[root] = make(map[string]string)
		}
		f.Tables = append(f.Tables, t.compose(f, g, shown[root]))
	}
	return f
}

// compose makes the policy of the table and adds its hierarchies to the file. What another
// table of the same people shows as it is under the same name, is hidden here: together the two
// would tell which rows are of one person.
func (t *surveyedTable) compose(
	f *policyfile.File, g setting, shown map[string]string,
) policyfile.Table {
	classes := t.classes()
	for i := range classes {
		c := &classes[i]
		exact := c.class == identify.Sensitive || c.class == identify.NonSensitive
		switch by, known := shown[c.Name]; {
		case !exact || t.set() != nil:
		case known:
			c.class = identify.DirectIdentifier
			c.remark = fmt.Sprintf("hidden: %s shows a column of this name of the same people", by)
		default:
			shown[c.Name] = t.name
		}
	}
	table, hierarchies := draftTable(t.name, t.subject, g.k, g.diversity, classes)
	names := make(map[string]string)
	for _, h := range hierarchies {
		names[h.Name] = f.Adopt(h)
	}
	for i := range table.Columns {
		c := &table.Columns[i]
		c.Hierarchy = names[c.Hierarchy]
		if t.set() != nil && c.Name == t.subject && t.hasPseudonym() {
			c.Action = "pseudonym" // codes of one record stay together
		}
	}
	if set := t.set(); set != nil {
		table.SetValued = &policyfile.SetValued{Column: set.Name, M: setM}
	}
	table.Remarks = []string{t.measured()}
	return table
}

// setM is how many codes of a person somebody may know, in a first policy.
const setM = 2

// hasPseudonym says that the subject is of a type of which there are pseudonyms.
func (t *surveyedTable) hasPseudonym() bool {
	base, _, _ := strings.Cut(t.column(t.subject).Type, "(")
	return slices.Contains([]string{"integer", "bigint", "numeric", "text"}, base)
}

// measured says how many rows a table has, and how many a person has.
func (t *surveyedTable) measured() string {
	text := fmt.Sprintf("%s: %d rows%s", t.name, t.rows, sampleNote(t.share))
	c := t.column(t.subject)
	switch {
	case c == nil:
	case t.repeats():
		text += fmt.Sprintf(", about %.1f for each %s", float64(c.Rows)/float64(c.Distinct), c.Name)
	default:
		text += ", one for each " + c.Name
	}
	for _, k := range t.keys {
		text += fmt.Sprintf("; %s refers to %s", k.column, k.to.table)
	}
	return text
}
