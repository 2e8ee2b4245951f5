package ecg_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

func TestStagesFollowThePlacesOfUse(t *testing.T) {
	branches := ecg.Compose([]string{"p", "q", "r"}, []ecg.Use{
		{Place: ecg.Projection, Table: "p", Attribute: "zip", Condition: "zip"},
		{Place: ecg.Scan, Table: "p", Attribute: "age", Condition: "age > ?"},
		{Place: ecg.Scan, Table: "q", Attribute: "day"},
		{Place: ecg.Projection, Table: "p", Attribute: "age", Condition: "avg(age)"},
		{Place: ecg.Join, Table: "p", Attribute: "sex"},
	}, "S7")
	var got []string
	for _, branch := range branches {
		for _, s := range branch {
			got = append(got, fmt.Sprintf("%s after %s: %s %s %v %q", s.Name, s.Follows, s.Table, s.Place,
				s.Attributes, s.Condition))
		}
	}
	want := []string{
		`S1 after [S7]: p scan [age] "age > ?"`, `S2 after [S1]: p join [age sex] ""`,
		`S3 after [S2]: p projection [age sex zip] "zip, avg(age)"`, `S4 after [S7]: q scan [day] ""`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if branches[2] != nil {
		t.Errorf("a table without quasi-identifiers has stages: %v", branches[2])
	}
}

// people is a table of n people with the given numbers of distinct values.
func people(t testing.TB, n int, rng *rand.Rand, values ...int) *anonymize.Table {
	t.Helper()
	var columns []anonymize.Column
	leaves := make([][]uint32, len(values))
	for c, count := range values {
		var paths [][]string
		for v := range count {
			paths = append(paths, []string{fmt.Sprint(v), fmt.Sprintf("%d-%d", v/2*2, v/2*2+1)})
		}
		h, err := anonymize.NewHierarchy(paths)
		if err != nil {
			t.Fatal(err)
		}
		columns = append(columns, anonymize.Column{Name: string(rune('a' + c)), Hierarchy: h})
		for range n {
			leaves[c] = append(leaves[c], uint32(max(rng.IntN(count), rng.IntN(count))))
		}
	}
	table, err := anonymize.NewTable(columns, leaves, nil)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func blockK(k int) []anonymize.Requirement {
	return []anonymize.Requirement{anonymize.BlockK{K: k}}
}

func stagesOf(attributes ...string) []ecg.Stage {
	var uses []ecg.Use
	for i, name := range attributes {
		uses = append(uses, ecg.Use{Place: ecg.Place(i), Table: "p", Attribute: name})
	}
	return ecg.Compose([]string{"p"}, uses, "")[0]
}

// bestByBruteForce tries every subset of the attributes in every recoding.
func bestByBruteForce(
	t *testing.T, chain *ecg.Chain, attributes []string,
) (loss float64, generalized string) {
	t.Helper()
	loss = 2
	risk, size := 2.0, 0
	for _, recoding := range chain.Recodings {
		for set := 1; set < 1<<len(attributes); set++ {
			var names []string
			for i, name := range attributes {
				if set>>i&1 == 1 {
					names = append(names, name)
				}
			}
			o, err := chain.DeIdentify(t.Context(), attributes,
				ecg.Way{Generalized: names, Recoding: recoding})
			if err != nil {
				t.Fatal(err)
			}
			if !o.Feasible || !chain.Gate.Accepts(o.Risk) {
				continue
			}
			name := strings.Join(names, ",") + " " + recoding
			less := o.Loss < loss || o.Loss == loss && (o.Risk.Highest < risk || o.Risk.Highest == risk &&
				(len(names) < size || len(names) == size && name < generalized))
			if less {
				loss, risk, size, generalized = o.Loss, o.Risk.Highest, len(names), name
			}
		}
	}
	return loss, generalized
}

func TestChoiceEqualsThatOfBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 5))
	subsets := 0
	for round := range 60 {
		table := people(t, 30+rng.IntN(200), rng, 2+rng.IntN(3), 3+rng.IntN(6), 2+rng.IntN(10), 2)
		chain := &ecg.Chain{
			Present: anonymize.NewPartition(table), Requirements: blockK(3), Gate: ecg.HighestRisk(3),
			Recodings: []string{ecg.Local, ecg.FullDomain}, Work: 1 << 40,
		}
		attributes := []string{"a", "b", "c", "d"}[:2+rng.IntN(3)]
		only := []ecg.Stage{{Name: "S1", Table: "p", Attributes: attributes}}
		a, err := ecg.Tailor(t.Context(), chain, only, chain.Gate, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a.Stages[0].Action == ecg.ActionNone {
			continue
		}
		loss, want := bestByBruteForce(t, chain, attributes)
		chosen := a.Stages[0].Candidates[0]
		if got := strings.Join(chosen.Attributes, ",") + " " + chosen.Recoding; a.Loss != loss ||
			got != want {
			t.Errorf("round %d: %s at %.4f, by brute force %s at %.4f", round, got, a.Loss, want, loss)
		}
		if len(chosen.Attributes) < len(attributes) {
			subsets++
		}
	}
	if subsets == 0 {
		t.Error("no round chose a proper subset: the choice is not tested")
	}
}

