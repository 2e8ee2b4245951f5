package disassociate

import (
	"errors"
	"fmt"
	"slices"
)

// Refinement says how codes leave the item chunks (REFINE).
type Refinement int

const (
	// RefineNone leaves the item chunks as VERPART made them.
	RefineNone Refinement = iota + 1
	// RefineJoint builds shared chunks over joint clusters ([Loukides2014]
	// §5.3, [Terrovitis2012]).
	RefineJoint
	// RefineScoped publishes each code of the item chunks in shared chunks of
	// its own, each over just enough clusters. Counts of single codes become
	// exact almost everywhere.
	RefineScoped
)

// String is the name that [ParseRefinement] reads.
func (r Refinement) String() string {
	switch r {
	case RefineNone:
		return "none"
	case RefineJoint:
		return "joint"
	case RefineScoped:
		return "scoped"
	}
	return fmt.Sprintf("refinement %d", int(r))
}

// ParseRefinement reads "none", "joint" or "scoped".
func ParseRefinement(name string) (Refinement, error) {
	for _, r := range []Refinement{RefineNone, RefineJoint, RefineScoped} {
		if name == r.String() {
			return r, nil
		}
	}
	return 0, errors.New("refinement must be none, joint or scoped")
}

// Config says what to guarantee and what to preserve. Start from [Default].
type Config struct {
	// K is the least number of candidate records, at least 2.
	K int
	// M is the number of codes of a record that an attacker may know, at
	// least 1.
	M int
	// MaxCluster is the size that a part of the data must stay below to become
	// a cluster; at least twice the least size of a cluster. Merging parts
	// that are too small can make a cluster larger.
	MaxCluster int
	// Refine chooses the refinement.
	Refine Refinement
	// Constraints are the utility constraints, disjoint.
	Constraints []Constraint
	// Sensitive codes are published in item chunks only, so that nobody can
	// link them to a record with a probability above 1/Diversity.
	Sensitive []string
	// Diversity is the least size of every cluster where there are sensitive
	// codes (l-diversity, [Loukides2014]); 1 where there are none.
	Diversity int
	// StrictDiversity makes every cluster Diversity times as large as the
	// number of its records that hold any one sensitive code, for readers who
	// know that number from elsewhere.
	StrictDiversity bool
	// Groups are lists of records that clusters lie within, such as those that share
	// quasi-identifiers: whoever knows the group and M codes of a record finds K
	// candidates. Every record stands in one of them, in the order in which scoped
	// refinement looks for neighbours. nil: all records are one group.
	Groups [][]int32
	// MayBeEmpty says that records may have no codes, and that readers know it.
	MayBeEmpty bool
}

// Default is the configuration for k and m without constraints or sensitive
// codes: clusters below 2k records, scoped refinement.
func Default(k, m int) Config {
	return Config{K: k, M: m, MaxCluster: 2 * k, Refine: RefineScoped, Diversity: 1}
}

// minCluster is the least size of a cluster.
func (c *Config) minCluster() int { return max(c.K, c.Diversity) }

// Validate reports every fault.
func (c *Config) Validate() error {
	var faults []error
	if c.K < 2 {
		faults = append(faults, errors.New("k must be at least 2"))
	}
	if c.M < 1 {
		faults = append(faults, errors.New("m must be at least 1"))
	}
	if c.Diversity < 1 {
		faults = append(faults, errors.New("diversity must be at least 1"))
	}
	if len(c.Sensitive) > 0 && c.Diversity < 2 {
		faults = append(faults, errors.New("sensitive codes need a diversity of at least 2"))
	}
	if c.MaxCluster < 2*c.minCluster() {
		faults = append(faults, fmt.Errorf("max cluster size must be at least %d, twice k and the "+
			"diversity", 2*c.minCluster()))
	}
	if c.Refine < RefineNone || c.Refine > RefineScoped {
		faults = append(faults, errors.New("refinement must be none, joint or scoped"))
	}
	return errors.Join(faults...)
}

// groups are those of a data set, or all of its records.
func (c *Config) groups(d *Dataset) [][]int32 {
	if c.Groups != nil {
		return c.Groups
	}
	all := make([]int32, d.Len())
	for i := range all {
		all[i] = int32(i)
	}
	return [][]int32{all}
}

// assertGroups fails unless each record is in one group.
func (c *Config) assertGroups(d *Dataset) error {
	seen := make([]bool, d.Len())
	for _, records := range c.groups(d) {
		for _, r := range records {
			if r < 0 || int(r) >= len(seen) || seen[r] {
				return fmt.Errorf("record %d does not exist, or is in two groups", r)
			}
			seen[r] = true
		}
	}
	if missing := slices.Index(seen, false); missing >= 0 {
		return fmt.Errorf("record %d is in no group", missing)
	}
	return nil
}
