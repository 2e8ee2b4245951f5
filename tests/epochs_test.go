package tests

import (
	"fmt"
	"slices"
	"testing"
)

// TestEpochsTellNobodyApart changes a table, refreshes it and lays all answers beside
// each other. Attacker: knows everybody's quasi-identifiers and who was there at any
// time, and who has got another payload, but no payload. Precondition: one scope, no
// chain forgotten. Property: in every set of epochs at least k people share what was
// shown of each: labels, presence, changes of payload.
func TestEpochsTellNobodyApart(t *testing.T) {
	office := openOffice(t, "epochs")
	for i, test := range []struct {
		name string
		run  func(r *register)
	}{
		{"one arrives, then nobody", func(r *register) {
			one := r.arrive(1)
			for range 2 {
				r.refresh()
				r.shows(one, false)
			}
		}},
		{"five arrive, and five more", func(r *register) {
			for range 2 {
				five := r.arrive(5)
				r.refresh()
				r.shows(five, false)
			}
		}},
		{"fifty arrive, and sixty more", func(r *register) {
			fifty := r.arrive(50)
			r.refresh()
			r.shows(fifty, false)
			all := append(fifty, r.arrive(60)...)
			r.refresh()
			r.shows(all, true)
		}},
		{"150 arrive, and one more each time", func(r *register) {
			many := r.arrive(150)
			r.refresh()
			r.shows(many, true)
			for range 3 {
				one := r.arrive(1)
				r.refresh()
				r.shows(one, false)
			}
		}},
		{"who waits leaves again, and does not count", func(r *register) {
			some := r.arrive(60)
			r.refresh()
			r.leave(some[:30])
			others := r.arrive(60)
			r.refresh()
			r.shows(append(some, others...), false)
			last := r.arrive(20)
			r.refresh()
			r.shows(some[:30], false)
			r.shows(slices.Concat(some[30:], others, last), true)
		}},
		{"one leaves, then another of the same block", func(r *register) {
			cell := r.cells(r.k, 3*r.k)[0]
			for i := range 2 {
				r.leave(cell[i : i+1])
				r.refresh()
				r.shows(cell[:i+1], true)
			}
		}},
		{"five leave, of five blocks", func(r *register) {
			five := r.strangers(5)
			r.leave(five)
			r.refresh()
			r.shows(five, true)
		}},
		{"a whole block leaves, one by one", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			r.leave(cell[:2])
			r.refresh()
			r.shows(cell, true)
			r.leave(cell[2:4])
			r.refresh()
			r.shows(cell, true)
			r.leave(cell[4:])
			r.refresh()
			r.shows(cell, false)
		}},
		{"all but one of a block leave", func(r *register) {
			cell := r.cells(r.k+1, 3*r.k)[0]
			r.leave(cell[1:])
			r.refresh()
			r.shows(cell, true)
		}},
		{"people move", func(r *register) {
			cells := r.cells(r.k, 3*r.k)
			r.move(cells[0][:1])
			r.refresh()
			r.move(r.strangers(5))
			r.refresh()
			r.move(cells[1])
			r.refresh()
			r.shows(slices.Concat(cells[0], cells[1]), true)
		}},
		{"who moves leaves and comes back from elsewhere", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			r.leave(cell)
			r.refresh()
			for _, token := range cell {
				r.people[token].zip = "90010"
			}
			r.back(cell[:1])
			r.refresh()
			r.shows(cell, false)
			r.back(cell[1:])
			r.refresh()
		}},
		{"payloads change, of one and of five", func(r *register) {
			one := r.strangers(6)[:1]
			r.change(one)
			r.refresh()
			r.showsChange(one, false)
			five := r.strangers(6)[1:]
			r.change(five)
			r.refresh()
			r.showsChange(append(one, five...), false)
		}},
		{"the payload of a block changes, twice of some", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			r.change(cell[:3])
			r.refresh()
			r.showsChange(cell[:3], false)
			r.change(cell[:2])
			r.refresh()
			r.change(cell[2:])
			r.refresh()
			r.showsChange(cell, true)
		}},
		{"one and then all of a block return", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			r.leave(cell)
			r.refresh()
			r.shows(cell, false)
			r.back(cell[:1])
			r.refresh()
			r.shows(cell, false)
			r.back(cell[1:])
			r.refresh()
			r.shows(cell, true)
		}},
		{"one leaves, returns and leaves", func(r *register) {
			one := r.strangers(1)
			r.leave(one)
			r.refresh()
			r.back(one)
			r.refresh()
			r.leave(one)
			r.refresh()
			r.shows(one, true)
		}},
		{"a block leaves, returns and leaves", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			for range 2 {
				r.leave(cell)
				r.refresh()
				r.shows(cell, false)
				r.back(cell)
				r.refresh()
				r.shows(cell, true)
			}
			r.leave(cell[:1])
			r.refresh()
			r.shows(cell, true)
		}},

		{"copies that follow each other before they are taken in", func(r *register) {
			cells := r.cells(r.k, 2*r.k-1)
			one := r.arrive(1)
			r.leave(cells[0][:2])
			r.exec(`CALL tailor.refresh('$')`)
			r.change(cells[1][:2])
			r.leave(cells[0][2:])
			r.exec(`CALL tailor.refresh('$')`)
			r.back(cells[0][:2])
			r.refresh()
			r.shows(one, false)
		}},
		{"a nightly load of the same people, and one more", func(r *register) {
			before := r.answers[0]
			r.exec(`CREATE TEMP TABLE loaded AS SELECT * FROM $; TRUNCATE $; ` +
				`INSERT INTO $ SELECT * FROM loaded ORDER BY random(); DROP TABLE loaded`)
			one := r.arrive(1)
			r.refresh()
			r.shows(one, false)
			if !sameAnswers(before, r.answers[1]) {
				r.t.Error("answers change")
			}
		}},
		{"the policy is activated again while people wait", func(r *register) {
			one, cell := r.arrive(1), r.cells(r.k, 3*r.k)[0]
			r.leave(cell[:1])
			r.change(cell[1:2])
			r.restrict(5)
			r.shows(one, false)
			r.shows(cell, true)
			r.showsChange(cell[1:2], false)
			r.refresh()
		}},
		{"everybody leaves, and most return", func(r *register) {
			all := sortedKeys(r.present)
			r.leave(all)
			r.refresh()
			r.shows(all, false)
			r.back(all[:len(all)-100])
			r.refresh()
		}},

		// A block that was told apart once is two from then on.
		{"parts of a block change that cross", func(r *register) {
			crowd := r.crowd(0)
			r.change(crowd[:10])
			r.refresh()
			r.showsChange(crowd[:10], true)
			r.change(crowd[8:18]) // 2 of these 10, and 8 of the others
			r.refresh()
			r.change(slices.Concat(crowd[:4], crowd[12:16], crowd[20:24]))
			r.refresh()
			r.change(crowd[30:])
			r.refresh()
		}},
		{"a part of a block changes, and one leaves that crosses it", func(r *register) {
			crowd := r.crowd(0)
			r.change(crowd[:20])
			r.refresh()
			r.leave(crowd[17:25]) // 3 of the changed, 5 of the others
			r.refresh()
			r.shows(crowd[17:20], true)
			r.leave(crowd[15:17])
			r.refresh()
			r.shows(crowd[15:25], false)
		}},
		{"parts of a block leave, and a part returns that crosses them", func(r *register) {
			crowd := r.crowd(1)
			r.leave(crowd[:8])
			r.refresh()
			r.shows(crowd[:8], false)
			r.leave(crowd[8:18])
			r.refresh()
			r.shows(crowd[:18], false)
			r.back(crowd[6:11]) // 2 who left first, 3 who left then
			r.refresh()
			r.back(crowd[:3])
			r.refresh()
			r.back(slices.Concat(crowd[3:6], crowd[11:18]))
			r.refresh()
			r.shows(crowd, true)
		}},
		{"some leave and some change in one refresh", func(r *register) {
			crowd := r.crowd(1)
			r.leave(crowd[:20])
			r.change(crowd[20:37]) // 3 stay as they are
			r.refresh()
			r.leave(crowd[20:25])
			r.back(crowd[:7])
			r.change(crowd[25:])
			r.refresh()
		}},
		{"of those who return, one has changed", func(r *register) {
			crowd := r.crowd(0)
			r.leave(crowd[:10])
			r.refresh()
			r.shows(crowd[:10], false)
			p := r.people[crowd[0]]
			p.diagnosis, p.cost = "fracture", 77_777
			r.back(crowd[:10])
			r.refresh()
		}},
		{"one leaves, and the others of the block change", func(r *register) {
			cell := r.cells(r.k+1, 3*r.k)[0]
			r.leave(cell[:1])
			r.change(cell[1:])
			r.refresh()
			r.leave(cell[1:2])
			r.refresh()
		}},
		{"all of the above in one table", func(r *register) {
			cells := r.cells(r.k, 2*r.k-1)
			crowd := r.crowd(0)
			r.arrive(150)
			r.leave(cells[0])
			r.change(cells[1])
			r.move(cells[1][:1])
			r.refresh()
			r.arrive(3)
			r.back(cells[0][:2])
			r.leave(crowd[:12])
			r.change(crowd[12:24])
			r.refresh()
			r.leave(cells[1][:2])
			r.back(crowd[:6])
			r.change(crowd[20:])
			r.refresh()
			r.arrive(120)
			r.back(cells[0][2:])
			r.leave(crowd[24:30])
			r.refresh()
			r.change(r.strangers(20))
			r.refresh()
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			oneIn(t, 4, i)
			r := office.register(t, 1200)
			test.run(r)
			r.check()
		})
	}
}

