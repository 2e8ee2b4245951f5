package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestEraseReachesAllAudiences and the copy that one of them has not taken in.
func TestEraseReachesAllAudiences(t *testing.T) {
	office := openOffice(t, "erase_audiences")
	r := office.register(t, 1200, `CALL tailor.chain_scope('$', 'project');
		CALL tailor.project('ages', '$', '[["age"]]');
		CALL tailor.project('places', '$', '[["zip", "sex"]]');
		CALL tailor.join_project('ages', 'researcher')`)
	mustExec(t, r.direct, `CREATE ROLE erase_other LOGIN PASSWORD 'erase_other';
		CALL tailor.grant_reader('erase_other'); CALL tailor.join_project('places', 'erase_other')`)
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
	odd := r.person()
	odd.age, odd.zip = 119, "99999"
	many := append(r.arrive(150), r.enrol(odd)...)
	victim := r.strangers(1)[0]
	r.change([]string{victim})
	r.proxy.kill()
	r.exec(`CALL tailor.refresh('$')`)
	tuples := fmt.Sprintf(`SELECT count(*) FROM tailor_store.tuples_%d WHERE zip = '99999'`,
		one[int](t, r.direct, `SELECT epoch FROM tailor.protection`))
	newcomer := many[len(many)-1]
	if r.stored(newcomer) == 0 || r.stored(victim) < 2 || one[int](t, r.direct, tuples) == 0 {
		t.Fatal("the copy lacks them: nothing is tested")
	}
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%s')`, r.id(victim)))
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%s')`, r.id(newcomer)))
	if r.stored(newcomer) > 0 || r.stored(victim) > 0 {
		t.Error("the copy has people who were erased")
	}
	if n := one[int](t, r.direct, tuples); n > 0 {
		t.Error("the copy has the quasi-identifiers of somebody who was erased")
	}
	// A copy that sees the table as it was before is not made.
	past := connect(t, shared.cluster.SuperuserDSN("erase_copy"))
	mustExec(t, past, "BEGIN ISOLATION LEVEL REPEATABLE READ")
	mustExec(t, past, "SELECT count(*) FROM tailor.erased")
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%s')`, r.id(many[0])))
	_, err := past.Exec(t.Context(), "CALL tailor.refresh($1::text::regclass)", r.table)
	if codeIn(err) != "25001" {
		t.Errorf("a copy under an older snapshot: %v", err)
	}
	mustExec(t, past, "ROLLBACK")
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
	r.exec(`CALL tailor.unprotect('$'); ALTER TABLE $ RENAME TO earlier;
		CREATE TABLE $ (LIKE earlier INCLUDING ALL); INSERT INTO $ SELECT * FROM earlier;
		DROP TABLE earlier;
		CALL tailor.protect('$', subject => 'id', k => 5);
		CALL tailor.classify('$', 'id', 'direct_identifier');
		CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('$', 'zip', 'quasi_identifier', hierarchy => 'zip');
		CALL tailor.classify('$', 'sex', 'quasi_identifier', hierarchy => 'sex');
		CALL tailor.classify('$', 'diagnosis', 'sensitive');
		CALL tailor.classify('$', 'cost', 'non_sensitive');
		CALL tailor.classify('$', 'token', 'non_sensitive');
		CALL tailor.forget_chains('$'); CALL tailor.activate('$')`)
	anew()

	// Digests under another key find nobody: nothing is copied until that is mended.
	r.exec(`UPDATE tailor.subject_key SET key = sha256(key)`)
	_, err := r.direct.Exec(t.Context(), "CALL tailor.refresh($1::text::regclass)", r.table)
	if codeIn(err) != "55000" || !strings.Contains(err.Error(), "another key") {
		t.Errorf("a copy under another key: %v", err)
	}
	_, err = r.direct.Exec(t.Context(), "CALL tailor.erase($1::text::regclass, '77')", r.table)
	if codeIn(err) != "55000" {
		t.Errorf("an erasure under another key: %v", err)
	}
}

