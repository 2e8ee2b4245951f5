package console

import (
	"bytes"
	"encoding/json"
	"fmt"

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
			if b.Hierarchy.Name == a.Hierarchy.Name && !bytes.Equal(b.Hierarchy.Definition, a.Hierarchy.Definition) {
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
