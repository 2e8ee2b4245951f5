package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// erase erases the person of a token, who stays in the table, and looks at once.
// Whoever is not shown any more was shown before with the same labels.
func (r *register) erase(token, departures string) (gone []string) {
	r.t.Helper()
	before := r.answers[len(r.answers)-1]
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%d', '%s')`, r.people[token].id, departures))
	r.look()
	after := r.answers[len(r.answers)-1]
	for _, other := range slices.Sorted(maps.Keys(before)) {
		if _, is := after[other]; !is {
			gone = append(gone, other)
		}
	}
	for _, other := range gone {
		if before[other].labels != before[token].labels {
			r.t.Errorf("of another block than the person: %s", other)
		}
	}
	for other, s := range after {
		if was, is := before[other]; !is || was.labels != s.labels || was.values != s.values || !slices.Equal(was.payload, s.payload) {
			r.t.Fatalf("%s is shown otherwise after an erasure", other)
		}
	}
	if len(before) > 0 && before[token].labels != "" && !slices.Contains(gone, token) {
		r.t.Errorf("the person is shown still")
	}
	r.assertCounted()
	return gone
}

// assertCounted wants each chain of the table to say of its release what it holds.
func (r *register) assertCounted() {
	r.t.Helper()
	for _, chain := range rowsOf(r.t, r.direct, fmt.Sprintf(`SELECT 'chain_' || chain || CASE WHEN edition > 0 THEN '_g' || edition ELSE '' END || '_row', rows, subjects, blocks, min_block
			FROM tailor.chain WHERE relation = '%s'::regclass`, r.table)) {
		row, told, _ := strings.Cut(chain, "|")
		is := rowsOf(r.t, r.direct, fmt.Sprintf(`SELECT sum(r), (SELECT count(DISTINCT "tailor person") FROM tailor_store.%[1]s), count(*), min(n) FROM (SELECT count(*) AS r, count(DISTINCT "tailor person") AS n
			FROM tailor_store.%[1]s GROUP BY "tailor block") b`, row))[0]
		if told != is {
			r.t.Errorf("%s has %s rows, subjects, blocks, smallest block, and its chain says %s", row, is, told)
		}
	}
}

// stored counts the rows of a person in whatever Tailor has stored of rows, and what it
// remembers of their values.
func (r *register) stored(token string) (rows int) {
	r.t.Helper()
	for _, name := range rowsOf(r.t, r.direct, `SELECT c.oid::regclass FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
			WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r' AND a.attname = 'tailor person' AND c.relname !~ '_gone$'`) {
		rows += one[int](r.t, r.direct, fmt.Sprintf(`SELECT count(*) FROM %s, tailor.subject_key k WHERE "tailor person" = tailor.person_digest('%d', k.key)`, name, r.people[token].id))
	}
	return rows + one[int](r.t, r.direct, `SELECT count(*) FROM tailor.shown_fact f, unnest(f.subjects) s, tailor.subject_key k WHERE s = tailor.subject_digest($1, k.key)`, fmt.Sprint(r.people[token].id))
}

// waits says how many wait, as the table's owner is told.
func (r *register) waits() string {
	r.t.Helper()
	return rowsOf(r.t, r.direct, fmt.Sprintf(`SELECT max(arrivals), max(departures) FROM tailor.epochs WHERE relation = '%s'::regclass`, r.table))[0]
}

