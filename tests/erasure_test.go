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
		was, is := before[other]
		if !is || was.labels != s.labels || was.values != s.values ||
			!slices.Equal(was.payload, s.payload) {
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
	for _, chain := range rowsOf(r.t, r.direct, fmt.Sprintf(`
		SELECT 'chain_' || chain || CASE WHEN edition > 0 THEN '_g' || edition ELSE '' END || '_row',
			rows, subjects, blocks, min_block
		FROM tailor.chain WHERE relation = '%s'::regclass`, r.table)) {
		row, told, _ := strings.Cut(chain, "|")
		is := rowsOf(r.t, r.direct, fmt.Sprintf(`
			SELECT sum(r), (SELECT count(DISTINCT "tailor person") FROM tailor_store.%[1]s), count(*), min(n)
			FROM (SELECT count(*) AS r, count(DISTINCT "tailor person") AS n
				FROM tailor_store.%[1]s GROUP BY "tailor block") b`, row))[0]
		if told != is {
			r.t.Errorf("%s has %s rows, subjects, blocks, smallest block; its chain says %s", row, is, told)
		}
	}
}

// stored counts the rows of a person in whatever Tailor has stored of rows, and what it
// remembers of their values.
func (r *register) stored(token string) (rows int) {
	r.t.Helper()
	for _, name := range rowsOf(r.t, r.direct, `
		SELECT c.oid::regclass FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'tailor_store'::regnamespace AND c.relkind = 'r'
			AND a.attname = 'tailor person' AND c.relname !~ '_gone$'`) {
		rows += one[int](r.t, r.direct, fmt.Sprintf(`SELECT count(*) FROM %s, tailor.subject_key k
			WHERE "tailor person" = tailor.person_digest('%s', k.key)`, name, r.id(token)))
	}
	return rows + one[int](r.t, r.direct, `
		SELECT count(*) FROM tailor.shown_fact f, unnest(f.subjects) s, tailor.subject_key k
		WHERE s = tailor.subject_digest($1, k.key)`, r.id(token))
}

// id is the key of a token's person.
func (r *register) id(token string) string { return fmt.Sprint(r.people[token].id) }

// assertTold wants a notice.
func assertTold(t *testing.T, notices *[]string, want string) {
	t.Helper()
	if told := strings.Join(*notices, "\n"); !strings.Contains(told, want) {
		t.Errorf("no notice %q in %q", want, told)
	}
}

// waits says how many wait, as the table's owner is told.
func (r *register) waits() string {
	r.t.Helper()
	return rowsOf(r.t, r.direct, fmt.Sprintf(`SELECT max(arrivals), max(departures)
		FROM tailor.epochs WHERE relation = '%s'::regclass`, r.table))[0]
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
	assertTold(t, notices, fmt.Sprintf("takes %d other people's rows along", len(gone)-1))
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
	told := rowsOf(t, r.direct, fmt.Sprintf(`
		SELECT relation, departures, others, erased > now() - interval '1 hour'
		FROM tailor.erasures WHERE relation = '%s'::regclass`, r.table))
	want := fmt.Sprintf("%s|with_block|%d|t", r.table, len(gone)-1)
	if !slices.Equal(told, []string{want}) {
		t.Errorf("tailor.erasures has %q, want %q", told, want)
	}
}

