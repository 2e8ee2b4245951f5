package anonymize

import (
	"fmt"
	"math"
)

// DeltaDisclosure asks that for every value of a sensitive attribute the share
// in each class and the share in the whole table differ by a factor of less
// than e^Delta: |ln(q/p)| < Delta ([Brickell2008]). A class that lacks a value
// fails, as ln 0 is not finite; that is what makes the model monotone.
type DeltaDisclosure struct {
	Sensitive string
	Delta     float64
}

func (m DeltaDisclosure) String() string {
	return fmt.Sprintf("%v-disclosure privacy of %s", m.Delta, m.Sensitive)
}
func (m DeltaDisclosure) Monotone() Monotonicity { return WithoutSuppression }

func (m DeltaDisclosure) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("delta", m.Delta, math.SmallestNonzeroFloat64,
		math.MaxFloat64); err != nil {
		return privacyTest{}, err
	}
	model := BlockDisclosure{Delta: m.Delta, To: onScale(p.Sensitive[s].shares(p.Table))}
	return privacyTest{monotone: WithoutSuppression, class: ofClass(s, model)}, nil
}

// BetaLikeness asks that no value of a sensitive attribute gains more than
// Beta in any class: (q-p)/p ≤ Beta for every value with q > p. Enhanced, the
// bound is min(Beta, -ln p), so that frequent values may gain less
// ([Cao2012] §3).
type BetaLikeness struct {
	Sensitive string
	Beta      float64
	Enhanced  bool
}

func (m BetaLikeness) String() string {
	kind := "basic"
	if m.Enhanced {
		kind = "enhanced"
	}
	return fmt.Sprintf("%s %v-likeness of %s", kind, m.Beta, m.Sensitive)
}
func (m BetaLikeness) Monotone() Monotonicity { return WithoutSuppression }

func (m BetaLikeness) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("beta", m.Beta, math.SmallestNonzeroFloat64,
		math.MaxFloat64); err != nil {
		return privacyTest{}, err
	}
	to := onScale(p.Sensitive[s].shares(p.Table))
	model := BlockBetaLikeness{Beta: m.Beta, Enhanced: m.Enhanced, To: to}
	return privacyTest{monotone: WithoutSuppression, class: ofClass(s, model)}, nil
}
