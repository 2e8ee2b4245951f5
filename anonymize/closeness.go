package anonymize

import "fmt"

// TCloseness asks that the distribution of a sensitive attribute in every
// class is at most T away from that in the whole table, by the earth mover's
// distance ([Li2007] §4). With the equal distance that is half the sum of
// absolute differences; with the ordered one, where values lie at even steps
// in their order, the sum of absolute cumulative differences over m-1.
type TCloseness struct {
	Sensitive string
	T         float64
	Ordered   bool
}

func (m TCloseness) String() string {
	kind := "equal"
	if m.Ordered {
		kind = "ordered"
	}
	return fmt.Sprintf("%v-closeness of %s (%s distance)", m.T, m.Sensitive, kind)
}
func (m TCloseness) Monotone() Monotonicity { return WithoutSuppression }

func (m TCloseness) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("t", m.T, 0, 1); err != nil {
		return privacyTest{}, err
	}
	model := BlockTCloseness{T: m.T, Ordered: m.Ordered, To: onScale(p.Sensitive[s].shares(p.Table))}
	return privacyTest{monotone: WithoutSuppression, class: ofClass(s, model)}, nil
}

// ofClass says whether a class meets a model of one of the sensitive attributes.
func ofClass(s int, model ValueModel) func(c *classes, i int) bool {
	return func(c *classes, i int) bool {
		values, counts := c.sensitive[s].of(i)
		return model.Holds(values, counts)
	}
}

// AlphaK asks that every class has at least K subjects and that no sensitive
// value is held by more than the share Alpha of them ([Wong2006]).
type AlphaK struct {
	Sensitive string
	Alpha     float64
	K         int
}

func (m AlphaK) String() string {
	return fmt.Sprintf("(%v,%d)-anonymity of %s", m.Alpha, m.K, m.Sensitive)
}

func (m AlphaK) Monotone() Monotonicity { return WithoutSuppression }

func (m AlphaK) bind(p *Problem) (privacyTest, error) {
	s, err := p.sensitive(m.Sensitive, m.String())
	if err != nil {
		return privacyTest{}, err
	}
	if err := checkParameter("alpha", m.Alpha, 0, 1); err != nil {
		return privacyTest{}, err
	}
	if err := checkClassSize(m.K, p); err != nil {
		return privacyTest{}, err
	}
	k := uint32(m.K)
	return privacyTest{monotone: WithoutSuppression, smallest: k, class: func(c *classes, i int) bool {
		if c.subjects[i] < k {
			return false
		}
		_, counts := c.sensitive[s].of(i)
		most, _ := recursiveParts(counts, 1)
		return most <= m.Alpha*float64(c.subjects[i])+tolerance
	}}, nil
}
