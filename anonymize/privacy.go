package anonymize

import (
	"fmt"
	"math"
)

// Privacy is a privacy model. Models of classes are judged class by class, and
// a class that fails is suppressed as a whole. Models of the table are judged
// on the classes that remain, of which the smallest are suppressed one after
// the other until the model holds. All count subjects, not rows.
//
// The attacker of every model knows the quasi-identifiers of a person and that
// the person is in the table (prosecutor), save for [KMap] (in the
// population). The property tests in search_test.go check each model against
// its definition.
type Privacy interface {
	fmt.Stringer
	// Monotone says in which searches a node that fails the model rules out
	// all of its specializations.
	Monotone() Monotonicity
	// bind checks the parameters, failing with a *[ProblemError].
	bind(p *Problem) (privacyTest, error)
}

// Monotonicity says how a privacy model behaves when classes are merged.
type Monotonicity int

const (
	// WithSuppression: a class that meets the model still meets it after a
	// merger with any other class. The number of rows to suppress then never
	// grows along generalization.
	WithSuppression Monotonicity = iota
	// WithoutSuppression: a merger of classes that all meet the model meets it.
	// A merger with a class that fails may fail, so that the model rules out
	// specializations only where nothing may be suppressed, and no subject has
	// rows in two classes.
	WithoutSuppression
)

func (m Monotonicity) String() string {
	if m == WithSuppression {
		return "monotone with suppression"
	}
	return "monotone without suppression"
}

// privacyTest is a model bound to a problem. Exactly one of its parts is set.
type privacyTest struct {
	least    uint32                          // subjects that a class needs
	class    func(c *classes, i int) bool    // whether class i meets the model
	counted  func(size uint32) (part uint64) // table: sum over classes ≤ share × subjects
	share    float64
	monotone Monotonicity
	smallest uint32 // fewest subjects that a class can have
}

// KAnonymity asks that every class has at least K subjects ([Sweeney2002]).
type KAnonymity struct{ K int }

func (m KAnonymity) String() string         { return fmt.Sprintf("%d-anonymity", m.K) }
func (m KAnonymity) Monotone() Monotonicity { return WithSuppression }

func (m KAnonymity) bind(p *Problem) (privacyTest, error) {
	if err := checkClassSize(m.K, p); err != nil {
		return privacyTest{}, err
	}
	return privacyTest{least: uint32(m.K), smallest: uint32(m.K)}, nil
}

func checkClassSize(k int, p *Problem) error {
	switch {
	case k < 1:
		return &ProblemError{fmt.Sprintf("k = %d is not positive", k), "give k of at least 2"}
	case k > p.Table.Subjects():
		return &ProblemError{
			fmt.Sprintf("k = %d is larger than the table, which has %d subjects", k, p.Table.Subjects()),
			"lower k or give more rows",
		}
	}
	return nil
}

// KMap asks that every class has at least K subjects in the population table
// of the problem ([Sweeney2002]). Tuples of the population count in the class
// that they generalize to, whether the table holds them or not.
type KMap struct{ K int }

func (m KMap) String() string         { return fmt.Sprintf("%d-map", m.K) }
func (m KMap) Monotone() Monotonicity { return WithSuppression }

func (m KMap) bind(p *Problem) (privacyTest, error) {
	switch {
	case m.K < 1:
		return privacyTest{}, &ProblemError{
			fmt.Sprintf("k = %d is not positive", m.K),
			"give k of at least 2",
		}
	case p.Population == nil:
		return privacyTest{}, &ProblemError{
			"k-map needs a population table",
			"give one, or ask for k-anonymity",
		}
	case m.K > p.Population.Rows():
		return privacyTest{}, &ProblemError{
			fmt.Sprintf("k = %d is larger than the population, which has %d rows", m.K, p.Population.Rows()),
			"lower k",
		}
	}
	k := uint32(m.K)
	return privacyTest{class: func(c *classes, i int) bool { return c.population[i] >= k }}, nil
}

// tolerance forgives rounding where a quantity is compared with a parameter.
const tolerance = 1e-9

func checkParameter(name string, value, lowest, highest float64) error {
	if math.IsNaN(value) || value < lowest || value > highest {
		return &ProblemError{
			fmt.Sprintf("%s = %v is outside [%v, %v]", name, value, lowest, highest),
			"give a value in that range",
		}
	}
	return nil
}
