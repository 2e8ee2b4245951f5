package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

func parseAlgorithm(name string) (anonymize.Algorithm, error) {
	for _, a := range []anonymize.Algorithm{
		anonymize.Optimal, anonymize.Flash, anonymize.BestFirst,
		anonymize.Greedy,
	} {
		if a.String() == name {
			return a, nil
		}
	}
	return 0, &anonymize.ProblemError{
		What:   fmt.Sprintf("unknown search %q", name),
		Remedy: "use optimal, flash, best_first or greedy",
	}
}

// qualityModels by name, beside loss, which takes an aggregate.
var qualityModels = map[string]anonymize.Quality{
	"nue":                anonymize.NonUniformEntropy{},
	"normalized_nue":     anonymize.NonUniformEntropy{Normalized: true},
	"conventional_nue":   anonymize.ConventionalEntropy{},
	"precision":          anonymize.Precision{},
	"discernibility":     anonymize.Discernibility{},
	"average_class_size": anonymize.AverageClassSize{},
	"aecs":               anonymize.NormalizedClassSize{},
	"ambiguity":          anonymize.Ambiguity{},
	"kl_divergence":      anonymize.Divergence{},
	"mean_squared_error": anonymize.SquaredError{},
	"modification_rate":  anonymize.ModificationRate{},
}

func qualityNames() string {
	return "loss, " + strings.Join(slices.Sorted(maps.Keys(qualityModels)), ", ")
}

func parseAggregate(name string) (anonymize.Aggregate, error) {
	switch name {
	case "geometric":
		return anonymize.Geometric, nil
	case "arithmetic":
		return anonymize.Arithmetic, nil
	}
	return 0, &anonymize.ProblemError{
		What:   fmt.Sprintf("unknown aggregate %q", name),
		Remedy: "use geometric or arithmetic",
	}
}

func parseQuality(name string, mean anonymize.Aggregate) (anonymize.Quality, error) {
	if name == "loss" {
		return anonymize.Loss{Aggregate: mean}, nil
	}
	if q, ok := qualityModels[name]; ok {
		return q, nil
	}
	return nil, &anonymize.ProblemError{
		What:   fmt.Sprintf("unknown quality model %q", name),
		Remedy: "use one of " + qualityNames(),
	}
}

// requiredModels are the values of the repeated flag --require: the name of a
// model, the sensitive column where it has one, and its numbers, separated by
// colons.
type requiredModels struct {
	models  []anonymize.Privacy
	columns []string
	given   []string // the models as they were written
}

func (r *requiredModels) String() string { return "" }

// sensitive lists the columns named, each once.
func (r *requiredModels) sensitive() []string {
	names := slices.Clone(r.columns)
	slices.Sort(names)
	return slices.Compact(names)
}

// requirement is a model by name: how many numbers it takes, and whether it is
// about a column.
type requirement struct {
	name, form string
	numbers    int
	column     bool
	build      func(column string, n []float64) anonymize.Privacy
}

var requirements = []requirement{
	{"distinct_l", "distinct_l:COL:L", 1, true, func(c string, n []float64) anonymize.Privacy {
		return anonymize.DistinctLDiversity{Sensitive: c, L: int(n[0])}
	}},
	{"entropy_l", "entropy_l:COL:L", 1, true, func(c string, n []float64) anonymize.Privacy {
		return anonymize.EntropyLDiversity{Sensitive: c, L: n[0]}
	}},
	{"recursive_cl", "recursive_cl:COL:C:L", 2, true, func(c string, n []float64) anonymize.Privacy {
		return anonymize.RecursiveCLDiversity{Sensitive: c, C: n[0], L: int(n[1])}
	}},
	{"t_closeness", "t_closeness:COL:T", 1, true, func(c string, n []float64) anonymize.Privacy {
		return anonymize.TCloseness{Sensitive: c, T: n[0]}
	}},
	{
		"ordered_t_closeness", "ordered_t_closeness:COL:T", 1, true,
		func(c string, n []float64) anonymize.Privacy {
			return anonymize.TCloseness{Sensitive: c, T: n[0], Ordered: true}
		},
	},
	{"alpha_k", "alpha_k:COL:ALPHA:K", 2, true, func(c string, n []float64) anonymize.Privacy {
		return anonymize.AlphaK{Sensitive: c, Alpha: n[0], K: int(n[1])}
	}},
	{
		"delta_disclosure", "delta_disclosure:COL:DELTA", 1, true,
		func(c string, n []float64) anonymize.Privacy {
			return anonymize.DeltaDisclosure{Sensitive: c, Delta: n[0]}
		},
	},
	{
		"beta_likeness", "beta_likeness:COL:BETA", 1, true,
		func(c string, n []float64) anonymize.Privacy {
			return anonymize.BetaLikeness{Sensitive: c, Beta: n[0]}
		},
	},
	{
		"enhanced_beta_likeness", "enhanced_beta_likeness:COL:BETA", 1, true,
		func(c string, n []float64) anonymize.Privacy {
			return anonymize.BetaLikeness{Sensitive: c, Beta: n[0], Enhanced: true}
		},
	},
	{"average_risk", "average_risk:MAX", 1, false, func(_ string, n []float64) anonymize.Privacy {
		return anonymize.AverageRisk{Max: n[0]}
	}},
	{"highest_risk", "highest_risk:MAX", 1, false, func(_ string, n []float64) anonymize.Privacy {
		return anonymize.HighestRisk{Max: n[0]}
	}},
	{
		"sample_uniqueness", "sample_uniqueness:MAX", 1, false,
		func(_ string, n []float64) anonymize.Privacy {
			return anonymize.SampleUniqueness{Max: n[0]}
		},
	},
	{
		"records_at_risk", "records_at_risk:THRESHOLD:MAX", 2, false,
		func(_ string, n []float64) anonymize.Privacy {
			return anonymize.RecordsAtRisk{Threshold: n[0], Max: n[1]}
		},
	},
}

func requirementNames() string {
	var forms []string
	for _, r := range requirements {
		forms = append(forms, r.form)
	}
	return strings.Join(forms, ", ")
}

// Set parses one model. The numbers stand at the end, so that the name of a
// column may hold colons.
func (r *requiredModels) Set(value string) error {
	name, rest, _ := strings.Cut(value, ":")
	i := slices.IndexFunc(requirements, func(q requirement) bool { return q.name == name })
	if i < 0 {
		return errors.New("unknown model")
	}
	q := requirements[i]
	numbers := make([]float64, q.numbers)
	for n := q.numbers - 1; n >= 0; n-- {
		cut := strings.LastIndex(rest, ":")
		x, err := strconv.ParseFloat(rest[cut+1:], 64)
		if err != nil {
			return fmt.Errorf("wants %s", q.form)
		}
		numbers[n], rest = x, rest[:max(cut, 0)]
	}
	if q.column != (rest != "") {
		return fmt.Errorf("wants %s", q.form)
	}
	if q.column {
		r.columns = append(r.columns, rest)
	}
	r.models = append(r.models, q.build(rest, numbers))
	r.given = append(r.given, value)
	return nil
}
