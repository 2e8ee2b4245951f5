package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// document is a policy as tailor.policy_version stores it, without what the
// page has no use for.
type document struct {
	Subject  string        `json:"subject"`
	K        int           `json:"k"`
	Recoding string        `json:"recoding"`
	Scope    string        `json:"scope"`
	Require  []requirement `json:"require"`
	Columns  []column      `json:"columns"`
	Gate     *gateOf       `json:"gate"`
	// Seed are combinations of columns that releases are made for.
	Seed json.RawMessage `json:"seed"`
	// Rows is false where only aggregates are answered.
	Rows       *bool    `json:"rows"`
	Cohort     int      `json:"cohort,omitempty"`
	MaxShare   float64  `json:"max_share,omitempty"`
	Cuts       string   `json:"cuts,omitempty"`
	Departures string   `json:"departures,omitempty"`
	Changes    string   `json:"changes,omitempty"`
	Indexes    *indexes `json:"indexes,omitempty"`
	// What follows may hold values: it is compared, and not shown.
	SetValued *setValued      `json:"set_valued,omitempty"`
	DataSetOf json.RawMessage `json:"data_set_of,omitempty"`
}

// gateOf is the risk that decides whether a stage is de-identified.
type gateOf struct {
	Measure string  `json:"measure"`
	MaxRisk float64 `json:"max_risk"`
}

func (g *gateOf) String() string {
	if g == nil {
		return "none"
	}
	return fmt.Sprintf("%s risk of at most %g", g.Measure, g.MaxRisk)
}

type indexes struct {
	Add  []string `json:"add"`
	Drop []string `json:"drop"`
}

func (x *indexes) String() string {
	if x == nil {
		return "as the table's"
	}
	return fmt.Sprintf("added on %v, left out on %v", x.Add, x.Drop)
}

type setValued struct {
	Column      string          `json:"column"`
	M           int             `json:"m"`
	Diversity   int             `json:"diversity"`
	Joint       json.RawMessage `json:"joint"` // names of columns and a size
	Constraints json.RawMessage `json:"constraints"`
	Sensitive   json.RawMessage `json:"sensitive"`
}

type requirement struct {
	Model     string  `json:"model"`
	Column    string  `json:"column"`
	Parameter float64 `json:"parameter"`
	C         float64 `json:"c,omitempty"`
	Distance  string  `json:"distance,omitempty"`
}

func (r requirement) String() string { return policyfile.Requirement(r).Phrase() }

type column struct {
	Name      string     `json:"name"`
	Type      string     `json:"type"`
	Class     string     `json:"class"`
	Action    string     `json:"action"`
	Hierarchy *hierarchy `json:"hierarchy"`
	// SharedFact is "accepted", or empty where no other table may tell the same.
	SharedFact string `json:"shared_fact,omitempty"`
	// Tree and Note show the hierarchy.
	Tree *node  `json:"tree"`
	Note string `json:"note"`
}