// TestEraseWithBlockIsForGood erases a person whose row stays in the table. Attacker:
// knows the register at all times, and who was erased when. Property: at least k people
// vanish with the person, together and for good, so that their payloads cannot be told
// apart; nobody else is shown otherwise.
func TestEraseWithBlockIsForGood(t *testing.T) {
	office := openOffice(t, "erase_block")
	r := office.register(t, 1200)
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("erase_block"))
	r.direct = direct
	cell := r.cells(r.k+1, 2*r.k-1)[0]
	gone := r.erase(cell[0], "with_block")
	if len(gone) < r.k {
		t.Errorf("%d people vanish with one who is known to, of k = %d", len(gone), r.k)
	}
	if want := fmt.Sprintf("takes %d other people's rows along", len(gone)-1); !strings.Contains(strings.Join(*notices, "\n"), want) {
		t.Errorf("no notice %q in %q", want, *notices)
	}
	if n := r.stored(cell[0]); n > 0 {
		t.Errorf("%d rows are stored of who was erased", n)
	}
	never := func() {
		t.Helper()
		awaitTakenIn(t, r.direct, r.table, r.reader)
		r.shows(gone, false)
		if n := r.stored(cell[0]); n > 0 {
			t.Errorf("%d rows are stored of who was erased", n)
		}
	}
	r.refresh()
	never()
	if waits := r.waits(); waits != "0|0" {
		t.Errorf("%s arrivals and departures wait, and nobody has come or left", waits)
	}
	many := r.arrive(150)
	r.refresh()
	r.shows(many, true)
	never()
	// They change, leave and come back, with all others or without.
	r.change(gone[1:])
	r.refresh()
	never()
	r.leave(gone)
	r.refresh()
	never()
	r.back(gone)
	r.refresh()
	never()
	r.move(gone)
	r.arrive(150)
	r.refresh()
	never()
	r.restrict(7) // another edition
	never()
	if waits := r.waits(); waits != "0|0" {
		t.Errorf("%s arrivals and departures wait in the end", waits)
	}
	r.exec(`CALL tailor.rows('$', true); CALL tailor.max_share('$', 0.4); CALL tailor.activate('$')`)
	r.refresh()
	never()
	r.check()

	// The owner is told when and how, and not whom.
	if told := rowsOf(t, r.direct, fmt.Sprintf(`SELECT relation, departures, others, erased > now() - interval '1 hour' FROM tailor.erasures WHERE relation = '%s'::regclass`, r.table)); len(told) != 1 ||
		told[0] != fmt.Sprintf("%s|with_block|%d|t", r.table, len(gone)-1) {
		t.Errorf("tailor.erasures has %q", told)
	}
}

// TestEraseOfSomebodyWhoWaits: who has left and is shown still, who has come and is not
// yet shown, and who has left with others long ago.
func TestEraseOfSomebodyWhoWaits(t *testing.T) {
	r := openOffice(t, "erase_waiting").register(t, 1200)
	cells := r.cells(r.k, 2*r.k-1)
	left := cells[0][0]
	came := r.arrive(1)[0]
	r.leave([]string{left})
	r.refresh()
	r.shows([]string{left}, true)
	if waits := r.waits(); waits != "1|1" {
		t.Fatalf("%s arrivals and departures wait, want one each", waits)
	}
	gone := r.erase(left, "with_block")
	if gone := r.erase(came, "with_block"); len(gone) > 0 {
		t.Errorf("%d people vanish with one who was never shown", len(gone))
	}
	many := r.arrive(150)
	r.refresh()
	r.shows(many, true)
	r.shows(append(gone, came), false)
	if waits := r.waits(); waits != "0|0" {
		t.Errorf("%s arrivals and departures wait, of whom all were erased", waits)
	}

	// Of those who left together, one is erased: the others are not told apart from him.
	cell := cells[1]
	r.leave(cell)
	r.refresh()
	r.shows(cell, false)
	r.erase(cell[0], "with_block")
	r.back(cell)
	r.refresh()
	r.shows(cell, false)
	r.check()
}

// TestEraseAtOnce takes one row, and with it those who could not be shown without.
func TestEraseAtOnce(t *testing.T) {
	r := openOffice(t, "erase_at_once").register(t, 1200)
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("erase_at_once"))
	r.direct = direct
	crowd := r.crowd(0)
	if gone := r.erase(crowd[3], "at_once"); !slices.Equal(gone, crowd[3:4]) {
		t.Errorf("%d people vanish, want one", len(gone))
	}
	if !strings.Contains(strings.Join(*notices, "\n"), "whoever compares answers from before and after sees what this person's row held") {
		t.Errorf("no notice says what is given away: %q", *notices)
	}
	cell := r.cells(r.k, r.k)[0]
	gone := r.erase(cell[0], "at_once")
	if len(gone) != r.k {
		t.Errorf("%d people vanish of a block of k, want all", len(gone))
	}
	r.refresh()
	r.shows(append(gone, crowd[3]), false)
	r.shows(crowd[:3], true)
	many := r.arrive(150)
	r.refresh()
	r.shows(many, true)
	r.shows(append(gone, crowd[3]), false)
	if least := one[int](t, r.direct, `SELECT min_block FROM tailor.chain`); least < r.k {
		t.Errorf("a block of %d", least)
	}
}

