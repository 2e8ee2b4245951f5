package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hiatus-tailor/tailor/internal/ahocorasick"
)

// Class says what a policy takes a column for.
type Class string

// The classes of a column. A column without a class is hidden.
const (
	Unclassified     Class = ""
	DirectIdentifier Class = "direct_identifier"
	QuasiIdentifier  Class = "quasi_identifier"
	Sensitive        Class = "sensitive"
	NonSensitive     Class = "non_sensitive"
)

// Column is a column of a protected relation under its active policy.
type Column struct {
	Name      string
	Number    int    // attribute number, stable under renaming
	Type      string // that copies store (tailor.stored_type), as format_type prints it
	Category  string // its type category in pg_type
	Class     Class
	Pseudonym bool // a direct identifier that is shown as a random number
	Hierarchy *HierarchySpec
	// Middle says that rows show what stands for their label, and not a value drawn from
	// what it covers; NoMargin that the column's distribution is secret.
	Middle, NoMargin bool
	stored           string // name in the copy where it is not Name
	member           bool   // it says who is in a data set
}

// Visible says whether a release has the column at all.
func (c *Column) Visible() bool {
	switch c.Class {
	case QuasiIdentifier, Sensitive, NonSensitive:
		return true
	case DirectIdentifier:
		return c.Pseudonym
	}
	return false
}

// IsPayload says whether the column is shown, and neither generalized nor a pseudonym.
func (c *Column) IsPayload() bool { return c.Class == Sensitive || c.Class == NonSensitive }

// IsAveraged says whether a relation that answers with aggregates only shows averages of
// the column's values, as tailor.is_averaged does.
func (c *Column) IsAveraged() bool {
	name, _, _ := strings.Cut(c.Type, "(")
	return c.IsPayload() && slices.Contains(numberTypes, name)
}

var numberTypes = []string{"smallint", "integer", "bigint", "numeric", "real", "double precision"}

// RowColumn is the name, in a release and in what it shows of the parent, of the
// random number of a row within its copy: one joined row has the same in both.
const RowColumn = "tailor_label_row"

// LabelColumn is the name, in a release, of the text column that holds the
// labels of a quasi-identifier.
func (c *Column) LabelColumn() string { return fmt.Sprintf("tailor_label_%d", c.Number) }

// NumberColumn is the name, in a release, of the column that holds the numbers of
// a quasi-identifier's labels.
func (c *Column) NumberColumn() string { return fmt.Sprintf("tailor_number_%d", c.Number) }

// ValuesColumn is the name, beside the labels by their numbers, of the array of the
// values that stand for them.
func (c *Column) ValuesColumn() string { return fmt.Sprintf("tailor_value_%d", c.Number) }

// ExactColumn, LowColumn and HighColumn are the names, beside the labels by their
// numbers, of the arrays that say whether a label is the value itself, and of the ends of
// what it covers.
func (c *Column) ExactColumn() string { return fmt.Sprintf("tailor_exact_%d", c.Number) }

// LowColumn is described with [Column.ExactColumn].
func (c *Column) LowColumn() string { return fmt.Sprintf("tailor_low_%d", c.Number) }

// HighColumn is described with [Column.ExactColumn].
func (c *Column) HighColumn() string { return fmt.Sprintf("tailor_high_%d", c.Number) }

// ReleaseType is the type of the column in a release: the column's own, or
// text where labels do not fit a type for text of limited length.
func (c *Column) ReleaseType() string {
	if c.Class == QuasiIdentifier && c.Category == "S" {
		return "text"
	}
	return c.Type
}

// DefaultShare is the largest share of a block's rows that one subject may own where
// the policy says nothing.
const DefaultShare = 0.5

// Indexes are the columns of releases that are indexed although the table has no index
// that begins with them, and those that are not although it has one.
type Indexes struct {
	Add  []string `json:"add"`
	Drop []string `json:"drop"`
}

// Relation is a protected table under its active policy.
type Relation struct {
	OID          uint32
	Schema, Name string
	Version      int // of the policy
	Epoch        int
	Subject      string // the column that says whom a row is about
	K            int    // least number of subjects in a block
	Recoding     string
	Scope        string // who shares a root: table, project
	Requirements []Requirement
	// Gate is the measure of risk that decides whether a stage is de-identified,
	// and MaxRisk the most of it that the policy accepts; "" means 1/K.
	Gate    string
	MaxRisk float64
	// MaxShare is the largest share of a block's rows that one subject may own,
	// where subjects have several.
	MaxShare float64
	// Cohort is how many subjects that nobody has been shown before are shown
	// together, 0 for the default.
	Cohort int
	// BlindCuts says that blocks are cut by k alone, and values withheld where a block fails
	// a model.
	BlindCuts bool
	// DeparturesAtOnce says that who leaves goes with the next copy, whatever the block,
	// and ChangesAtOnce that changed payloads are shown so.
	DeparturesAtOnce, ChangesAtOnce bool
	Indexes                         Indexes

	Seeds   []Seed // of the policy and of projects
	Columns []Column
	// SetValued is set where the codes of a subject are published as a set.
	SetValued *SetValued
	// AggregateOnly says that no payload is shown as it is: numbers stand in averages
	// of at least K subjects, and what else there is stands in no row of its own.
	AggregateOnly bool
	// Parent is the relation whose quasi-identifiers the copy borrows, nil for
	// none, and References are those that it could borrow from.
	Parent     *Parent
	References []uint32
	borrowed   []Column
	// DataSetOf is the relation whose release this one's is read off, 0 for none.
	DataSetOf uint32
	// Query is what a data set was made of; "" for a table.
	Query string
	// carried are the columns that the copy and the release have for data sets of the
	// relation's subjects, among the payload. It shows none of them itself.
	carried []Column
	// OneRow says that what is shown has one row for each subject.
	OneRow bool
	// Subjects is how many are shown, 0 where that is not the same for all audiences.
	Subjects int64
	// Catalog is the version of the catalog that this was read from, and chains are
	// those that there were then.
	Catalog int64
	chains  []chainState
	// startsAnew says that the chains have been forgotten since the epoch was made.
	startsAnew bool
	// Stale says that the table has changed shape since the activation, or has
	// row-level security, so that a copy would not be one of the table; or ByMeans.
	Stale bool
	// ByMeans says that the policy was stored by an earlier version and shows
	// columns by means of blocks. Nothing is released under it.
	ByMeans bool
}

