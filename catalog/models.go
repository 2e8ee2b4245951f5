package catalog

import (
	"fmt"
	"math"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Requirement is a privacy model that a policy demands besides k-anonymity: l_diversity
// (at least Parameter different values), entropy_l_diversity (as even as Parameter equally
// frequent ones), recursive_l_diversity (with C, of which other models know nothing), alpha (no
// value of more than the share Parameter), or one of likeness to the [reference] of a release:
// t_closeness (by the Distance equal or ordered), beta_likeness, enhanced_beta_likeness,
// delta_disclosure.
type Requirement struct {
	Model     string
	Column    string
	Parameter float64
	C         float64
	Distance  string
}

// ofLikeness says whether the model holds blocks against a reference.
func (q Requirement) ofLikeness() bool {
	switch q.Model {
	case "t_closeness", "beta_likeness", "enhanced_beta_likeness", "delta_disclosure":
		return true
	}
	return false
}

// model is the requirement over sensitive values. Policies are activated with models that
// there are. to is the reference for those of likeness.
func (q Requirement) model(of anonymize.Sensitive, to *reference) anonymize.ValueModel {
	of.Name = q.Column
	var base *anonymize.Reference
	if q.ofLikeness() {
		base = to.of
	}
	switch q.Model {
	case "alpha":
		return anonymize.BlockAlpha{Alpha: q.Parameter, Of: of}
	case "entropy_l_diversity":
		return anonymize.BlockEntropyL{L: q.Parameter, Of: of}
	case "recursive_l_diversity":
		return anonymize.BlockRecursiveCL{C: q.C, L: int(q.Parameter), Of: of}
	case "t_closeness":
		ordered := q.Distance == "ordered"
		return anonymize.BlockTCloseness{T: q.Parameter, Ordered: ordered, Of: of, To: base}
	case "beta_likeness":
		return anonymize.BlockBetaLikeness{Beta: q.Parameter, Of: of, To: base}
	case "enhanced_beta_likeness":
		return anonymize.BlockBetaLikeness{Beta: q.Parameter, Enhanced: true, Of: of, To: base}
	case "delta_disclosure":
		return anonymize.BlockDisclosure{Delta: q.Parameter, Of: of, To: base}
	}
	return anonymize.BlockDistinctL{L: int(q.Parameter), Of: of}
}

// required are the columns of which models ask, each once.
func (r *Relation) required() []string {
	var out []string
	for _, q := range r.Requirements {
		if !slices.Contains(out, q.Column) {
			out = append(out, q.Column)
		}
	}
	return out
}

// likened are those of them that are held against a reference.
func (r *Relation) likened() []string {
	return slices.DeleteFunc(r.required(), func(name string) bool {
		return !slices.ContainsFunc(r.Requirements, func(q Requirement) bool {
			return q.Column == name && q.ofLikeness()
		})
	})
}

// counted are the subjects with each value, by subject: whoever has one in several rows
// counts once.
type counted map[int64]map[int64]struct{}

func (c counted) add(value, subject int64) {
	if c[value] == nil {
		c[value] = make(map[int64]struct{})
	}
	c[value][subject] = struct{}{}
}

// meets says whether they meet a model that calls values by codes. Withheld values stand for
// nothing: where there are no others, nothing is told.
func (c counted) meets(
	model anonymize.ValueModel, code func(int64) uint32, withheld func(int64) bool,
) bool {
	values, counts := make([]uint32, 0, len(c)), make([]uint32, 0, len(c))
	for value, subjects := range c {
		if !withheld(value) {
			values, counts = append(values, code(value)), append(counts, uint32(len(subjects)))
		}
	}
	return len(counts) == 0 && len(c) > 0 || model.Holds(values, counts)
}

func nothingWithheld(int64) bool { return false }

// byCode is for values that are codes.
func byCode(value int64) uint32 { return uint32(value) }

// ofHash is the code of a value of a column by its hash. No model but those of likeness looks
// at it, and these take what no reference has a code for as one that it lacks.
func (all references) ofHash(column string) func(int64) uint32 {
	to := all[column]
	return func(hash int64) uint32 {
		if to != nil {
			if code, known := to.codes[hash]; known {
				return code
			}
		}
		return math.MaxUint32
	}
}

// sensitiveOf counts the values of a column in each block of a cohort.
func (e *cohort) sensitiveOf(column string, blocks int, blockOf func(row int) uint32) []counted {
	out := make([]counted, blocks)
	for row, code := range e.sensitive[column] {
		block := blockOf(row)
		if out[block] == nil {
			out[block] = make(counted)
		}
		out[block].add(int64(code), int64(e.subject(row)))
	}
	return out
}

// subject is a number of the subject of a row.
func (e *cohort) subject(row int) int {
	if e.subjectOfRow == nil {
		return row
	}
	return int(e.subjectOfRow[row])
}

// unmetBy is the model that all of a cohort together do not meet, "" for none.
func (e *cohort) unmetBy(r *Relation) string {
	if e.subjects < r.K {
		return fmt.Sprintf("%d-anonymity", r.K)
	}
	for _, q := range r.Requirements {
		model := q.model(anonymize.Sensitive{}, e.references[q.Column])
		all := e.sensitiveOf(q.Column, 1, func(int) uint32 { return 0 })
		if !r.BlindCuts && !all[0].meets(model, byCode, nothingWithheld) {
			return model.String()
		}
	}
	return ""
}
