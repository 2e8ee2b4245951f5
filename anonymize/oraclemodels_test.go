package anonymize_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// toyModel is a privacy model with its definition.
type toyModel struct {
	model anonymize.Privacy
	class func(k *toyClass) bool
	table func(kept []*toyClass) bool
	least int
}

// toyPrivacy lists every privacy model with parameters that bite on a toy.
func toyPrivacy(y *toy) []toyModel {
	whole, _ := y.shares(y.allRows())
	domain := len(whole)
	const eps = 1e-9
	size := func(k int) func(*toyClass) bool { return func(c *toyClass) bool { return c.size() >= k } }
	eachShare := func(hold func(q, p float64) bool) func(*toyClass) bool {
		return func(k *toyClass) bool {
			share, _ := y.shares(k.rows)
			for value, p := range whole {
				if !hold(share[value], p) {
					return false
				}
			}
			return true
		}
	}
	models := []toyModel{
		{model: anonymize.KAnonymity{K: 2}, class: size(2), least: 2},
		{model: anonymize.KAnonymity{K: 3}, class: size(3), least: 3},
		{
			model: anonymize.DistinctLDiversity{Sensitive: "s", L: min(2, domain)},
			class: func(k *toyClass) bool {
				share, _ := y.shares(k.rows)
				return len(share) >= min(2, domain)
			},
		},
		{
			model: anonymize.EntropyLDiversity{Sensitive: "s", L: min(1.7, float64(domain))},
			class: func(k *toyClass) bool {
				share, _ := y.shares(k.rows)
				sum := 0.0
				for _, q := range share {
					sum -= q * math.Log(q)
				}
				return sum >= math.Log(min(1.7, float64(domain)))-eps
			},
		},
		{
			model: anonymize.RecursiveCLDiversity{Sensitive: "s", C: 2.5, L: min(2, domain)},
			class: func(k *toyClass) bool {
				_, count := y.shares(k.rows)
				sorted := slices.Sorted(maps.Values(count))
				slices.Reverse(sorted)
				tail := 0
				for i := min(2, domain) - 1; i < len(sorted); i++ {
					tail += sorted[i]
				}
				return float64(sorted[0]) < 2.5*float64(tail)-eps
			},
		},
		{model: anonymize.TCloseness{Sensitive: "s", T: 0.35}, class: func(k *toyClass) bool {
			share, _ := y.shares(k.rows)
			sum := 0.0
			for value, p := range whole {
				sum += math.Abs(share[value] - p)
			}
			return sum/2 <= 0.35+eps
		}},
		{
			model: anonymize.TCloseness{Sensitive: "s", T: 0.25, Ordered: true},
			class: func(k *toyClass) bool {
				share, _ := y.shares(k.rows)
				sum, cumulative := 0.0, 0.0
				for _, value := range slices.Sorted(maps.Keys(whole)) {
					cumulative += share[value] - whole[value]
					sum += math.Abs(cumulative)
				}
				return domain < 2 || sum/float64(domain-1) <= 0.25+eps
			},
		},
		{
			model: anonymize.AlphaK{Sensitive: "s", Alpha: 0.7, K: 2}, least: 2,
			class: func(k *toyClass) bool {
				_, count := y.shares(k.rows)
				return k.size() >= 2 && float64(slices.Max(slices.Collect(maps.Values(count)))) <= 0.7*float64(
					k.size())+eps
			},
		},
		{
			model: anonymize.DeltaDisclosure{Sensitive: "s", Delta: 1.2},
			class: eachShare(func(q, p float64) bool {
				return q > 0 && math.Abs(math.Log(q/p)) < 1.2-eps
			}),
		},
		{
			model: anonymize.BetaLikeness{Sensitive: "s", Beta: 1.1},
			class: eachShare(func(q, p float64) bool {
				return q <= p || (q-p)/p <= 1.1+eps
			}),
		},
		{
			model: anonymize.BetaLikeness{Sensitive: "s", Beta: 1.1, Enhanced: true},
			class: eachShare(func(q, p float64) bool {
				return q <= p || (q-p)/p <= min(1.1, -math.Log(p))+eps
			}),
		},
		{model: anonymize.HighestRisk{Max: 0.4}, least: 3, class: func(k *toyClass) bool {
			return 1/float64(k.size()) <= 0.4
		}},
		{model: anonymize.AverageRisk{Max: 0.35}, table: func(kept []*toyClass) bool {
			return float64(len(kept)) <= 0.35*totalSize(kept)+eps
		}},
		{model: anonymize.SampleUniqueness{Max: 0.1}, table: func(kept []*toyClass) bool {
			return sizeBelow(kept, 2) <= 0.1*totalSize(kept)+eps
		}},
		{model: anonymize.RecordsAtRisk{Threshold: 0.34, Max: 0.2}, table: func(kept []*toyClass) bool {
			return sizeBelow(kept, 3) <= 0.2*totalSize(kept)+eps
		}},
	}
	if y.blocks == nil {
		models = append(models, toyModel{model: anonymize.KMap{K: 4}, class: func(k *toyClass) bool {
			return k.people >= 4
		}})
	}
	return models
}

