package tests

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each of these is an attack that has succeeded once.

// TestRowsComeBackTogether has all rows of a block leave, and all but one row of somebody with two
// come back: whose is not back would be told.
func TestRowsComeBackTogether(t *testing.T) {
	r := openOffice(t, "rows_come_back").register(t, 800)
	visits := "visits_" + r.table
	mustExec(t, r.direct, fmt.Sprintf(`CREATE TABLE %[1]s (id int PRIMARY KEY,
			person int NOT NULL REFERENCES %[2]s ON DELETE CASCADE,
			day date NOT NULL, mark text NOT NULL, fee int);
		INSERT INTO %[1]s SELECT 10 * p.id + n, p.id,
			date '2024-01-01' + (p.id %% 1000 * 7919 + n * 104729) %% 700, 'v' || 10 * p.id + n,
			(p.id %% 1000 * 31 + n * 17) %% 977
			FROM %[2]s p, generate_series(1, 1 + p.id %% 3) n;
		CALL tailor.protect('%[1]s', subject => 'person', k => 5);
		CALL tailor.classify('%[1]s', 'person', 'direct_identifier');
		CALL tailor.classify('%[1]s', 'day', 'quasi_identifier', hierarchy => 'day');
		CALL tailor.classify('%[1]s', 'mark', 'non_sensitive');
		CALL tailor.classify('%[1]s', 'fee', 'sensitive');
		CALL tailor.activate('%[1]s')`, visits, r.table))
	answeredSoon(t, r.reader, "SELECT day FROM "+visits)
	awaitTakenIn(t, r.direct, visits, r.reader)
	store := one[string](t, r.direct, `SELECT tailor.rows_of(c) FROM tailor.chain c
		WHERE relation = $1::text::regclass`, visits)
	mustExec(t, r.direct, fmt.Sprintf(`CREATE TABLE cell AS SELECT v.* FROM %[1]s v WHERE v.mark IN (
		SELECT mark FROM %[2]s WHERE "tailor block" = (
			SELECT "tailor block" FROM (
				SELECT "tailor block", "tailor person", count(*) n FROM %[2]s GROUP BY 1, 2) q
			GROUP BY 1 HAVING max(n) > 1 ORDER BY sum(n) LIMIT 1))`, visits, store))
	shown := func(rows string) int {
		t.Helper()
		mustExec(t, r.direct, rows+fmt.Sprintf("; CALL tailor.refresh('%s')", visits))
		awaitTakenIn(t, r.direct, visits, r.reader)
		var marks []string
		for _, mark := range rowsOf(t, r.direct, "SELECT mark FROM cell") {
			marks = append(marks, "'"+mark+"'")
		}
		return one[int](t, r.reader, "SELECT count(*) FROM "+visits+" WHERE mark IN ("+
			strings.Join(marks, ", ")+")")
	}
	cell := one[int](t, r.direct, "SELECT count(*) FROM cell")
	if n := shown("DELETE FROM " + visits + " WHERE id IN (SELECT id FROM cell)"); n != 0 {
		t.Fatalf("%d of %d rows of those who left are shown", n, cell)
	}
	last := `(SELECT max(id) FROM cell WHERE person = (SELECT person FROM cell GROUP BY 1
		HAVING count(*) > 1 LIMIT 1))`
	if n := shown("INSERT INTO " + visits + " SELECT * FROM cell WHERE id <> " + last); n != 0 {
		t.Errorf("%d of %d rows are shown, of which one is not back", n, cell)
	}
	if n := shown("INSERT INTO " + visits + " SELECT * FROM cell WHERE id = " + last); n != cell {
		t.Errorf("%d of %d rows are shown, which are all back", n, cell)
	}
}

// settled waits until the register is shown by the policy in force.
func (r *register) settled() {
	r.t.Helper()
	awaitTakenIn(r.t, r.direct, r.table, r.reader)
	waitFor(r.t, func() bool {
		return one[bool](r.t, r.direct, `SELECT bool_and(c.version = p.active) FROM tailor.chain c
			JOIN tailor.protection p USING (relation) WHERE relation = $1::text::regclass`, r.table)
	})
}

