package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// means say, by dimension, how a chain shows the columns that its policy wants
// shown by means. They follow from what the chain has shown before, so that they
// are kept with its partition (docs/decisions/block-means.md).
type means map[int]*anonymize.Means

// newMeans are those of a chain of which no mean has been shown.
func newMeans(r *Relation, e *epoch, p *anonymize.Partition) means {
	out := means{}
	for i, q := range r.Dimensions() {
		if q.Mean {
			out[i] = anonymize.NewMeans(p, e.byMeans[i], r.K, isInteger(q.Type))
		}
	}
	return out
}

// showsMeans says whether the policy wants any column shown by means.
func (r *Relation) showsMeans() bool {
	return slices.ContainsFunc(r.Dimensions(), func(q *Column) bool { return q.Mean })
}

// readMeans decodes what is stored beside a chain's partition.
func readMeans(r *Relation, e *epoch, p *anonymize.Partition, stored []byte) (means, error) {
	out := means{}
	var byName map[string][]byte
	if len(stored) > 0 {
		if err := json.Unmarshal(stored, &byName); err != nil {
			return nil, fmt.Errorf("read means: %w", err)
		}
	}
	for i, q := range r.Dimensions() {
		if !q.Mean {
			continue
		}
		m, err := anonymize.UnmarshalMeans(p, e.byMeans[i], r.K, isInteger(q.Type), byName[q.Name])
		if err != nil {
			return nil, fmt.Errorf("read means: %w", err)
		}
		out[i] = m
	}
	if len(out) != len(byName) {
		return nil, errors.New("read means: other columns are shown by them")
	}
	return out, nil
}

// stored encodes the means for the chain's row, nil for none.
func (m means) stored(r *Relation) ([]byte, error) {
	if len(m) == 0 {
		return nil, nil
	}
	byName := make(map[string][]byte)
	for i, q := range r.Dimensions() {
		if m[i] == nil {
			continue
		}
		data, err := m[i].MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("store means: %w", err)
		}
		byName[q.Name] = data
	}
	return json.Marshal(byName)
}

// refined are the means over a refinement of the partition.
func (m means) refined(p *anonymize.Partition) means {
	out := means{}
	for i, shown := range m {
		out[i] = shown.Refine(p)
	}
	return out
}

// carryMeans carries a chain that is shown by means to its epoch, with its
// partition and means of an earlier one, which stay what they are.
//
// Guarantee. Attacker: reads both epochs, and knows who came, left or changed.
// Precondition: anything. Then one answer is new beside the payload: whether the
// chain was carried. Blocks that are placed anew would say by the labels of other
// columns where a value lies that a group's label leaves open. Whether anybody
// has been shown the chain is not known, so that it makes no difference.
// TestMeansEndWhereARefreshChangesWhoIsInTheTable… and
// TestARefreshThatChangesPayloadOnlyShowsTheSameMeans check it.
func carryMeans(r *Relation, before *epoch, chain *Chain, partition *anonymize.Partition, stored []byte) error {
	carried, ok, err := partition.Carry(chain.epoch.table, requirements(r, chain.epoch))
	if err != nil {
		return err
	}
	if !ok || !anonymize.SameRows(before.all, chain.epoch.all) {
		return &sqlstate.Error{
			Code:    sqlstate.PolicyStale,
			Message: fmt.Sprintf("the means of table %q cannot be carried to its new copy", r.Name),
			Detail: "The table has other combinations of quasi-identifiers than those that this audience was shown, or they are generalized in another way, " +
				"or blocks do not meet the policy any more. Blocks that are made anew would tell what means hold back.",
			Hint: fmt.Sprintf("Restore the table and call tailor.refresh, or start all chains anew with tailor.forget_chains('%s'), "+
				"which gives up the guarantee over what was shown before.", r),
		}
	}
	chain.partition = carried
	chain.means, err = readMeans(r, chain.epoch, carried, stored)
	return err
}

// meanOf is the mean that stands for a block, as its column's type prints it;
// ok is false where it is held back.
func meanOf(q *Column, m *anonymize.Means, block uint32) (string, bool) {
	mean, ok := m.Mean(block)
	if !ok {
		return "", false
	}
	return anonymize.FormatMean(mean, isInteger(q.Type)), true
}
