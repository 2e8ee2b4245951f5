package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Requirement is a privacy model that a policy demands besides k-anonymity: l_diversity
// (at least Parameter different values), entropy_l_diversity (as even as Parameter equally
// frequent ones), or alpha (no value of more than the share Parameter).
type Requirement struct {
	Model     string
	Column    string
	Parameter float64
}

// model is the requirement over sensitive values. Policies are activated with models that
// there are.
func (q Requirement) model(of anonymize.Sensitive) anonymize.CountModel {
	switch of.Name = q.Column; q.Model {
	case "alpha":
		return anonymize.BlockAlpha{Alpha: q.Parameter, Of: of}
	case "entropy_l_diversity":
		return anonymize.BlockEntropyL{L: q.Parameter, Of: of}
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

// sensitiveHash is an expression for a hash of a value that a requirement looks at: numbers
// that are equal are one value, however many zeros they end in.
func (r *Relation) sensitiveHash(of string, q Requirement) string {
	column := of + ident(q.Column)
	if c := r.stored(ident(q.Column)); c != nil && strings.HasPrefix(c.Type, "numeric") {
		column = fmt.Sprintf("trim_scale(%s)", column)
	}
	return hashOf(column)
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

// meets says whether they meet a model. Withheld values stand for nothing: where there are
// no others, nothing is told.
func (c counted) meets(model anonymize.CountModel, withheld func(value int64) bool) bool {
	counts := make([]uint32, 0, len(c))
	for value, subjects := range c {
		if !withheld(value) {
			counts = append(counts, uint32(len(subjects)))
		}
	}
	return len(counts) == 0 && len(c) > 0 || model.Holds(counts)
}

func nothingWithheld(int64) bool { return false }

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
		model := q.model(anonymize.Sensitive{})
		all := e.sensitiveOf(q.Column, 1, func(int) uint32 { return 0 })
		if !r.BlindCuts && !all[0].meets(model, nothingWithheld) {
			return model.String()
		}
	}
	return ""
}