// Column finds a column by name, nil if there is none.
func (r *Relation) Column(name string) *Column {
	for i := range r.Columns {
		if r.Columns[i].Name == name {
			return &r.Columns[i]
		}
	}
	return nil
}

// QuasiIdentifiers lists the columns of that class in table order.
func (r *Relation) QuasiIdentifiers() []*Column {
	var out []*Column
	for i := range r.Columns {
		if c := &r.Columns[i]; c.Class == QuasiIdentifier {
			out = append(out, c)
		}
	}
	return out
}

// String is the qualified name, for messages.
func (r *Relation) String() string { return r.Schema + "." + r.Name }

// Other is a relation without a policy.
type Other struct {
	Columns []string
	// Zoned are those of a type with a time zone, or one that may have it in it.
	Zoned []string
	// Reaches names the protected relation whose rows this view, part or parent
	// of it shows, if any.
	Reaches string
	// Definition is the query of such a view, with qualified names; empty where
	// the relation stores rows, as a materialized view does, and is not a mere
	// name for a query.
	Definition string
}

// Name is a qualified name.
type Name struct{ Schema, Name string }

// OwnSchemas are the schemas that only Tailor itself reads by name.
var OwnSchemas = []string{"tailor", "tailor_store", "tailor_release"}

// ReleasePrefix starts the name of every release.
const ReleasePrefix = "chain_"

// Snapshot is an immutable picture of policies and relations. It is safe for
// concurrent use.
type Snapshot struct {
	Protocol  int // the newest version 3.x of the wire protocol that the server speaks
	version   int64
	protected map[Name]*Relation
	others    map[Name]*Other
	linked    map[uint32]bool  // relations whose key another one refers to, and those
	names     *ahocorasick.Set // whose absence proves a text harmless
	beyond    bool             // a name is not ASCII: PostgreSQL folds and encodes it its own way
}

// ResearchSchema is where the released shape of each protected relation is listed.
const ResearchSchema = "research"

// NewSnapshot makes a snapshot. The research schema's name of each protected
// relation is added by itself.
func NewSnapshot(version int64, protected []*Relation, others map[Name]*Other) *Snapshot {
	s := &Snapshot{
		version: version, protected: make(map[Name]*Relation), others: others,
		linked: make(map[uint32]bool),
	}
	names := []string{"pg_stat", "u&", ReleasePrefix, "tailor"}
	for _, r := range protected {
		r.Catalog = version
		s.protected[Name{r.Schema, r.Name}] = r
		s.protected[Name{ResearchSchema, r.Name}] = r
		for _, parent := range r.References {
			s.linked[r.OID], s.linked[parent] = true, true
		}
		names = append(names, r.Name)
	}
	for n, o := range others {
		if o.Reaches != "" {
			names = append(names, n.Name)
		}
	}
	for _, n := range names {
		s.beyond = s.beyond || beyondASCII(n)
		if strings.Contains(n, `"`) {
			names = append(names, strings.ReplaceAll(n, `"`, `""`))
		}
	}
	s.names = ahocorasick.New(names)
	return s
}

// Version grows with every activation of a policy.
func (s *Snapshot) Version() int64 { return s.version }

// Protected looks up a protected relation, nil if the name is not one.
func (s *Snapshot) Protected(n Name) *Relation { return s.protected[n] }

// Current is the present state of a relation that was looked up in an earlier
// snapshot, nil if it is no longer protected.
func (s *Snapshot) Current(r *Relation) *Relation { return s.protected[Name{r.Schema, r.Name}] }

// relations are the protected ones, each once, in order.
func (s *Snapshot) relations() []*Relation {
	var out []*Relation
	for name, r := range s.protected {
		if name.Schema == r.Schema {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(x, y *Relation) int { return strings.Compare(x.String(), y.String()) })
	return out
}

// relation is the protected relation with a number in pg_class, nil if there is none.
func (s *Snapshot) relation(oid uint32) *Relation {
	if s != nil {
		for _, r := range s.protected {
			if r.OID == oid {
				return r
			}
		}
	}
	return nil
}

// Linked says whether a relation refers to the key of another one, or another one
// to its key.
func (s *Snapshot) Linked(r *Relation) bool { return s.linked[r.OID] }

// Other looks up a relation without a policy, nil if it is unknown.
func (s *Snapshot) Other(n Name) *Other { return s.others[n] }

// MayConcern says whether a statement could name a protected relation. It is
// a plain search for the names, as they are and as they are quoted; false is
// certain, true is not. Names written with escapes (U&"…") are taken as
// possible, and where a name is not ASCII, so is any text that is not.
func (s *Snapshot) MayConcern(statement string) bool {
	return s.names.Within(statement) || (s.beyond && beyondASCII(statement))
}

func beyondASCII(text string) bool {
	return strings.ContainsFunc(text, func(c rune) bool { return c >= utf8.RuneSelf })
}
