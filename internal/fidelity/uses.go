package fidelity

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Explanation is what is read of EXPLAIN (TAILOR, FORMAT JSON).
type Explanation struct {
	Tables []struct {
		Table  string
		Stages []struct {
			Place      string
			Attributes []string `json:"qids"`
		}
	}
}

// ReadExplanation reads the document.
func ReadExplanation(document []byte) (*Explanation, error) {
	e := &Explanation{}
	if err := json.Unmarshal(document, e); err != nil {
		return nil, fmt.Errorf("read the account of a query: %w", err)
	}
	return e, nil
}

// UsesOf lists the quasi-identifiers that a query uses, each with the first place where it acts.
// What a child's plan calls by the parent's name (patients.age) is listed as the parent's. Those
// that the query names and its plan has not follow without a place: all of a query that is refused,
// which has no explanation (nil). quasi are all quasi-identifiers of the database, as far as they
// are known.
func UsesOf(e *Explanation, s *Statement, quasi []Use) []Use {
	out := []Use{}
	add := func(u Use) {
		isKnown := func(o Use) bool { return o.Table == u.Table && o.Column == u.Column }
		if !slices.ContainsFunc(out, isKnown) {
			out = append(out, u)
		}
	}
	if e != nil {
		for _, t := range e.Tables {
			for _, stage := range t.Stages {
				for _, column := range stage.Attributes {
					add(lender(Use{Table: t.Table, Column: column, Place: stage.Place}, quasi))
				}
			}
		}
	}
	planned := len(out)
	for _, u := range quasi {
		isPlanned := func(p Use) bool { return p.Column == u.Column }
		_, table, _ := strings.Cut(u.Table, ".")
		if slices.Contains(s.Tables, table) && slices.Contains(s.Columns, u.Column) &&
			!slices.ContainsFunc(out[:planned], isPlanned) {
			add(u)
		}
	}
	return out
}

// lender is the parent's column where a child's plan uses it.
func lender(u Use, quasi []Use) Use {
	for _, q := range quasi {
		if _, table, _ := strings.Cut(q.Table, "."); u.Column == table+"."+q.Column {
			return Use{Table: q.Table, Column: q.Column, Place: u.Place}
		}
	}
	return u
}
