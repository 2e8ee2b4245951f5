package anonymize

import (
	"errors"
	"fmt"
	"strings"
)

// Requirement is a privacy model that every block must meet. It is monotone:
// a block made of parts that each meet it meets it too, so that a block that
// fails has no partition that would do. (Where subjects have several rows this
// holds for [BlockK], [BlockDistinctL] and [BlockMaxShare]; the others count
// each subject once per sensitive value and may gain or lose a little from a
// merge.) Refinement
// does not lean on it for safety: it checks each block that it makes.
//
// String names model and parameters, and is equal for equal requirements. It
// holds no data.
type Requirement interface {
	fmt.Stringer
	// Bind checks the parameters and readies the model for one table. It fails
	// on parameters that would switch the model off, and on sensitive values
	// that do not fit the table.
	Bind(t *Table) (Checker, error)
}

// Checker says whether a block meets a requirement. Tuples are those of the
// bound table. A Checker is not safe for concurrent use.
type Checker interface {
	Meets(tuples []uint32) bool
}

// upward is a [Checker] that every block meets a part of which meets it. A large
// block is then looked at until enough is found.
type upward interface{ partSuffices() }

// UnmetError says that a partition, or a table as a whole, does not meet a
// requirement, so that no refinement can: for k-anonymity, that there are
// fewer than k subjects. It holds no data but the block's number.
type UnmetError struct {
	Requirement string
	Block       uint32
}

func (e *UnmetError) Error() string {
	return fmt.Sprintf("block %d does not meet %s, and no refinement of it can", e.Block,
		e.Requirement)
}

// requirements are bound to one table. k is the strictest BlockK and is
// checked by counting; others hold what is left.
type requirements struct {
	k      int
	others []Checker
	upward bool // all of the others are
	name   string
	source []Requirement
}

// another is the same requirements with checkers of their own, for work at the
// same time.
func (r *requirements) another(t *Table) (*requirements, error) {
	if len(r.others) == 0 {
		return r, nil
	}
	return bind(t, r.source)
}

// bind readies all requirements. One of them must be a [BlockK].
func bind(t *Table, rs []Requirement) (*requirements, error) {
	r := &requirements{source: rs, upward: true}
	for i, req := range rs {
		checker, err := req.Bind(t)
		if err != nil {
			return nil, fmt.Errorf("requirement %d: %w", i+1, err)
		}
		if k, ok := req.(BlockK); ok {
			r.k = max(r.k, k.K)
			continue
		}
		if _, ok := checker.(upward); !ok {
			r.upward = false
		}
		r.others = append(r.others, checker)
	}
	if r.k == 0 {
		return nil, errors.New("requirements lack k-anonymity: every block needs a least number of " +
			"subjects")
	}
	r.name = nameOf(rs)
	return r, nil
}

// nameOf tells equal requirements from others.
func nameOf(rs []Requirement) string {
	names := make([]string, len(rs))
	for i, r := range rs {
		names[i] = r.String()
	}
	return strings.Join(names, ", ")
}

// meetsOthers checks everything but the number of subjects.
func (r *requirements) meetsOthers(tuples []uint32) bool {
	for _, c := range r.others {
		if !c.Meets(tuples) {
			return false
		}
	}
	return true
}
