package ecg

import (
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Whole implements [Material]. What is shown as it is by now has nothing to
// lose and is not among the attributes that are generalized.
func (c *Chain) Whole(attributes []string) (ways []Way, possible int) {
	for _, recoding := range c.recodings() {
		ways = append(ways, Way{Generalized: c.inexact(attributes, c.Present), Recoding: recoding})
	}
	return ways, len(ways) * (1<<min(len(attributes), 30) - 1)
}

func (c *Chain) recodings() []string {
	if len(c.Recodings) == 0 {
		return []string{Local}
	}
	return c.Recodings
}

// inexact lists the attributes that a partition does not show as they are.
func (c *Chain) inexact(attributes []string, p *anonymize.Partition) []string {
	return slices.DeleteFunc(slices.Clone(attributes), func(name string) bool {
		return p.IsExact(p.Table().Column(name))
	})
}

// Others implements [Material]. Every non-empty subset of the attributes is a
// way, in each recoding. Those are left out of which it is plain that they
// fail: where some attributes cannot be shown as they are, neither can more of
// them, so that subsets are looked at by the attributes that they leave alone,
// few first, and each only if all of its parts passed. Where the work does not
// suffice for all, those come first that leave alone what generalizing all did
// not manage to show as it is.
func (c *Chain) Others(ctx context.Context, attributes []string, whole *Outcome) []Way {
	generalized := c.inexact(attributes, c.Present)
	most := c.affordable() - len(c.recodings())
	if most < len(c.recodings()) {
		return nil
	}
	leavable := generalized
	if whole.Partition != nil && most < len(c.recodings())*(1<<min(len(generalized), 30)-2) {
		leavable = c.inexact(generalized, whole.Partition)
	}
	var ways []Way
	for left := range c.showable(ctx, leavable, 4*most) {
		if len(ways)+len(c.recodings()) > most || len(left) == len(generalized) {
			break
		}
		rest := slices.DeleteFunc(slices.Clone(generalized), func(name string) bool {
			return slices.Contains(left, name)
		})
		for _, recoding := range c.recodings() {
			ways = append(ways, Way{Generalized: rest, Recoding: recoding})
		}
	}
	return ways
}

// showable yields the sets of attributes that can be shown as they are on top
// of what the chain shows, small sets first. It ends when the context does, and
// after so many looks.
func (c *Chain) showable(ctx context.Context, attributes []string, looks int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		level, members := [][]string{{}}, map[string]bool{"": true}
		for len(level) > 0 {
			var next [][]string
			nextMembers := make(map[string]bool)
			for _, set := range level {
				// Sets grow in the order of the attributes, so that each comes once.
				after := 0
				if len(set) > 0 {
					after = slices.Index(attributes, set[len(set)-1]) + 1
				}
				for _, name := range attributes[after:] {
					larger := append(slices.Clone(set), name)
					if !partsAmong(larger, members) {
						continue
					}
					if looks--; looks < 0 || ctx.Err() != nil {
						return
					}
					if !c.canShow(larger) {
						continue
					}
					if !yield(larger) {
						return
					}
					next = append(next, larger)
					nextMembers[strings.Join(larger, "\x00")] = true
				}
			}
			level, members = next, nextMembers
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

// partsAmong says whether every set with one member less is among some.
func partsAmong(set []string, sets map[string]bool) bool {
	for i := range set {
		if !sets[strings.Join(slices.Delete(slices.Clone(set), i, i+1), "\x00")] {
			return false
		}
	}
	return true
}
