package anonymize

import (
	"slices"
	"strconv"
)

// SensitiveAttribute is a sensitive attribute: the value of each row as a code. Codes
// are in the order of the values, by size where all are numbers, else
// alphabetical; the ordered distance of [TCloseness] relies on it.
type SensitiveAttribute struct {
	Name string
	// Codes is the value of each row, an index into Values.
	Codes []uint32
	// Values are the distinct values in order.
	Values []string
	// Numeric says whether every value is a number.
	Numeric bool
}

// NewSensitiveAttribute encodes the values of a sensitive attribute, one a row. Two
// spellings of one number ("1", "1.0") are two values.
func NewSensitiveAttribute(name string, cells []string) SensitiveAttribute {
	s := SensitiveAttribute{Name: name, Codes: make([]uint32, len(cells)), Numeric: true}
	index := make(map[string]uint32)
	numbers := make(map[string]float64)
	for _, cell := range cells {
		if _, known := index[cell]; known {
			continue
		}
		index[cell] = 0
		s.Values = append(s.Values, cell)
		if number, err := strconv.ParseFloat(cell, 64); err == nil {
			numbers[cell] = number
		} else {
			s.Numeric = false
		}
	}
	slices.SortFunc(s.Values, func(a, b string) int {
		if s.Numeric && numbers[a] != numbers[b] {
			if numbers[a] < numbers[b] {
				return -1
			}
			return 1
		}
		if a < b {
			return -1
		}
		return 1
	})
	for i, v := range s.Values {
		index[v] = uint32(i)
	}
	for r, cell := range cells {
		s.Codes[r] = index[cell]
	}
	return s
}

func (s *SensitiveAttribute) domain() int { return len(s.Values) }

// shares is the distribution of the attribute in the whole table, as shares of
// the pairs of a subject and a value.
func (s *SensitiveAttribute) shares(t *Table) []float64 {
	counts := make([]float64, s.domain())
	total := 0.0
	seen := make(map[uint64]struct{})
	for r, v := range s.Codes {
		if !t.RowPerSubject() {
			pair := uint64(t.Subject(uint32(r)))<<32 | uint64(v)
			if _, twice := seen[pair]; twice {
				continue
			}
			seen[pair] = struct{}{}
		}
		counts[v]++
		total++
	}
	for v := range counts {
		counts[v] /= total
	}
	return counts
}
