package ecg

import (
	"context"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Way is one way to show a combination: the attributes that lose detail, and
// how. All others are shown as they are.
type Way struct {
	Generalized []string
	Recoding    string
}

// Outcome is what showing a combination in some way comes to.
type Outcome struct {
	// Feasible says that it meets what the policy requires besides the gate.
	Feasible bool
	// Settled says that the combination is shown as earlier answers settled it.
	Settled bool
	Risk    Risk    // of everything shown so far and this
	Loss    float64 // of the combination
	Source  *Source // of a risk that is too high, if it is known
	// Partition is what the audience would have been shown, nil where there is
	// none or it is not feasible.
	Partition *anonymize.Partition
}

// Material is what the tailor works on: one table as an audience has been
// shown it so far.
type Material interface {
	// Assess says what it comes to if a combination is shown as it is on top
	// of an outcome of an earlier stage of the same query, or, where that is
	// nil, of what the audience has been shown.
	Assess(ctx context.Context, attributes []string, on *Outcome) (*Outcome, error)
	// Defers says that no choice need be made before the last stage. The
	// combination there holds all others and raises the risk as they do.
	Defers() bool
	// Whole lists the ways that generalize all attributes of a combination as
	// far as needed, one a recoding, and how many ways there are in all.
	Whole(attributes []string) (ways []Way, possible int)
	// Others lists further ways that are worth working out, given the outcome of
	// the first of those.
	Others(ctx context.Context, attributes []string, whole *Outcome) []Way
	// DeIdentify shows a combination in some way on top of what the audience
	// has been shown: earlier stages of the query are not binding, earlier
	// answers are. It is called concurrently.
	DeIdentify(ctx context.Context, attributes []string, way Way) (*Outcome, error)
	// Shown measures a combination by itself as an outcome shows it.
	Shown(attributes []string, in *Outcome) Values
	// Everything measures all that an outcome shows, earlier answers included.
	Everything(in *Outcome) Values
}
