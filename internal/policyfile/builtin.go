package policyfile

import "strings"

// Reserved starts the names of hierarchies that every installation has. Files
// use them and define none.
const Reserved = "builtin."

// builtins are the hierarchies of extension/hierarchies.sql; a test compares
// them.
var builtins = func() []Hierarchy {
	number := func(v float64) *float64 { return &v }
	return []Hierarchy{
		{
			Name: "builtin.age", Type: "interval", Widths: []float64{5, 10, 20}, Lower: number(0),
			Upper: number(119),
		},
		{
			Name: "builtin.birth_date", Type: "date", Levels: []string{"month", "year", "decade"},
			LowerDay: "1900-01-01", UpperDay: "2029-12-31",
		},
		{Name: "builtin.event_date", Type: "date", Levels: []string{"month", "quarter", "year"}},
		{Name: "builtin.icd10", Type: "prefix", Keep: []int{3, 2, 1}},
		{Name: "builtin.icd9", Type: "prefix", Keep: []int{3, 2, 1}},
		{
			Name: "builtin.income", Type: "interval", Widths: []float64{1000, 5000, 10000, 50000, 100000},
			Lower: number(0), Upper: number(9999999),
		},
		{Name: "builtin.postal_code", Type: "prefix", Keep: []int{4, 3, 2, 1}},
	}
}()

// Builtins lists the hierarchies that every installation has, by name.
func Builtins() []Hierarchy { return append([]Hierarchy(nil), builtins...) }

// builtin finds one of them, nil if there is none of the name.
func builtin(name string) *Hierarchy {
	for i := range builtins {
		if builtins[i].Name == name {
			return &builtins[i]
		}
	}
	return nil
}

// ownName is a name that a file may define.
func ownName(name string) string { return strings.TrimPrefix(name, Reserved) }
