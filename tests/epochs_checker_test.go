package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// timelines are what answers, one an epoch, show of each row: as numbers, with 0
// where a row is not there. A row is known by its marker, its subject by a number.
type timelines struct {
	markers  []string
	subjects []int
	labels   [][]int   // of epoch and row
	payloads [][][]int // of epoch, row and column
}

// newTimelines numbers what was shown. subjectOf says whose row a marker marks; nil
// means that each row has a subject of its own.
func newTimelines(answers []map[string]seen, subjectOf func(marker string) string) *timelines {
	all := make(map[string]bool)
	for _, answer := range answers {
		for marker := range answer {
			all[marker] = true
		}
	}
	h := &timelines{markers: slices.Sorted(maps.Keys(all))}
	numbers := make(map[string]int)
	number := func(text string) int {
		if numbers[text] == 0 {
			numbers[text] = len(numbers) + 1
		}
		return numbers[text]
	}
	for _, marker := range h.markers {
		subject := marker
		if subjectOf != nil {
			subject = subjectOf(marker)
		}
		h.subjects = append(h.subjects, number("subject "+subject))
	}
	for _, answer := range answers {
		labels, payloads := make([]int, len(h.markers)), make([][]int, len(h.markers))
		for i, marker := range h.markers {
			if s, is := answer[marker]; is {
				labels[i] = number("labels " + s.labels)
				for _, cell := range s.payload {
					payloads[i] = append(payloads[i], number("payload "+cell))
				}
			}
		}
		h.labels, h.payloads = append(h.labels, labels), append(h.payloads, payloads)
	}
	return h
}

// pattern says, column by column, in which of the payloads up to now the present
// cell was shown first: who has read them all sees this of every row.
func pattern(shown [][]int) (columns int) {
	now := shown[len(shown)-1]
	for at, cell := range now {
		first := slices.IndexFunc(shown, func(payload []int) bool {
			return at < len(payload) && payload[at] == cell
		})
		columns = columns*64 + first
	}
	return columns
}

// classes numbers the rows by what the answers of some epochs show: two have the same
// number if in each of them both are absent, or both have the same labels and of both
// the same columns have changed, or changed back. 0: in none of them.
func (h *timelines) classes(epochs []int) []int {
	type sight struct{ before, labels, pattern int }
	class, shown := make([]int, len(h.markers)), make([][][]int, len(h.markers))
	for _, epoch := range epochs {
		numbers := make(map[sight]int)
		for i := range h.markers {
			s := sight{before: class[i], labels: h.labels[epoch][i]}
			if s.labels > 0 {
				shown[i] = append(shown[i], h.payloads[epoch][i])
				s.pattern = pattern(shown[i])
			}
			if numbers[s] == 0 {
				numbers[s] = len(numbers) + 1
			}
			class[i] = numbers[s]
		}
	}
	for i := range class {
		if shown[i] == nil {
			class[i] = 0
		}
	}
	return class
}

// few counts the rows in classes of fewer than k subjects, and says how small the
// smallest is.
func (h *timelines) few(class []int, k int) (rows, least int) {
	counted, subjects := make(map[[2]int]bool), make(map[int]int)
	for i, c := range class {
		if member := [2]int{c, h.subjects[i]}; !counted[member] {
			counted[member] = true
			subjects[c]++
		}
	}
	least = len(class) + 1
	for _, c := range class {
		if c == 0 {
			continue
		}
		least = min(least, subjects[c])
		if subjects[c] < k {
			rows++
		}
	}
	return rows, least
}

