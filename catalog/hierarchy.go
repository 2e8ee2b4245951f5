package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// HierarchySpec is a hierarchy as a policy defines it.
type HierarchySpec struct {
	Name       string          `json:"name"`
	Kind       string          `json:"kind"`
	Definition json.RawMessage `json:"definition"`
}

// intervalDefinition is the definition of kind "interval".
type intervalDefinition struct {
	Widths []float64 `json:"widths"`
	Lower  *float64  `json:"lower"`
	Upper  *float64  `json:"upper"`
}

// prefixDefinition is the definition of kind "prefix".
type prefixDefinition struct {
	Keep []int `json:"keep"`
}

// dateDefinition is the definition of kind "date".
type dateDefinition struct {
	Levels []string `json:"levels"`
	Lower  string   `json:"lower"`
	Upper  string   `json:"upper"`
}

// A date hierarchy without bounds gets these, wide enough for people alive.
const (
	DefaultLowerDay = "1900-01-01"
	DefaultUpperDay = "2099-12-31"
)

// tableDefinition is the definition of kind "table": rows of a code list, the
// first column the value, each further column the label one level up.
type tableDefinition struct {
	Source  string     `json:"source"`
	Columns []string   `json:"columns"`
	Paths   [][]string `json:"paths"`
}

// decode reads a definition strictly: an unknown key is a fault.
func (h *HierarchySpec) decode(into any) error {
	d := json.NewDecoder(bytes.NewReader(h.Definition))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("hierarchy %q: %w", h.Name, err)
	}
	return nil
}

// Build makes the hierarchy over the values that a column has in an epoch.
// pgType is the column's type, as format_type prints it. Its errors quote no value.
func (h *HierarchySpec) Build(
	values []string, withNull bool, pgType string,
) (*anonymize.Hierarchy, error) {
	built, err := h.build(values, withNull, pgType)
	if err != nil {
		return nil, fmt.Errorf("hierarchy %q: %w", h.Name, err)
	}
	return built, nil
}

func (h *HierarchySpec) build(
	values []string, withNull bool, pgType string,
) (*anonymize.Hierarchy, error) {
	switch h.Kind {
	case "interval":
		var d intervalDefinition
		if err := h.decode(&d); err != nil {
			return nil, err
		}
		if d.Lower == nil || d.Upper == nil {
			return nil, fmt.Errorf("lower and upper are missing")
		}
		return anonymize.Interval{
			Widths: d.Widths, Lower: *d.Lower, Upper: *d.Upper,
			Integer: isInteger(pgType),
		}.Build(values, withNull)
	case "prefix":
		var d prefixDefinition
		if err := h.decode(&d); err != nil {
			return nil, err
		}
		return anonymize.Prefix{Keep: d.Keep}.Build(values, withNull)
	case "date":
		d := dateDefinition{Lower: DefaultLowerDay, Upper: DefaultUpperDay}
		if err := h.decode(&d); err != nil {
			return nil, err
		}
		return anonymize.Dates{
			Levels: d.Levels, Lower: d.Lower, Upper: d.Upper,
			Resolution: resolution(pgType),
		}.Build(values, withNull)
	case "table":
		var d tableDefinition
		if err := h.decode(&d); err != nil {
			return nil, err
		}
		return anonymize.Listed(d.Paths, values, withNull)
	}
	return nil, fmt.Errorf("unknown kind %q", h.Kind)
}

func isInteger(pgType string) bool {
	return pgType == "smallint" || pgType == "integer" || pgType == "bigint"
}

// resolution is what values of a type tell of the time. Types of a precision say so:
// timestamp(0) with time zone.
func resolution(pgType string) anonymize.Resolution {
	switch {
	case !strings.HasPrefix(pgType, "timestamp"):
		return anonymize.Days
	case strings.HasSuffix(pgType, "with time zone"):
		return anonymize.ZonedInstants
	}
	return anonymize.Instants
}
