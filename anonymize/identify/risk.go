package identify

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// MissingLimit is the share of missing values, in percent, above which a column
// tells too little to be classified ([Mansour2021]).
const MissingLimit = 85

// Missing is the value under which the missing cells of a column are counted,
// all together, as one more value ("extended match").
const Missing = "missing"

// Column is what is known of a column, in figures.
type Column struct {
	Name string
	Type string // as PostgreSQL prints it, "" for a file
	// Labels of an enumeration, in their order.
	Labels []string
	// Key says that the column alone is a key of the table.
	Key bool
	// Rows counted, and how many of them hold nothing.
	Rows, Missing int
	// Distinct values; [Missing] is one of them where Missing is above 0.
	Distinct int
	// GDistinct is the sum over the distinct values of 1/count(value).
	GDistinct float64
	Evidence  Evidence
	// Company are the columns beside which this one singles out the most rows,
	// SinglesOut in percent; none where no small set with it singles out many.
	Company    []string
	SinglesOut float64
}

// BaseType is the type's name without its precision, length or time zone.
func (c *Column) BaseType() string {
	base, _, _ := strings.Cut(c.Type, "(")
	base, _, _ = strings.Cut(base, " with time zone")
	base, _, _ = strings.Cut(base, " without time zone")
	return base
}

// NewColumn measures the cells of a column: a cell without text is missing.
func NewColumn(name string, cells []string) *Column {
	c := &Column{Name: name, Rows: len(cells)}
	counts := make(map[string]int)
	for _, cell := range cells {
		if cell == "" {
			c.Missing++
			cell = Missing
		}
		counts[cell]++
	}
	values := make([]string, 0, len(counts))
	for value := range counts {
		values = append(values, value)
	}
	slices.Sort(values) // floating-point sums depend on the order
	c.Distinct = len(values)
	for _, value := range values {
		c.GDistinct += 1 / float64(counts[value])
	}
	c.Evidence = gather(values, c.Missing > 0)
	return c
}

// MissingPercent is the share of missing values in percent, 0 without rows.
func (c *Column) MissingPercent() float64 {
	if c.Rows == 0 {
		return 0
	}
	return 100 * float64(c.Missing) / float64(c.Rows)
}

// Excluded says that too many values are missing for a class.
func (c *Column) Excluded() bool { return c.MissingPercent() > MissingLimit }

// RiskPercent is the re-identification risk rate: the mean of 1/count over the
// distinct values, in percent, rounded to two places. The text of [Menten2024]
// says sum where its program and all its figures are the mean. It is 0 without
// rows.
func (c *Column) RiskPercent() float64 {
	if c.Distinct == 0 {
		return 0
	}
	return math.Round(1e4*c.GDistinct/float64(c.Distinct)) / 100
}

// Class of an attribute.
type Class string

// The classes; Unclassified is hidden.
const (
	Unclassified     Class = ""
	DirectIdentifier Class = "direct_identifier"
	QuasiIdentifier  Class = "quasi_identifier"
	Sensitive        Class = "sensitive"
	NonSensitive     Class = "non_sensitive"
)

// Thresholds of the risk rate in percent: above Alpha an attribute counts as
// sensitive, from Beta to Alpha as a quasi-identifier, below Beta as neither.
type Thresholds struct{ Alpha, Beta float64 }

// DefaultThresholds are those of the first data set of [Menten2024].
func DefaultThresholds() Thresholds { return Thresholds{Alpha: 25, Beta: 1} }

// Validate fails unless 0 < Beta < Alpha <= 100.
func (t Thresholds) Validate() error {
	if !(t.Beta > 0 && t.Beta < t.Alpha && t.Alpha <= 100) {
		return fmt.Errorf("thresholds must be 0 < beta < alpha <= 100, not alpha %g and beta %g", t.Alpha,
			t.Beta)
	}
	return nil
}

// ClassByRisk is the class by the risk rate alone, [Unclassified] for a column
// with too many missing values.
func (c *Column) ClassByRisk(t Thresholds) Class {
	switch risk := c.RiskPercent(); {
	case c.Excluded() || c.Rows == 0:
		return Unclassified
	case risk > t.Alpha:
		return Sensitive
	case risk >= t.Beta:
		return QuasiIdentifier
	}
	return NonSensitive
}

// ByRisk sorts columns by falling risk rate; equal ones keep their order, as
// they do in [Menten2024].
func ByRisk(columns []*Column) {
	slices.SortStableFunc(columns, func(a, b *Column) int {
		switch ra, rb := a.RiskPercent(), b.RiskPercent(); {
		case ra > rb:
			return -1
		case ra < rb:
			return 1
		}
		return 0
	})
}

// Caveat is what every report has to say of the method.
const Caveat = "The thresholds alpha and beta are arbitrary, and that an attribute is sensitive " +
	"because its values are rare is doubtful: " +
	"a rare value makes a person recognizable, whatever it says. Take the classes as questions to " +
	"whoever knows the data."
