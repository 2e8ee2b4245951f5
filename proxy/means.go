package proxy

import (
	"maps"
	"slices"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
)

// asShown is an assessment with the loss of columns that are shown by means:
// their labels are those of groups of blocks, and no narrower than what was
// assessed.
func asShown(a *ecg.Assessment, release *catalog.Release) *ecg.Assessment {
	if a == nil || len(a.Stages) == 0 || len(release.LossOf) == 0 {
		return a
	}
	shown := *a
	shown.LossOf, shown.Stages = maps.Clone(a.LossOf), slices.Clone(a.Stages)
	last := &shown.Stages[len(shown.Stages)-1]
	for _, name := range last.Attributes {
		if loss, ok := release.LossOf[name]; ok {
			shown.Loss += (loss - shown.LossOf[name]) / float64(len(last.Attributes))
			shown.LossOf[name] = loss
		}
	}
	last.Loss, last.Local.Loss = shown.Loss, shown.Loss
	return &shown
}
