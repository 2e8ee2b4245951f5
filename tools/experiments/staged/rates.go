package main

import (
	"context"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// Rates are modification rates at one k: the shares of the cells of all three
// attributes that are not shown as they are.
type Rates struct {
	K int
	// CellStaged withholds cells of unsafe records stage by stage; CellAtOnce
	// all three cells of every record that is unsafe on age and region. A
	// combination is unsafe if at most K records have it.
	CellStaged, CellAtOnce float64
	// FullStaged generalizes whole columns, as few as the stages need;
	// FullAtOnce all of them.
	FullStaged, FullAtOnce float64
	// Local is what the default recoding of a chain comes to.
	Local float64
}

// measure finds the rates of one k.
func measure(ctx context.Context, table *anonymize.Table, k int) (Rates, error) {
	r := Rates{K: k}
	cells, err := anonymize.SuppressCells(table, [][]int{{0}, {0, 1}, {0, 1, 2}}, k)
	if err != nil {
		return r, err
	}
	r.CellStaged = cells.ModificationRate([]int{0, 1, 2})
	unsafe := 0
	for _, n := range table.Everyone().Exactly(0).Exactly(1).Subjects() {
		if int(n) <= k {
			unsafe += int(n)
		}
	}
	r.CellAtOnce = float64(unsafe) / float64(table.Rows())
	staged, err := tailored(ctx, table, k, ecg.FullDomain)
	if err != nil {
		return r, err
	}
	once, err := anonymize.NewPartition(table).
		AtLevels([]int{0, 1, 2}, []int{1, 1, 1}, []anonymize.Requirement{anonymize.BlockK{K: k}})
	if err != nil {
		return r, err
	}
	r.FullStaged, r.FullAtOnce = staged.Stages[len(staged.Stages)-1].Local.Modified,
		once.Modified([]int{0, 1, 2})
	local, err := tailored(ctx, table, k, ecg.Local)
	if err != nil {
		return r, err
	}
	r.Local = local.Stages[len(local.Stages)-1].Local.Modified
	return r, nil
}

// tailored has the tailor work on the three stages: age, then the region, then
// the income.
func tailored(
	ctx context.Context, table *anonymize.Table, k int, recoding string,
) (*ecg.Assessment, error) {
	var uses []ecg.Use
	for i, name := range attributes {
		uses = append(uses, ecg.Use{Place: ecg.Place(i), Table: "Demodata", Attribute: name})
	}
	chain := &ecg.Chain{
		Present:      anonymize.NewPartition(table),
		Requirements: []anonymize.Requirement{anonymize.BlockK{K: k}},
		Gate:         ecg.HighestRisk(k), Recodings: []string{recoding}, Loss: ecg.ModificationRate,
		Work: 1 << 40,
	}
	return ecg.Tailor(ctx, chain, ecg.Compose([]string{"Demodata"}, uses, "")[0], chain.Gate, 0)
}
