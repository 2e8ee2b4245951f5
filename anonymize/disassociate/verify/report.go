package verify

import "fmt"

// Rule names what a violation breaks.
type Rule string

// The rules. The first six carry the guarantee, the last three the
// faithfulness of the form.
const (
	// ClusterTooSmall: fewer than k records, or too few for the diversity.
	ClusterTooSmall Rule = "cluster too small"
	// RareSet: at most m codes of a record that fewer than k sub-records of a
	// chunk hold together.
	RareSet Rule = "rare set of codes"
	// RareSharedSet is RareSet in a shared chunk.
	RareSharedSet Rule = "rare set of codes in a shared chunk"
	// CodeTwice: a code in two places of one cluster.
	CodeTwice Rule = "code in two places"
	// EmptyRecords: a cluster without an item chunk whose record chunks cannot
	// give k records a set and leave no record empty.
	EmptyRecords Rule = "records may be empty"
	// SensitiveExposed: a sensitive code outside the item chunks.
	SensitiveExposed Rule = "sensitive code in a chunk with counts"
	// WrongSize: a cluster does not have as many records as it says.
	WrongSize Rule = "wrong size"
	// ChunkDiffers: a chunk is not the multiset of its records' projections.
	ChunkDiffers Rule = "chunk differs from the records"
	// CodeMissing: a code of a record that its cluster has nowhere, or a code
	// in an item chunk that no record of the cluster holds.
	CodeMissing Rule = "code missing or invented"
)

// Violation is one thing that is wrong with a form. It names places by number
// and quotes no code. Place is -1 where it does not apply.
type Violation struct {
	Rule    Rule
	Cluster int // cluster of the form, or -1
	Shared  int // shared chunk of the form, or -1
}

func (v Violation) String() string {
	switch {
	case v.Shared >= 0 && v.Cluster >= 0:
		return fmt.Sprintf("%s (cluster %d, shared chunk %d)", v.Rule, v.Cluster, v.Shared)
	case v.Shared >= 0:
		return fmt.Sprintf("%s (shared chunk %d)", v.Rule, v.Shared)
	}
	return fmt.Sprintf("%s (cluster %d)", v.Rule, v.Cluster)
}

// Report is the outcome of a check.
type Report struct {
	Records, Clusters, RecordChunks, SharedChunks int
	// Violations lists what is wrong, each rule at most once a cluster or
	// shared chunk, in the order of the form. Empty means that the form keeps
	// its promise.
	Violations []Violation
}

// Error is returned where a form breaks its promise.
type Error struct {
	Violations []Violation
}

func (e *Error) Error() string {
	if len(e.Violations) == 1 {
		return "the published form breaks its promise: " + e.Violations[0].String()
	}
	return fmt.Sprintf("the published form breaks its promise in %d places, first: %s",
		len(e.Violations), e.Violations[0])
}

// Err is nil if there are no violations, else an *[Error].
func (r *Report) Err() error {
	if len(r.Violations) == 0 {
		return nil
	}
	return &Error{r.Violations}
}
