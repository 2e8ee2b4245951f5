package policyfile

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Gate chooses the measure of risk that decides whether a stage of a query is
// de-identified.
type Gate struct {
	Measure string  `json:"measure"`
	MaxRisk float64 `json:"max_risk"`
}

func (g *Gate) String() string {
	if g == nil {
		return ""
	}
	return fmt.Sprintf("{measure: %s, max_risk: %s}", g.Measure, plainNumber(g.MaxRisk))
}

// Indexes are columns that releases have an index on besides those that the table has one
// on, and columns that they have none on.
type Indexes struct {
	Add  []string `json:"add"`
	Drop []string `json:"drop"`
}

func (x *Indexes) String() string {
	if x == nil {
		return ""
	}
	var parts []string
	if len(x.Add) > 0 {
		parts = append(parts, "add: "+flowList(x.Add))
	}
	if len(x.Drop) > 0 {
		parts = append(parts, "drop: "+flowList(x.Drop))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (r *reader) indexes(t *Table, e entry) *Indexes {
	keys := r.keys(e.value, "indexes", nil, []string{"add", "drop"})
	x := &Indexes{}
	for _, name := range []string{"add", "drop"} {
		list := &x.Add
		if name == "drop" {
			list = &x.Drop
		}
		k, ok := keys[name]
		if !ok {
			continue
		}
		for _, item := range r.sequence(k.value, name) {
			column := r.name(item, "a column of "+name)
			switch c := t.Column(column); {
			case slices.Contains(x.Add, column) || slices.Contains(x.Drop, column):
				r.fault(item, "name each once", "column %q stands twice", column)
			case column != "" && name == "add" && (c == nil || c.Class == "direct_identifier"):
				r.fault(item, "index columns that are shown", "column %q is in no release", column)
			}
			*list = append(*list, column)
		}
	}
	if len(x.Add)+len(x.Drop) == 0 {
		return nil
	}
	return x
}

// SetValued says that the codes of a column are a set for each subject.
type SetValued struct {
	Column      string              `json:"column"`
	M           int                 `json:"m"`
	Constraints map[string][]string `json:"constraints"`
	Sensitive   []string            `json:"sensitive"`
	Diversity   int                 `json:"diversity"`
	Joint       *Joint              `json:"joint"` // nil: codes are published by themselves
}

// Joint says that codes are published together with quasi-identifiers of the parent.
type Joint struct {
	Columns   []string `json:"columns"`    // of the parent, the most important first
	GroupSize int      `json:"group_size"` // 0 where the file is silent
}

func (j *Joint) String() string {
	s := "{columns: " + flowList(j.Columns)
	if j.GroupSize > 0 {
		s += fmt.Sprintf(", group_size: %d", j.GroupSize)
	}
	return s + "}"
}

func (s *SetValued) String() string {
	if s == nil {
		return ""
	}
	parts := []string{"column: " + Scalar(s.Column), fmt.Sprintf("m: %d", s.M)}
	if len(s.Constraints) > 0 {
		var sets []string
		for name, codes := range s.Constraints {
			sets = append(sets, Scalar(name)+": "+flowList(codes))
		}
		slices.Sort(sets)
		parts = append(parts, "constraints: {"+strings.Join(sets, ", ")+"}")
	}
	if len(s.Sensitive) > 0 {
		parts = append(parts, "sensitive: "+flowList(s.Sensitive),
			fmt.Sprintf("diversity: %d", s.Diversity))
	}
	if s.Joint != nil {
		parts = append(parts, "joint: "+s.Joint.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (r *reader) gate(n *yaml.Node) *Gate {
	keys := r.keys(n, "gate", []string{"measure", "max_risk"}, nil)
	g := &Gate{}
	if k, ok := keys["measure"]; ok {
		g.Measure = r.word(k.value, "measure", measures)
	}
	if k, ok := keys["max_risk"]; ok {
		before := len(r.faults)
		if g.MaxRisk = r.number(k.value, "max_risk"); len(r.faults) == before &&
			(g.MaxRisk <= 0 || g.MaxRisk > 1) {
			r.fault(k.value, "", "max_risk must be above 0 and at most 1")
		}
	}
	return g
}

func (r *reader) setValued(t *Table, e entry) *SetValued {
	keys := r.keys(e.value, "set_valued", []string{"column", "m"},
		[]string{"constraints", "sensitive", "diversity", "joint"})
	s := &SetValued{}
	if k, ok := keys["column"]; ok {
		s.Column = r.name(k.value, "column")
		if c := t.Column(s.Column); s.Column != "" &&
			(c == nil || (c.Class != "" && c.Class != "sensitive")) {
			r.fault(k.value, "classify the column as sensitive",
				"the set-valued column %q is not a sensitive column of the table", s.Column)
		}
	}
	if k, ok := keys["m"]; ok {
		s.M = r.whole(k.value, "m", 1)
	}
	if k, ok := keys["constraints"]; ok {
		s.Constraints = r.constraints(k.value)
	}
	sensitive, hasSensitive := keys["sensitive"]
	diversity, hasDiversity := keys["diversity"]
	if hasSensitive {
		if s.Sensitive = r.codes(sensitive.value, "sensitive", nil); len(s.Sensitive) == 0 &&
			sensitive.value.Kind == yaml.SequenceNode {
			r.fault(sensitive.value, "leave it out", "no sensitive codes")
		}
	}
	if hasDiversity {
		s.Diversity = r.whole(diversity.value, "diversity", 2)
	}
	if hasSensitive != hasDiversity {
		r.fault(e.at, "a subject is linked to a sensitive code with a probability of at most 1/diversity",
			"sensitive and diversity belong together")
	}
	if k, ok := keys["joint"]; ok {
		s.Joint = r.joint(t, k.value)
		if hasSensitive {
			r.fault(k.at, "leave out sensitive and diversity, or joint",
				"sensitive codes cannot be published together with other columns")
		}
	}
	for _, c := range t.Columns {
		if c.Name != s.Column && slices.Contains([]string{
			"quasi_identifier", "sensitive",
			"non_sensitive",
		}, c.Class) {
			r.faults = append(r.faults, Fault{
				c.Line, 1, fmt.Sprintf("column %q cannot be shown beside the codes of a set-valued table",
					c.Name),
				"classify it as direct_identifier, which hides it",
			})
		}
	}
	return s
}

func (r *reader) joint(t *Table, n *yaml.Node) *Joint {
	keys := r.keys(n, "joint", []string{"columns"}, []string{"group_size"})
	j := &Joint{}
	if k, ok := keys["columns"]; ok {
		for _, item := range r.sequence(k.value, "columns") {
			name := r.name(item, "a column of joint")
			if slices.Contains(j.Columns, name) {
				r.fault(item, "name each once", "column %q stands twice", name)
			}
			j.Columns = append(j.Columns, name)
		}
		if len(j.Columns) == 0 && k.value.Kind == yaml.SequenceNode {
			r.fault(k.value, "name quasi-identifiers of the parent, or leave joint out", "no columns")
		}
	}
	if k, ok := keys["group_size"]; ok {
		if j.GroupSize = r.whole(k.value, "group_size", 2); j.GroupSize > 0 && j.GroupSize < t.K {
			r.fault(k.value, "leave it out for 40 k", "group_size is below k")
		}
	}
	return j
}

func (r *reader) constraints(n *yaml.Node) map[string][]string {
	out := make(map[string][]string)
	var all []string
	for _, c := range r.mapping(n, "constraints") {
		codes := r.codes(c.value, "constraint "+c.key, all)
		if len(codes) == 0 && c.value.Kind == yaml.SequenceNode {
			r.fault(c.value, "leave it out", "constraint %q is empty", c.key)
		}
		out[c.key] = codes
		all = append(all, codes...)
	}
	return out
}

// codes reads a list of texts that stand neither in it nor in others twice.
func (r *reader) codes(n *yaml.Node, what string, others []string) []string {
	var out []string
	for _, item := range r.sequence(n, what) {
		code := r.text(item, "a code of "+what)
		switch {
		case code == "":
		case strings.ContainsRune(code, 0):
			r.fault(item, "", "a code of %s holds a zero byte", what)
		case slices.Contains(out, code) || slices.Contains(others, code):
			r.fault(item, "a code stands in one place", "%q stands twice", code)
		default:
			out = append(out, code)
		}
	}
	return out
}

// period is how often a table is refreshed: minutes, hours or days.
var period = regexp.MustCompile(`^([1-9][0-9]{0,5})([mhd])$`)

// units of a period.
var periodUnits = map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}

// onChange is the value of refresh for a table that is refreshed once it has changed.
const onChange = "on_change"

func (r *reader) refresh(n *yaml.Node) (every time.Duration, changed bool) {
	s, ok := r.scalar(n, "refresh")
	if !ok {
		return 0, false
	}
	if s == onChange {
		return time.Minute, true
	}
	m := period.FindStringSubmatch(s)
	if m == nil {
		r.fault(n, "write minutes, hours or days, such as 30m, 24h, 7d, or on_change",
			"refresh is no span of time")
		return 0, false
	}
	count, _ := strconv.Atoi(m[1]) // digits, few of them
	return time.Duration(count) * periodUnits[m[2]], false
}

// Period writes how often the table is refreshed, "" for never.
func (t *Table) Period() string {
	d := t.Refresh
	switch {
	case t.OnChange:
		return onChange
	case d <= 0:
		return ""
	case d%periodUnits["d"] == 0 && d > periodUnits["d"]:
		return fmt.Sprintf("%dd", d/periodUnits["d"])
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// together refuses what a set-valued table has no use for.
func (r *reader) together(t *Table, keys map[string]entry) {
	if t.SetValued == nil {
		return
	}
	for _, name := range []string{"gate", "require"} {
		if k, ok := keys[name]; ok {
			r.fault(k.at, "leave it out; sensitive and diversity of set_valued stand for it",
				"a set-valued table has no use for %q", name)
		}
	}
	for _, name := range []string{"departures", "changes"} {
		if k, ok := keys[name]; ok && k.value.Value == "at_once" {
			r.fault(k.value, "leave it out: codes stay as they were published",
				"a set-valued table has no %s at once", name)
		}
	}
	if t.AggregateOnly {
		r.fault(keys["rows"].at, "leave it out: what is published is safe to be shown",
			"a set-valued table shows its codes")
	}
	if t.SetValued.Column != "" && t.SetValued.Column == t.Subject {
		r.fault(keys["set_valued"].at, "name the column of codes", "the set-valued column is the subject")
	}
}
