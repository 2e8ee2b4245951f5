package anonymize_test

import (
	"context"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// run answers a workload as one chain and checks the common refinement.
func run(t testing.TB, p *anonymize.Partition, w anonymize.Workload) *anonymize.WorkloadReport {
	t.Helper()
	report, err := w.Run(context.Background(), p, func(columns []int) anonymize.Refinement {
		return anonymize.Refinement{Columns: columns, Requirements: blockK(5)}
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestCommonRefinementOfReleasedLabels(t *testing.T) {
	table := loadBlockData(t, "arx/adult", "adult", 7).table(t)
	chain, seeded := 0.0, 0.0
	for i, w := range adultWorkloads(t, table) {
		p := anonymize.NewPartition(table)
		alone := run(t, p, w)
		prepared := run(t, refined(t, p, w.Seed(table, blockK(5))), w)
		t.Logf("workload %d: chain %.4f, seeded %.4f", i, alone.MeanLoss, prepared.MeanLoss)
		if alone.SmallestBlock < 5 || prepared.SmallestBlock < 5 {
			t.Errorf("workload %d: linking all answers leaves %d or %d subjects together",
				i, alone.SmallestBlock, prepared.SmallestBlock)
		}
		chain += alone.MeanLoss / 4
		seeded += prepared.MeanLoss / 4
	}
	t.Logf("mean loss: chain %.4f, seeded %.4f", chain, seeded)
	if chain > 0.0355 || seeded > 0.0325 {
		t.Errorf("mean loss is %.4f as a chain, %.4f seeded; was 0.0342 and 0.0311", chain, seeded)
	}
}

func TestOnePartitionOverAllColumns(t *testing.T) {
	for _, data := range []struct {
		set     string
		columns int
		most    float64
	}{
		{"adult", 7, 0.0335},
		{"adult", 9, 0.0668},
		{"ss13acs", 5, 0.0092},
		{"creditcard_int", 8, 0.0490},
	} {
		table := loadBlockData(t, "arx/"+data.set, data.set, data.columns).table(t)
		p := refined(t, anonymize.NewPartition(table),
			anonymize.Refinement{Columns: upTo(data.columns), Requirements: blockK(5)})
		loss := p.Loss(upTo(data.columns))
		t.Logf("%s, %d columns: loss %.4f, %d blocks", data.set, data.columns, loss, p.Blocks())
		if loss > data.most || p.MinBlock() < 5 {
			t.Errorf("%s: loss %.4f, wanted at most %.4f; smallest block %d", data.set, loss, data.most,
				p.MinBlock())
		}
	}
}

// TestEveryBlockMeetsItsRequirements recounts each block from the rows. Under
// the race detector it refines once: make test begins without it.
func TestEveryBlockMeetsItsRequirements(t *testing.T) {
	data := loadBlockData(t, "arx/adult", "adult", 7)
	table := data.table(t)
	of := anonymize.Sensitive{Name: "occupation", CodeOfRow: data.others["occupation"]}
	for claim, requirement := range map[string]anonymize.Requirement{
		"distinct 3-diversity":      anonymize.BlockDistinctL{L: 3, Of: of},
		"entropy 3-diversity":       anonymize.BlockEntropyL{L: 3, Of: of},
		"recursive (2,3)-diversity": anonymize.BlockRecursiveCL{C: 2, L: 3, Of: of},
		"0.4-closeness":             anonymize.BlockTCloseness{T: 0.4, Of: of},
		"ordered 0.2-closeness":     anonymize.BlockTCloseness{T: 0.2, Ordered: true, Of: of},
		"no value above half":       anonymize.BlockAlpha{Alpha: 0.5, Of: of},
		"4-likeness":                anonymize.BlockBetaLikeness{Beta: 4, Of: of},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			must := append(blockK(5), requirement)
			p := anonymize.NewPartition(table)
			steps := [][]int{{0, 1}, {3, 4}, upTo(7)}
			if raceDetector {
				steps = steps[2:]
			}
			for _, columns := range steps {
				p = refined(t, p, anonymize.Refinement{Columns: columns, Requirements: must})
			}
			t.Logf("loss %.4f, %d blocks", p.Loss(upTo(7)), p.Blocks())
			if p.Blocks() < 50 {
				t.Errorf("only %d blocks: the requirement is not tested", p.Blocks())
			}
			values := make([]map[uint32]int, p.Blocks())
			for row, tuple := range table.TupleOfRow() {
				b := p.BlockOf()[tuple]
				if values[b] == nil {
					values[b] = make(map[uint32]int)
				}
				values[b][of.CodeOfRow[row]]++
			}
			for b := range values {
				if !meetsModel(requirement, values[b], of.CodeOfRow) {
					t.Fatalf("block %d with %d rows fails", b, p.Rows(uint32(b)))
				}
			}
			if p.MinBlock() < 5 {
				t.Errorf("smallest block has %d subjects", p.MinBlock())
			}
		})
	}
}