// TestEraseKeepsDiversity erases people of one diagnosis at once, of a block that needs
// two: what is left of it meets the policy, or goes.
func TestEraseKeepsDiversity(t *testing.T) {
	r := openOffice(t, "erase_diverse").register(t, 800, `CALL tailor.require('$', 'l_diversity', 'diagnosis', 2)`)
	crowd := r.crowd(0)
	by := make(map[string][]string)
	for _, token := range crowd {
		by[r.people[token].diagnosis] = append(by[r.people[token].diagnosis], token)
	}
	most := slices.MaxFunc(slices.Collect(maps.Values(by)), func(a, b []string) int { return len(a) - len(b) })
	for _, token := range crowd {
		if _, shown := r.answers[len(r.answers)-1][token]; !shown || slices.Contains(most, token) {
			continue
		}
		r.erase(token, "at_once")
		diagnoses := make(map[string]bool)
		left := 0
		for _, other := range crowd {
			if s, shown := r.answers[len(r.answers)-1][other]; shown {
				diagnoses[s.payload[0]] = true
				left++
			}
		}
		if left > 0 && (len(diagnoses) < 2 || left < r.k) {
			t.Fatalf("a block of %d people with %d diagnoses", left, len(diagnoses))
		}
	}
	r.shows(crowd, false)
	r.refresh()
	r.shows(crowd, false)
}

// TestEraseReachesAllAudiences and the copy that one of them has not taken in.
func TestEraseReachesAllAudiences(t *testing.T) {
	office := openOffice(t, "erase_audiences")
	r := office.register(t, 1200, `CALL tailor.chain_scope('$', 'project'); CALL tailor.project('ages', '$', '[["age"]]');
		CALL tailor.project('places', '$', '[["zip", "sex"]]'); CALL tailor.join_project('ages', 'researcher')`)
	exec1(t, r.direct, `CREATE ROLE erase_other LOGIN PASSWORD 'erase_other'; CALL tailor.grant_reader('erase_other'); CALL tailor.join_project('places', 'erase_other')`)
	other := connect(t, r.proxy.dsn("erase_other"))
	answeredSoon(t, other, "SELECT age FROM "+r.table)
	victim := r.strangers(1)[0]
	was := lookAt(t, other, r.table)
	if _, is := was[victim]; !is {
		t.Fatal("the other project is not shown the person: nothing is tested")
	}
	gone := r.erase(victim, "with_block")
	is := lookAt(t, other, r.table)
	var also []string
	for token := range was {
		if _, shown := is[token]; !shown {
			also = append(also, token)
		}
	}
	if len(also) < r.k || !slices.Contains(also, victim) || len(was)-len(also) != len(is) {
		t.Errorf("%d people vanish for the other project", len(also))
	}
	r.arrive(150)
	r.refresh()
	awaitTakenIn(t, r.direct, r.table, r.reader, other)
	r.shows(gone, false)
	is = lookAt(t, other, r.table)
	for _, token := range also {
		if _, shown := is[token]; shown {
			t.Error("somebody is shown again to the other project")
		}
	}
	r.check()
}

