package catalog

// policySeed is the name, among the declared workloads of a relation, of its
// policy's own.
const policySeed = ""

// Seed is a declared workload: the combinations of quasi-identifiers that an
// audience is expected to ask for. A root that is made for it is finest there.
type Seed struct {
	Name         string
	Combinations [][]string
}
