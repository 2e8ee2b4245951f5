package tests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// tokenWard has a token of each person, which the table and data sets show as it is: it
// tells which rows of the two are one person's.
func tokenWard(t *testing.T, name string) (direct *pgx.Conn, p *testProxy) {
	t.Helper()
	return wardOf(t, name,
		`ALTER TABLE people ADD token text; UPDATE people SET token = md5(id::text || 'x');
		CALL tailor.classify('people', 'token', 'non_sensitive');`)
}

// linked reads the rows of both and puts those together that have one token, as somebody
// does who knows everybody's quasi-identifiers: of each he counts the people whom the
// labels of both rows can be of, among those whom he knows to be in the data set.
func linked(t *testing.T, direct, conn *pgx.Conn, dataset, members string) (pairs, alone int) {
	t.Helper()
	type label struct{ ages, zips string }
	read := func(table string) map[string]label {
		out := make(map[string]label)
		for _, row := range rowsOf(t, conn, "SELECT token, tailor.label(age), tailor.label(zip) FROM "+
			table) {
			f := strings.Split(row, "|")
			out[f[0]] = label{f[1], f[2]}
		}
		return out
	}
	people := rowsOf(t, direct, "SELECT age, zip FROM people WHERE "+members)
	covers := func(l label, age, zip string) bool {
		for i := range min(len(l.zips), len(zip)) {
			if l.zips[i] != '*' && l.zips[i] != zip[i] {
				return false
			}
		}
		low, high, span := strings.Cut(l.ages, "-")
		switch {
		case l.ages == "*":
			return true
		case !span:
			return age == l.ages
		}
		return age != "" && figure(age) >= figure(low) && figure(age) <= figure(high)
	}
	candidates := make(map[[2]label]int)
	table := read("people")
	for token, there := range read(dataset) {
		here, known := table[token]
		if !known {
			t.Fatalf("%s has somebody who is not in the table", dataset)
		}
		both := [2]label{here, there}
		if _, counted := candidates[both]; !counted {
			n := 0
			for _, row := range people {
				age, zip, _ := strings.Cut(row, "|")
				if covers(here, age, zip) && covers(there, age, zip) {
					n++
				}
			}
			candidates[both] = n
		}
		pairs++
		if candidates[both] < 5 {
			alone++
		}
	}
	return pairs, alone
}

const tokenPolicy = `CALL tailor.classify('%[1]s', 'age', 'quasi_identifier', hierarchy => 'age');
	CALL tailor.classify('%[1]s', 'zip', 'quasi_identifier', hierarchy => 'zip');
	CALL tailor.classify('%[1]s', 'token', 'non_sensitive');`

// TestADataSetLeadsToTheBlocksOfItsTable lays rows of a data set beside those of its table
// by what both show as it is. Those of a table with a root of its own find people so.
func TestADataSetLeadsToTheBlocksOfItsTable(t *testing.T) {
	direct, p := tokenWard(t, "datasets_linked")
	const query = `SELECT id, age, zip, token FROM people`
	mustExec(t, direct, fmt.Sprintf(`CALL tailor.define_dataset('everybody', $$%s$$, subject => 'id');
		CALL tailor.define_dataset('others', $$%[1]s WHERE id %% 2 = 0$$, subject => 'id');
		CALL tailor.define_dataset('part', $$%[1]s WHERE diagnosis = 'd1'$$, subject => 'id');
		CREATE TABLE apart AS %[1]s; CALL tailor.protect('apart', subject => 'id', k => 5);`, query))
	for _, name := range []string{"everybody", "part", "others", "apart"} {
		mustExec(t, direct, fmt.Sprintf(tokenPolicy, name))
	}
	mustExec(t, direct,
		`CALL tailor.activate('everybody'); CALL tailor.activate('part'); CALL tailor.activate('others');
		CALL tailor.shared_fact('apart', 'token', 'accepted'); CALL tailor.activate('apart');`)
	conn := connect(t, p.dsn("researcher"))
	for _, name := range []string{"everybody", "others", "apart"} {
		answeredSoon(t, conn, "SELECT count(*) FROM "+name)
	}
	look := func(name, members string) (pairs int) {
		t.Helper()
		pairs, alone := linked(t, direct, conn, name, members)
		t.Logf("%s: %d of %d rows are of fewer than 5 people", name, alone, pairs)
		if name == "apart" && alone == 0 {
			t.Error("nobody is found where there are two roots: the attack proves nothing")
		} else if name != "apart" && alone > 0 {
			t.Errorf("%s: %d rows can be of fewer than 5 people", name, alone)
		}
		return pairs
	}
	if n := look("everybody", "true"); n != 3000 {
		t.Errorf("%d rows of everybody", n)
	}
	look("apart", "true")
	// The root was made before anybody asked for the data sets of some: of blocks that not
	// all are in they show nothing.
	const part, others = "diagnosis = 'd1'", "id % 2 = 0"
	few := look("others", others)
	if few > 1000 {
		t.Errorf("%d rows by a root that knows of no data set", few)
	}
	if n := smallestPart(t, conn, "others"); n < 5 {
		t.Errorf("%d rows of a block are told apart by a data set that the root knows nothing of", n)
	}
	_, err := conn.Exec(t.Context(), "SELECT FROM part")
	assertState(t, err, "KA001", "")
	if waiting := one[int](t, direct,
		`SELECT sum(arrivals)::int FROM tailor.epochs `+
			`WHERE relation::text IN ('part', 'others')`); waiting != 1500+429-few {
		t.Errorf("%d wait, and %d are shown", waiting, few)
	}
	// One that is made then cuts by who is in them.
	mustExec(t, direct, `CALL tailor.forget_chains('people')`)
	for _, name := range []string{"part", "others"} {
		answeredSoon(t, conn, "SELECT count(*) FROM "+name)
	}
	if n, m := look("part", part), look("others", others); n != 429 || m != 1500 {
		t.Errorf("%d and %d rows, want 429 and 1500", n, m)
	}
	if n := smallestPart(t, conn, "others", "part"); n < 5 {
		t.Errorf("%d rows of a block are told apart by the data sets that have them", n)
	}
}

