package tests

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// soak says whether tests may take long.
func soak() bool { return os.Getenv("TAILOR_SOAK") != "" }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// countsOf reads an answer whose last column is a count.
func countsOf(t *testing.T, conn *pgx.Conn, sql string) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	for _, row := range rowsOf(t, conn, sql) {
		at := strings.LastIndexByte(row, '|')
		n, err := strconv.Atoi(row[at+1:])
		if err != nil {
			t.Fatal(err)
		}
		counts[row[:at]] += n
	}
	return counts
}

// difference is how many rows of each group there are more, and how many less. A
// group is what stands before the last column of those that are counted.
func difference(before, after map[string]int) (more, less map[string]int) {
	more, less = make(map[string]int), make(map[string]int)
	all := maps.Clone(before)
	maps.Copy(all, after)
	for row := range all {
		group := row[:max(0, strings.LastIndexByte(row, '|'))]
		if d := after[row] - before[row]; d > 0 {
			more[group] += d
		} else if d < 0 {
			less[group] -= d
		}
	}
	return more, less
}

// TestEpochsDifferToNobodyAlone subtracts histograms of diagnoses from those of the
// epoch before. Attacker: reads counts only, has the register, and knows who arrived,
// left or was ill in between. Property: whatever is left after subtracting concerns at
// least k people.
func TestEpochsDifferToNobodyAlone(t *testing.T) {
	r := openOffice(t, "epochs_differences").register(t, 2000)
	trials := 2
	if soak() {
		trials = 50
	}
	questions := []string{
		"SELECT diagnosis, count(*) FROM $ GROUP BY 1",
		"SELECT age, zip, sex, diagnosis, count(*) FROM $ GROUP BY 1, 2, 3, 4",
		"SELECT sex, diagnosis, sum(cost)::bigint FROM $ GROUP BY 1, 2",
	}
	ask := func() (answers []map[string]int) {
		for _, q := range questions {
			answers = append(answers, countsOf(t, r.reader, strings.ReplaceAll(q, "$", r.table)))
		}
		return answers
	}
	before := ask()
	named, asked := 0, 0
	for _, change := range []struct {
		name string
		make func(n int) // 1 person, or 5
	}{
		{"arrival", func(n int) { r.arrive(n) }},
		{"departure", func(n int) { r.leave(r.strangers(n)) }},
		{"change", func(n int) { r.change(r.strangers(n)) }},
	} {
		for trial := range 2 * trials {
			people := 1 + 4*(trial%2)
			change.make(people)
			r.refresh()
			after := ask()
			asked++
			moved := 0
			for i := range 2 {
				more, less := difference(before[i], after[i])
				for _, n := range slices.Concat(slices.Collect(maps.Values(more)),
					slices.Collect(maps.Values(less))) {
					moved += n
					if n >= r.k {
						continue
					}
					if named++; named <= 3 {
						t.Errorf("%s of %d: %d of a group are left by subtracting %s", change.name, people, n,
							questions[i])
					}
				}
			}
			if moved == 0 && !maps.Equal(before[2], after[2]) {
				t.Errorf("%s of %d: the sums of costs differ", change.name, people)
			}
			before = after
		}
	}
	if named > 0 {
		t.Errorf("%d differences of fewer than %d people in %d refreshes", named, r.k, asked)
	}
}

