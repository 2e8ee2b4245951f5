package catalog

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// life is a person of a block as the table has him, and as he is shown.
type life struct {
	member
	there  bool    // in the table
	values []int64 // there
	shown  []int64
	past   [][]int64 // by column
	gone   bool      // not shown any more
	block  int
	told   string // all that was ever told of him, but for the values themselves
	first  map[string]int
}

// tell adds what an epoch tells: whether he is shown, and which of his contents so far
// are equal.
func (l *life) tell() {
	if l.gone {
		l.told += ";gone"
		return
	}
	for column, v := range l.shown {
		content := fmt.Sprint(column, " ", v)
		if _, known := l.first[content]; !known {
			l.first[content] = len(l.first)
		}
		l.told += fmt.Sprint(" ", l.first[content])
	}
	l.told += ";"
}

// TestWhatHappensToABlockTellsNobodyApart lets people of one block come to leave, and
// their payloads change and change back, at random, and compares all that is told of them
// from the beginning.
func TestWhatHappensToABlockTellsNobodyApart(t *testing.T) {
	const k, columns = 4, 2
	happened := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 5))
		people := make([]*life, k+rng.IntN(9*k))
		for i := range people {
			l := &life{
				there: true, values: make([]int64, columns), shown: make([]int64, columns),
				past: make([][]int64, columns), first: make(map[string]int),
			}
			l.person = int64(i)
			people[i] = l
			l.tell()
		}
		next := 1
		for epoch := range 14 {
			all := rng.IntN(4) == 0 // something happens to most
			for _, l := range people {
				if l.there && rng.IntN(12) == 0 || all && rng.IntN(3) > 0 && epoch%3 == 2 {
					l.there = false
				}
				for column := range l.values {
					if rng.IntN(4) == 0 || all && rng.IntN(8) > 0 {
						l.values[column] = int64(rng.IntN(4)) // values come again
					}
				}
			}
			blocks := make(map[int]*block)
			for _, l := range people {
				if l.gone {
					continue
				}
				m := &l.member
				m.leaves, m.changes = !l.there, make([]int, columns)
				for column, v := range l.values {
					if l.there && v != l.shown[column] {
						m.changes[column] = (history{{m.person, 0}: l.past}).shownAs(rowKey{m.person, 0}, column, v)
					}
				}
				if blocks[l.block] == nil {
					blocks[l.block] = &block{number: l.block}
				}
				blocks[l.block].members = append(blocks[l.block].members, *m)
			}
			for number := range next {
				b := blocks[number]
				if b == nil {
					continue
				}
				h := b.decide(needs{subjects: k, share: 1})
				if !h.any() {
					continue
				}
				happened++
				var acts []act
				acts, next = b.acts(h, next, false)
				for _, a := range acts {
					l := people[a.person]
					if a.member.leaves {
						l.gone = true
						continue
					}
					for column := range l.shown {
						if h.columns[column] && a.changes[column] != unchanged {
							l.past[column] = append(l.past[column], l.shown[column])
							l.shown[column] = l.values[column]
						}
					}
					l.block, l.class = a.block, a.class
				}
			}
			classes := make(map[string]int)
			for _, l := range people {
				l.tell()
				classes[l.told]++
			}
			for told, n := range classes {
				if n < k {
					t.Fatalf("seed %d, epoch %d: %d of %d people are told apart by %q", seed, epoch, n,
						len(people), told)
				}
			}
		}
	}
	if happened < 100 {
		t.Errorf("something happened %d times only", happened)
	}
}

// TestABlockThatHasJoinedAnotherIsStillKnown: who knows the labels that two blocks had
// sees which of them somebody was of.
func TestABlockThatHasJoinedAnotherIsStillKnown(t *testing.T) {
	joined := func(leaving ...int) *block {
		b := &block{}
		for i := range 10 {
			b.members = append(b.members, member{
				person: int64(i), class: i / 5,
				leaves: slices.Contains(leaving, i),
			})
		}
		return b
	}
	n := needs{subjects: 5, share: 1}
	if joined(0, 1, 2, 7, 8).decide(n).any() {
		t.Error("three of one block and two of another leave together")
	}
	if h := joined(0, 1, 2, 3, 4).decide(n); !h.leaves {
		t.Error("all of one block may not leave")
	}
}