func TestTailorKeepsEverythingBelowTheThreshold(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 5))
	table := people(t, 400, rng, 10, 2, 6)
	chain := &ecg.Chain{
		Present: anonymize.NewPartition(table), Requirements: blockK(5),
		Gate: ecg.HighestRisk(5),
	}
	a, err := ecg.Tailor(t.Context(), chain, stagesOf("b", "a", "c"), chain.Gate, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := a.Stages
	if s[0].Action != ecg.ActionNone || s[2].Action != ecg.ActionGeneralize {
		t.Errorf("actions %s, %s, %s: only what is above the threshold is de-identified", s[0].Action,
			s[1].Action, s[2].Action)
	}
	if s[2].Source == nil || s[1].Source == nil || s[1].Source.Attribute != "a" ||
		s[2].Source.Smallest >= 5 {
		t.Errorf("the risk of S2 comes from %+v, that of S3 from %+v", s[1].Source, s[2].Source)
	}
	for _, stage := range s {
		if stage.RiskAfter > 1.0/5 || stage.Local.Risk.Highest > stage.Aggregate.Risk.Highest {
			t.Errorf("%s: risk %.2f, local %.2f, aggregate %.2f", stage.Name, stage.RiskAfter,
				stage.Local.Risk.Highest, stage.Aggregate.Risk.Highest)
		}
	}
	chain.Present = a.Partition
	again, err := ecg.Tailor(t.Context(), chain, stagesOf("c", "b"), chain.Gate, a.Score)
	if err != nil {
		t.Fatal(err)
	}
	if again.Partition != a.Partition || again.Stages[1].Action != ecg.ActionKept {
		t.Error("a part of what was asked before changes the partition")
	}
	if again.Score <= a.Score {
		t.Error("the running sum does not run on")
	}
}

func TestAverageRiskCanGate(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	table := people(t, 600, rng, 12, 4, 8)
	gate, err := ecg.NewGate(3, "average", 0.08)
	if err != nil {
		t.Fatal(err)
	}
	chain := &ecg.Chain{Present: anonymize.NewPartition(table), Requirements: blockK(3), Gate: gate}
	a, err := ecg.Tailor(t.Context(), chain, stagesOf("a", "b", "c"), gate, 0)
	if err != nil {
		t.Fatal(err)
	}
	if average := a.Stages[2].Aggregate.Risk.Average; average > 0.08 || average < 0.04 {
		t.Errorf("average risk %.3f, to be at most 0.08 and near it", average)
	}
	for _, measure := range []string{"marketer", "", "t_closeness"} {
		if _, err := ecg.NewGate(3, measure, 0.1); err == nil {
			t.Errorf("%q gates", measure)
		}
	}
}

func TestFullDomainEndsOnManyColumns(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 5))
	table := people(t, 300, rng, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8)
	chain := &ecg.Chain{
		Present: anonymize.NewPartition(table), Requirements: blockK(5), Gate: ecg.HighestRisk(5),
		Recodings: []string{ecg.FullDomain}, Work: 1,
	}
	attributes := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	a, err := ecg.Tailor(t.Context(), chain,
		[]ecg.Stage{{Name: "S1", Table: "p", Attributes: attributes}}, chain.Gate, 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.Partition.MinBlock() < 5 || a.Partition.Blocks() < 2 {
		t.Errorf("%d blocks, the smallest of %d", a.Partition.Blocks(), a.Partition.MinBlock())
	}
}

func TestTailorRefusesWhatItCannotProtect(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	table := people(t, 40, rng, 10, 2)
	chain := &ecg.Chain{
		Present: anonymize.NewPartition(table), Requirements: blockK(41),
		Gate: ecg.HighestRisk(41),
	}
	_, err := ecg.Tailor(t.Context(), chain, stagesOf("a"), chain.Gate, 0)
	var risk *ecg.RiskError
	if !errors.As(err, &risk) || risk.Source.Attribute != "a" {
		t.Errorf("41 of 40 people: %v", err)
	}
	chain.Gate, chain.Requirements = ecg.HighestRisk(5), blockK(5)
	var unknown *ecg.UnknownAttributeError
	if _, err := ecg.Tailor(t.Context(), chain, stagesOf("height"), chain.Gate, 0); !errors.As(err,
		&unknown) {
		t.Errorf("an unknown attribute: %v", err)
	}
}