// subsets are those of n epochs that the checker looks at: all, and of many epochs
// the pairs, the triples and the first ones up to each.
func subsets(n int) (all [][]int) {
	if n <= 8 {
		for bits := 1; bits < 1<<n; bits++ {
			var epochs []int
			for i := range n {
				if bits>>i&1 > 0 {
					epochs = append(epochs, i)
				}
			}
			all = append(all, epochs)
		}
	} else {
		prefix := []int{}
		for c := range n {
			prefix = append(prefix, c)
			all = append(all, slices.Clone(prefix), []int{c})
			for b := range c {
				all = append(all, []int{b, c})
				for a := range b {
					all = append(all, []int{a, b, c})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b []int) int { return len(a) - len(b) })
	return all
}

// assertSound wants, for each set of epochs, at least k subjects in each class; k is
// the least of those that the policy had at these epochs.
func (h *timelines) assertSound(t *testing.T, ks []int) {
	t.Helper()
	unsound, told := 0, 0
	all := subsets(len(h.labels))
	for _, epochs := range all {
		k := ks[epochs[0]]
		for _, epoch := range epochs {
			k = min(k, ks[epoch])
		}
		rows, least := h.few(h.classes(epochs), k)
		if rows == 0 {
			continue
		}
		if unsound++; told < 3 {
			told++
			t.Errorf("epochs %s together: %d rows in classes of fewer than %d subjects, the smallest of %d",
				ordinals(epochs), rows, k, least)
		}
	}
	if unsound > told {
		t.Errorf("%d of %d sets of epochs are unsound", unsound, len(all))
	}
}

// ordinals counts epochs from one.
func ordinals(epochs []int) string {
	var text []string
	for _, epoch := range epochs {
		text = append(text, fmt.Sprint(epoch+1))
	}
	return strings.Join(text, ", ")
}

// assertDiverse wants, in each class over all epochs and at each of these, l different
// values of the first column of the payload, or the value withheld.
func (h *timelines) assertDiverse(t *testing.T, answers []map[string]seen, l int) {
	t.Helper()
	all := make([]int, len(h.labels))
	for i := range all {
		all[i] = i
	}
	members := make(map[int][]string)
	for i, class := range h.classes(all) {
		members[class] = append(members[class], h.markers[i])
	}
	alike, people := 0, 0
	for class, markers := range members {
		for _, answer := range answers {
			values := make(map[string]bool)
			for _, marker := range markers {
				if s, is := answer[marker]; is {
					values[s.payload[0]] = true
				}
			}
			if class > 0 && len(values) > 0 && len(values) < l && !values["(withheld)"] {
				alike++
				people += len(markers)
				break
			}
		}
	}
	if alike > 0 {
		t.Errorf("%d classes, of %d people, with fewer than %d different diagnoses", alike, people, l)
	}
}

// TestEpochsCheckerTellsSoundFromUnsound shows the checker what it is to find.
func TestEpochsCheckerTellsSoundFromUnsound(t *testing.T) {
	for _, test := range []struct {
		name   string
		people [][]string // of each, what each epoch shows: labels and a payload, or nothing
		few    int        // people who are told apart, by k = 2
	}{
		{"two alike", [][]string{{"A 1", "A 1"}, {"A 2", "A 2"}}, 0},
		{"one who leaves", [][]string{{"A 1", "A 1"}, {"A 2", "A 2"}, {"A 3", ""}}, 1},
		{"two who leave", [][]string{{"A 1", "A 1"}, {"A 2", "A 2"}, {"A 3", ""}, {"A 4", ""}}, 0},
		{"one who arrives", [][]string{{"A 1", "A 1"}, {"A 2", "A 2"}, {"", "A 3"}}, 1},
		{"other blocks", [][]string{{"A 1", "A 1"}, {"A 2", "B 2"}, {"B 3", "A 3"}, {"B 4", "B 4"}}, 4},
		{"one who changes", [][]string{{"A 1", "A 5"}, {"A 2", "A 2"}, {"A 3", "A 3"}}, 1},
		{"two who change", [][]string{{"A 1", "A 5"}, {"A 2", "A 6"}}, 0},
		{"one who changes back", [][]string{{"A 1", "A 5", "A 1"}, {"A 2", "A 6", "A 7"}, {
			"A 3", "A 8",
			"A 9",
		}}, 1},
		{"one who comes back", [][]string{{"A 1", "", "A 1"}, {"A 2", "", ""}, {"A 3", "", ""}}, 1},
		{
			"one who comes back with another payload",
			[][]string{{"A 1", "", "A 1"}, {"A 2", "", "A 2"}, {"A 3", "", "A 4"}},
			1,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var answers []map[string]seen
			all := make([]int, len(test.people[0]))
			for epoch := range all {
				all[epoch] = epoch
				answer := make(map[string]seen)
				for i, shown := range test.people {
					if labels, payload, is := strings.Cut(shown[epoch], " "); is {
						answer[fmt.Sprint("person ", i)] = seen{labels: labels, payload: []string{payload}}
					}
				}
				answers = append(answers, answer)
			}
			h := newTimelines(answers, nil)
			if few, _ := h.few(h.classes(all), 2); few != test.few {
				t.Errorf("%d people are told apart, want %d", few, test.few)
			}
		})
	}
}

// check judges everything that a register was shown as.
func (r *register) check() *timelines {
	r.t.Helper()
	h := newTimelines(r.answers, nil)
	h.assertSound(r.t, r.ks)
	r.assertKept()
	for _, marker := range h.markers {
		if r.people[marker] == nil {
			r.t.Errorf("somebody is shown who was never there: %s", marker)
		}
	}
	return h
}

// assertKept wants whoever is in an answer and in the one before to have the same labels
// and values in both, as long as the policy is the same. Who was away in between may come
// back with others.
func (r *register) assertKept() {
	r.t.Helper()
	relabelled, revalued := 0, 0
	for epoch, answer := range r.answers {
		if epoch == 0 || r.ks[epoch-1] != r.ks[epoch] {
			continue
		}
		for token, now := range answer {
			switch before, is := r.answers[epoch-1][token]; {
			case !is:
			case before.labels != now.labels:
				relabelled++
			case before.values != now.values:
				revalued++
			}
		}
	}
	if relabelled+revalued > 0 {
		r.t.Errorf("people lose what they were shown with: %d times labels, %d times values", relabelled,
			revalued)
	}
}