// TestEraseOfSomebodyWhoWaits: who has left and is shown still, who has come and is not
// yet shown, and who has left with others long ago.
func TestEraseOfSomebodyWhoWaits(t *testing.T) {
	r := openOffice(t, "erase_waiting").register(t, 1200)
	left := r.cells(r.k, 2*r.k-1)[0][0]
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
	cell := r.cells(r.k+1, 2*r.k-1)[0]
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
	assertTold(t, notices, "whoever compares answers from before and after sees")
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

// alike are those of some people who have the diagnosis that most have, and the rest.
func (r *register) alike(tokens []string) (most, rest []string) {
	by := make(map[string][]string)
	for _, token := range tokens {
		by[r.people[token].diagnosis] = append(by[r.people[token].diagnosis], token)
	}
	for _, some := range by {
		if len(some) > len(most) {
			most = some
		}
	}
	isMost := func(token string) bool { return slices.Contains(most, token) }
	return most, slices.DeleteFunc(slices.Clone(tokens), isMost)
}

const diverse = `CALL tailor.require('$', 'l_diversity', 'diagnosis', 2)`

// TestEraseKeepsDiversity erases people of one diagnosis at once, of a block that needs
// two: what is left of it meets the policy, or goes.
func TestEraseKeepsDiversity(t *testing.T) {
	r := openOffice(t, "erase_diverse").register(t, 800, diverse)
	crowd := r.crowd(0)
	most, _ := r.alike(crowd)
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

// TestEraseIsTheOwners says who may erase, and whom.
func TestEraseIsTheOwners(t *testing.T) {
	office := openOffice(t, "erase_rights")
	r := office.register(t, 600)
	mustExec(t, r.direct, fmt.Sprintf(`CREATE ROLE erase_owner LOGIN; CREATE ROLE erase_stranger LOGIN;
		GRANT tailor_admin TO erase_owner, erase_stranger;
		GRANT CREATE ON SCHEMA public TO erase_stranger; ALTER TABLE %s OWNER TO erase_owner`, r.table))
	as := func(role string) *pgx.Conn {
		conn := connect(t, shared.cluster.SuperuserDSN("erase_rights"))
		mustExec(t, conn, "SET SESSION AUTHORIZATION "+role)
		return conn
	}
	victim := r.strangers(1)[0]
	id := r.id(victim)
	erase := `CALL tailor.erase('$', '` + id + `')`
	owner, stranger := as("erase_owner"), as("erase_stranger")
	for _, refused := range []struct {
		name, code string
		conn       *pgx.Conn
		sql        string
	}{
		{"a stranger", "42501", stranger, erase},
		{
			"a stranger, by the part that writes", "42501", stranger,
			`CALL tailor.write_erasure(ARRAY['$'::regclass], ARRAY['` + id + `'], 'with_block', true)`,
		},
		{"a reader", "42501", as("researcher"), erase},
		{"a reader, through the proxy", "42501", r.reader, erase},
		{"the digests, a stranger", "42501", stranger, `SELECT * FROM tailor.erased`},
		{"nobody", "P0002", owner, `CALL tailor.erase('$', '77')`},
		{"no number", "22023", owner, `CALL tailor.erase('$', 'secret')`},
		{"another word", "22023", owner, `CALL tailor.erase('$', '` + id + `', 'soon')`},
		{"NULL", "22004", owner, `CALL tailor.erase('$', NULL)`},
		{"an older snapshot", "25001", owner, `BEGIN ISOLATION LEVEL REPEATABLE READ; ` + erase},
	} {
		sql := strings.ReplaceAll(refused.sql, "$", r.table)
		_, err := refused.conn.PgConn().Exec(t.Context(), sql).ReadAll()
		if codeIn(err) != refused.code {
			t.Errorf("%s: %v, want %s", refused.name, err, refused.code)
		}
		if err != nil && (strings.Contains(err.Error(), id) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: the error quotes the key: %v", refused.name, err)
		}
		mustExec(t, refused.conn, "ROLLBACK")
	}
	r.look()
	r.shows([]string{victim}, true)

	// What belongs to another refers to it: both owners have to agree.
	mustExec(t, r.direct, fmt.Sprintf(`CREATE TABLE strange (id int PRIMARY KEY REFERENCES %s);
		INSERT INTO strange SELECT id FROM %[1]s; ALTER TABLE strange OWNER TO erase_stranger;
		CALL tailor.protect('strange', 'id', 5); CALL tailor.activate('strange')`, r.table))
	_, err := owner.Exec(t.Context(), strings.ReplaceAll(erase, "$", r.table))
	if codeIn(err) != "42501" {
		t.Errorf("an erasure from somebody else's table: %v", err)
	}
	// Nor does its domain run anything with the rights of who erases.
	mustExec(t, r.direct, `CREATE FUNCTION runs(anyelement) RETURNS boolean LANGUAGE plpgsql AS $$
		BEGIN IF current_user = 'erase_owner' THEN RAISE 'ran as %', current_user; END IF;
		RETURN true; END $$;
		CREATE DOMAIN running AS int CHECK (runs(VALUE)); ALTER TABLE strange ALTER id TYPE running`)
	for _, granted := range []string{"", "GRANT erase_stranger TO erase_owner"} {
		mustExec(t, r.direct, granted)
		_, err := owner.Exec(t.Context(), "BEGIN")
		if err == nil {
			_, err = owner.Exec(t.Context(), strings.ReplaceAll(erase, "$", r.table))
		}
		if (err == nil) != (granted != "") || codeIn(err) == "P0001" {
			t.Errorf("beside a domain of somebody else's, %q: %v", granted, err)
		}
		mustExec(t, owner, "ROLLBACK")
	}
	mustExec(t, r.direct, `REVOKE erase_stranger FROM erase_owner; CALL tailor.unprotect('strange')`)
	r.direct = owner
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', ' %s')`, id)) // as the column's type reads it
	r.direct = office.direct
	r.look()
	r.shows([]string{victim}, false)
	told := rowsOf(t, owner, `SELECT author, departures FROM tailor.erasures`)
	if !slices.Equal(told, []string{"erase_owner|with_block"}) {
		t.Errorf("its owner is told %q", told)
	}
	if told := rowsOf(t, stranger, `SELECT author FROM tailor.erasures`); len(told) > 0 {
		t.Errorf("a stranger is told %q", told)
	}
	r.check()
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
	trials := 2
	if soaks() {
		trials = 6
	}
	for trial := range trials {
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
					t.Errorf("trial %d, refresh %d: %d people are left by subtracting %s",
						trial, later, lost, questions[i])
				}
			}
			r.arrive(40)
			r.leave(r.strangers(3))
			r.refresh()
		}
	}
	r.check()
}
