package tests

import (
	"fmt"
	"strings"
	"testing"
)

const (
	twoDiagnoses = `CALL tailor.require('$', 'l_diversity', 'diagnosis', 2)`
	allHaveHIV   = `UPDATE $ SET diagnosis = 'hiv' WHERE age = 111`
)

// diagnosesOf are those that are shown of some people, each once.
func (r *register) diagnosesOf(tokens []string) map[string]int {
	r.t.Helper()
	out := make(map[string]int)
	for _, token := range tokens {
		if s, shown := r.answers[len(r.answers)-1][token]; shown {
			out[s.payload[0]]++
		}
	}
	return out
}

// TestWhatIsWithheldStaysSo has a block of one diagnosis, which is withheld, come to have two: the
// values of the others would be known, and that of the one who has changed.
func TestWhatIsWithheldStaysSo(t *testing.T) {
	office := openOffice(t, "withheld_stays")
	for name, then := range map[string]func(r *register){
		"another column changes": func(r *register) {
			r.exec(`UPDATE $ SET cost = cost + 1000`)
			r.refresh()
		},
		"all leave and return": func(r *register) {
			r.exec(`CREATE TABLE away_$ AS SELECT * FROM $ WHERE age = 111; DELETE FROM $ WHERE age = 111`)
			r.refresh()
			if shown := r.diagnosesOf(r.crowd(0)); len(shown) > 0 {
				t.Errorf("who has left is shown: %v", shown)
			}
			r.exec(`INSERT INTO $ SELECT * FROM away_$`)
			r.refresh()
		},
		"another model is asked": func(r *register) {
			r.exec(`CALL tailor.cuts('$', 'by_models')`)
			refusedAs(t, r.direct, "CALL tailor.activate('"+r.table+"')", "KA004")
			r.exec(`CALL tailor.cuts('$', 'blind'); CALL tailor.protect('$', 'id', 5);
				CALL tailor.require('$', 'l_diversity', 'cost', 2); CALL tailor.activate('$')`)
			r.settled()
			r.look()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := office.register(t, 600, allHaveHIV, twoDiagnoses, `CALL tailor.cuts('$', 'blind')`)
			crowd := r.crowd(0)
			if shown := r.diagnosesOf(crowd); shown["(withheld)"] != len(crowd) {
				t.Fatalf("nothing is tested: %v", shown)
			}
			r.exec(`UPDATE $ SET diagnosis = 'flu' WHERE token = '` + crowd[0] + `'`)
			r.refresh()
			then(r)
			if shown := r.diagnosesOf(crowd); len(shown) > 1 || shown["hiv"] > 0 {
				t.Errorf("%v is shown", shown)
			}
		})
	}
}

// joined is a register whose blocks have joined under k = 10, and people whom earlier labels tell
// from the rest of theirs.
func (o *clinicOffice) joined(t *testing.T, calls ...string) (r *register, known []string) {
	t.Helper()
	r = o.register(t, 800, append(calls, twoDiagnoses)...)
	known = r.cells(5, 9)[0]
	r.exec(`CALL tailor.protect('$', 'id', 10); ` + twoDiagnoses + `; CALL tailor.activate('$')`)
	r.settled()
	r.look()
	if n := len(r.diagnosesOf(known)); n < 2 {
		t.Fatalf("nothing is tested: %d diagnoses", n)
	}
	return r, known
}

// TestRememberedBlocksMeetTheModels has those who were a block, and now are a part of one, get one
// diagnosis.
func TestRememberedBlocksMeetTheModels(t *testing.T) {
	office := openOffice(t, "remembered_blocks")
	for effect, others := range map[string]string{ // who changes besides
		"batch":   `UPDATE $ SET diagnosis = 'new ' || id % 3; `,
		"at_once": "",
	} {
		t.Run(effect, func(t *testing.T) {
			r, known := office.joined(t, `CALL tailor.changes('$', '`+effect+`')`)
			r.exec(others + `UPDATE $ SET diagnosis = 'cancer' WHERE token IN ('` +
				strings.Join(known, "', '") + `')`)
			r.refresh()
			if shown := r.diagnosesOf(known); len(shown) < 2 {
				t.Errorf("%v is shown of people who were a block", shown)
			}
		})
	}
	t.Run("departures", func(t *testing.T) {
		r, known := office.joined(t, `CALL tailor.departures('$', 'at_once')`)
		r.exec(`CALL tailor.protect('$', 'id', 5); CALL tailor.activate('$')`)
		r.settled()
		r.leave(known[:1])
		r.refresh()
		left := 0
		for _, n := range r.diagnosesOf(known) {
			left += n
		}
		if left > 0 && left < 5 {
			t.Errorf("%d of %d people who were a block are shown", left, len(known))
		}
	})
}

