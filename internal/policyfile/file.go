package policyfile

import (
	"fmt"
	"slices"
	"time"
)

// File is a policy file.
type File struct {
	Hierarchies []Hierarchy
	Tables      []Table
	// Remarks are lines written above everything else as comments. They are not
	// read back.
	Remarks []string
}

// Table is the policy of one table.
type Table struct {
	Name     string // as PostgreSQL reads it: schema.table, quoted where needed
	Subject  string
	K        int
	Require  []Requirement
	Recoding string // "auto" where the file is silent
	Scope    string // "table" where the file is silent
	// AggregateOnly is the key rows: false. Numbers stand in averages.
	AggregateOnly bool
	Seed          [][]string
	// Readers of the database, nil where the file is silent.
	Readers []string
	Gate    *Gate // nil: a stage is de-identified above a risk of 1/k
	// MaxShare is the largest share of a block's rows that one subject may own; 0
	// where the file is silent.
	MaxShare float64
	// Cohort is how many subjects that nobody has been shown before are shown
	// together; 0 for the default.
	Cohort int
	// BlindCuts is the key cuts: blind.
	BlindCuts bool
	// DeparturesAtOnce and ChangesAtOnce are the keys departures and changes: at_once.
	DeparturesAtOnce, ChangesAtOnce bool
	// Indexes adds columns that releases have indexes on, or takes some away; nil where
	// the file is silent.
	Indexes *Indexes
	// SetValued is set where the codes of a subject are a set.
	SetValued *SetValued
	// DataSet is set where the table is made of a query.
	DataSet *DataSet
	Refresh time.Duration // how often a proxy makes a new copy; 0 for never
	// OnChange says that a copy is made once the table has changed, so often at most.
	OnChange bool
	Columns  []Column
	Line     int
	// Remarks are lines written above the table as comments. They are not read back.
	Remarks []string
}

// Requirement is a privacy model besides k-anonymity.
type Requirement struct {
	Model, Column string
	Parameter     float64
	C             float64 // of recursive_l_diversity, 0 for others
	Distance      string  // of t_closeness: "ordered"; "" for equal distances
}

// Column is the class of a column.
type Column struct {
	Name, Class, Action, Hierarchy string
	Line                           int
	// SharedFact is the key shared_fact: accepted. The column is shown although
	// another table tells of the same subjects what it tells.
	SharedFact bool
	// Middle is the key representative: middle. Rows show the middle of their label.
	Middle bool
	// NoMargins is the key margins: false. The column's distribution is not published.
	NoMargins bool
	// Remark is written behind the column as a comment. It is not read back.
	Remark string
}

// Exact says whether releases show the column as it is.
func (c *Column) Exact() bool { return c.Class == "sensitive" || c.Class == "non_sensitive" }

// Hierarchy finds a hierarchy of the file or of every installation by name, nil
// if there is none.
func (f *File) Hierarchy(name string) *Hierarchy {
	for i := range f.Hierarchies {
		if f.Hierarchies[i].Name == name {
			return &f.Hierarchies[i]
		}
	}
	return builtin(name)
}

// Adopt adds a hierarchy and returns the name under which the file has it: its
// own, or one with a number where another definition has that name. What every
// installation has is not added.
func (f *File) Adopt(h Hierarchy) string {
	if known := builtin(h.Name); known != nil && known.Equal(&h) {
		return h.Name
	}
	h.Name = ownName(h.Name)
	name := h.Name
	for n := 2; ; n++ {
		known := f.Hierarchy(h.Name)
		if known == nil {
			f.Hierarchies = append(f.Hierarchies, h)
			return h.Name
		}
		if known.Equal(&h) {
			return h.Name
		}
		h.Name = fmt.Sprintf("%s_%d", name, n)
	}
}

// Column finds a column by name, nil if the file does not classify it.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// Fault is one thing that is wrong with a file. Line and Column count from 1.
type Fault struct {
	Line, Column  int
	Message, Hint string
}

func (f Fault) String() string {
	s := fmt.Sprintf("%d:%d: %s", f.Line, f.Column, f.Message)
	if f.Hint != "" {
		s += "; " + f.Hint
	}
	return s
}

// The words that keys can have.
var (
	classes   = []string{"direct_identifier", "quasi_identifier", "sensitive", "non_sensitive"}
	actions   = []string{"hide", "pseudonym"}
	values    = []string{"raked", "middle"}
	shared    = []string{"refused", "accepted"}
	cuts      = []string{"by_models", "blind"}
	recodings = []string{"auto", "local", "full_domain", "cell"}
	effects   = []string{"batch", "at_once"}
	scopes    = []string{"table", "project"}
	measures  = []string{"highest", "average", "below_k", "unique"}
	models    = []string{
		"l_diversity", "entropy_l_diversity", "recursive_l_diversity", "alpha", "t_closeness",
		"beta_likeness", "enhanced_beta_likeness", "delta_disclosure",
	}
	distances = []string{"equal", "ordered"}
	kinds     = []string{"interval", "prefix", "date", "table"}
	units     = []string{"hour", "day", "week", "month", "quarter", "year", "decade", "century"}
)

// MaxName is the longest name that PostgreSQL keeps, in bytes.
const maxName = 63

// sortFaults puts faults in the order of the file.
func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
}