// TestEpochsShowWhatTheyCan: what concerns enough people at once is shown by the next
// epoch, of which nobody need be kept waiting.
func TestEpochsShowWhatTheyCan(t *testing.T) {
	r := openOffice(t, "epochs_lively").register(t, 2000)
	cells := r.cells(r.k, 2*r.k-1)
	if people := len(r.answers[0]); people != 2000 {
		t.Errorf("the first epoch shows %d of 2000 people", people)
	}
	crowd, other := r.crowd(0), r.crowd(1)
	many := r.arrive(150)
	r.leave(cells[0])
	r.change(cells[1])
	r.leave(crowd[:5])
	r.change(other[:5])
	r.refresh()
	r.shows(many, true)
	r.shows(cells[0], false)
	r.showsChange(cells[1], true)
	r.shows(crowd[:5], false)
	r.showsChange(other[:5], true)

	// Nothing waits behind something else: the same block changes again and goes, those
	// who have arrived change and go, those who have left return.
	r.change(cells[1])
	r.back(cells[0])
	r.change(many)
	r.back(crowd[:5])
	r.refresh()
	r.showsChange(cells[1], true)
	r.shows(cells[0], true)
	r.showsChange(many, true)
	r.shows(crowd, true)
	r.leave(many)
	r.leave(cells[1])
	r.refresh()
	r.shows(many, false)
	r.shows(cells[1], false)

	// Without a change in the table there is none in the answers.
	before := r.answers[len(r.answers)-1]
	r.refresh()
	if !sameAnswers(before, r.answers[len(r.answers)-1]) {
		t.Error("a refresh of an unchanged table changes answers")
	}
	r.check()
}

