package proxy

import (
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
// what the release is.
func afresh(branch []ecg.Stage, release *catalog.Release) []ecg.Stage {
	stages := slices.Clone(branch)
	if len(stages) > 0 {
		stages[0].Follows = []string{generationOf(release)}
	}
	return stages
}

func generationOf(release *catalog.Release) string {
	return fmt.Sprintf("chain %d, generation %d", release.Chain, release.Generation)
}

// assertRecoding fails where a session asks for another recoding than that by
// which a release is made.
func assertRecoding(release *catalog.Release, recoding string) error {
	if recoding == "" || recoding == "auto" || release.Root == nil ||
		release.Root.Recoding == recoding {
		return nil
	}
	r := release.Relation
	return sqlstate.New(sqlstate.InvalidParameterValue, "table %q is not released with recoding %q",
		r.Name, recoding).
		WithHint("It has recoding %s for all its readers: RESET tailor.recoding.", release.Root.Recoding)
}
