package ecg

import (
	"iter"
	"slices"
)

// Ways implements [Material]: every non-empty subset of the attributes with
// every recoding is a way to de-identify. Those are left out of which it is
// plain that they fail: where some attributes cannot be shown as they are,
// neither can more of them, so that subsets are looked at by the attributes
// that they leave alone, few first, and each only if all of its parts passed.
// Before the last stage only the ways that generalize everything are listed.
func (c *Chain) Ways(attributes []string, last bool) (ways []Way, possible int) {
	recodings := c.Recodings
	if len(recodings) == 0 {
		recodings = []string{Local}
	}
	possible = len(recodings)*(1<<min(len(attributes), 30)) - len(recodings)
	work := c.Work
	if work == 0 {
		work = DefaultWork
	}
	most := max(1, work/max(1, c.Present.Table().Tuples()))
	// What is shown as it is by now has nothing to lose.
	var free []string
	for _, name := range attributes {
		if !c.Present.IsExact(c.Present.Table().Column(name)) {
			free = append(free, name)
		}
	}
	for _, recoding := range recodings {
		ways = append(ways, Way{Generalized: free, Recoding: recoding})
	}
	if !last {
		return ways, possible
	}
	for left := range c.showable(free) {
		if len(ways)+len(recodings) > most || len(left) == len(free) {
			break
		}
		generalized := slices.DeleteFunc(slices.Clone(free), func(name string) bool { return slices.Contains(left, name) })
		for _, recoding := range recodings {
			ways = append(ways, Way{Generalized: generalized, Recoding: recoding})
		}
	}
	return ways, possible
}

// showable yields the sets of attributes that can be shown as they are on top
// of what the chain shows, small sets first.
func (c *Chain) showable(attributes []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		level := [][]string{{}}
		for len(level) > 0 {
			var next [][]string
			for _, set := range level {
				// Sets grow in the order of the attributes, so that each comes once.
				after := 0
				if len(set) > 0 {
					after = slices.Index(attributes, set[len(set)-1]) + 1
				}
				for _, name := range attributes[after:] {
					larger := append(slices.Clone(set), name)
					if !partsAmong(larger, level) || !c.canShow(larger) {
						continue
					}
					if !yield(larger) {
						return
					}
					next = append(next, larger)
				}
			}
			level = next
		}
	}
}

// canShow says whether attributes could be shown as they are without a class
// of fewer than k subjects.
func (c *Chain) canShow(attributes []string) bool {
	classes := c.Present.Classes()
	for _, name := range attributes {
		classes = classes.Exactly(c.Present.Table().Column(name))
		if classes.Len() > c.Present.Table().Subjects()/c.Gate.K && c.Present.Table().RowPerSubject() {
			return false
		}
	}
	return int(slices.Min(classes.Subjects())) >= c.Gate.K
}

// partsAmong says whether every set with one member less is in the list.
func partsAmong(set []string, sets [][]string) bool {
	for i := range set {
		part := slices.Delete(slices.Clone(set), i, i+1)
		if !slices.ContainsFunc(sets, func(s []string) bool { return slices.Equal(s, part) }) {
			return false
		}
	}
	return true
}
