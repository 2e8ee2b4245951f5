package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/cba"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
)

// seed fixes the random choices; the measures do not depend on them.
const seed = 1

var refinements = []disassociate.Refinement{
	disassociate.RefineNone, disassociate.RefineJoint, disassociate.RefineScoped,
}

// answers is one way to publish a data set, ready for queries.
type answers struct {
	count    func(query []utility.Item) float64
	countAny func(codes []string) float64
	form     *published.Form // nil for CBA
	lost     cba.Suppression
}

// disassociated publishes a data set. The verifier has accepted it.
func (e *experiments) disassociated(
	d *disassociate.Dataset, cfg disassociate.Config,
) (*answers, error) {
	res, err := disassociate.Disassociate(e.ctx, d, cfg, rand.New(rand.NewPCG(seed, seed)), nil)
	if err != nil {
		return nil, fmt.Errorf("k=%d m=%d %s: %w", cfg.K, cfg.M, cfg.Refine, err)
	}
	x := published.NewIndex(res.Form)
	return &answers{
		count:    func(q []utility.Item) float64 { return x.CountItems(q).Expected },
		countAny: x.CountAny,
		form:     res.Form,
	}, nil
}

// generalized publishes NHDS with CBA.
func (e *experiments) generalized(
	k, m int, constraints []disassociate.Constraint,
) (*answers, error) {
	r, err := cba.Anonymize(e.ctx, e.nhds, k, m, constraints, e.icd)
	if err != nil {
		return nil, err
	}
	return &answers{count: r.Count, countAny: r.CountAny, lost: r.Suppressed}, nil
}

// allWays publishes NHDS with each refinement and, for m = 2, with CBA.
func (e *experiments) allWays(k, m int, constraints []disassociate.Constraint) ([]*answers, error) {
	var all []*answers
	for _, refine := range refinements {
		cfg := disassociate.Default(k, m)
		cfg.Refine, cfg.Constraints = refine, constraints
		a, err := e.disassociated(e.nhds, cfg)
		if err != nil {
			return nil, err
		}
		all = append(all, a)
	}
	if m > 2 {
		return all, nil // CBA would have to hold all sets of m codes in memory
	}
	a, err := e.generalized(k, m, constraints)
	if err != nil {
		return nil, err
	}
	return append(all, a), nil
}

// workload mines the sets of codes that a share of the records holds.
func (e *experiments) workload(
	d *disassociate.Dataset, h utility.Holders, share float64,
) ([]utility.Frequent, error) {
	least := int(math.Ceil(share * float64(d.Len())))
	sets, _, err := utility.FrequentSets(e.ctx, h, least, len(d.Codes()), math.MaxInt)
	return sets, err
}
