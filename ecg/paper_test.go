package ecg_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/ecg"
)

// figures is a material whose risks and losses are given: those of the worked
// example of [Chen] §4.
type figures struct {
	asIs map[string]float64 // risk of a stage as it comes
	ways map[string][]way
}

type way struct {
	generalized string
	risk, loss  float64
}

func (f figures) Assess(
	_ context.Context, attributes []string, _ *ecg.Outcome,
) (*ecg.Outcome, error) {
	return &ecg.Outcome{Feasible: true, Risk: ecg.Risk{Highest: f.asIs[strings.Join(attributes,
		" × ")]}}, nil
}

func (f figures) Defers() bool { return false }

func (f figures) Whole(attributes []string) (ways []ecg.Way, possible int) {
	all := f.list(attributes)
	return all[:1], len(all)
}

func (f figures) Others(_ context.Context, attributes []string, _ *ecg.Outcome) []ecg.Way {
	return f.list(attributes)[1:]
}

func (f figures) list(attributes []string) (ways []ecg.Way) {
	for _, w := range f.ways[strings.Join(attributes, " × ")] {
		ways = append(ways, ecg.Way{Generalized: strings.Split(w.generalized, " × "), Recoding: "given"})
	}
	return ways
}

func (f figures) DeIdentify(
	_ context.Context, attributes []string, chosen ecg.Way,
) (*ecg.Outcome, error) {
	for _, w := range f.ways[strings.Join(attributes, " × ")] {
		if w.generalized == strings.Join(chosen.Generalized, " × ") {
			return &ecg.Outcome{Feasible: true, Risk: ecg.Risk{Highest: w.risk}, Loss: w.loss}, nil
		}
	}
	return &ecg.Outcome{}, nil
}

// Shown tells of a stage what it came as, or what the paper's choice made of it.
func (f figures) Shown(attributes []string, in *ecg.Outcome) ecg.Values {
	name := strings.Join(attributes, " × ")
	local := ecg.Values{Risk: ecg.Risk{Highest: f.asIs[name]}, Loss: in.Loss}
	for _, w := range f.ways[name] {
		if w.generalized == "address" {
			local = ecg.Values{Risk: ecg.Risk{Highest: w.risk}, Loss: w.loss}
		}
	}
	return local
}

func (f figures) Everything(*ecg.Outcome) ecg.Values { return ecg.Values{} }

func TestWorkedExampleOfThePaper(t *testing.T) {
	example := figures{
		asIs: map[string]float64{"age": .03, "age × address": .73, "age × address × disease": .10},
		ways: map[string][]way{
			"age × address": {{"age × address", .36, .70}, {"age", .55, .50}, {"address", .23, .30}},
			// What all three at once would come to: never better than the choice.
			"age × address × disease": {{"age × address × disease", .20, .90}},
		},
	}
	stages := ecg.Compose([]string{"patients"}, []ecg.Use{
		{Place: ecg.Scan, Table: "patients", Attribute: "age", Condition: "age > ?"},
		{Place: ecg.Join, Table: "patients", Attribute: "address", Condition: "patients.address = " +
			"wards.address"},
		{Place: ecg.Projection, Table: "patients", Attribute: "disease", Condition: "disease"},
	}, "")[0]
	gate, err := ecg.NewGate(1, "highest", 0.3)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ecg.Tailor(t.Context(), example, stages, gate, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := a.Stages
	close := func(x, y float64) bool { return math.Abs(x-y) < 1e-9 }
	if s[0].Action != ecg.ActionNone || !close(s[0].RiskBefore, .03) || !close(s[0].Score, .03) {
		t.Errorf("S1: %+v", s[0])
	}
	if s[1].Action != ecg.ActionGeneralize || !close(s[1].RiskBefore, .73) ||
		len(s[1].Candidates) != 3 {
		t.Errorf("S2: %+v", s[1])
	}
	first := s[1].Candidates[0]
	if !first.Chosen || !slices.Equal(first.Attributes, []string{"address"}) ||
		!close(first.Risk, .23) {
		t.Errorf("S2 takes %+v, the paper the address", first)
	}
	if !close(s[1].Score, .26) || !close(s[1].Loss, .30) {
		t.Errorf("after S2 the aggregate risk is %.2f, the loss %.2f; the paper has .26 and .30",
			s[1].Score, s[1].Loss)
	}
	if s[2].Action != ecg.ActionNone || !close(s[2].RiskBefore, .10) || !close(a.Score, .36) {
		t.Errorf("S3: %+v, sum %.2f; the paper has no action and .36", s[2], a.Score)
	}
}
