package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// copyWhole has the next copy of a register hold all rows: it does if what is remembered of
// the table's subjects may be of another one.
func (r *register) copyWhole() {
	r.t.Helper()
	r.exec(`UPDATE tailor.shown_family f SET subjects = NULL FROM tailor.protection p
		WHERE p.identity = f.protection AND p.relation = '$'::regclass`)
}

// copied counts the rows that the newest copy has, and the rows that it says are gone.
func (r *register) copied() (rows, gone int) {
	r.t.Helper()
	epoch := one[int](r.t, r.direct,
		`SELECT epoch FROM tailor.protection WHERE relation = $1::text::regclass`, r.table)
	rows = one[int](r.t, r.direct, fmt.Sprintf(`SELECT count(*) FROM tailor_store.epoch_%d`, epoch))
	if one[bool](r.t, r.direct, fmt.Sprintf(`SELECT to_regclass('tailor_store.absent_%d') IS NOT NULL`,
		epoch)) {
		gone = one[int](r.t, r.direct, fmt.Sprintf(`SELECT count(*) FROM tailor_store.absent_%d`, epoch))
	}
	return rows, gone
}

// TestCopiesOfWhatDiffersLeadWhereWholeOnesDo has the same people come, change, move, leave
// and return in two tables, of which one is always copied as a whole: their releases show
// the same people with the same labels and payloads, and as many wait.
func TestCopiesOfWhatDiffersLeadWhereWholeOnesDo(t *testing.T) {
	offices := []*clinicOffice{openOffice(t, "deltas_partial"), openOffice(t, "deltas_whole")}
	for i, policy := range [][]string{
		nil,
		{`CALL tailor.require('$', 'l_diversity', 'diagnosis', 2)`},
		{`CALL tailor.departures('$', 'at_once')`, `CALL tailor.changes('$', 'at_once')`},
		{`CALL tailor.classify('$', 'id', 'direct_identifier', action => 'pseudonym')`},
	} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			oneIn(t, 2, i)
			var tables []*register
			for _, office := range offices {
				tables = append(tables, office.register(t, 1200, policy...))
			}
			crowds := [][]string{tables[0].crowd(0), tables[0].crowd(1)}
			var away []string
			for epoch := range 6 {
				var left []string
				for i, r := range tables {
					there := sortedKeys(r.present)
					r.random.Shuffle(len(there), func(i, j int) { there[i], there[j] = there[j], there[i] })
					crowd, cell := crowds[epoch%2], r.cells(r.k, 3*r.k)[epoch]
					stay := func(tokens []string) []string {
						return slices.DeleteFunc(slices.Clone(tokens), func(token string) bool {
							return !r.present[token]
						})
					}
					r.change(there[60:100])
					crowd = stay(crowd)
					r.change(crowd[:7+epoch])
					r.change(stay(cell))
					r.move(there[100:110])
					left = append(crowd[len(crowd)-6:], there[:50]...)
					slices.Sort(left)
					left = slices.Compact(left)
					r.leave(left)
					r.back(away[:min(epoch*10, len(away))])
					r.arrive(45)
					if i == 1 {
						r.copyWhole()
					}
					r.refresh()
				}
				away = append(away[min(epoch*10, len(away)):], left...)
				partial, whole := tables[0].answers[epoch+1], tables[1].answers[epoch+1]
				if len(partial) != len(whole) {
					t.Errorf("copy %d: %d people are shown, %d from whole copies", epoch+1, len(partial),
						len(whole))
				}
				different := 0
				for token, want := range whole {
					is, there := partial[token]
					if !there || is.labels != want.labels || !slices.Equal(is.payload, want.payload) {
						different++
					}
				}
				if different > 0 {
					t.Errorf("copy %d: %d of %d people are shown in another way than from whole copies", epoch+1,
						different, len(whole))
				}
				if is, want := tables[0].waits(), tables[1].waits(); is != want {
					t.Errorf("copy %d: %s wait, %s from whole copies", epoch+1, is, want)
				}
			}
			if len(policy) < 2 { // at once, people are told apart
				tables[0].check()
			}
		})
	}
}

// TestACopyHoldsWhatDiffersFromWhatIsShown, also where the copy before has not been taken in.
func TestACopyHoldsWhatDiffersFromWhatIsShown(t *testing.T) {
	r := openOffice(t, "deltas_held").register(t, 1200)
	r.proxy.kill()
	strangers := r.strangers(9)
	assert := func(rows, gone int) {
		t.Helper()
		r.exec(`CALL tailor.refresh('$')`)
		if is, absent := r.copied(); is != rows || absent != gone {
			t.Errorf("a copy has %d rows and lacks %d, want %d and %d", is, absent, rows, gone)
		}
	}
	assert(0, 0)
	r.arrive(3)
	r.change(strangers[:4])
	r.move(strangers[4:6])
	r.leave(strangers[6:8])
	assert(7, 2)
	r.back(strangers[6:7])
	r.arrive(120)
	assert(127, 1)
	r.proxy = serveDatabase(t, r.proxy.database)
	r.reader = connect(t, r.proxy.dsn("researcher"))
	awaitTakenIn(t, r.direct, r.table, r.reader)
	r.look()
	r.shows(sortedKeys(r.present), true)
	if waits := r.waits(); waits != "0|1" {
		t.Errorf("%s arrivals and departures wait", waits)
	}
	// Under a stricter policy blocks join by what the table has of everybody.
	r.proxy.kill()
	r.exec(`CALL tailor.protect('$', 'id', 6); CALL tailor.activate('$'); CALL tailor.refresh('$')`)
	if rows, _ := r.copied(); rows != len(r.present) {
		t.Errorf("a copy for another policy has %d of %d rows", rows, len(r.present))
	}
}

// TestACopyOfAnotherStateIsNotTakenIn begins one under a snapshot from before the copy
// before was taken in: what it holds differs from a release that there is no more.
func TestACopyOfAnotherStateIsNotTakenIn(t *testing.T) {
	r := openOffice(t, "deltas_past").register(t, 1200)
	restart := func() {
		t.Helper()
		r.proxy = serveDatabase(t, r.proxy.database)
		r.reader = connect(t, r.proxy.dsn("researcher"))
	}
	r.proxy.kill()
	many := r.arrive(150)
	r.exec(`CALL tailor.refresh('$')`)
	restart()
	awaitTakenIn(t, r.direct, r.table, r.reader)
	r.look()
	r.shows(many, true)
	r.proxy.kill()
	r.exec(`CALL tailor.refresh('$'); UPDATE tailor.chain SET generation = generation + 1`)
	restart()
	answeredSoon(t, r.reader, "SELECT age FROM "+r.table)
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(r.proxy.log.String(), "has changed since its last copy was begun") {
		if time.Now().After(deadline) {
			t.Fatal("nobody is told that the copy cannot be taken in")
		}
		time.Sleep(20 * time.Millisecond)
	}
	r.look()
	if !sameAnswers(r.answers[1], r.answers[2]) {
		t.Error("answers change")
	}
	r.refresh()
	if !sameAnswers(r.answers[1], r.answers[3]) {
		t.Error("answers change with a copy of the same table")
	}
	r.check()
}
