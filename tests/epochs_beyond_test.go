package tests

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEpochsExplainNobodyWhoWaits asks for the account of queries that only somebody
// meets who is not shown yet, or not so: it is the account of a query that nobody meets.
func TestEpochsExplainNobodyWhoWaits(t *testing.T) {
	r := openOffice(t, "epochs_explained").register(t, 600)
	one := r.strangers(1)
	r.set(one[0], "fracture", 77_777)
	came := r.arrive(1)
	r.set(came[0], "insomnia", 88_888)
	r.refresh()
	r.shows(came, false)
	r.showsChange(one, false)
	number := regexp.MustCompile(`\d\d:\d\d:\d\d\S*|"(fingerprint|duration|session|id)[^,]*`)
	account := func(condition string) string {
		sql := "SELECT age, zip, count(*) FROM " + r.table + " WHERE " + condition + " GROUP BY 1, 2"
		text := strings.Join(rowsOf(t, r.reader, "EXPLAIN (TAILOR, FORMAT JSON) "+sql,
			"EXPLAIN (COSTS OFF) "+sql), "\n")
		return number.ReplaceAllString(strings.ReplaceAll(text, condition, "condition"), "")
	}
	for waits, nobody := range map[string]string{
		"diagnosis = 'fracture'": "diagnosis = 'nonesuch'",
		"diagnosis = 'insomnia'": "diagnosis = 'nonesuch'", "cost = 77777": "cost = 66666",
	} {
		account(nobody)
		if got, want := account(waits), account(nobody); got != want {
			t.Errorf("%s is told apart from what nobody has:\n%s\n%s", waits, got, want)
		}
	}
	r.check()
}