// TestEraseReachesTheCopyThatWaits erases while no proxy takes the copy in.
func TestEraseReachesTheCopyThatWaits(t *testing.T) {
	r := openOffice(t, "erase_copy").register(t, 1200)
	odd := &enrolled{id: r.last + 1, age: 119, zip: "99999", sex: "male", diagnosis: "kuru", cost: 123_456}
	r.last++
	many := append(r.arrive(150), r.enrol(odd)...)
	victim := r.strangers(1)[0]
	r.proxy.kill()
	r.exec(`CALL tailor.refresh('$')`)
	copied := one[int](t, r.direct, `SELECT epoch FROM tailor.protection WHERE relation = $1::text::regclass`, r.table)
	tuples := fmt.Sprintf(`SELECT count(*) FROM tailor_store.tuples_%d WHERE age = 119 AND zip = '99999'`, copied)
	newcomer := many[len(many)-1]
	if r.stored(newcomer) == 0 || r.stored(victim) < 2 || one[int](t, r.direct, tuples) != 1 {
		t.Fatal("the copy lacks them: nothing is tested")
	}
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%d'); CALL tailor.erase('$', '%d')`, r.people[victim].id, odd.id))
	if r.stored(newcomer) > 0 || r.stored(victim) > 0 {
		t.Error("the copy has people who were erased")
	}
	if n := one[int](t, r.direct, tuples); n > 0 {
		t.Error("the copy has the quasi-identifiers of somebody who was erased")
	}
	// A copy that sees the table as it was before is not made.
	past := connect(t, shared.cluster.SuperuserDSN("erase_copy"))
	exec1(t, past, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	exec1(t, past, "SELECT count(*) FROM tailor.erased")
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%d')`, r.people[many[0]].id))
	if _, err := past.Exec(t.Context(), fmt.Sprintf(`CALL tailor.refresh('%s')`, r.table)); codeIn(err) != "40001" {
		t.Errorf("a copy under an older snapshot: %v", err)
	}
	exec1(t, past, "ROLLBACK")
	newcomers := many[1:150]
	r.proxy = serveDatabase(t, r.proxy.database)
	r.reader = connect(t, r.proxy.dsn("researcher"))
	awaitTakenIn(t, r.direct, r.table, r.reader)
	r.look()
	r.shows(newcomers, true)
	r.shows(many[:1], false)
	r.shows([]string{newcomer, victim}, false)
	r.check()
}

// TestEraseOutlivesForgottenChains, which those do not who were only withheld, nor the
// table, when it is made anew.
func TestEraseOutlivesForgottenChains(t *testing.T) {
	r := openOffice(t, "erase_forgotten").register(t, 1200)
	victim := r.strangers(1)[0]
	gone := r.erase(victim, "with_block")
	others := slices.DeleteFunc(gone, func(token string) bool { return token == victim })
	anew := func() {
		t.Helper()
		answeredSoon(t, r.reader, "SELECT age FROM "+r.table)
		awaitTakenIn(t, r.direct, r.table, r.reader)
		r.look()
		r.shows([]string{victim}, false)
		r.shows(others, true)
	}
	r.exec(`CALL tailor.forget_chains('$')`)
	anew()
	r.exec(`CALL tailor.unprotect('$'); ALTER TABLE $ RENAME TO earlier; CREATE TABLE $ (LIKE earlier INCLUDING ALL); INSERT INTO $ SELECT * FROM earlier; DROP TABLE earlier;
		CALL tailor.protect('$', subject => 'id', k => 5); CALL tailor.classify('$', 'id', 'direct_identifier');
		CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age'); CALL tailor.classify('$', 'zip', 'quasi_identifier', hierarchy => 'zip');
		CALL tailor.classify('$', 'sex', 'quasi_identifier', hierarchy => 'sex'); CALL tailor.classify('$', 'diagnosis', 'sensitive');
		CALL tailor.classify('$', 'cost', 'non_sensitive'); CALL tailor.classify('$', 'token', 'non_sensitive');
		CALL tailor.forget_chains('$'); CALL tailor.activate('$')`)
	anew()

	// Digests under another key find nobody: nothing is copied until that is mended.
	r.exec(`UPDATE tailor.subject_key SET key = sha256(key)`)
	if _, err := r.direct.Exec(t.Context(), fmt.Sprintf(`CALL tailor.refresh('%s')`, r.table)); codeIn(err) != "55000" || !strings.Contains(err.Error(), "another key") {
		t.Errorf("a copy under another key: %v", err)
	}
	if _, err := r.direct.Exec(t.Context(), fmt.Sprintf(`CALL tailor.erase('%s', '%d')`, r.table, r.people[others[0]].id)); codeIn(err) != "55000" {
		t.Errorf("an erasure under another key: %v", err)
	}
}

// TestEraseIsTheOwners says who may erase, and whom.
func TestEraseIsTheOwners(t *testing.T) {
	office := openOffice(t, "erase_rights")
	r := office.register(t, 600)
	exec1(t, r.direct, fmt.Sprintf(`CREATE ROLE erase_owner LOGIN; CREATE ROLE erase_stranger LOGIN; GRANT tailor_admin TO erase_owner, erase_stranger;
		GRANT CREATE ON SCHEMA public TO erase_stranger; ALTER TABLE %s OWNER TO erase_owner`, r.table))
	as := func(role string) *pgx.Conn {
		conn := connect(t, shared.cluster.SuperuserDSN("erase_rights"))
		exec1(t, conn, "SET SESSION AUTHORIZATION "+role)
		return conn
	}
	victim := r.strangers(1)[0]
	id := fmt.Sprint(r.people[victim].id)
	owner, stranger := as("erase_owner"), as("erase_stranger")
	for _, refused := range []struct {
		name, code string
		conn       *pgx.Conn
		sql        string
	}{
		{"a stranger", "42501", stranger, `CALL tailor.erase('$', '` + id + `')`},
		{"a stranger, by the part that writes", "42501", stranger, `CALL tailor.write_erasure(ARRAY['$'::regclass], ARRAY['` + id + `'], 'with_block', true)`},
		{"a reader", "42501", as("researcher"), `CALL tailor.erase('$', '` + id + `')`},
		{"a reader, through the proxy", "42501", r.reader, `CALL tailor.erase('$', '` + id + `')`},
		{"the digests, a stranger", "42501", stranger, `SELECT * FROM tailor.erased`},
		{"nobody", "P0002", owner, `CALL tailor.erase('$', '77')`},
		{"no number", "22023", owner, `CALL tailor.erase('$', 'secret')`},
		{"another word", "22023", owner, `CALL tailor.erase('$', '` + id + `', 'soon')`},
		{"NULL", "22004", owner, `CALL tailor.erase('$', NULL)`},
		{"an older snapshot", "25001", owner, `BEGIN ISOLATION LEVEL REPEATABLE READ; CALL tailor.erase('$', '` + id + `'); COMMIT`},
	} {
		_, err := refused.conn.PgConn().Exec(t.Context(), strings.ReplaceAll(refused.sql, "$", r.table)).ReadAll()
		if codeIn(err) != refused.code {
			t.Errorf("%s: %v, want %s", refused.name, err, refused.code)
		}
		if err != nil && (strings.Contains(err.Error(), id) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: the error quotes the key: %v", refused.name, err)
		}
		exec1(t, refused.conn, "ROLLBACK")
	}
	r.look()
	r.shows([]string{victim}, true)

	// What belongs to another refers to it: both owners have to agree.
	exec1(t, r.direct, fmt.Sprintf(`CREATE TABLE strange (id int PRIMARY KEY REFERENCES %s); INSERT INTO strange SELECT id FROM %[1]s; ALTER TABLE strange OWNER TO erase_stranger;
		CALL tailor.protect('strange', 'id', 5); CALL tailor.activate('strange')`, r.table))
	if _, err := owner.Exec(t.Context(), fmt.Sprintf(`CALL tailor.erase('%s', '%s')`, r.table, id)); codeIn(err) != "42501" {
		t.Errorf("an erasure from somebody else's table: %v", err)
	}
	exec1(t, r.direct, `CALL tailor.unprotect('strange')`)
	r.direct = owner
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', ' %s')`, id)) // as the column's type reads it
	r.direct = office.direct
	r.look()
	r.shows([]string{victim}, false)
	if told := rowsOf(t, owner, `SELECT author, departures FROM tailor.erasures`); !slices.Equal(told, []string{"erase_owner|with_block"}) {
		t.Errorf("its owner is told %q", told)
	}
	if told := rowsOf(t, stranger, `SELECT author FROM tailor.erasures`); len(told) > 0 {
		t.Errorf("a stranger is told %q", told)
	}
	r.check()
}

// TestEraseReachesChildren erases from a table, from one with several rows for each
// person, and from one of codes.
func TestEraseReachesChildren(t *testing.T) {
	for _, departures := range []string{"with_block", "at_once"} {
		t.Run(departures, func(t *testing.T) { eraseFromChildren(t, departures) })
	}
}

func eraseFromChildren(t *testing.T, departures string) {
	office := openOffice(t, "erase_children_"+departures)
	r := office.register(t, 800)
	visits, codes := "visits_"+r.table, "codes_"+r.table
	exec1(t, r.direct, fmt.Sprintf(`CREATE TABLE %[1]s (id int PRIMARY KEY, person bigint NOT NULL REFERENCES %[3]s, day date NOT NULL, mark text NOT NULL, fee int);
		INSERT INTO %[1]s SELECT 10 * p.id + n, p.id, date '2024-01-01' + (p.id %% 1000 * 7919 + n * 104729) %% 700, 'v' || 10 * p.id + n, (p.id %% 1000 * 31 + n * 17) %% 977
			FROM %[3]s p, generate_series(1, 1 + p.id %% 3) n;
		CREATE TABLE %[2]s (person int NOT NULL REFERENCES %[3]s, code text NOT NULL);
		INSERT INTO %[2]s SELECT p.id, 'c' || (p.id %% 1000 * n) %% 23 FROM %[3]s p, generate_series(1, 3) n GROUP BY 1, 2;
		CALL tailor.protect('%[1]s', subject => 'person', k => 5); CALL tailor.classify('%[1]s', 'person', 'direct_identifier');
		CALL tailor.classify('%[1]s', 'day', 'quasi_identifier', hierarchy => 'day'); CALL tailor.classify('%[1]s', 'mark', 'non_sensitive');
		CALL tailor.classify('%[1]s', 'fee', 'sensitive'); CALL tailor.activate('%[1]s');
		CALL tailor.protect('%[2]s', subject => 'person', k => 5); CALL tailor.classify('%[2]s', 'person', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('%[2]s', column_name => 'code'); CALL tailor.activate('%[2]s')`, visits, codes, r.table))
	for _, table := range []string{visits, codes} {
		answeredSoon(t, r.reader, "SELECT * FROM "+table)
		awaitTakenIn(t, r.direct, table, r.reader)
	}
	owner := make(map[string]string)
	for _, row := range rowsOf(t, r.direct, "SELECT mark, person FROM "+visits) {
		mark, person, _ := strings.Cut(row, "|")
		owner[mark] = person
	}
	var answers []map[string]seen
	look := func() {
		t.Helper()
		answer := make(map[string]seen)
		for _, row := range rowsOf(t, r.reader, fmt.Sprintf("SELECT v.mark, v.fee, v.day, p.age, p.zip, p.sex FROM %s v JOIN %s p ON p.id = v.person", visits, r.table)) {
			cells := strings.SplitN(row, "|", 3)
			answer[cells[0]] = seen{labels: cells[2], payload: cells[1:2]}
		}
		answers = append(answers, answer)
	}
	look()
	coded := one[int](t, r.reader, "SELECT count(DISTINCT person) FROM "+codes)
	people := one[int](t, r.direct, "SELECT count(DISTINCT person) FROM "+codes)
	if coded != people {
		t.Fatalf("codes of %d people are published, of %d", coded, people)
	}
	victim := r.crowd(0)[10]
	for _, token := range r.crowd(0) { // one with several visits
		if r.people[token].id%3 == 2 {
			victim = token
		}
	}
	id := fmt.Sprint(r.people[victim].id)
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("erase_children_"+departures))
	r.direct = direct
	r.erase(victim, departures)
	told := strings.Join(*notices, "\n")
	for _, want := range []string{"table public." + r.table + ": ", "table public." + visits + ": ", "table public." + codes + ": the publication of codes is withdrawn"} {
		if !strings.Contains(told, want) {
			t.Errorf("no notice %q in %s", want, told)
		}
	}
	look()
	gone := make(map[string]bool)
	for mark := range answers[0] {
		if _, is := answers[1][mark]; !is {
			gone[mark] = true
		}
	}
	if departures == "with_block" {
		newTimelines(answers, func(mark string) string { return owner[mark] }).assertSound(t, []int{5, 5})
	} else if len(gone) != 3 {
		t.Errorf("%d visits are gone, want those of the person alone", len(gone))
	}
	visit := *r
	visit.table = visits
	visit.assertCounted()

	// Nobody reads the codes until the next copy, by whatever proxy or statement.
	var err error
	waitFor(t, func() bool {
		_, err = r.reader.PgConn().Exec(t.Context(), "SELECT count(*) FROM "+codes).ReadAll()
		return codeIn(err) != "40001"
	})
	if codeIn(err) != "57P03" {
		t.Errorf("a reader of codes that were withdrawn: %v, want 57P03", err)
	}
	if left := rowsOf(t, r.direct, `SELECT relname FROM pg_class WHERE relnamespace = 'tailor_store'::regnamespace AND relkind = 'r' AND relname ~ '^(item|place|subrecord|digest)_'`); len(left) > 0 {
		for _, table := range left {
			if n := one[int](t, r.direct, "SELECT count(*) FROM tailor_store."+table); n > 0 {
				t.Errorf("%d rows of what was withdrawn in %s", n, table)
			}
		}
	}
	taken := 1
	if departures == "with_block" {
		taken = 5
	}
	refresh := func(change string) {
		t.Helper()
		exec1(t, r.direct, strings.NewReplacer("$v", visits, "$p", r.table).Replace(change))
		for _, table := range []string{r.table, visits, codes} {
			exec1(t, r.direct, fmt.Sprintf(`CALL tailor.refresh('%s')`, table))
			if table != codes {
				awaitTakenIn(t, r.direct, table, r.reader)
			}
		}
		answeredSoon(t, r.reader, "SELECT count(*) FROM "+codes)
		look()
		for mark := range answers[len(answers)-1] {
			if gone[mark] {
				t.Errorf("a visit is shown again that went with an erasure")
				return
			}
		}
	}
	refresh("")
	if n := one[int](t, r.reader, "SELECT count(DISTINCT person) FROM "+codes); n != people-taken {
		t.Errorf("codes of %d people are published, want all %d but %d", n, people, taken)
	}
	if n := one[int](t, r.direct, fmt.Sprintf(`SELECT count(*) FROM tailor.withheld w, tailor.subject_key k WHERE w.subject = tailor.subject_digest('%s', k.key)`, id)); n > 0 {
		t.Error("the person who was erased counts as withheld")
	}
	// Other numbers, other payloads, and new rows.
	for _, mark := range rowsOf(t, r.direct, "SELECT mark FROM "+visits+" WHERE person = "+id) {
		gone[mark] = true
	}
	refresh(`UPDATE $v SET id = id + 100000000`)
	refresh(`UPDATE $v SET id = id + 200000000, fee = fee + 1 WHERE id % 2 = 0`)
	refresh(`INSERT INTO $v SELECT 1 - p.id, p.id, date '2025-06-01' + p.id % 9, 'n' || p.id, 12345 FROM $p p`)
	if _, is := answers[len(answers)-1]["n"+id]; is {
		t.Error("a new visit of somebody who was erased is shown")
	}
	if n := one[int](t, r.reader, "SELECT count(*) FROM "+visits+" WHERE fee = 12345"); n < 700 {
		t.Errorf("%d new visits are shown of 799 people", n)
	}
	exec1(t, r.direct, fmt.Sprintf(`CALL tailor.forget_chains('%s')`, codes))
	answeredSoon(t, r.reader, "SELECT count(*) FROM "+codes)
	if n := again[int](t, r.reader, "SELECT count(DISTINCT person) FROM "+codes); n != people-1 {
		t.Errorf("after chains were forgotten codes of %d people are published, want all %d but one", n, people)
	}
}

