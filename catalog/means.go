package catalog

import (
	"encoding/json"
	"fmt"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// means say, by dimension, how a chain shows the columns that its policy wants
// shown by means. They follow from what the chain has shown before, so that they
// are kept with its partition (docs/decisions/block-means.md).
type means map[int]*anonymize.Means

// newMeans are those of a chain of which no mean has been shown.
func newMeans(r *Relation, p *anonymize.Partition) means {
	out := means{}
	for i, q := range r.Dimensions() {
		if q.Mean {
			out[i] = anonymize.NewMeans(p, i, r.K, isInteger(q.Type))
		}
	}
	return out
}

// readMeans decodes what is stored beside a chain's partition. A chain of an
// earlier version of Tailor, or of a time before the policy asked for means, has
// nothing stored for a column.
func readMeans(r *Relation, p *anonymize.Partition, stored []byte) (means, error) {
	out := newMeans(r, p)
	if len(stored) == 0 {
		return out, nil
	}
	var byName map[string][]byte
	if err := json.Unmarshal(stored, &byName); err != nil {
		return nil, fmt.Errorf("read means: %w", err)
	}
	for i, q := range r.Dimensions() {
		data, known := byName[q.Name]
		if !q.Mean || !known {
			continue
		}
		m, err := anonymize.UnmarshalMeans(p, i, r.K, isInteger(q.Type), data)
		if err != nil {
			return nil, fmt.Errorf("read means: %w", err)
		}
		out[i] = m
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

// refitted are the means over the partition of a new epoch. A column that was
// not shown by means in the past one starts there, with the blocks that have not
// changed: of others, labels have told more than they do now.
func (m means) refitted(r *Relation, past, p *anonymize.Partition, from [][]uint32) means {
	out := means{}
	for i, q := range r.Dimensions() {
		if !q.Mean {
			continue
		}
		before := m[i]
		if before == nil {
			before = anonymize.UntoldMeans(past, i, r.K, isInteger(q.Type))
		}
		out[i] = before.Refit(p, from, r.K)
	}
	return out
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

// loss is that of each column that is shown by means.
func (m means) loss(r *Relation) map[string]float64 {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]float64)
	for i, q := range r.Dimensions() {
		if m[i] != nil {
			out[q.Name] = m[i].Loss()
		}
	}
	return out
}