// smallestPart is the size of the smallest part of a block that is told apart by which data
// sets its rows are in, as their tokens tell.
func smallestPart(t *testing.T, conn *pgx.Conn, datasets ...string) int {
	t.Helper()
	in := make(map[string]int)
	for i, name := range datasets {
		for _, token := range rowsOf(t, conn, "SELECT token FROM "+name) {
			in[token] += 1 << i
		}
	}
	sizes := make(map[string]int)
	for _, row := range rowsOf(t, conn, "SELECT token, "+wardLabels+" FROM people") {
		token, label, _ := strings.Cut(row, "|")
		sizes[fmt.Sprint(label, in[token])]++
	}
	return slices.Min(slices.Collect(maps.Values(sizes)))
}

// wardLabels are all labels of a row of the ward.
const wardLabels = "tailor.label(age), tailor.label(zip), tailor.label(born), " +
	"tailor.label(weight), tailor.label(member)"

// TestDataSetsInTimeTellNobodyApart refreshes a table and a data set of some of its people, of
// whom others are in it each time and other things are said. Whoever has kept all answers
// knows of each row, by its token, when it was in which block and in the data set, and when
// what that says of it became something else.
func TestDataSetsInTimeTellNobodyApart(t *testing.T) {
	t.Run("a root that is parted by them", func(t *testing.T) {
		if rows := attackInTime(t, "datasets_time", `CALL tailor.forget_chains('people')`); rows < 3000 {
			t.Errorf("%d rows of the data set in all: the attack proves little", rows)
		}
	})
	t.Run("a root that knows nothing of them", func(t *testing.T) {
		soakOnly(t)
		attackInTime(t, "datasets_earlier", "")
	})
}

// attackInTime says how many rows of the data set were shown.
func attackInTime(t *testing.T, name, then string) (rows int) {
	t.Helper()
	direct, p := tokenWard(t, name)
	mustExec(t, direct,
		`ALTER TABLE people ADD enrolled boolean NOT NULL DEFAULT false, ADD score int NOT NULL DEFAULT 0;
		UPDATE people SET enrolled = zip > '10700' OR id % 3 = 0, score = id % 4;
		CALL tailor.define_dataset('study',
			'SELECT id, age, zip, token, score FROM people WHERE enrolled', subject => 'id');`+
			fmt.Sprintf(tokenPolicy, "study")+`CALL tailor.classify('study', 'score', 'sensitive');
		CALL tailor.cohort('people', 100); CALL tailor.recode('people', 'full_domain');
			CALL tailor.activate('people');
		CALL tailor.forget_chains('people')`)
	conn := connect(t, p.dsn("researcher"))
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	mustExec(t, direct, `CALL tailor.activate('study');`+then)
	answeredSoon(t, conn, "SELECT count(*) FROM people")
	history := make(map[string]string) // of tokens
	last := make(map[string]string)
	for step := range 6 {
		labels := make(map[string]string)
		for _, row := range rowsOf(t, conn, "SELECT token, "+wardLabels+" FROM people") {
			token, label, _ := strings.Cut(row, "|")
			labels[token] = label
		}
		in := make(map[string]string)
		var study []string
		if _, err := conn.Exec(t.Context(), "SELECT FROM study"); err == nil {
			study = rowsOf(t, conn, `SELECT token, score FROM study`)
		} else if codeIn(err) != "KA001" {
			t.Fatal(err)
		}
		for _, row := range study {
			token, score, _ := strings.Cut(row, "|")
			in[token] = "in"
			if was, before := last[token]; before && was != score {
				in[token] = "changed"
			}
			last[token] = score
		}
		rows += len(in)
		for token, label := range labels {
			history[token] += fmt.Sprintf(" %d %s %s", step, label, in[token])
		}
		sizes := make(map[string]int)
		for _, h := range history {
			sizes[h]++
		}
		for h, n := range sizes {
			if n < 5 {
				t.Fatalf("step %d: %d rows have the history%s", step, n, h)
			}
		}
		copies := one[int](t, direct, `SELECT min(epoch) FROM tailor.chains`)
		// Whole regions join or leave the study, single people do, scores change, some come and go.
		mustExec(t, direct,
			fmt.Sprintf(`UPDATE people SET enrolled = NOT enrolled WHERE id %% 37 = %[1]d
				OR substr(zip, 3, 2)::int %% 6 = %[1]d;
			UPDATE people SET score = score + 1 WHERE id %% 11 = %[1]d
				OR substr(zip, 3, 2)::int %% 5 = %[1]d;
			DELETE FROM people WHERE id %% 41 = %[1]d;
			INSERT INTO people SELECT id + 10000 * (1 + %[1]d), age, zip, born, weight, member,
				diagnosis, md5(id || 'y%[1]d'), enrolled, score
				FROM people WHERE id %% 20 = %[1]d AND id < 10000;
			CALL tailor.refresh('people')`, step))
		waitFor(t, func() bool {
			return one[bool](t, direct, fmt.Sprintf(
				`SELECT min(epoch) > %d AND min(epoch) = max(epoch) FROM tailor.chains`, copies))
		})
	}
	t.Logf("%d rows of the data set, %d histories", rows, len(history))
	return rows
}