// TestEpochsKeepDiversity has those of one diagnosis leave, and many of one diagnosis
// arrive: what epochs tell apart together has two diagnoses, or does not tell them.
func TestEpochsKeepDiversity(t *testing.T) {
	office := openOffice(t, "epochs_diverse")
	for _, test := range []struct {
		name string
		run  func(r *register, alike []string)
	}{
		{"those of one diagnosis leave", func(r *register, alike []string) { r.leave(alike) }},
		{"those of one diagnosis stay", func(r *register, alike []string) {
			r.leave(slices.DeleteFunc(r.crowd(0), func(token string) bool {
				return slices.Contains(alike, token)
			}))
		}},
		{"those of one diagnosis change", func(r *register, alike []string) { r.change(alike) }},
		{"all get one diagnosis", func(r *register, alike []string) {
			for _, token := range alike {
				r.set(token, "measles", r.people[token].cost+5000)
			}
		}},
		{"150 of one diagnosis arrive", func(r *register, _ []string) {
			for _, token := range r.arrive(150) {
				r.set(token, "measles", 1)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := office.register(t, 800, `CALL tailor.require('$', 'l_diversity', 'diagnosis', 2)`)
			crowd := r.crowd(0)
			by := make(map[string][]string)
			for _, token := range crowd {
				by[r.people[token].diagnosis] = append(by[r.people[token].diagnosis], token)
			}
			alike := slices.MaxFunc(slices.Collect(maps.Values(by)), func(a, b []string) int {
				return len(a) - len(b)
			})
			if len(alike) < r.k || len(crowd)-len(alike) < r.k {
				t.Fatalf("%d of %d people are alike: nothing is tested", len(alike), len(crowd))
			}
			newTimelines(r.answers, nil).assertDiverse(t, r.answers, 2)
			test.run(r, alike)
			r.refresh()
			newTimelines(r.answers, nil).assertDiverse(t, r.answers, 2)
			r.arrive(130)
			r.leave(r.strangers(10))
			r.refresh()
			h := r.check()
			h.assertDiverse(t, r.answers, 2)
		})
	}
}

// TestEpochsOfReadersWhoPool has two readers who each miss every other epoch, one of
// them within a transaction that goes on, and a proxy beside the other.
func TestEpochsOfReadersWhoPool(t *testing.T) {
	r := openOffice(t, "epochs_pooled").register(t, 2000)
	mustExec(t, r.direct,
		`CREATE ROLE epochs_other LOGIN PASSWORD 'epochs_other'; `+
			`CALL tailor.grant_reader('epochs_other')`)
	others := connect(t, serveDatabase(t, r.proxy.database).dsn("epochs_other"))
	answeredSoon(t, others, "SELECT age FROM "+r.table)
	readers := []*pgx.Conn{r.reader, others}
	for i := range 5 {
		r.reader = readers[(i+1)%2]
		mustExec(t, r.reader, "BEGIN ISOLATION LEVEL REPEATABLE READ")
		was := lookAt(t, r.reader, r.table)
		mustExec(t, r.reader, "COMMIT")
		if !sameAnswers(was, r.answers[len(r.answers)-1]) {
			t.Errorf("epoch %d is another one for the other reader", len(r.answers))
		}
		r.arrive(40)
		r.leave(r.strangers(2 * (i + 1)))
		r.change(r.crowd(i % 2)[4*i : 20+2*i])
		r.refresh()
	}
	r.check()
}

// sameAnswers says whether two answers show the same people alike.
func sameAnswers(a, b map[string]seen) bool {
	return maps.EqualFunc(a, b, func(x, y seen) bool {
		return x.labels == y.labels && x.values == y.values && slices.Equal(x.payload, y.payload)
	})
}

// TestEpochsDoNotChangeWithinATransaction refreshes while a transaction is open that
// has read the epoch before. It goes on to see that one, or is told to begin anew; it
// never sees another, and nobody waits for it.
func TestEpochsDoNotChangeWithinATransaction(t *testing.T) {
	r := openOffice(t, "epochs_transaction").register(t, 2000)
	open := connect(t, r.proxy.dsn("researcher"))
	rowsOf(t, open, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	before := lookAt(t, open, r.table)
	r.arrive(150)
	cell := r.cells(r.k, 2*r.k-1)[0]
	r.leave(cell)
	r.exec(`CALL tailor.refresh('$')`)
	question := "SELECT token, age, zip, sex, coalesce(diagnosis, ''), cost FROM " + r.table
	same := func() {
		t.Helper()
		rowsOf(t, open, "SAVEPOINT before")
		answer, err := open.PgConn().Exec(t.Context(), question).ReadAll()
		switch {
		case err != nil && codeIn(err) == "40001":
			rowsOf(t, open, "ROLLBACK TO before")
		case err != nil:
			t.Fatal(err)
		default:
			if n := len(answer[0].Rows); n != len(before) {
				t.Errorf("%d people, and before in the same transaction %d", n, len(before))
			}
			for _, row := range answer[0].Rows {
				if s, is := before[string(row[0])]; !is ||
					s.labels != string(row[1])+"|"+string(row[2])+"|"+string(row[3]) {
					t.Error("a transaction sees two epochs")
					return
				}
			}
		}
	}
	same()
	awaitTakenIn(t, r.direct, r.table, r.reader)
	same()
	r.look()
	r.shows(cell, false)
	r.refresh()
	same()
	rowsOf(t, open, "ROLLBACK")
	if after := lookAt(t, open, r.table); !sameAnswers(after, r.answers[len(r.answers)-1]) {
		t.Error("behind the transaction it still sees an older epoch")
	}
	r.check()
}

// TestEpochsAreTakenInWithoutReaders: nobody has to ask, and be kept waiting, for a
// refresh to take effect.
func TestEpochsAreTakenInWithoutReaders(t *testing.T) {
	r := openOffice(t, "epochs_alone").register(t, 600)
	many := r.arrive(150)
	r.exec(`CALL tailor.refresh('$')`)
	awaitTakenIn(t, r.direct, r.table)
	r.look()
	r.shows(many, true)
	r.check()
}

// TestEpochsLieInNoOrder: where a row lies says of its person no more than with which
// cohort he came, which whoever looked before knows.
func TestEpochsLieInNoOrder(t *testing.T) {
	r := openOffice(t, "epochs_order").register(t, 600)
	for range 2 {
		many := r.arrive(150)
		r.refresh()
		at := make(map[string]int)
		for i, token := range rowsOf(t, r.reader, "SELECT token FROM "+r.table) {
			at[token] = i
		}
		// Of how many pairs of neighbours by key the later lies behind, of 149: by
		// chance 74.5, with a standard deviation of 3.5.
		behind := 0
		for i := range many[1:] {
			if at[many[i]] < at[many[i+1]] {
				behind++
			}
		}
		if behind < 57 || behind > 92 {
			t.Errorf("of 149 pairs who arrived one after the other %d lie in that order", behind)
		}
	}
}

// TestEpochsSurviveAKilledProxy kills the proxy at different times of a refresh; the
// next one goes on with what was shown, or with the next epoch, and with nothing else.
func TestEpochsSurviveAKilledProxy(t *testing.T) {
	r := openOffice(t, "epochs_killed").register(t, 2000)
	for i, delay := range []time.Duration{
		0, 30 * time.Millisecond, 150 * time.Millisecond,
		400 * time.Millisecond,
	} {
		cells := r.cells(r.k, 2*r.k-1)
		many := r.arrive(150)
		r.leave(cells[0])
		r.leave(cells[1][:1])
		r.change(r.crowd(0)[3*i : 20])
		r.exec(`CALL tailor.refresh('$')`)
		time.Sleep(delay)
		r.proxy.kill()
		r.proxy = serveDatabase(t, r.proxy.database)
		r.reader = connect(t, r.proxy.dsn("researcher"))
		r.look() // the epoch before or this one
		awaitTakenIn(t, r.direct, r.table, r.reader)
		r.look()
		r.shows(many, true)
		r.shows(cells[0], false)
		r.shows(cells[1][:1], true)
	}
	r.check()
}

// TestEpochsUnderAStricterPolicy raises k between refreshes, and lowers it: what merges blocks does
// not make them change together, for readers have seen them apart.
func TestEpochsUnderAStricterPolicy(t *testing.T) {
	office := openOffice(t, "epochs_stricter")
	t.Run("few come and go", func(t *testing.T) {
		r := office.register(t, 2000)
		for _, k := range []int{6, 8} {
			waiting, leaving := r.arrive(1), r.strangers(3)
			r.leave(leaving)
			r.restrict(k)
			r.shows(waiting, false)
			r.shows(leaving, true)
			r.change(r.strangers(2))
			r.refresh()
			r.shows(waiting, false)
		}
		many := r.arrive(200)
		r.refresh()
		r.shows(many, true)
		r.check()
	})
	t.Run("departures and changes cross blocks that were merged", func(t *testing.T) {
		r := office.register(t, 2000)
		apart := r.answers[0]
		r.restrict(8)
		crossing := 0
		for _, cell := range r.cells(10, 40) {
			parts := make(map[string][]string)
			for _, token := range cell {
				parts[apart[token].labels] = append(parts[apart[token].labels], token)
			}
			var half []string // of each part
			for _, part := range parts {
				half = append(half, part[:len(part)/2]...)
			}
			if len(parts) < 2 || len(half) < 5 {
				continue
			}
			if crossing++; crossing%2 == 0 {
				r.leave(half)
			} else {
				r.change(half)
			}
		}
		if crossing < 4 {
			t.Fatalf("%d merged blocks: nothing is tested", crossing)
		}
		r.refresh()
		r.restrict(5) // now there are enough in what was merged, and not in its parts
		r.refresh()
		r.check()
	})
}
