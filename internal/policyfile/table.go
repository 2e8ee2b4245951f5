package policyfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

func (r *reader) table(f *File, e entry) Table {
	t := Table{Name: e.key, Line: e.at.Line, Recoding: "auto", Scope: "table"}
	keys := r.keys(e.value, "table "+e.key, []string{"subject", "k", "columns"}, []string{
		"require",
		"recoding", "rows", "max_share", "cohort", "cuts", "departures", "changes", "gate", "chain",
		"refresh", "readers", "indexes", "set_valued", "data_set",
	})
	if k, ok := keys["subject"]; ok {
		t.Subject = r.name(k.value, "subject")
	}
	if k, ok := keys["k"]; ok {
		t.K = r.whole(k.value, "k", 2)
	}
	if k, ok := keys["recoding"]; ok {
		t.Recoding = r.word(k.value, "recoding", recodings)
	}
	if k, ok := keys["rows"]; ok {
		t.AggregateOnly = r.no(k.value, "rows")
	}
	if k, ok := keys["columns"]; ok {
		t.Columns = r.columns(f, &t, k)
	}
	if k, ok := keys["require"]; ok {
		t.Require = r.requirements(&t, k.value)
	}
	if k, ok := keys["chain"]; ok {
		r.chain(&t, k.value)
	}
	if k, ok := keys["readers"]; ok {
		t.Readers = r.readers(k.value)
	}
	if k, ok := keys["gate"]; ok {
		t.Gate = r.gate(k.value)
	}
	if k, ok := keys["max_share"]; ok {
		before := len(r.faults)
		if t.MaxShare = r.number(k.value, "max_share"); len(r.faults) == before &&
			(t.MaxShare <= 0 || t.MaxShare > 1) {
			r.fault(k.value, "", "max_share must be above 0 and at most 1")
		}
	}
	if k, ok := keys["cohort"]; ok {
		t.Cohort = r.whole(k.value, "cohort", 1)
	}
	if k, ok := keys["cuts"]; ok {
		t.BlindCuts = r.word(k.value, "cuts", cuts) == "blind"
	}
	if k, ok := keys["departures"]; ok {
		t.DeparturesAtOnce = r.word(k.value, "departures", effects) == "at_once"
	}
	if k, ok := keys["changes"]; ok {
		t.ChangesAtOnce = r.word(k.value, "changes", effects) == "at_once"
	}
	if k, ok := keys["indexes"]; ok {
		t.Indexes = r.indexes(&t, k)
	}
	if k, ok := keys["refresh"]; ok {
		t.Refresh, t.OnChange = r.refresh(k.value)
	}
	if k, ok := keys["set_valued"]; ok {
		t.SetValued = r.setValued(&t, k)
	}
	if k, ok := keys["data_set"]; ok {
		t.DataSet = r.dataSet(k)
		r.shownAs(&t, keys)
	}
	r.together(&t, keys)
	return t
}

func (r *reader) columns(f *File, t *Table, e entry) []Column {
	var out []Column
	for _, c := range r.mapping(e.value, "columns") {
		r.checkName(c.at, c.key, "the name of a column")
		out = append(out, r.column(f, t, c))
	}
	if len(out) == 0 && e.value.Kind == yaml.MappingNode {
		r.fault(e.at, "a column without a class is hidden: classify at least one", "no columns")
	}
	return out
}

func (r *reader) column(f *File, t *Table, e entry) Column {
	c := Column{Name: e.key, Line: e.at.Line, Action: "hide"}
	keys := r.keys(e.value, "column "+e.key, []string{"class"}, []string{
		"action", "hierarchy",
		"representative", "margins", "shared_fact",
	})
	if k, ok := keys["class"]; ok {
		c.Class = r.word(k.value, "class", classes)
	}
	h, hasHierarchy := keys["hierarchy"]
	if hasHierarchy {
		c.Hierarchy = r.text(h.value, "hierarchy")
	}
	switch {
	case c.Class == "":
	case c.Class == "quasi_identifier" && !hasHierarchy:
		r.fault(e.at, "add hierarchy: and its name", "quasi-identifier %q has no hierarchy", e.key)
	case c.Class != "quasi_identifier" && hasHierarchy:
		r.fault(h.at, "leave it out", "column %q is no quasi-identifier and has a hierarchy", e.key)
	case hasHierarchy && c.Hierarchy != "" && f.Hierarchy(c.Hierarchy) == nil:
		var names []string
		for _, known := range slices.Concat(f.Hierarchies, builtins) {
			names = append(names, known.Name)
		}
		r.fault(h.value, "define it under hierarchies"+nearest(c.Hierarchy, names),
			"hierarchy %q is not defined", c.Hierarchy)
	}
	if k, ok := keys["representative"]; ok {
		switch {
		case c.Class != "" && c.Class != "quasi_identifier":
			r.fault(k.at, "leave it out", "column %q is no quasi-identifier and has a representative", e.key)
		case k.value.Value == "mean":
			r.fault(k.value, "leave it out: values are then raked to margins",
				"representative: mean is gone")
		default:
			c.Middle = r.word(k.value, "representative", values) == "middle"
		}
	}
	if k, ok := keys["margins"]; ok {
		if c.Class != "" && c.Class != "quasi_identifier" {
			r.fault(k.at, "leave it out", "column %q is no quasi-identifier and has margins", e.key)
		}
		c.NoMargins = r.no(k.value, "margins")
	}
	if k, ok := keys["shared_fact"]; ok {
		c.SharedFact = r.word(k.value, "shared_fact", shared) == "accepted"
		if c.Class != "" && !c.Exact() {
			r.fault(k.at, "leave it out", "column %q is not shown exact and shares no fact", e.key)
		}
	}
	if a, ok := keys["action"]; ok {
		c.Action = r.word(a.value, "action", actions)
		switch {
		case c.Class != "" && c.Class != "direct_identifier":
			r.fault(a.at, "leave it out", "column %q is no direct identifier and has an action", e.key)
		case c.Action == "pseudonym" && t.Subject != "" && e.key != t.Subject:
			r.fault(a.value, "only the subject column can have one",
				"column %q cannot have a pseudonym", e.key)
		}
	}
	if e.key == t.Subject && c.Class != "" && c.Class != "direct_identifier" {
		r.fault(e.at, "classify it as direct_identifier",
			"column %q says whom a row is about and would be shown", e.key)
	}
	return c
}

