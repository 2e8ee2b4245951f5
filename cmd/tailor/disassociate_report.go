package main

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/utility"
)

// disassociateSetLimit ends the search for frequent sets of a report.
const disassociateSetLimit = 100_000

// disassociateReport is what --report writes. It holds counts of the original
// data.
type disassociateReport struct {
	Records       int    `json:"records"`
	BlankLines    int    `json:"blank_lines"`
	Codes         int    `json:"codes"`
	Occurrences   int    `json:"occurrences"`
	K             int    `json:"k"`
	M             int    `json:"m"`
	MaxCluster    int    `json:"max_cluster"`
	Refine        string `json:"refine"`
	Diversity     int    `json:"diversity"`
	Sensitive     int    `json:"sensitive_codes"`
	Verified      bool   `json:"verified"`
	Clusters      int    `json:"clusters"`
	Smallest      int    `json:"min_cluster_size"`
	Largest       int    `json:"max_cluster_size"`
	RecordChunks  int    `json:"record_chunks"`
	SharedChunks  int    `json:"shared_chunks"`
	ItemChunks    int    `json:"item_chunks"`
	ItemCodes     int    `json:"item_chunk_codes"`
	ExactCodes    int    `json:"exact_codes"`
	SingleCluster int    `json:"single_cluster_codes"`
	// ARE is null where no set of codes is frequent enough.
	ARE                 *float64               `json:"are"`
	AREReconstructed    *float64               `json:"are_reconstructed,omitempty"`
	Workload            disassociateWorkload   `json:"workload"`
	MREWithin5          *float64               `json:"mre_within_5_percent,omitempty"`
	MRE                 []disassociateMatching `json:"mre,omitempty"`
	Covered             disassociateCovered    `json:"covered"`
	ElapsedMilliseconds float64                `json:"elapsed_ms"`
}

// disassociateWorkload says which queries the ARE is about.
type disassociateWorkload struct {
	MinSupport float64 `json:"min_support"`
	Queries    int     `json:"queries"`
	Complete   bool    `json:"complete"`
}

type disassociateMatching struct {
	Constraint   string  `json:"constraint"`
	Original     int     `json:"original"`
	Estimated    float64 `json:"estimated"`
	ErrorPercent float64 `json:"error_percent"`
}

// disassociateCovered counts what chunks give away, see published.Covered.
type disassociateCovered struct {
	Chunks        int `json:"chunks"`
	Placements    int `json:"placements"`
	CoveredChunks int `json:"chunks_with_covered_codes"`
	Covered       int `json:"covered_placements"`
	Certain       int `json:"certain_placements"`
}

func newDisassociateReport(ctx context.Context, f *disassociateFlags, cfg *disassociate.Config,
	d *disassociate.Dataset,
	blank int, form *published.Form, drawn [][]published.Record, elapsed time.Duration,
) (*disassociateReport, error) {
	covered := form.Covered()
	r := &disassociateReport{
		Records: d.Len(), BlankLines: blank, Codes: len(d.Codes()), Occurrences: d.Occurrences(),
		K: cfg.K, M: cfg.M, MaxCluster: cfg.MaxCluster, Refine: cfg.Refine.String(),
		Diversity: cfg.Diversity, Sensitive: len(form.Promise.Sensitive),
		Verified: true, // Disassociate returns nothing else
		Clusters: len(form.Clusters), Smallest: math.MaxInt, SharedChunks: len(form.Shared),
		ExactCodes: covered.ExactCodes, SingleCluster: covered.SingleCluster,
		Covered: disassociateCovered{
			Chunks: covered.Chunks, Placements: covered.Placements, CoveredChunks: covered.ChunksWithCovered,
			Covered: covered.CoveredPlacements, Certain: covered.CertainPlacements,
		},
		ElapsedMilliseconds: float64(elapsed.Microseconds()) / 1000,
	}
	for p := range form.Clusters {
		c := &form.Clusters[p]
		r.Smallest, r.Largest = min(r.Smallest, c.Size), max(r.Largest, c.Size)
		r.RecordChunks += len(c.Record)
		r.ItemCodes += len(c.Items)
		if len(c.Items) > 0 {
			r.ItemChunks++
		}
	}
	index := published.NewIndex(form)
	if err := r.measureWorkload(ctx, f.minSupport, d, index, drawn); err != nil {
		return nil, err
	}
	if len(cfg.Constraints) > 0 {
		matchings := utility.MatchConstraints(cfg.Constraints, d, index.CountAny)
		within := utility.ShareWithin(matchings, 5)
		r.MREWithin5 = &within
		for _, m := range matchings {
			r.MRE = append(r.MRE, disassociateMatching{m.Name, m.Original, m.Estimated, m.Error()})
		}
	}
	return r, nil
}

// measureWorkload computes the ARE of the estimates, and of the mean of the
// reconstructions.
func (r *disassociateReport) measureWorkload(ctx context.Context, minSupport float64,
	d *disassociate.Dataset,
	index *published.Index, drawn [][]published.Record,
) error {
	least := max(1, int(math.Ceil(minSupport*float64(d.Len()))))
	sets, complete, err := utility.FrequentSets(ctx, utility.HoldersOf(d, least), least,
		len(d.Codes()), disassociateSetLimit)
	if err != nil {
		return err
	}
	r.Workload = disassociateWorkload{minSupport, len(sets), complete}
	if len(sets) == 0 {
		return nil
	}
	are := utility.AverageRelativeError(sets, func(q []utility.Item) float64 {
		return index.CountItems(q).Expected
	})
	r.ARE = &are
	if len(drawn) > 0 {
		are := utility.AverageRelativeError(sets, func(q []utility.Item) float64 {
			return meanReconstructedCount(drawn, q)
		})
		r.AREReconstructed = &are
	}
	return nil
}

// meanReconstructedCount is the mean number of records that hold all of a query.
func meanReconstructedCount(drawn [][]published.Record, query []published.Item) float64 {
	n := 0
	for _, records := range drawn {
	records:
		for _, r := range records {
			for _, it := range query {
				if _, ok := slices.BinarySearch(r, it); !ok {
					continue records
				}
			}
			n++
		}
	}
	return float64(n) / float64(len(drawn))
}

func (r *disassociateReport) encode(w io.Writer) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(r)
}
