package proxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

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