// TestPoliciesTellNobodysChange has a change of one person wait, and the column get a wider
// type, or come back as another one.
func TestPoliciesTellNobodysChange(t *testing.T) {
	office := openOffice(t, "policies_change")
	t.Run("wider", func(t *testing.T) {
		r := office.register(t, 600)
		r.t = t
		r.exec(`ALTER TABLE $ ADD ward varchar(20) DEFAULT 'w'; CALL tailor.classify('$', 'ward',
			'sensitive'); CALL tailor.activate('$')`)
		r.settled()
		answeredSoon(t, r.reader, "SELECT ward FROM "+r.table)
		who := r.strangers(1)[0]
		r.exec("UPDATE $ SET ward = 'oncology', cost = 77777 WHERE token = '" + who + "'")
		r.refresh()
		for _, change := range []string{
			"ALTER ward TYPE varchar(40)", "ALTER ward TYPE text, ALTER cost TYPE bigint",
		} {
			r.exec("ALTER TABLE $ " + change + "; CALL tailor.activate('$')")
			r.settled()
			reader := connect(t, r.reader.Config().ConnString()) // which has prepared nothing
			asked := "SELECT count(*) FROM " + r.table + " WHERE ward = 'oncology' OR cost = 77777"
			answeredSoon(t, reader, asked)
			if n := one[int](t, reader, asked); n != 0 {
				t.Errorf("%s: the change of one person is shown", change)
			}
		}
	})
	set := `CALL tailor.define_dataset('set_$', 'SELECT p.id, w.ward FROM $ p
			JOIN wards_$ w USING (id)', subject => 'id');
		CALL tailor.classify('set_$', 'id', 'direct_identifier');
		CALL tailor.classify('set_$', 'ward', 'sensitive')`
	for name, changes := range map[string][3]string{ // before a change of one, after it, and refused
		"hidden meanwhile": {
			"CALL tailor.classify('$', 'diagnosis', 'direct_identifier')", "",
			"CALL tailor.classify('$', 'diagnosis', 'sensitive')",
		},
		"renamed": {
			"", "", "ALTER TABLE $ RENAME diagnosis TO illness; " +
				"CALL tailor.classify('$', 'illness', 'sensitive')",
		},
		"a data set made anew": {
			"CREATE TABLE wards_$ AS SELECT id, 'w' AS ward FROM $; " + set,
			`CALL tailor.unprotect('set_$'); DROP MATERIALIZED VIEW set_$;
			UPDATE wards_$ SET ward = 'x' WHERE id = (SELECT min(id) FROM wards_$)`, set,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := office.register(t, 600)
			r.t = t
			activate := "CALL tailor.activate('" + r.table + "')"
			r.exec(changes[0])
			mustExec(t, r.direct, activate)
			if changes[2] == set {
				activate = "CALL tailor.activate('set_" + r.table + "')"
				mustExec(t, r.direct, activate)
			}
			r.settled()
			who := r.strangers(1)[0]
			r.set(who, "fracture", r.people[who].cost)
			r.exec(changes[1])
			r.exec(changes[2])
			refusedAs(t, r.direct, activate, "KA004")
			r.exec("CALL tailor.forget_chains('$')")
			mustExec(t, r.direct, activate)
			answeredSoon(t, r.reader, "SELECT cost FROM "+r.table)
		})
	}
}

