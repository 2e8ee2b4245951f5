package anonymize_test

import (
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// BenchmarkRootModels makes the root of Adult (7 columns, k = 5) under models of occupation
// (14 values), the ordered ones of age, and of a million rows of six columns with ten sensitive
// values, of which one has half of the rows.
func BenchmarkRootModels(b *testing.B) {
	data := loadBlockData(b, "arx/adult", "adult", 7)
	occupation := anonymize.Sensitive{Name: "occupation", CodeOfRow: data.others["occupation"]}
	adult, million := data.table(b), wideTable(b, 1e6, 6)
	of := anonymize.Sensitive{Name: "s", CodeOfRow: make([]uint32, million.Rows())}
	for row := range of.CodeOfRow {
		if h := uint32(row) * 2654435761 >> 16; h%2 == 0 {
			of.CodeOfRow[row] = h / 2 % 10
		}
	}
	for _, data := range []struct {
		name   string
		table  *anonymize.Table
		models []anonymize.Requirement
	}{
		{"adult", adult, append(ladder(occupation), nil)},
		{"million", million, []anonymize.Requirement{
			nil,
			anonymize.BlockDistinctL{L: 2, Of: of},
			anonymize.BlockAlpha{Alpha: 0.8, Of: of},
			anonymize.BlockRecursiveCL{C: 4, L: 2, Of: of},
			anonymize.BlockTCloseness{T: 0.5, Of: of},
			anonymize.BlockTCloseness{T: 0.3, Ordered: true, Of: of},
			anonymize.BlockBetaLikeness{Beta: 9, Of: of},
		}},
	} {
		for _, model := range data.models {
			name, must := "k", blockK(5)
			if model != nil {
				name, must = model.String(), append(must, model)
			}
			b.Run(data.name+"/"+name, func(b *testing.B) {
				var p *anonymize.Partition
				for b.Loop() {
					p = root(b, data.table, anonymize.RootPlan{Requirements: must})
				}
				b.ReportMetric(p.Loss(upTo(len(data.table.Columns()))), "loss")
				b.ReportMetric(float64(p.Blocks()), "blocks")
			})
		}
	}
}

// ladder are models of a column from loose to strict.
func ladder(of anonymize.Sensitive) []anonymize.Requirement {
	var out []anonymize.Requirement
	for _, l := range []int{2, 3, 4} {
		out = append(out, anonymize.BlockDistinctL{L: l, Of: of})
	}
	for _, l := range []float64{2, 3, 4} {
		out = append(out, anonymize.BlockEntropyL{L: l, Of: of})
	}
	for _, c := range []float64{4, 3, 2} {
		out = append(out, anonymize.BlockRecursiveCL{C: c, L: 3, Of: of})
	}
	for _, alpha := range []float64{0.7, 0.5, 0.3} {
		out = append(out, anonymize.BlockAlpha{Alpha: alpha, Of: of})
	}
	for _, t := range []float64{0.5, 0.3, 0.2} {
		out = append(out, anonymize.BlockTCloseness{T: t, Of: of})
	}
	for _, t := range []float64{0.3, 0.2, 0.1} {
		out = append(out, anonymize.BlockTCloseness{T: t, Ordered: true, Of: of})
	}
	for _, beta := range []float64{4, 2, 1} {
		out = append(out, anonymize.BlockBetaLikeness{Beta: beta, Of: of})
		out = append(out, anonymize.BlockBetaLikeness{Beta: beta, Enhanced: true, Of: of})
	}
	for _, delta := range []float64{3, 2, 1} {
		out = append(out, anonymize.BlockDisclosure{Delta: delta, Of: of})
	}
	return out
}