// TestEpochsOverALongTime has a hundredth of the people replaced each time, others
// change, move, and come back.
func TestEpochsOverALongTime(t *testing.T) {
	epochs := 7
	if soak() {
		epochs = 39
	}
	r := openOffice(t, "epochs_long").register(t, 2000)
	var away, arrivals []string
	gone := make(map[string]bool)
	for range epochs {
		there := sortedKeys(r.present)
		r.random.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
		r.leave(there[:20])
		away = append(away, there[:20]...)
		r.change(there[20:40])
		r.move(there[40:45])
		back := r.random.IntN(len(away) - 2)
		r.back(away[back : back+3])
		away = slices.Delete(away, back, back+3)
		arrivals = append(arrivals, r.arrive(20)...)
		r.refresh()
	}
	for _, token := range away {
		gone[token] = true
	}
	last := r.answers[len(r.answers)-1]
	waiting, kept, old := 0, 0, 0
	for _, token := range arrivals {
		if _, is := last[token]; !is && !gone[token] {
			waiting++
		}
	}
	for token, s := range last {
		if gone[token] {
			kept++
		} else if s.payload[1] != fmt.Sprint(r.people[token].cost) {
			old++
		}
	}
	t.Logf("after %d epochs, of %d people: %d of %d who are gone are shown, %d of %d arrivals wait, "+
		"%d payloads are old", epochs, len(r.present), kept, len(gone), waiting, len(arrivals), old)
	if waiting >= 120 {
		t.Errorf("%d people wait to be shown", waiting)
	}
	r.check()
}
