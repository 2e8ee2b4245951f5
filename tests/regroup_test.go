package tests

import (
	"fmt"
	"strings"
	"testing"
)

// keptTogether asserts that people who were shown before and after a change are
// never fewer than k with the same labels in every answer.
func keptTogether(t *testing.T, d disclosed, answers int) {
	t.Helper()
	both := make(disclosed)
	for person, shown := range d {
		if len(shown) == answers {
			both[person] = shown
		}
	}
	few, classes := 0, make(map[string]int)
	for _, shown := range both {
		classes[strings.Join(shown, " ; ")]++
	}
	for _, n := range classes {
		if n < k {
			few += n
		}
	}
	if few > 0 {
		t.Errorf("%d of %d people in classes of fewer than %d, the smallest of %d", few, len(both), k,
			both.smallestClass())
	}
}

// TestNothingIsCutElsewhereAfterItWasMerged asks before and after what merges
// blocks: the answers together tell nobody apart that one of them does not.
func TestNothingIsCutElsewhereAfterItWasMerged(t *testing.T) {
	for i, test := range []struct {
		name, change  string
		before, after []string
		long          bool
	}{
		{
			name: "a greater k",
			change: `CALL tailor.protect('public.patients', 'id', 6); ` +
				`CALL tailor.activate('public.patients')`,
			before: []string{"age, zip, sex"}, after: []string{"age, zip, sex"},
		},
		{
			name: "a greater k, and a finer query",
			change: `CALL tailor.protect('public.patients', 'id', 8); ` +
				`CALL tailor.activate('public.patients')`,
			before: []string{"age, zip"}, after: []string{"age, zip", "race, sex", "birth_date"},
		},
		{
			name: "a greater k, then a smaller one",
			change: `CALL tailor.protect('public.patients', 'id', 9); ` +
				`CALL tailor.activate('public.patients')`,
			before: []string{"age, zip, sex", "race"},
			after:  []string{"age, sex", "zip, race", "birth_date"}, long: true,
		},
		{
			name: "a greater l",
			change: `CALL tailor.require('public.patients', 'l_diversity', 'diagnosis', 3); ` +
				`CALL tailor.activate('public.patients')`,
			before: []string{"age, zip, sex"}, after: []string{"age, zip, sex", "birth_date"},
		},
		{
			name: "one level a column",
			change: `CALL tailor.protect('public.patients', 'id', 7); ` +
				`CALL tailor.recode('public.patients', 'full_domain'); CALL tailor.activate('public.patients')`,
			before: []string{"age, zip"}, after: []string{"sex, race", "age"},
		},
		{
			name: "a refresh after people have gone",
			change: `DELETE FROM visits WHERE patient_id % 9 = 0;
				DELETE FROM diagnoses WHERE patient_id % 9 = 0;
				DELETE FROM patients WHERE id % 9 = 0; CALL tailor.refresh('public.patients')`,
			before: []string{"age, zip, sex"}, after: []string{"age, zip, sex", "birth_date", "race"},
		},
		{
			name: "a refresh with arrivals",
			change: `INSERT INTO patients SELECT id + 100000, name, ssn, birth_date, age, sex, race, zip,
				ward, diagnosis, cost FROM patients
				WHERE id % 33 = 0; CALL tailor.refresh('public.patients')`,
			before: []string{"age, zip"}, after: []string{"age, zip", "sex, race", "birth_date"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			oneIn(t, 3, i)
			s, owner := ownStand(t, fmt.Sprintf("regroup%d", i))
			p := s.serve(t)
			conn := connect(t, p.dsn(s.reader(t)))
			all := make(disclosed)
			ask := func(combinations []string) {
				t.Helper()
				for _, c := range combinations {
					all.answer(t, conn, "SELECT token, "+c+" FROM patients")
				}
			}
			change := func(sql string) {
				t.Helper()
				mustExec(t, owner, sql)
				waitFor(t, func() bool {
					_, _ = conn.Exec(t.Context(), "SELECT age FROM patients LIMIT 1")
					return one[bool](t, owner,
						`SELECT bool_and(c.epoch = p.epoch) FROM tailor.chains c JOIN tailor.policies p
							USING (relation)
						WHERE relation = 'patients'::regclass`)
				})
			}
			ask(test.before)
			change(test.change)
			ask(test.after)
			answers := len(test.before) + len(test.after)
			if test.long {
				change(`CALL tailor.protect('public.patients', 'id', 5); ` +
					`CALL tailor.activate('public.patients')`)
				ask(test.after)
				answers += len(test.after)
			}
			keptTogether(t, all, answers)
		})
	}
}