// TestWhatHappensMeetsTheModels: k people of one diagnosis are no crowd.
func TestWhatHappensMeetsTheModels(t *testing.T) {
	n := needs{
		subjects: 3, share: 1, models: []anonymize.ValueModel{anonymize.BlockDistinctL{L: 2}},
		codes: []func(int64) uint32{byCode}, columns: []int{0},
	}
	of := func(what func(i int) member) *block {
		b := &block{}
		for i := range 6 {
			m := what(i)
			m.person = int64(i)
			b.members = append(b.members, m)
		}
		return b
	}
	sick := func(i int) []int64 { return []int64{int64(i % 2)} }
	if of(func(i int) member {
		return member{changes: []int{unchanged}, leaves: i%2 == 0, shown: sick(i), now: sick(i)}
	}).decide(n).any() {
		t.Error("all of one diagnosis leave")
	}
	if !of(func(i int) member {
		return member{changes: []int{unchanged}, leaves: i < 3, shown: sick(i), now: sick(i)}
	}).decide(n).leaves {
		t.Error("people of two diagnoses may not leave")
	}
	if of(func(i int) member {
		return member{changes: []int{unseen}, shown: sick(i), now: []int64{9}}
	}).decide(n).any() {
		t.Error("all get one diagnosis")
	}
	if !of(func(i int) member {
		return member{changes: []int{unseen}, shown: sick(i), now: []int64{int64(8 + i%2)}}
	}).decide(n).columns[0] {
		t.Error("all get one of two diagnoses, and nobody sees")
	}
}

func TestWithheldValuesMeetModels(t *testing.T) {
	const nothing = 7
	blind := needs{
		subjects: 2, share: 1, models: []anonymize.ValueModel{anonymize.BlockDistinctL{L: 2}},
		codes: []func(int64) uint32{byCode}, columns: []int{0}, blind: true, nothing: nothing,
	}
	for claim, c := range map[string]struct {
		values []int64
		meets  bool
	}{
		"all withheld":                    {[]int64{nothing, nothing}, true},
		"one value beside withheld ones":  {[]int64{nothing, nothing, 1}, false},
		"two values beside withheld ones": {[]int64{nothing, 1, 2}, true},
		"two values":                      {[]int64{1, 2}, true},
		"one value":                       {[]int64{1, 1}, false},
	} {
		var of class
		for person, value := range c.values {
			of.add(int64(person), []int64{value})
		}
		if got := blind.meets(&of); got != c.meets {
			t.Errorf("%s: meets the model: %t", claim, got)
		}
	}
}

// TestHeldBackValuesMeetModels where nothing is shown of a block: else those of whom nothing is
// shown once the others have left are known to have nothing.
func TestHeldBackValuesMeetModels(t *testing.T) {
	const nothing = 7
	late := needs{
		subjects: 3, share: 1, models: []anonymize.ValueModel{anonymize.BlockDistinctL{L: 2}},
		codes: []func(int64) uint32{byCode}, columns: []int{0}, late: map[int]bool{0: true},
		nothing: nothing,
	}
	of := func(blank bool, value func(i int) int64) *block {
		b := &block{}
		for i := range 6 {
			v := []int64{value(i)}
			b.members = append(b.members, member{
				person: int64(i), leaves: i < 3, changes: []int{unchanged}, blank: []bool{blank}, shown: v,
				now: v,
			})
		}
		return b
	}
	held := of(true, func(int) int64 { return nothing })
	if !held.decide(late.in(held)).leaves {
		t.Error("three of a block of which nothing is shown may not leave")
	}
	rest := of(false, func(i int) int64 {
		return []int64{1, 2, nothing, nothing, nothing, nothing}[i]
	})
	if rest.decide(late.in(rest)).leaves {
		t.Error("those who are left are known to have nothing")
	}
}
