package tests

import (
	"slices"
	"strings"
	"testing"
)

// assertNoneSmall wants at least k people behind the labels of each, in each answer: what
// is asked for where nobody else knows who leaves, or whose payload changes.
func (r *register) assertNoneSmall() {
	r.t.Helper()
	for i, answer := range r.answers {
		by := make(map[string]int)
		for _, s := range answer {
			by[s.labels]++
		}
		for labels, n := range by {
			if n < r.ks[i] {
				r.t.Errorf("at epoch %d %d people have the labels %s", i+1, n, labels)
			}
		}
	}
	r.assertCounted()
	r.assertKept()
}

// TestAtOnceDeparturesTakeEffect says who goes with whom, and who comes back.
func TestAtOnceDeparturesTakeEffect(t *testing.T) {
	office := openOffice(t, "atonce_departures")
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("atonce_departures"))
	office.direct = direct
	r := office.register(t, 1200, `CALL tailor.departures('$', 'at_once')`)
	assertTold(t, notices, "this assumes that nobody but the table's owner knows who leaves")
	if strings.Contains(strings.Join(*notices, "\n"), "whose change") {
		t.Errorf("activation says %q", *notices)
	}
	crowd, other := r.crowd(0), r.crowd(1)
	cell := r.cells(r.k, r.k)[0]
	r.leave(crowd[:1])
	r.leave(cell[:1])
	r.leave(other[:6])
	r.change(crowd[5:6])
	r.change(other[10:16])
	r.refresh()
	r.shows(crowd[:1], false)
	r.shows(crowd[1:], true)
	r.shows(cell, false) // the others would be fewer than k
	r.shows(other[:6], false)
	r.shows(other[6:], true)
	r.showsChange(crowd[5:6], false) // changes wait
	r.showsChange(other[10:16], true)
	if waits := r.waits(); waits != "0|0" {
		t.Errorf("%s arrivals and departures wait", waits)
	}
	// Who went alone does not come back, nor do those who went for his sake; who left with
	// enough others does, with them.
	r.back(crowd[:1])
	r.back(cell[:1])
	r.back(other[:6])
	r.refresh()
	r.shows(crowd[:1], false)
	r.shows(cell, false)
	r.shows(other[:6], true)
	many := r.arrive(150)
	r.refresh()
	r.shows(many, true)
	r.shows(crowd[:1], false)
	r.shows(cell, false)
	if waits := r.waits(); waits != "0|0" {
		t.Errorf("%s arrivals and departures wait in the end", waits)
	}
	// All of the crowd leave, one after the other, until it cannot be shown.
	for i := 1; i < 40; i += 7 {
		r.leave(crowd[i:min(i+7, 40)])
		r.refresh()
		r.shows(crowd[i:min(i+7, 40)], false)
	}
	r.assertNoneSmall()
}

// TestAtOnceChangesTakeEffect shows single changes, and keeps departures waiting.
func TestAtOnceChangesTakeEffect(t *testing.T) {
	office := openOffice(t, "atonce_changes")
	direct, notices := noticing(t, shared.cluster.SuperuserDSN("atonce_changes"))
	office.direct = direct
	r := office.register(t, 1200, `CALL tailor.changes('$', 'at_once')`)
	assertTold(t, notices, "this assumes that nobody but the table's owner knows whose change")
	if strings.Contains(strings.Join(*notices, "\n"), "who leaves") {
		t.Errorf("activation says %q", *notices)
	}
	five := r.strangers(6)
	r.change(five[:5])
	r.leave(five[5:])
	r.refresh()
	r.showsChange(five[:5], true)
	r.shows(five[5:], true)
	r.change(five[:2])
	cell := r.cells(r.k, 2*r.k-1)[1]
	isGone := func(token string) bool { return !r.present[token] }
	there := slices.DeleteFunc(slices.Clone(cell), isGone)
	r.leave(there)
	r.refresh()
	r.showsChange(slices.DeleteFunc(five[:2], isGone), true)
	r.shows(there, false)
	r.assertNoneSmall()
}

// TestAtOnceKeepsTheModels has those of a block get one diagnosis, and those leave who
// have another: a block is shown with two diagnoses or not at all.
func TestAtOnceKeepsTheModels(t *testing.T) {
	office := openOffice(t, "atonce_diverse")
	start := func(t *testing.T) (r *register, alike, rest []string) {
		r = office.register(t, 800, diverse, `CALL tailor.departures('$', 'at_once')`,
			`CALL tailor.changes('$', 'at_once')`)
		alike, rest = r.alike(r.crowd(0))
		return r, alike, rest
	}
	t.Run("all get one diagnosis", func(t *testing.T) {
		r, alike, rest := start(t)
		for _, token := range slices.Concat(alike, rest) {
			r.set(token, "measles", r.people[token].cost+5000)
		}
		r.refresh()
		r.showsChange(alike, false)
		r.shows(alike, true)
		cost := 0
		for _, token := range alike {
			if s := r.answers[1][token]; s.payload[1] != r.answers[0][token].payload[1] {
				cost++
			}
		}
		if cost != len(alike) {
			t.Errorf("%d of %d new costs are shown, of people whose diagnoses may not be", cost, len(alike))
		}
		r.assertNoneSmall()
	})
	t.Run("those of other diagnoses leave", func(t *testing.T) {
		r, alike, rest := start(t)
		r.leave(rest)
		r.refresh()
		r.shows(append(alike, rest...), false)
		r.assertNoneSmall()
	})
}

// TestAtOnceIsRefusedForCodes, which are published in clusters.
func TestAtOnceIsRefusedForCodes(t *testing.T) {
	direct := makeDatabase(t, "atonce_codes", `
		CREATE TABLE codes (id text PRIMARY KEY, codes text[]);
		INSERT INTO codes SELECT n, ARRAY['c' || n % 7] FROM generate_series(1, 300) n`)
	if err := shared.install(t.Context(), "atonce_codes"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `CALL tailor.protect('codes', 'id', 5);
		CALL tailor.classify('codes', 'id', 'direct_identifier');
		CALL tailor.set_valued('codes', column_name => 'codes');
		CALL tailor.departures('codes', 'at_once')`)
	if _, err := direct.Exec(t.Context(), `CALL tailor.activate('codes')`); codeIn(err) != "0A000" {
		t.Errorf("departures at once of codes: %v", err)
	}
	for _, wrong := range []string{
		`CALL tailor.departures('codes', 'soon')`, `CALL tailor.changes('codes', NULL)`,
	} {
		if _, err := direct.Exec(t.Context(), wrong); codeIn(err) != "22023" {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}
