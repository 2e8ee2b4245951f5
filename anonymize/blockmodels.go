package anonymize

import "fmt"

// BlockRequirements are the privacy models of a problem as requirements of the
// blocks of a [Partition] of its table.
//
// It fails with a *[ProblemError] on a faulty problem and on a model that no
// requirement of a block says: the models of the table as a whole other than
// [HighestRisk], [KMap], and [AlphaK] where subjects have several rows (it takes
// the share of subjects, [BlockAlpha] that of pairs of a subject and a value).
func BlockRequirements(p *Problem) ([]Requirement, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	var all []Requirement
	for _, m := range p.Privacy {
		if _, err := m.bind(p); err != nil {
			return nil, err
		}
		rs := p.inBlocks(m)
		if rs == nil {
			return nil, &ProblemError{
				fmt.Sprintf("blocks of a partition cannot be asked for %v", m),
				"leave out the model, or recode the full domain",
			}
		}
		for _, r := range rs {
			if _, err := r.Bind(p.Table); err != nil {
				return nil, &ProblemError{fmt.Sprintf("%v: %v", m, err), "give a parameter in that range"}
			}
		}
		all = append(all, rs...)
	}
	return all, nil
}

// inBlocks is what a model that has been bound asks of a block, nil where no
// requirement says the same.
func (p *Problem) inBlocks(m Privacy) []Requirement {
	of := func(name string) Sensitive {
		for _, s := range p.Sensitive {
			if s.Name == name {
				return Sensitive{Name: name, CodeOfRow: s.Codes}
			}
		}
		return Sensitive{Name: name} // not after bind
	}
	switch m := m.(type) {
	case KAnonymity:
		return []Requirement{BlockK(m)}
	case HighestRisk:
		return []Requirement{BlockK{K: int(m.classSize())}}
	case DistinctLDiversity:
		return []Requirement{BlockDistinctL{L: m.L, Of: of(m.Sensitive)}}
	case EntropyLDiversity:
		return []Requirement{BlockEntropyL{L: m.L, Of: of(m.Sensitive)}}
	case RecursiveCLDiversity:
		return []Requirement{BlockRecursiveCL{C: m.C, L: m.L, Of: of(m.Sensitive)}}
	case TCloseness:
		return []Requirement{BlockTCloseness{T: m.T, Ordered: m.Ordered, Of: of(m.Sensitive)}}
	case AlphaK:
		if p.Table.RowPerSubject() {
			return []Requirement{BlockK{K: m.K}, BlockAlpha{Alpha: m.Alpha, Of: of(m.Sensitive)}}
		}
	case BetaLikeness:
		return []Requirement{BlockBetaLikeness{Beta: m.Beta, Enhanced: m.Enhanced, Of: of(m.Sensitive)}}
	case DeltaDisclosure:
		return []Requirement{BlockDisclosure{Delta: m.Delta, Of: of(m.Sensitive)}}
	}
	return nil
}