// TestSubjectsAreToldApartAsKeysAre has one person's key written in six ways, which are equal.
func TestSubjectsAreToldApartAsKeysAre(t *testing.T) {
	direct := makeDatabase(t, "equal_subjects", "")
	if err := shared.install(t.Context(), "equal_subjects"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.grant_reader('researcher');
		CALL tailor.define_hierarchy('age', 'interval',
			'{"widths": [5, 10, 20, 40], "lower": 0, "upper": 119}');
		CREATE TABLE people (id numeric PRIMARY KEY, age int NOT NULL);
		INSERT INTO people SELECT i, 20 + i % 50 FROM generate_series(1, 400) i;
		INSERT INTO people VALUES (1000, 110);
		CREATE TABLE visits (id int PRIMARY KEY, person numeric NOT NULL REFERENCES people,
			age int NOT NULL, fee int);
		INSERT INTO visits SELECT i, i, 20 + i % 50, i FROM generate_series(1, 400) i;
		INSERT INTO visits SELECT 1000 + n, round(1000.0, n), 110, 9000 + n
			FROM generate_series(0, 5) n;
		CALL tailor.protect('people', subject => 'id', k => 5);
		CALL tailor.classify('people', 'id', 'direct_identifier');
		CALL tailor.classify('people', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.activate('people');
		CALL tailor.protect('visits', subject => 'person', k => 5);
		CALL tailor.classify('visits', 'person', 'direct_identifier');
		CALL tailor.classify('visits', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('visits', 'fee', 'sensitive');
		CALL tailor.activate('visits')`)
	reader := connect(t, serveDatabase(t, "equal_subjects").dsn("researcher"))
	answeredSoon(t, reader, "SELECT age FROM visits")
	if n := one[int](t, reader, "SELECT count(*) FROM visits WHERE fee >= 9000 AND "+
		"(tailor.bounds(age))[1]::int > 90"); n > 0 {
		t.Errorf("%d rows of one person are a block", n)
	}
	mustExec(t, direct, `CALL tailor.erase('people', '1000.00');
		CALL tailor.forget_chains('visits'); CALL tailor.activate('visits')`)
	answeredSoon(t, reader, "SELECT age FROM visits")
	if n := one[int](t, reader, "SELECT count(*) FROM visits WHERE fee >= 9000"); n > 0 {
		t.Errorf("%d rows of somebody who was erased are shown", n)
	}
}

// TestSubjectsWhoseTextsTellNobodyApartAreRefused has keys that are equal, and differ.
func TestSubjectsWhoseTextsTellNobodyApartAreRefused(t *testing.T) {
	direct := makeDatabase(t, "unequal_subjects", "")
	if err := shared.install(t.Context(), "unequal_subjects"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CREATE EXTENSION citext;
		CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
		CREATE TYPE place AS ENUM ('here', 'there'); CREATE DOMAIN code AS varchar(10)`)
	for kind, refused := range map[string]bool{
		"citext": true, "text COLLATE careless": true, "double precision": true, "timestamptz": true,
		"interval": true, "numeric(12)": false, "code": false, "place": false, "char(4)": false,
		"uuid": false,
	} {
		mustExec(t, direct, fmt.Sprintf(`DROP TABLE IF EXISTS people;
			CREATE TABLE people (id %s, age int);
			CALL tailor.protect('people', subject => 'id', k => 5);
			CALL tailor.classify('people', 'id', 'direct_identifier')`, kind))
		_, err := direct.Exec(t.Context(), "CALL tailor.activate('people')")
		if told := codeIn(err) == "0A000"; told != refused {
			t.Errorf("a subject of type %s: %v", kind, err)
		}
	}
}

// TestWhoeverIsErasedFromCodesIsNoNewcomer has the parent go on having him.
func TestWhoeverIsErasedFromCodesIsNoNewcomer(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "erased_codes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	owner, super := s.as(t, "dba"), s.superuser(t)
	c := enroll(t, owner, "zj", 700)
	c.jointly(t, owner)
	conn := connect(t, s.serve(t).dsn(s.reader(t)))
	answeredSoon(t, conn, "SELECT code FROM zj_codes")
	victim := one[int64](t, owner, "SELECT min(person) FROM zj_codes")
	publication := one[int](t, super, "SELECT tailor.publication_of('zj_codes'::regclass)")
	records := func() int {
		return one[int](t, super, "SELECT records FROM tailor.publication WHERE epoch = $1", publication)
	}
	mustExec(t, owner, fmt.Sprintf("CALL tailor.erase('zj_codes', '%d')", victim))
	left := records()
	mustExec(t, owner, `INSERT INTO zj SELECT 900000000 + n, n % 90, 'male', '10000', n
			FROM generate_series(1, 150) n;
		INSERT INTO zj_codes SELECT 900000000 + n, 'C0' || n % 5 FROM generate_series(1, 150) n;
		CALL tailor.refresh('zj_codes')`)
	awaitTakenIn(t, super, "zj_codes", conn)
	if n := records(); left >= 700 || n != left+150 {
		t.Errorf("%d records after an erasure, and %d with 150 newcomers", left, n)
	}
}

// TestEraseAtOnceHeedsClasses erases somebody of five whom earlier labels tell from the others of
// their block.
func TestEraseAtOnceHeedsClasses(t *testing.T) {
	r := openOffice(t, "erase_classes").register(t, 600)
	r.restrict(12)
	r.settled()
	store := one[string](t, r.direct, `SELECT tailor.rows_of(c) FROM tailor.chain c
		WHERE relation = $1::text::regclass`, r.table)
	token := one[string](t, r.direct, `SELECT min(token) FROM `+store+` WHERE "tailor block" IN (
			SELECT "tailor block" FROM `+store+` GROUP BY 1 HAVING count(*) > 13)
		GROUP BY "tailor class" HAVING count(*) = 5 ORDER BY 1 LIMIT 1`)
	r.exec(fmt.Sprintf(`CALL tailor.erase('$', '%d', departures => 'at_once')`, r.people[token].id))
	least := one[int](t, r.direct, `SELECT min(n) FROM (SELECT count(*) AS n FROM `+store+`
		GROUP BY "tailor class") c`)
	if least < 5 {
		t.Errorf("a class has %d people", least)
	}
}

// TestLabelsCoverWhoeverWaitsToLeave has the oldest of each small block leave, and ages get another
// hierarchy: the labels of those who are shown still are true, and what they make certain.
func TestLabelsCoverWhoeverWaitsToLeave(t *testing.T) {
	r := openOffice(t, "labels_of_absent").register(t, 600)
	var oldest []string
	for _, cell := range r.cells(5, 9) {
		of := cell[0]
		for _, token := range cell {
			if r.people[token].age > r.people[of].age {
				of = token
			}
		}
		oldest = append(oldest, of)
	}
	r.leave(oldest)
	r.refresh()
	r.exec(`CALL tailor.define_hierarchy('other_age', 'interval',
			'{"widths": [2, 10, 20, 40], "lower": 0, "upper": 119}');
		CALL tailor.classify('$', 'age', 'quasi_identifier', hierarchy => 'other_age');
		CALL tailor.activate('$')`)
	r.settled()
	asked := "SELECT token, (tailor.bounds(age))[1]::int, (tailor.bounds(age))[2]::int FROM " + r.table
	answeredSoon(t, r.reader, asked)
	shown, narrow := 0, 0
	for _, row := range rowsOf(t, r.reader, asked) {
		f := strings.Split(row, "|")
		age := r.people[f[0]].age
		if low, high := int(figure(f[1])), int(figure(f[2])); age < low || age > high {
			t.Errorf("age %d is shown as %d to %d", age, low, high)
		} else if high-low < 40 {
			narrow++
		}
		shown++
	}
	if shown != 600 || narrow < 400 {
		t.Errorf("%d of 600 people are shown, %d by less than 40 years", shown, narrow)
	}
}

// TestLabelsOfCodesCoverWhoeverWaitsToLeave has a list of wards by floors become one by houses.
func TestLabelsOfCodesCoverWhoeverWaitsToLeave(t *testing.T) {
	list := func(name string, groups ...int) string {
		var paths []string
		for ward := range 24 {
			path := []string{fmt.Sprintf("w%02d", ward)}
			for _, n := range groups {
				path = append(path, fmt.Sprintf("%s %d of %d", name, ward/n, n))
			}
			paths = append(paths, fmt.Sprintf(`["%s"]`, strings.Join(path, `", "`)))
		}
		return fmt.Sprintf(`CALL tailor.define_hierarchy('%s', 'table', '{"paths": [%s]}')`, name,
			strings.Join(paths, ", "))
	}
	r := openOffice(t, "codes_of_absent").register(t, 600,
		`ALTER TABLE $ ADD ward text; UPDATE $ SET ward = 'w' || lpad((id % 24)::text, 2, '0')`,
		list("floor", 4, 12), `UPDATE $ SET zip = '10000'`,
		`CALL tailor.classify('$', 'ward', 'quasi_identifier', hierarchy => 'floor')`)
	asked := "SELECT token, ward FROM " + r.table
	answeredSoon(t, r.reader, asked)
	wards, cells := make(map[string]int), make(map[string][]string)
	for _, row := range rowsOf(t, r.direct, "SELECT token, substr(ward, 2) FROM "+r.table) {
		token, ward, _ := strings.Cut(row, "|")
		wards[token] = int(figure(ward))
	}
	known := 0
	for _, row := range rowsOf(t, r.reader, "SET tailor.representation = 'label'",
		"SELECT token, age, sex, ward FROM "+r.table) {
		token, cell, _ := strings.Cut(row, "|")
		cells[cell] = append(cells[cell], token)
		if !strings.HasSuffix(cell, "*") {
			known++
		}
	}
	var out []string
	for _, cell := range cells {
		out = append(out, cell[0])
	}
	r.leave(out)
	r.exec("CALL tailor.refresh('$')")
	awaitTakenIn(t, r.direct, r.table, r.reader)
	r.exec(list("house", 6, 12) + `;
		CALL tailor.classify('$', 'ward', 'quasi_identifier', hierarchy => 'house');
		CALL tailor.activate('$')`)
	r.settled()
	answeredSoon(t, r.reader, asked)
	still := 0
	for _, row := range rowsOf(t, r.reader, asked) {
		token, label, _ := strings.Cut(row, "|")
		var house, of int
		switch {
		case label == "*":
			continue
		case label == fmt.Sprintf("w%02d", wards[token]):
		default:
			if _, err := fmt.Sscanf(label, "house %d of %d", &house, &of); err != nil ||
				wards[token]/of != house {
				t.Errorf("ward %d is shown as %s", wards[token], label)
			}
		}
		still++
	}
	if t.Logf("%d, then %d", known, still); still < known*9/10 {
		t.Errorf("the ward of %d people was told, and is of %d", known, still)
	}
}

// TestWhatIsNewIsShownWhenEverybodyIsBack has one of each small block wait to leave when a column
// and a data set are declared: they show nothing of the block, which is counted, until he is back.
func TestWhatIsNewIsShownWhenEverybodyIsBack(t *testing.T) {
	r := openOffice(t, "new_columns").register(t, 600)
	var out []string
	for _, cell := range r.cells(5, 9) {
		out = append(out, cell[0])
	}
	r.exec("ALTER TABLE $ ADD extra int DEFAULT 1; CALL tailor.activate('$')")
	r.settled()
	r.leave(out)
	r.refresh()
	r.exec(`CALL tailor.classify('$', 'extra', 'non_sensitive'); CALL tailor.activate('$');
		CALL tailor.define_dataset('public.set_$', 'SELECT id, cost AS total FROM public.$',
			subject => 'id');
		CALL tailor.classify('set_$', 'id', 'direct_identifier');
		CALL tailor.classify('set_$', 'total', 'non_sensitive');
		CALL tailor.activate('set_$')`)
	r.settled()
	shown := func() (rows, extra, set, waiting int) {
		t.Helper()
		answeredSoon(t, r.reader, "SELECT total FROM set_"+r.table)
		row := strings.Split(rowsOf(t, r.reader, fmt.Sprintf("SELECT count(*), count(extra), "+
			"(SELECT count(*) FROM set_%[1]s) FROM %[1]s", r.table))[0], "|")
		waiting = one[int](t, r.direct, "SELECT changes FROM tailor.epochs WHERE relation = "+
			"$1::text::regclass", r.table)
		return int(figure(row[0])), int(figure(row[1])), int(figure(row[2])), waiting
	}
	rows, extra, set, waiting := shown()
	if rows != 600 || extra > 300 || set > 300 || waiting < 200 {
		t.Errorf("%d people, %d with what is new, %d in the data set, %d wait", rows, extra, set, waiting)
	}
	r.back(out)
	r.refresh()
	r.settled()
	if rows, extra, set, waiting = shown(); rows != 600 || extra != 600 || set != 600 || waiting != 0 {
		t.Errorf("all are back: %d people, %d with what is new, %d in the data set, %d wait", rows, extra,
			set, waiting)
	}
}

// TestAFloodOfNotificationsIsReadTogether has a reader send very many: the proxy has the policies
// read by then, and not once for each of them.
func TestAFloodOfNotificationsIsReadTogether(t *testing.T) {
	r := openOffice(t, "flood").register(t, 200)
	for range 200 {
		mustExec(t, r.reader,
			"SELECT count(pg_notify('tailor', 'x' || g)) FROM generate_series(1, 500) g")
	}
	committed := func() int {
		time.Sleep(2 * time.Second) // the server's counters come late
		return one[int](t, shared.superuser(t),
			"SELECT xact_commit FROM pg_stat_database WHERE datname = 'flood'")
	}
	before := committed()
	if n := committed() - before; n > 40 {
		t.Errorf("%d transactions while nobody asks for anything", n)
	}
}