// TestAColumnAddedAgainIsRememberedByItsName has it come back under another number: who goes back
// to an earlier value is told by that.
func TestAColumnAddedAgainIsRememberedByItsName(t *testing.T) {
	r := openOffice(t, "added_again").register(t, 600)
	crowd := r.crowd(0)
	r.exec(`UPDATE $ SET cost = 20000000 + id WHERE age = 111`)
	r.refresh()
	r.exec(`ALTER TABLE $ ADD other int; UPDATE $ SET other = cost; ALTER TABLE $ DROP cost;
		ALTER TABLE $ RENAME other TO cost; CALL tailor.classify('$', 'cost', 'non_sensitive');
		CALL tailor.activate('$')`)
	r.settled()
	r.exec(fmt.Sprintf(`UPDATE $ SET cost = CASE token WHEN '%s' THEN %d ELSE 40000000 + id END
		WHERE age = 111`, crowd[0], r.people[crowd[0]].cost))
	r.refresh()
	if n := one[int](t, r.reader, "SELECT count(*) FROM "+r.table+" WHERE cost >= 40000000"); n > 0 {
		t.Errorf("%d have other costs, and one that of before", n)
	}
}

// TestANumberWithMoreZerosIsTheSame has those of all get them: a single change that waits would be
// shown with that.
func TestANumberWithMoreZerosIsTheSame(t *testing.T) {
	r := openOffice(t, "more_zeros").register(t, 600, `ALTER TABLE $ ADD fee numeric`,
		`UPDATE $ SET fee = cost`, `CALL tailor.classify('$', 'fee', 'sensitive')`)
	r.exec(`UPDATE $ SET fee = 7777777 WHERE token = '` + r.strangers(1)[0] + `'`)
	r.refresh()
	r.exec(`UPDATE $ SET fee = fee * 1.00`)
	r.refresh()
	if n := one[int](t, r.reader, "SELECT count(*) FROM "+r.table+" WHERE fee = 7777777"); n > 0 {
		t.Error("the change of one person is shown")
	}
}

// TestWhatIsNewTellsNoChangeThatWaits has a column declared that says the same as another one, of
// which a single change waits.
func TestWhatIsNewTellsNoChangeThatWaits(t *testing.T) {
	r := openOffice(t, "new_tells").register(t, 600)
	who := r.strangers(1)[0]
	r.set(who, "gangrene", r.people[who].cost)
	r.refresh()
	r.exec(`ALTER TABLE $ ADD code text; UPDATE $ SET code = 'code of ' || diagnosis;
		CALL tailor.classify('$', 'code', 'sensitive'); CALL tailor.activate('$')`)
	r.settled()
	asked := "SELECT count(*) FROM " + r.table + " WHERE code "
	answeredSoon(t, r.reader, asked+"IS NULL")
	if n := one[int](t, r.reader, asked+"= 'code of gangrene'"); n > 0 {
		t.Error("the change of one person is told by another column")
	}
	if n := one[int](t, r.reader, asked+"IS NOT NULL"); n < 500 {
		t.Errorf("%d codes of 600 are shown", n)
	}
	r.set(who, "", r.people[who].cost)
	r.exec("UPDATE $ SET diagnosis = 'as before', code = 'none'")
	r.refresh() // and of all of the block
	if n := one[int](t, r.reader, asked+"= 'none'"); n != 600 {
		t.Errorf("%d codes of 600 are shown when nothing waits", n)
	}
}

// TestRowsWithoutAKeyKeepTheirColumnsWhereValuesAreWithheld: nothing else tells which is which.
func TestRowsWithoutAKeyKeepTheirColumnsWhereValuesAreWithheld(t *testing.T) {
	direct := openOffice(t, "no_key_blind").direct
	mustExec(t, direct, `CREATE TABLE rows AS SELECT g AS id, 1 + (g - 1) / 5 AS age, g % 7 AS cost, n,
			CASE WHEN g <= 50 THEN 'hiv' ELSE (ARRAY['flu', 'gout', 'ms'])[1 + g % 3] END AS diagnosis
			FROM generate_series(1, 200) g, generate_series(1, 2) n;
		CALL tailor.protect('rows', subject => 'id', k => 5);
		CALL tailor.classify('rows', 'id', 'direct_identifier');
		CALL tailor.classify('rows', 'age', 'quasi_identifier', hierarchy => 'age');
		CALL tailor.classify('rows', 'diagnosis', 'sensitive');
		CALL tailor.classify('rows', 'cost', 'non_sensitive');
		CALL tailor.require('rows', 'l_diversity', 'diagnosis', 2); CALL tailor.cuts('rows', 'blind');
		CALL tailor.activate('rows')`)
	reader := connect(t, serveDatabase(t, "no_key_blind").dsn("researcher"))
	answeredSoon(t, reader, "SELECT cost FROM rows")
	mustExec(t, direct, "CALL tailor.classify('rows', 'n', 'non_sensitive')")
	refusedAs(t, direct, "CALL tailor.activate('rows')", "KA004")
	mustExec(t, direct, "CALL tailor.forget_chains('rows'); CALL tailor.activate('rows')")
	answeredSoon(t, reader, "SELECT n FROM rows")
}
