package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// composed are the stages of a plan, one branch a relation.
func composed(plan *planner.Plan) [][]ecg.Stage {
	tables := make([]string, len(plan.Relations))
	for i, r := range plan.Relations {
		tables[i] = r.String()
	}
	return ecg.Compose(tables, plan.Uses, "")
}

// afresh copies the stages of a branch for one assessment. The first follows
// what the chain has come to.
func afresh(branch []ecg.Stage, present catalog.Present) []ecg.Stage {
	stages := slices.Clone(branch)
	if len(stages) > 0 {
		stages[0].Follows = []string{fmt.Sprintf("chain %d, generation %d", present.Chain, present.Generation)}
	}
	return stages
}

// materialOf is a relation's chain as its policy lets the tailor work on it.
// recoding is what the session asks for, "" for what the policy says.
func materialOf(r *catalog.Relation, recoding string) (*ecg.Chain, error) {
	if recoding == "" || recoding == "auto" {
		recoding = r.Recoding
	} else if r.Recoding != "auto" && r.Recoding != recoding {
		return nil, sqlstate.New(sqlstate.InvalidParameterValue, "the policy of table %q does not allow recoding %q", r.Name, recoding).
			WithHint("It has recoding %s: RESET tailor.recoding.", r.Recoding)
	}
	m := &ecg.Chain{Gate: ecg.HighestRisk(r.K), Recodings: []string{ecg.Local}}
	switch recoding {
	case "auto", ecg.Local:
	case ecg.FullDomain:
		m.Recodings = []string{ecg.FullDomain}
	default:
		return nil, sqlstate.New(sqlstate.InvalidParameterValue, "unknown recoding %q", recoding).
			WithHint("Recodings of queries are auto, local and full_domain.")
	}
	if r.Gate != "" && r.Gate != "highest" { // of the highest risk, K has been made
		gate, err := ecg.NewGate(r.K, r.Gate, r.MaxRisk)
		if err != nil {
			return nil, sqlstate.New(sqlstate.InternalError, "the gate of table %q is not usable", r.Name).Wrap(err)
		}
		m.Gate = gate
	}
	return m, nil
}

// taken is the step that a query takes on a chain: the chain is prepared for
// what has been declared, and then assessed for the query's own stages.
func taken(ctx context.Context, m *ecg.Chain, present catalog.Present, branch []ecg.Stage) (catalog.Step, *ecg.Assessment, error) {
	step := catalog.Step{Partition: present.Partition, Score: present.Score, Planted: present.Unplanted}
	m.Present, m.Requirements = present.Partition, present.Requirements
	for _, seed := range present.Unplanted {
		prepared, err := m.Prepare(ctx, seed.Combinations)
		if err != nil {
			return step, nil, err
		}
		node, err := json.Marshal(planted(seed, prepared))
		if err != nil {
			return step, nil, fmt.Errorf("encode seed: %w", err)
		}
		step.Nodes = append(step.Nodes, node)
		m.Present, step.Partition = prepared, prepared
	}
	found, err := ecg.Tailor(ctx, m, afresh(branch, present), m.Gate, present.Score)
	if err != nil {
		return step, nil, err
	}
	if found.Partition == nil || found.Partition == step.Partition {
		return step, found, nil
	}
	added, err := nodes(found)
	step.Partition, step.Score, step.Nodes = found.Partition, found.Score, append(step.Nodes, added...)
	return step, found, err
}

// seedNode stands in a chain's graph for a workload that it was prepared for.
type seedNode struct {
	Stage        string     `json:"stage"`
	Action       string     `json:"action"`
	Combinations [][]string `json:"combinations"`
	RiskAfter    float64    `json:"risk_after"`
}

func planted(seed catalog.Seed, shown *anonymize.Partition) seedNode {
	name := "the policy's seed"
	if seed.Name != "" {
		name = "project " + seed.Name
	}
	return seedNode{Stage: name, Action: "seed", Combinations: seed.Combinations, RiskAfter: 1 / float64(max(1, shown.MinBlock()))}
}

// refusedBy words why the tailor cannot bring a query below the threshold.
func refusedBy(err error, r *catalog.Relation) error {
	var risk *ecg.RiskError
	if !errors.As(err, &risk) {
		return err
	}
	out := sqlstate.New(sqlstate.RiskTooHigh, "risk cannot be brought below the threshold").Wrap(err)
	if risk.Source != nil {
		return out.WithHint("Column %q of table %q raises it; ask without it.", risk.Source.Attribute, r.Name)
	}
	return out
}

// nodes are the stages that a query adds to its chain's graph.
func nodes(a *ecg.Assessment) ([][]byte, error) {
	out := make([][]byte, len(a.Stages))
	for i := range a.Stages {
		var err error
		if out[i], err = json.Marshal(&a.Stages[i]); err != nil {
			return nil, fmt.Errorf("encode stage: %w", err)
		}
	}
	return out, nil
}