func totalSize(classes []*toyClass) float64 {
	n := 0
	for _, k := range classes {
		n += k.size()
	}
	return float64(n)
}

func sizeBelow(classes []*toyClass, bound int) float64 {
	n := 0
	for _, k := range classes {
		if k.size() < bound {
			n += k.size()
		}
	}
	return float64(n)
}

// toyQuality is a quality model with its definition.
type toyQuality struct {
	model anonymize.Quality
	score func(y *toy, levels []int, o outcome, least int) float64
}

// cellMean is the mean over columns of the mean cost of a cell.
func cellMean(
	cost func(y *toy, c, level int, cell string, suppressed bool) float64,
) func(*toy, []int, outcome, int) []float64 {
	return func(y *toy, levels []int, o outcome, _ int) []float64 {
		parts := make([]float64, len(y.cells))
		for c := range y.cells {
			for r, cell := range y.cells[c] {
				_, suppressed := slices.BinarySearch(o.suppressed, r)
				parts[c] += cost(y, c, levels[c], cell, suppressed) / float64(y.rows())
			}
		}
		return parts
	}
}

func arithmetic(parts []float64) float64 {
	total := 0.0
	for _, p := range parts {
		total += p / float64(len(parts))
	}
	return total
}

func geometric(parts []float64) float64 {
	product := 1.0
	for _, p := range parts {
		product *= math.Pow(p+1, 1/float64(len(parts)))
	}
	return product - 1
}

var toyLoss = cellMean(func(y *toy, c, level int, cell string, suppressed bool) float64 {
	if suppressed {
		return 1
	}
	return (y.cover(c, level, y.label(c, level, cell)) - 1) / float64(len(y.paths[c])-1)
})

var toyPrecision = cellMean(func(y *toy, c, level int, _ string, suppressed bool) float64 {
	if suppressed {
		return 1
	}
	return float64(level) / float64(len(y.paths[c][0])-1)
})

var toyModification = cellMean(func(y *toy, c, level int, cell string, suppressed bool) float64 {
	if !suppressed && y.label(c, level, cell) == cell {
		return 0
	}
	return 1
})

var toySquaredError = cellMean(func(y *toy, c, level int, cell string, suppressed bool) float64 {
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, p := range y.paths[c] {
		if x, _ := strconv.ParseFloat(p[0], 64); suppressed || p[level] == y.label(c, level, cell) {
			lowest, highest = min(lowest, x), max(highest, x)
		}
	}
	x, _ := strconv.ParseFloat(cell, 64)
	return (x - (lowest+highest)/2) * (x - (lowest+highest)/2)
})

// toyEntropy is the generic measure: level by level over the rows that go
// there, a suppressed row going to the root.
func toyEntropy(y *toy, levels []int, o outcome, _ int) []float64 {
	parts := make([]float64, len(y.cells))
	for c := range y.cells {
		top := len(y.paths[c][0]) - 1
		for l := range top {
			from, to := map[string]float64{}, map[string]float64{}
			var affected []string
			for r, cell := range y.cells[c] {
				if _, suppressed := slices.BinarySearch(o.suppressed, r); suppressed || levels[c] > l {
					affected = append(affected, cell)
					from[y.label(c, l, cell)]++
					to[y.label(c, l+1, cell)]++
				}
			}
			for _, cell := range affected {
				parts[c] -= math.Log2(from[y.label(c, l, cell)] / to[y.label(c, l+1, cell)])
			}
		}
	}
	return parts
}

func toyNormalizedEntropy(y *toy, levels []int, o outcome, least int) float64 {
	parts := toyEntropy(y, levels, o, least)
	whole := toyEntropy(y, levels, outcome{suppressed: y.allRows()}, least)
	for c := range parts {
		if whole[c] > 0 {
			parts[c] /= whole[c]
		}
	}
	return arithmetic(parts)
}