// TestEraseReachesChildren erases from a table, from one with several rows for each
// person, and from one of codes.
func TestEraseReachesChildren(t *testing.T) {
	for i, departures := range []string{"with_block", "at_once"} {
		t.Run(departures, func(t *testing.T) {
			oneIn(t, 2, i)
			eraseFromChildren(t, departures)
		})
	}
}

func eraseFromChildren(t *testing.T, departures string) {
	office := openOffice(t, "erase_children_"+departures)
	r := office.register(t, 800)
	visits, codes := "visits_"+r.table, "codes_"+r.table
	mustExec(t, r.direct, strings.NewReplacer("$v", visits, "$c", codes, "$p", r.table).Replace(`
		CREATE TABLE $v (id int PRIMARY KEY, person bigint NOT NULL REFERENCES $p,
			day date NOT NULL, mark text NOT NULL, fee int);
		INSERT INTO $v
			SELECT 10 * p.id + n, p.id, date '2024-01-01' + (p.id % 1000 * 7919 + n * 104729) % 700,
				'v' || 10 * p.id + n, (p.id % 1000 * 31 + n * 17) % 977
			FROM $p p, generate_series(1, 1 + p.id % 3) n;
		CREATE TABLE $c (person int NOT NULL REFERENCES $p, code text NOT NULL);
		INSERT INTO $c SELECT p.id, 'c' || (p.id % 1000 * n) % 23 FROM $p p, generate_series(1, 3) n
			GROUP BY 1, 2;
		CALL tailor.protect('$v', subject => 'person', k => 5);
		CALL tailor.classify('$v', 'person', 'direct_identifier');
		CALL tailor.classify('$v', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.classify('$v', 'mark', 'non_sensitive');
		CALL tailor.classify('$v', 'fee', 'sensitive');
		CALL tailor.activate('$v');
		CALL tailor.protect('$c', subject => 'person', k => 5);
		CALL tailor.classify('$c', 'person', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('$c', column_name => 'code');
		CALL tailor.activate('$c')`))
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
		for _, row := range rowsOf(t, r.reader, fmt.Sprintf(`
			SELECT v.mark, v.fee, v.day, p.age, p.zip, p.sex FROM %s v JOIN %s p ON p.id = v.person`,
			visits, r.table)) {
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
	id := r.id(victim)
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("erase_children_"+departures))
	r.direct = direct
	r.erase(victim, departures)
	for _, want := range []string{
		r.table + ": ", visits + ": ", codes + ": takes ",
	} {
		assertTold(t, notices, "table public."+want)
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

	// Of the codes the person's cluster is gone.
	left := one[int](t, r.direct, `SELECT subjects::int FROM tailor.chain
		WHERE relation = $1::text::regclass`, codes)
	if taken := people - left; taken < 5 || taken > 9 {
		t.Errorf("codes of %d people are gone, want those of a cluster", taken)
	}
	waitFor(t, func() bool {
		return again[int](t, r.reader,
			"SELECT count(DISTINCT person) FROM "+codes) == left
	})
	refresh := func(change string) {
		t.Helper()
		mustExec(t, r.direct, strings.NewReplacer("$v", visits, "$p", r.table).Replace(change))
		for _, table := range []string{r.table, visits, codes} {
			mustExec(t, r.direct, fmt.Sprintf(`CALL tailor.refresh('%s')`, table))
			awaitTakenIn(t, r.direct, table, r.reader)
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
	if n := one[int](t, r.reader, "SELECT count(DISTINCT person) FROM "+codes); n != left {
		t.Errorf("codes of %d people are published, want %d", n, left)
	}
	// Other numbers, other payloads, and new rows.
	for _, mark := range rowsOf(t, r.direct, "SELECT mark FROM "+visits+" WHERE person = "+id) {
		gone[mark] = true
	}
	refresh(`UPDATE $v SET id = id + 100000000`)
	refresh(`UPDATE $v SET id = id + 200000000, fee = fee + 1 WHERE id % 2 = 0`)
	refresh(`INSERT INTO $v
		SELECT 1 - p.id, p.id, date '2025-06-01' + p.id % 9, 'n' || p.id, 12345 FROM $p p`)
	if _, is := answers[len(answers)-1]["n"+id]; is {
		t.Error("a new visit of somebody who was erased is shown")
	}
	if n := one[int](t, r.reader, "SELECT count(*) FROM "+visits+" WHERE fee = 12345"); n < 700 {
		t.Errorf("%d new visits are shown of 799 people", n)
	}
	mustExec(t, r.direct, fmt.Sprintf(`CALL tailor.forget_chains('%s')`, codes))
	answeredSoon(t, r.reader, "SELECT count(*) FROM "+codes)
	if n := again[int](t, r.reader, "SELECT count(DISTINCT person) FROM "+codes); n != people-1 {
		t.Errorf("codes of %d people are published in the end, want all %d but one", n, people)
	}
}

// TestEraseFromCodesBeforeTheyArePublished takes a record out of a copy that no proxy
// has published yet.
func TestEraseFromCodesBeforeTheyArePublished(t *testing.T) {
	direct := makeDatabase(t, "erase_records", `
		CREATE TABLE codes (id text PRIMARY KEY, codes text[]);
		INSERT INTO codes SELECT 'p' || n, ARRAY['c' || n % 7, 'd' || n % 5]
			FROM generate_series(1, 300) n`)
	if err := shared.install(t.Context(), "erase_records"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.grant_reader('researcher'); CALL tailor.protect('codes', 'id', 5);
		CALL tailor.classify('codes', 'id', 'direct_identifier', action => 'pseudonym');
		CALL tailor.set_valued('codes', column_name => 'codes'); CALL tailor.activate('codes');
		CALL tailor.erase('codes', 'p17', 'at_once')`)
	if n := one[int](t, direct, `SELECT subjects FROM tailor.epoch`); n != 299 {
		t.Errorf("the copy has %d records, want all 300 but one", n)
	}
	p := serveDatabase(t, "erase_records")
	published := func(want int) {
		t.Helper()
		conn := connect(t, p.dsn("researcher"))
		answeredSoon(t, conn, "SELECT id FROM codes")
		if n := one[int](t, conn, "SELECT count(*) FROM codes"); n != want {
			t.Errorf("%d records are published, want %d", n, want)
		}
	}
	published(299)
	// A hundred newcomers are published, and 99 wait.
	p.kill()
	mustExec(t, direct, `INSERT INTO codes SELECT 'p' || n, '{c1,d1}' FROM generate_series(301, 400) n;
		CALL tailor.refresh('codes'); CALL tailor.erase('codes', 'p303')`)
	p = serveDatabase(t, "erase_records")
	published(299)
	mustExec(t, direct, `INSERT INTO codes VALUES ('p401', '{c2}'); CALL tailor.refresh('codes')`)
	waitFor(t, func() bool {
		return one[int](t, direct,
			`SELECT subjects FROM tailor.chain`) == 399
	})
	published(399)
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
		r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%s'); CALL tailor.erase('$', '%s', 'at_once')`,
			r.id(shown), r.id(came[7])))
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
		sql := "EXPLAIN (TAILOR, FORMAT JSON) SELECT age, zip, sex FROM " + r.table
		return strings.Join(rowsOf(t, r.reader, sql), "")
	}
	before := account()
	if again := account(); again != before {
		t.Fatalf("two accounts of one release:\n%s\n%s", before, again)
	}
	open := connect(t, r.proxy.dsn("researcher"))
	rowsOf(t, open, "BEGIN", "DECLARE c CURSOR FOR SELECT token FROM "+r.table, "FETCH 1 FROM c")
	r.restrict(6)
	editions := `SELECT count(*) FROM pg_class WHERE relname ~ '^chain_1(_g[0-9]+)?_row$'`
	if n := one[int](t, r.direct, editions); n != 2 {
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