type hierarchy struct {
	Name       string          `json:"name"`
	Kind       string          `json:"kind"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// differences says what a version of a policy changed, without values.
func differences(before, after *document) []string {
	out := []string{}
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	setting := func(name string, b, a any) {
		if b != a {
			say("%s: %v → %v", name, b, a)
		}
	}
	setting("subject", before.Subject, after.Subject)
	setting("k", before.K, after.K)
	setting("recoding", before.Recoding, after.Recoding)
	setting("scope", before.Scope, after.Scope)
	setting("gate", before.Gate.String(), after.Gate.String())
	setting("made for", combinations(before.Seed), combinations(after.Seed))
	setting("rows are shown", before.showsRows(), after.showsRows())
	setting("cohort", orDefault(before.Cohort), orDefault(after.Cohort))
	setting("max share", orDefault(before.MaxShare), orDefault(after.MaxShare))
	setting("cuts", cmp.Or(before.Cuts, "by_models"), cmp.Or(after.Cuts, "by_models"))
	setting("departures", cmp.Or(before.Departures, "batch"), cmp.Or(after.Departures, "batch"))
	setting("changes", cmp.Or(before.Changes, "batch"), cmp.Or(after.Changes, "batch"))
	setting("indexes", before.Indexes.String(), after.Indexes.String())
	out = append(out, before.SetValued.differences(after.SetValued)...)
	if !bytes.Equal(before.DataSetOf, after.DataSetOf) {
		say("the query of the data set is another")
	}
	were := make(map[requirement]bool)
	for _, r := range before.Require {
		were[r] = true
	}
	for _, r := range after.Require {
		if !were[r] {
			say("requires %v", r)
		}
		delete(were, r)
	}
	for _, r := range before.Require {
		if were[r] {
			say("no longer requires %v", r)
		}
	}
	columns := make(map[string]*column)
	for i := range before.Columns {
		columns[before.Columns[i].Name] = &before.Columns[i]
	}
	for i := range after.Columns {
		a := &after.Columns[i]
		b := columns[a.Name]
		delete(columns, a.Name)
		if b == nil {
			say("column %s is new: %s", a.Name, a.class())
			continue
		}
		setting("type of column "+a.Name, b.Type, a.Type)
		setting("class of column "+a.Name, b.class(), a.class())
		setting("shared fact of column "+a.Name, b.sharedFact(), a.sharedFact())
		if b.Hierarchy != nil && a.Hierarchy != nil {
			setting("hierarchy of column "+a.Name, b.Hierarchy.Name, a.Hierarchy.Name)
			if b.Hierarchy.Name == a.Hierarchy.Name &&
				!bytes.Equal(b.Hierarchy.Definition, a.Hierarchy.Definition) {
				say("hierarchy %s of column %s is defined anew", a.Hierarchy.Name, a.Name)
			}
		}
	}
	for i := range before.Columns {
		if name := before.Columns[i].Name; columns[name] != nil {
			say("column %s is gone", name)
		}
	}
	return out
}

func (d *document) showsRows() bool { return d.Rows == nil || *d.Rows }

func combinations(text json.RawMessage) string {
	var seed [][]string
	if json.Unmarshal(text, &seed) != nil || len(seed) == 0 {
		return "all quasi-identifiers"
	}
	sets := make([]string, len(seed))
	for i, set := range seed {
		sets[i] = strings.Join(set, " with ")
	}
	return strings.Join(sets, "; ")
}

// orDefault is a setting that has a value of its own.
func orDefault[T int | float64](value T) string {
	if value == 0 {
		return "default"
	}
	return fmt.Sprint(value)
}

// differences names what is another of a set-valued table, and no code.
func (s *setValued) differences(after *setValued) []string {
	switch {
	case s == nil && after == nil:
		return nil
	case s == nil:
		return []string{fmt.Sprintf("codes of %s are a set: m = %d", after.Column, after.M)}
	case after == nil:
		return []string{"codes of " + s.Column + " are no set any more"}
	}
	var out []string
	if s.Column != after.Column {
		out = append(out, fmt.Sprintf("column of codes: %s → %s", s.Column, after.Column))
	}
	if s.M != after.M {
		out = append(out, fmt.Sprintf("m: %d → %d", s.M, after.M))
	}
	if s.Diversity != after.Diversity {
		out = append(out, fmt.Sprintf("diversity of codes: %s → %s",
			orDefault(s.Diversity), orDefault(after.Diversity)))
	}
	for name, parts := range map[string][2]json.RawMessage{
		"constraints on codes": {s.Constraints, after.Constraints},
		"sensitive codes":      {s.Sensitive, after.Sensitive},
	} {
		if !bytes.Equal(parts[0], parts[1]) {
			out = append(out, "the "+name+" are others")
		}
	}
	slices.Sort(out)
	if !bytes.Equal(s.Joint, after.Joint) {
		out = append(out, "codes are published with other columns")
	}
	return out
}

func (c *column) sharedFact() string {
	if c.SharedFact == "" {
		return "refused"
	}
	return c.SharedFact
}

func (c *column) class() string {
	switch {
	case c.Class == "":
		return "none, hidden"
	case c.Action == "pseudonym":
		return c.Class + ", pseudonym"
	}
	return c.Class
}
