package main

import (
	"context"
	"fmt"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// blankRecords stand for records of which nothing is known but how many there
// are: what a form guarantees does not depend on more.
type blankRecords int

func (n blankRecords) Len() int { return int(n) }

func (blankRecords) AppendCodes(dst []string, _ int) []string { return dst }

// visibleRules are the rules that the form alone tells of, in the order of the
// report.
var visibleRules = []verify.Rule{
	verify.ClusterTooSmall, verify.RareSet, verify.RareSharedSet, verify.CodeTwice,
	verify.EmptyRecords, verify.SensitiveExposed,
}

// verifyForm checks the form of tailor disassociate.
func (o *verifyOptions) verifyForm(ctx context.Context) (*verifyReport, error) {
	form, err := readFile(o.published, published.Decode)
	if err != nil {
		return nil, &anonymize.ProblemError{
			What:   err.Error(),
			Remedy: "give the form as tailor disassociate wrote it",
		}
	}
	if o.k > 0 {
		form.Promise.K = o.k
	}
	if o.m > 0 {
		form.Promise.M = o.m
	}
	var clusterOf []int32
	r := &verifyReport{
		Published: o.published,
		Rows:      form.Records(),
		Classes:   len(form.Clusters),
		Holds:     true,
	}
	for p, c := range form.Clusters {
		for range c.Size {
			clusterOf = append(clusterOf, int32(p))
		}
		if r.K == 0 || c.Size < r.K {
			r.K = c.Size
		}
	}
	found, err := verify.Check(ctx, form, blankRecords(form.Records()), clusterOf)
	if err != nil {
		return nil, err
	}
	count := make(map[verify.Rule]int)
	for _, v := range found.Violations {
		count[v.Rule]++
	}
	for _, rule := range visibleRules {
		r.add(
			fmt.Sprintf("k = %d, m = %d: no %s", form.Promise.K, form.Promise.M, rule), count[rule],
			"places",
		)
	}
	return r, nil
}