// TestEpochsBeyondPresence holds what the words "has changed" do not say.
func TestEpochsBeyondPresence(t *testing.T) {
	office := openOffice(t, "epochs_beyond")
	for _, test := range []struct {
		name string
		run  func(r *register)
	}{
		// The costs of all are booked each night: everybody has changed, and one person's
		// diagnosis with it. Whoever knows that he was ill subtracts two histograms.
		{"a column that changes for all carries nobody's diagnosis with it", func(r *register) {
			cell := r.cells(r.k, 2*r.k-1)[0]
			r.exec(`UPDATE $ SET cost = cost + 1`)
			for token := range r.present {
				r.people[token].cost++
			}
			one := r.people[cell[0]]
			r.set(cell[0], "fracture", one.cost)
			r.refresh()
			if s := r.answers[1][cell[0]]; s.payload[0] == "fracture" {
				r.t.Error("the only new diagnosis of a block is shown")
			}
		}},
		// An entry by mistake, taken back at the next epoch, while the others' are real.
		{"a change that is taken back", func(r *register) {
			crowd := r.crowd(0)[:20]
			was := *r.people[crowd[0]]
			r.change(crowd)
			r.refresh()
			r.change(crowd[1:])
			r.set(crowd[0], was.diagnosis, was.cost)
			r.refresh()
		}},
		{"some change the diagnosis, some the cost, of one block", func(r *register) {
			crowd := r.crowd(0)
			for i, token := range crowd[:10] {
				p := r.people[token]
				if i < 2 {
					r.set(token, "fracture", p.cost)
				} else {
					r.set(token, p.diagnosis, p.cost+1)
				}
			}
			r.refresh()
		}},
		// A load that gives new keys: the same person would be in an old block and in a
		// cohort's. Such a copy is not taken in.
		{"people who get another key are shown once", func(r *register) {
			var all []string
			for _, token := range sortedKeys(r.present) {
				if len(all) < 150 && r.people[token].age < 100 && r.people[token].age > 10 {
					all = append(all, token)
				}
			}
			mustExec(r.t, r.direct, "UPDATE "+r.table+" SET id = id + 500000 WHERE token = ANY($1)", all)
			r.exec(`CALL tailor.refresh('$')`)
			waitFor(r.t, func() bool {
				return strings.Contains(r.proxy.log.String(),
					"seem to be people who have been shown by other keys")
			})
			r.look()
			twice := 0
			for _, s := range r.answers[1] {
				if strings.Contains(s.labels, " & ") {
					twice++
				}
			}
			if twice > 0 {
				r.t.Errorf("%d people are shown twice, with labels of two partitions", twice)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := office.register(t, 2000)
			test.run(r)
			newTimelines(r.answers, nil).assertSound(t, r.ks)
		})
	}
}

// TestEpochsOfAChild refreshes visits, several a person, alone and joined with the
// people: rows that share everything that was shown belong to at least k people.
func TestEpochsOfAChild(t *testing.T) {
	r := openOffice(t, "epochs_child").register(t, 800)
	visits := "visits_" + r.table
	mustExec(t, r.direct,
		fmt.Sprintf(`CREATE TABLE %[1]s (id int PRIMARY KEY, person int NOT NULL REFERENCES %[2]s
			ON DELETE CASCADE,
			day date NOT NULL, mark text NOT NULL, fee int);
		INSERT INTO %[1]s SELECT 10 * p.id + n, p.id, date '2024-01-01' + (p.id %% 1000 * 7919 + n *
			104729) %% 700, 'v' || 10 * p.id + n, (p.id %% 1000 * 31 + n * 17) %% 977
			FROM %[2]s p, generate_series(1, 1 + p.id %% 3) n;
		CALL tailor.protect('%[1]s', subject => 'person', k => 5);
		CALL tailor.classify('%[1]s', 'person', 'direct_identifier');
		CALL tailor.classify('%[1]s', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.classify('%[1]s', 'mark', 'non_sensitive');
		CALL tailor.classify('%[1]s', 'fee', 'sensitive');
		CALL tailor.activate('%[1]s')`, visits, r.table))
	owner := make(map[string]string)
	var answers []map[string]seen
	look := func() {
		t.Helper()
		for _, row := range rowsOf(t, r.direct, "SELECT mark, person FROM "+visits) {
			mark, person, _ := strings.Cut(row, "|")
			owner[mark] = person
		}
		answer := make(map[string]seen)
		for _, sql := range []string{
			"SELECT v.mark, v.fee, v.day FROM $v v",
			"SELECT v.mark, v.fee, v.day, p.age, p.zip, p.sex FROM $v v JOIN $p p ON p.id = v.person",
		} {
			for _, row := range rowsOf(t, r.reader, strings.NewReplacer("$v", visits, "$p", r.table).
				Replace(sql)) {
				cells := strings.SplitN(row, "|", 3)
				s := answer[cells[0]]
				s.labels += " & " + cells[2]
				s.payload = cells[1:2]
				answer[cells[0]] = s
			}
		}
		answers = append(answers, answer)
	}
	answeredSoon(t, r.reader, "SELECT day FROM "+visits)
	awaitTakenIn(t, r.direct, visits, r.reader)
	look()
	refresh := func(change string) {
		t.Helper()
		mustExec(t, r.direct, strings.NewReplacer("$v", visits, "$p", r.table).Replace(change))
		mustExec(t, r.direct, fmt.Sprintf(`CALL tailor.refresh('%s')`, r.table))
		mustExec(t, r.direct, fmt.Sprintf(`CALL tailor.refresh('%s')`, visits))
		awaitTakenIn(t, r.direct, r.table, r.reader)
		awaitTakenIn(t, r.direct, visits, r.reader)
		look()
	}
	insert := `INSERT INTO $v SELECT 10 * p.id + 5 + %[1]d, p.id, date '2025-06-01' + p.id %% 9, ` +
		`'v' || 10 * p.id + 5 + %[1]d, 12345 FROM $p p ORDER BY md5(p.id::text) LIMIT %[2]d`
	refresh(fmt.Sprintf(insert, 0, 1))
	refresh(fmt.Sprintf(insert, 1, 6))
	refresh(`DELETE FROM $v WHERE id = (SELECT min(id) FROM $v)`)
	refresh(`DELETE FROM $v WHERE person IN (SELECT person FROM $v ORDER BY md5(id::text) LIMIT 4)`)
	refresh(`DELETE FROM $p WHERE id IN (SELECT id FROM $p ORDER BY md5(id || 'x') LIMIT 5)`)
	refresh(`UPDATE $v SET fee = fee + 10000 WHERE id IN (SELECT id FROM $v ` +
		`ORDER BY md5(id || 'y') LIMIT 3)`)
	// A load with new numbers: the rows are the same, also those that have changed.
	before := one[int](t, r.reader, "SELECT count(*) FROM "+visits)
	refresh(`UPDATE $v SET id = id + 1000000`)
	if n := one[int](t, r.reader, "SELECT count(*) FROM "+visits); n != before {
		t.Errorf("%d visits are shown after all have got other numbers, %d before", n, before)
	}
	refresh(fmt.Sprintf(insert, 2, 300))
	fresh := 0
	for mark, s := range answers[len(answers)-1] {
		if s.payload[0] == "12345" && owner[mark] != "" {
			fresh++
		}
	}
	if fresh < 300 {
		t.Errorf("%d new visits are shown after 300 people have had one at once", fresh)
	}
	ks := slices.Repeat([]int{r.k}, len(answers))
	newTimelines(answers, func(mark string) string { return owner[mark] }).assertSound(t, ks)
}

// TestWhatARefreshWritesIsCheckedByItself has rows become others on their way into a release: the
// check that is the last step of a refresh finds blocks that are too small, or fail their model.
func TestWhatARefreshWritesIsCheckedByItself(t *testing.T) {
	direct := makeDatabase(t, "epochs_checked", `CREATE TABLE people AS SELECT n AS id,
			n * 7919 % 80 AS age, 'd' || n * 31 % 7 AS diagnosis FROM generate_series(1, 400) n;
		ALTER TABLE people ADD PRIMARY KEY (id)`)
	if err := shared.install(t.Context(), "epochs_checked"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20, 40],
			"lower": 0, "upper": 119}');
		CALL tailor.protect('people', subject => 'id', k => 5);
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('people', 'diagnosis', 'sensitive');
		CALL tailor.require('people', 'l_diversity', 'diagnosis', 2); CALL tailor.activate('people')`)
	conn := connect(t, serveDatabase(t, "epochs_checked").dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	row := one[string](t, direct,
		`SELECT format('tailor_store.chain_%s_row', chain) FROM tailor.chain`)
	for i, becomes := range []string{
		`NEW.diagnosis := 'd1'`, `NEW."tailor block" := 1000000 + (random() * 1000000)::integer`,
	} {
		mustExec(t, direct, fmt.Sprintf(`
			CREATE OR REPLACE FUNCTION becomes() RETURNS trigger
				LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NEW; END $$;
			CREATE OR REPLACE TRIGGER becomes BEFORE INSERT ON %s
				FOR EACH ROW EXECUTE FUNCTION becomes()`,
			becomes, row))
		mustExec(t, direct, fmt.Sprintf(`INSERT INTO people SELECT n, n * 7919 %% 80, 'd' || n * 31 %% 7
			FROM generate_series(%d, %[1]d + 199) n;
			CALL tailor.refresh('people')`, 1000*(i+1)))
		waitFor(t, func() bool {
			return one[bool](t, direct, `SELECT EXISTS (SELECT FROM tailor.failures
				WHERE reason LIKE '%do not meet its policy')`)
		})
		if n := one[int](t, conn, "SELECT count(*) FROM people"); n != 400 {
			t.Errorf("%s: %d people are shown", becomes, n)
		}
	}
	mustExec(t, direct, fmt.Sprintf(`DROP TRIGGER becomes ON %s; CALL tailor.refresh('people')`, row))
	waitFor(t, func() bool { return one[int](t, conn, "SELECT count(*) FROM people") == 800 })
}
