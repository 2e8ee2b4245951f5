package policyfile

import (
	"encoding/json"
	"errors"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Hierarchy is the definition of a generalization hierarchy. Which fields
// count depends on Type.
type Hierarchy struct {
	Name string
	Type string // interval, prefix, date, table

	Widths       []float64 // interval
	Lower, Upper *float64  // interval

	Keep []int // prefix

	Levels             []string // date
	LowerDay, UpperDay string   // date, "" for the default

	Source  string     // table: a relation that holds the list
	Columns []string   // table: of the source
	Paths   [][]string // table: the list itself, where there is no source
	Line    int
	// Remark is written behind the hierarchy as a comment. It is not read back.
	Remark string
}

// definition is the form that tailor.define_hierarchy takes.
type definition struct {
	Widths  []float64       `json:"widths,omitempty"`
	Keep    *[]int          `json:"keep,omitempty"`
	Levels  []string        `json:"levels,omitempty"`
	Lower   json.RawMessage `json:"lower,omitempty"`
	Upper   json.RawMessage `json:"upper,omitempty"`
	Source  string          `json:"source,omitempty"`
	Columns []string        `json:"columns,omitempty"`
	Paths   [][]string      `json:"paths,omitempty"`
}

// Definition is the JSON document of a hierarchy, as tailor.define_hierarchy
// takes it.
func (h *Hierarchy) Definition() string {
	d := definition{
		Widths: h.Widths, Levels: h.Levels, Source: h.Source, Columns: h.Columns,
		Paths: h.Paths,
	}
	if h.Type == "prefix" {
		keep := h.Keep
		if keep == nil {
			keep = []int{}
		}
		d.Keep = &keep
	}
	bound := func(number *float64, day string) json.RawMessage {
		var v any = day
		switch {
		case number != nil:
			v = *number
		case day == "":
			return nil
		}
		raw, _ := json.Marshal(v) // a finite number or a text
		return raw
	}
	d.Lower, d.Upper = bound(h.Lower, h.LowerDay), bound(h.Upper, h.UpperDay)
	raw, _ := json.Marshal(d) // holds nothing that JSON has no form for
	return string(raw)
}

// FromDefinition reads what the database holds of a hierarchy. A list that came
// from a source is left to the source.
func FromDefinition(name, kind string, document []byte) (Hierarchy, error) {
	h := Hierarchy{Name: name, Type: kind}
	var d definition
	if err := json.Unmarshal(document, &d); err != nil {
		return h, err
	}
	h.Widths, h.Levels, h.Source, h.Columns = d.Widths, d.Levels, d.Source, d.Columns
	if d.Keep != nil {
		h.Keep = *d.Keep
	}
	if d.Source == "" {
		h.Paths = d.Paths
	}
	if kind == "date" {
		return h, errors.Join(unmarshal(d.Lower, &h.LowerDay), unmarshal(d.Upper, &h.UpperDay))
	}
	return h, errors.Join(unmarshal(d.Lower, &h.Lower), unmarshal(d.Upper, &h.Upper))
}

func unmarshal(raw json.RawMessage, into any) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

func (r *reader) hierarchy(e entry) Hierarchy {
	h := Hierarchy{Name: e.key, Line: e.at.Line}
	what := "hierarchy " + e.key
	if e.value.Kind != yaml.MappingNode {
		r.fault(e.value, "write it as {type: interval, …}", "%s must be a mapping", what)
		return h
	}
	at := slices.IndexFunc(e.value.Content, func(n *yaml.Node) bool { return n.Value == "type" })
	if at < 0 || at%2 != 0 {
		r.fault(e.at, "types are interval, prefix, date and table", "%s has no \"type\"", what)
		return h
	}
	if h.Type = r.word(e.value.Content[at+1], "type", kinds); h.Type == "" {
		return h
	}
	before := len(r.faults)
	switch h.Type {
	case "interval":
		r.interval(&h, e, what)
	case "prefix":
		keys := r.keys(e.value, what, []string{"type", "keep"}, nil)
		if k, ok := keys["keep"]; ok {
			for _, item := range r.sequence(k.value, "keep") {
				h.Keep = append(h.Keep, r.whole(item, "a number of kept characters", 0))
			}
		}
	case "date":
		r.dates(&h, e, what)
	case "table":
		r.list(&h, e, what)
	}
	if len(r.faults) == before {
		r.nests(&h, e)
	}
	return h
}

func (r *reader) interval(h *Hierarchy, e entry, what string) {
	keys := r.keys(e.value, what, []string{"type", "widths", "lower", "upper"}, nil)
	if k, ok := keys["widths"]; ok {
		for _, item := range r.sequence(k.value, "widths") {
			h.Widths = append(h.Widths, r.number(item, "a width"))
		}
	}
	if k, ok := keys["lower"]; ok {
		v := r.number(k.value, "lower")
		h.Lower = &v
	}
	if k, ok := keys["upper"]; ok {
		v := r.number(k.value, "upper")
		h.Upper = &v
	}
}

func (r *reader) dates(h *Hierarchy, e entry, what string) {
	keys := r.keys(e.value, what, []string{"type", "levels"}, []string{"lower", "upper"})
	if k, ok := keys["levels"]; ok {
		for _, item := range r.sequence(k.value, "levels") {
			h.Levels = append(h.Levels, r.word(item, "unit", units))
		}
	}
	if k, ok := keys["lower"]; ok {
		h.LowerDay = r.text(k.value, "lower")
	}
	if k, ok := keys["upper"]; ok {
		h.UpperDay = r.text(k.value, "upper")
	}
}

func (r *reader) list(h *Hierarchy, e entry, what string) {
	keys := r.keys(e.value, what, []string{"type"}, []string{"source", "columns", "paths"})
	_, hasSource := keys["source"]
	_, hasColumns := keys["columns"]
	_, hasPaths := keys["paths"]
	if hasSource != hasColumns || hasSource == hasPaths {
		r.fault(e.at, "", "%s needs source and columns, or paths alone", what)
		return
	}
	if hasSource {
		h.Source = r.text(keys["source"].value, "source")
		if h.Columns = r.names(keys["columns"].value, "columns"); len(h.Columns) == 0 {
			r.fault(keys["columns"].at, "the first holds the value, each further one the label one level up",
				"no columns of the source")
		}
		return
	}
	for _, item := range r.sequence(keys["paths"].value, "paths") {
		var path []string
		for _, label := range r.sequence(item, "a path") {
			s, _ := r.scalar(label, "a label")
			path = append(path, s)
		}
		h.Paths = append(h.Paths, path)
	}
}

// nests asks the engine whether the levels make a hierarchy.
func (r *reader) nests(h *Hierarchy, e entry) {
	if err := h.Check(); err != nil {
		var reason *anonymize.HierarchyError
		message := err.Error()
		if errors.As(err, &reason) {
			message = reason.Reason
		}
		r.fault(e.at, "each level must be made of whole groups of the one before", "hierarchy %q: %s",
			h.Name, message)
	}
}

// Check fails with an *[anonymize.HierarchyError] where the levels do not make a
// hierarchy, whatever the data.
func (h *Hierarchy) Check() error {
	switch h.Type {
	case "interval":
		_, err := anonymize.Interval{Widths: h.Widths, Lower: *h.Lower, Upper: *h.Upper}.Build(nil, true)
		return err
	case "prefix":
		_, err := anonymize.Prefix{Keep: h.Keep}.Build(nil, true)
		return err
	case "date":
		_, err := anonymize.Dates{
			Levels: h.Levels, Lower: orDefault(h.LowerDay, "1900-01-01"), Upper: orDefault(h.UpperDay,
				"2099-12-31"),
			// of the column nothing is known: activation refuses hours of a date
			Resolution: anonymize.Instants,
		}.Build(nil, true)
		return err
	case "table":
		if h.Source == "" {
			_, err := anonymize.NewHierarchy(h.Paths)
			return err
		}
	}
	return nil
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