func (r *reader) requirements(t *Table, n *yaml.Node) []Requirement {
	var out []Requirement
	for _, item := range r.sequence(n, "require") {
		keys := r.keys(
			item, "a requirement", []string{"model", "column", "parameter"}, []string{"c", "distance"},
		)
		var q Requirement
		if k, ok := keys["model"]; ok {
			q.Model = r.word(k.value, "model", models)
		}
		if k, ok := keys["column"]; ok {
			q.Column = r.name(k.value, "column")
			if c := t.Column(q.Column); q.Column != "" &&
				(c == nil || (c.Class != "" && c.Class != "sensitive")) {
				r.fault(k.value, "classify the column as sensitive",
					"%q is not a sensitive column of the table", q.Column)
			}
		}
		if k, ok := keys["parameter"]; ok {
			q.Parameter = r.parameter(k.value, q.Model)
		}
		r.options(item, &q, keys)
		if slices.ContainsFunc(out, func(o Requirement) bool {
			return o.Model == q.Model && o.Column == q.Column
		}) {
			r.fault(item, "", "%s of %q is required twice", q.Model, q.Column)
			continue
		}
		out = append(out, q)
	}
	return out
}

// parameter reads that of a privacy model. Those that would switch it off are faults.
func (r *reader) parameter(n *yaml.Node, model string) float64 {
	if model == "l_diversity" || model == "recursive_l_diversity" {
		return float64(r.whole(n, "parameter", 2))
	}
	v := r.number(n, "parameter")
	switch {
	case model == "alpha" && (v <= 0 || v >= 1):
		r.fault(n, "the largest share of a block that may have one value",
			"parameter must be above 0 and below 1")
	case model == "t_closeness" && (v <= 0 || v >= 1):
		r.fault(n, "how far a block may be from all", "parameter must be above 0 and below 1")
	case model == "entropy_l_diversity" && v <= 1:
		r.fault(n, "as even as so many equally frequent values", "parameter must be above 1")
	case model != "" && v <= 0:
		r.fault(n, "", "parameter must be above 0")
	}
	return v
}

// options reads what some models have beside their parameter.
func (r *reader) options(item *yaml.Node, q *Requirement, keys map[string]entry) {
	k, ok := keys["c"]
	switch {
	case ok && q.Model != "recursive_l_diversity" && q.Model != "":
		r.fault(k.at, "leave it out", "%s has no c", q.Model)
	case ok:
		before := len(r.faults)
		if q.C = r.number(k.value, "c"); q.C <= 0 && len(r.faults) == before {
			r.fault(k.value, "", "c must be above 0")
		}
	case q.Model == "recursive_l_diversity":
		r.fault(item, "the most frequent value is less than c times as frequent as all but the "+
			"l - 1 most frequent", "recursive_l_diversity has no c")
	}
	k, ok = keys["distance"]
	switch {
	case ok && q.Model != "t_closeness" && q.Model != "":
		r.fault(k.at, "leave it out", "%s has no distance", q.Model)
	case ok:
		if q.Distance = r.word(k.value, "distance", distances); q.Distance == "equal" {
			q.Distance = ""
		}
	}
}

func (r *reader) chain(t *Table, n *yaml.Node) {
	keys := r.keys(n, "chain", nil, []string{"scope", "seed"})
	if k, ok := keys["scope"]; ok {
		t.Scope = r.word(k.value, "scope", scopes)
	}
	k, ok := keys["seed"]
	if !ok {
		return
	}
	for _, item := range r.sequence(k.value, "seed") {
		set := r.names(item, "a set of the seed")
		if len(set) == 0 && item.Kind == yaml.SequenceNode {
			r.fault(item, "", "a set of the seed is empty")
			continue
		}
		for _, name := range set {
			if c := t.Column(name); c == nil || (c.Class != "" && c.Class != "quasi_identifier") {
				r.fault(item, "name quasi-identifiers of the table",
					"%q is no quasi-identifier of the table", name)
			}
		}
		t.Seed = append(t.Seed, set)
	}
}

func (r *reader) readers(n *yaml.Node) []string {
	out := r.names(n, "readers")
	for _, name := range out {
		if strings.HasPrefix(name, "tailor_") || strings.HasPrefix(name, "pg_") {
			r.fault(n, "name roles of people or of groups", "role %q cannot be a reader", name)
		}
	}
	return out
}