// TestEraseFromCodesBeforeTheyArePublished takes a record out of a copy that no proxy
// has published yet.
func TestEraseFromCodesBeforeTheyArePublished(t *testing.T) {
	direct := makeDatabase(t, "erase_records", `CREATE TABLE codes (id text PRIMARY KEY, codes text[]);
		INSERT INTO codes SELECT 'p' || n, ARRAY['c' || n % 7, 'd' || n % 5] FROM generate_series(1, 300) n`)
	if err := shared.install(t.Context(), "erase_records"); err != nil {
		t.Fatal(err)
	}
	exec1(t, direct, `CALL tailor.grant_reader('researcher'); CALL tailor.protect('codes', 'id', 5); CALL tailor.classify('codes', 'id', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('codes', column_name => 'codes'); CALL tailor.activate('codes'); CALL tailor.erase('codes', 'p17', 'at_once')`)
	if n := one[int](t, direct, `SELECT subjects FROM tailor.epoch`); n != 299 {
		t.Errorf("the copy has %d records, want all 300 but one", n)
	}
	conn := connect(t, serveDatabase(t, "erase_records").dsn("researcher"))
	if n := again[int](t, conn, "SELECT count(*) FROM codes"); n != 299 {
		t.Errorf("%d records are published, want all 300 but one", n)
	}
}