func toyConventional(y *toy, levels []int, o outcome, _ int) float64 {
	total := 0.0
	for c := range y.cells {
		in, out := map[string]float64{}, map[string]float64{}
		shown := make([]string, y.rows())
		for r, cell := range y.cells[c] {
			shown[r] = y.label(c, levels[c], cell)
			if _, suppressed := slices.BinarySearch(o.suppressed, r); suppressed {
				shown[r] = anonymize.Top
			}
			in[cell]++
			out[shown[r]]++
		}
		for r, cell := range y.cells[c] {
			total -= math.Log2(in[cell] / out[shown[r]])
		}
	}
	return total
}

func (y *toy) area(levels []int, labels []string) float64 {
	area := 1.0
	for c := range labels {
		area *= y.cover(c, levels[c], labels[c])
	}
	return area
}

func (y *toy) domain() float64 {
	size := 1.0
	for c := range y.paths {
		size *= float64(len(y.paths[c]))
	}
	return size
}

func toyDivergence(y *toy, levels []int, o outcome, _ int) float64 {
	n := float64(y.rows())
	classOf := make([]*toyClass, y.rows())
	for _, k := range o.kept {
		for _, r := range k.rows {
			classOf[r] = k
		}
	}
	original := map[string]float64{}
	key := func(r int) string {
		parts := make([]string, 0, len(y.cells)+1)
		for c := range y.cells {
			parts = append(parts, y.cells[c][r])
		}
		if y.blocks != nil {
			parts = append(parts, fmt.Sprint("block", y.blocks[r]))
		}
		return fmt.Sprint(parts)
	}
	for r := range y.rows() {
		original[key(r)] += 1 / n
	}
	total := 0.0
	for r := range y.rows() {
		suggested := float64(len(o.suppressed)) / n / y.domain()
		if k := classOf[r]; k != nil {
			suggested = float64(len(k.rows)) / n / y.area(levels, k.labels)
		}
		total += math.Log2(original[key(r)]/suggested) / n
	}
	return total
}

func toyQualities() []toyQuality {
	mean := func(parts func(*toy, []int, outcome, int) []float64,
		aggregate func([]float64) float64,
	) func(*toy, []int, outcome, int) float64 {
		return func(y *toy, levels []int, o outcome, least int) float64 {
			return aggregate(parts(y, levels, o, least))
		}
	}
	sum := func(parts []float64) float64 { return arithmetic(parts) * float64(len(parts)) }
	return []toyQuality{
		{anonymize.Loss{}, mean(toyLoss, geometric)},
		{anonymize.Loss{Aggregate: anonymize.Arithmetic}, mean(toyLoss, arithmetic)},
		{anonymize.Precision{}, mean(toyPrecision, arithmetic)},
		{anonymize.ModificationRate{}, mean(toyModification, arithmetic)},
		{anonymize.SquaredError{}, mean(toySquaredError, arithmetic)},
		{anonymize.NonUniformEntropy{}, mean(toyEntropy, sum)},
		{anonymize.NonUniformEntropy{Normalized: true}, toyNormalizedEntropy},
		{anonymize.ConventionalEntropy{}, toyConventional},
		{anonymize.Discernibility{}, func(y *toy, _ []int, o outcome, _ int) float64 {
			total := float64(len(o.suppressed) * y.rows())
			for _, k := range o.kept {
				total += float64(len(k.rows) * len(k.rows))
			}
			return total
		}},
		{anonymize.AverageClassSize{}, func(y *toy, _ []int, o outcome, _ int) float64 {
			if len(o.kept) == 0 {
				return float64(y.rows())
			}
			return float64(y.rows()-len(o.suppressed)) / float64(len(o.kept))
		}},
		{anonymize.NormalizedClassSize{}, func(y *toy, _ []int, o outcome, least int) float64 {
			classes := len(o.kept)
			if len(o.suppressed) > 0 {
				classes++
			}
			return float64(y.rows()) / float64(classes) / float64(least)
		}},
		{anonymize.Ambiguity{}, func(y *toy, levels []int, o outcome, _ int) float64 {
			total := float64(len(o.suppressed)) * y.domain()
			for _, k := range o.kept {
				total += float64(len(k.rows)) * y.area(levels, k.labels)
			}
			return total / float64(y.rows())
		}},
		{anonymize.Divergence{}, toyDivergence},
	}
}
