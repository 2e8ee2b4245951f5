package disassociate

import (
	"context"
	"math/rand/v2"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// Stage names a step of [Disassociate] for progress reports.
type Stage string

// The stages in order. Clustering and publishing count records and clusters,
// refining counts codes (scoped) or joins (joint).
const (
	Clustering   Stage = "clustering"
	Partitioning Stage = "partitioning"
	Refining     Stage = "refining"
	Publishing   Stage = "publishing"
	Verifying    Stage = "verifying"
)

// Progress is told how far a stage is: done of total steps. total is an upper
// bound where the number of steps is not known. It is called often, never
// twice at once, and must return quickly.
type Progress func(stage Stage, done, total int)

// Result is a published form and what must stay secret about it.
type Result struct {
	Form *published.Form
	// ClusterOf is the cluster of Form that each record is in. SECRET: it
	// joins records to clusters and must not leave the privileged side.
	ClusterOf []int32
}

// Disassociate publishes a data set with k^m-anonymity, see the package
// comment for what holds of the result. The form has been verified
// independently (package verify) when it is returned.
//
// rng decides the order of clusters in the form; give it a seed that readers
// do not know. progress may be nil. It fails on a faulty configuration, with
// *[ConstraintError], with *[TooFewError], with the error of ctx when that
// ends, or with *verify.Error, which would be a fault of this package.
//
// Cost: near linear in the number of codes in all records. Memory: a few times
// that of the data set.
func Disassociate(
	ctx context.Context, d *Dataset, cfg Config, rng *rand.Rand, progress Progress,
) (*Result, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if progress == nil {
		progress = func(Stage, int, int) {}
	}
	if err := cfg.assertGroups(d); err != nil {
		return nil, err
	}
	r, err := assignRoles(d, &cfg)
	if err != nil {
		return nil, err
	}
	clusters, err := partition(ctx, d, &cfg, r, progress)
	if err != nil {
		return nil, err
	}
	chunks, err := refine(ctx, d, &cfg, r, clusters, progress)
	if err != nil {
		return nil, err
	}
	form, clusterOf, err := publish(ctx, d, promise(&cfg, r), clusters, chunks, rng,
		func(done int) { progress(Publishing, done, len(clusters)) })
	if err != nil {
		return nil, err
	}
	progress(Verifying, 0, 1)
	report, err := verify.Check(ctx, form, d, clusterOf)
	if err != nil {
		return nil, err
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	progress(Verifying, 1, 1)
	return &Result{Form: form, ClusterOf: clusterOf}, nil
}

// partition makes clusters and cuts them: HORPART and VERPART.
func partition(
	ctx context.Context, d *Dataset, cfg *Config, r *roles, progress Progress,
) ([]cluster, error) {
	records := make([]int32, 0, d.Len())
	var ends []int
	for h, groups := newHorizontal(d, r, cfg.MaxCluster),
		cfg.groups(d); len(groups) > 0; groups = groups[1:] {
		found, err := h.part(ctx, groups[0], func(done int) {
			progress(Clustering, len(records)+done, d.Len())
		})
		if err != nil {
			return nil, err
		}
		own, err := mergeLeaves(d, r, cfg, found)
		if err != nil {
			return nil, err
		}
		for _, end := range own {
			ends = append(ends, len(records)+end)
		}
		records = append(records, found.records...)
	}
	clusters := make([]cluster, len(ends))
	newWorker := func() *vertical { return newVertical(cfg, r) }
	err := forEach(ctx, len(ends), newWorker, func(v *vertical, p int) {
		begin := 0
		if p > 0 {
			begin = ends[p-1]
		}
		clusters[p] = v.cut(d, records[begin:ends[p]])
	}, func(done int) { progress(Partitioning, done, len(ends)) })
	return clusters, err
}

// refine moves codes from item chunks to shared chunks.
func refine(
	ctx context.Context, d *Dataset, cfg *Config, r *roles, clusters []cluster, progress Progress,
) ([]shared, error) {
	switch cfg.Refine {
	case RefineJoint:
		return refineJoint(ctx, d, cfg, r, clusters, func(done int) {
			progress(Refining, done, len(clusters))
		})
	case RefineScoped:
		return refineScoped(ctx, cfg, r, clusters, func(done int) {
			progress(Refining, done, len(d.codes))
		})
	}
	return nil, nil
}

// promise is what the form says of itself.
func promise(cfg *Config, r *roles) published.Promise {
	p := published.Promise{
		K: cfg.K, M: cfg.M, Diversity: cfg.Diversity, StrictDiversity: cfg.StrictDiversity,
		MayBeEmpty: cfg.MayBeEmpty,
	}
	for it, sensitive := range r.sensitive {
		if sensitive {
			p.Sensitive = append(p.Sensitive, Item(it))
		}
	}
	return p
}