// TestEraseLeavesNothingToSubtract attacks with counts alone. Attacker: has the register,
// knows who was erased, and reads histograms of payloads just before and just after, and
// after each of some later refreshes. Property: what is left by subtracting concerns at
// least k people, of whom each may be the one.
func TestEraseLeavesNothingToSubtract(t *testing.T) {
	r := openOffice(t, "erase_attack").register(t, 1500)
	questions := []string{
		"SELECT age, zip, sex, diagnosis, count(*) FROM $ GROUP BY 1, 2, 3, 4",
		"SELECT sex, diagnosis, count(*) FROM $ GROUP BY 1, 2",
		"SELECT age, cost / 100, count(*) FROM $ GROUP BY 1, 2",
	}
	ask := func() (answers []map[string]int) {
		for _, q := range questions {
			answers = append(answers, countsOf(t, r.reader, strings.ReplaceAll(q, "$", r.table)))
		}
		return answers
	}
	total := func(of map[string]int) (n int) {
		for _, v := range of {
			n += v
		}
		return n
	}
	for trial := range 6 {
		victim := r.strangers(1)[0]
		before := ask()
		r.erase(victim, "with_block")
		for later := range 3 {
			for i, after := range ask() {
				all := make(map[string]int)
				for row, n := range before[i] {
					all[row] = after[row] - n
				}
				lost := 0
				for _, n := range all {
					lost -= min(n, 0)
				}
				if lost < r.k {
					t.Errorf("trial %d, refresh %d: subtracting leaves %d people, of whom one is known to be the one, in %d rows, of %s", trial, later, lost, total(before[i])-total(after), questions[i])
				}
			}
			r.arrive(40)
			r.leave(r.strangers(3))
			r.refresh()
		}
	}
	r.check()
}

// TestEraseWhileACopyIsTakenIn erases right after refreshes: the proxy is told of a new
// copy and of the erasure at about the same time.
func TestEraseWhileACopyIsTakenIn(t *testing.T) {
	r := openOffice(t, "erase_race").register(t, 1000)
	var erased []string
	for range 6 {
		came := r.arrive(150)
		shown := r.strangers(1)[0]
		r.exec(`CALL tailor.refresh('$')`)
		r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%d'); CALL tailor.erase('$', '%d', 'at_once')`, r.people[shown].id, r.people[came[7]].id))
		erased = append(erased, shown, came[7])
		awaitTakenIn(t, r.direct, r.table, r.reader)
		r.look()
		r.shows(erased, false)
		r.assertCounted()
		if waits := r.waits(); !strings.HasSuffix(waits, "|0") {
			t.Errorf("%s arrivals and departures wait, and nobody has left", waits)
		}
	}
	r.refresh()
	r.shows(erased, false)
}

// TestEraseIsToldToProxies: what EXPLAIN tells of the release is of the release as it is,
// and an edition that a transaction still reads has lost the block as well.
func TestEraseIsToldToProxies(t *testing.T) {
	r := openOffice(t, "erase_told").register(t, 600)
	account := func() string {
		return strings.Join(rowsOf(t, r.reader, "EXPLAIN (TAILOR, FORMAT JSON) SELECT age, zip, sex FROM "+r.table), "")
	}
	before := account()
	if again := account(); again != before {
		t.Fatalf("two accounts of one release:\n%s\n%s", before, again)
	}
	open := connect(t, r.proxy.dsn("researcher"))
	rowsOf(t, open, "BEGIN", "DECLARE c CURSOR FOR SELECT token FROM "+r.table, "FETCH 1 FROM c")
	r.restrict(6)
	if n := one[int](t, r.direct, `SELECT count(*) FROM pg_class WHERE relname ~ '^chain_1(_g[0-9]+)?_row$'`); n != 2 {
		t.Fatalf("%d editions, want two: nothing is tested", n)
	}
	before = account()
	victim := r.crowd(0)[0]
	gone := r.erase(victim, "with_block")
	waitFor(t, func() bool { return account() != before })
	if n := r.stored(victim); n > 0 {
		t.Errorf("%d rows are stored of who was erased", n)
	}
	rowsOf(t, open, "ROLLBACK")
	r.shows(gone, false)
	r.check()
}
