package tests

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// codesRegister is a table of codes whose attacker knows who is in it at each time, has
// kept all answers, and knows one code of a victim. One database, with a reader.
type codesRegister struct {
	direct, reader *pgx.Conn
	joint          bool
	answers        []map[string][]string // of each copy: codes by the number of the subject
}

const codesEpochs = `
CREATE TABLE patients (id int PRIMARY KEY, age int NOT NULL, sex text NOT NULL);
CREATE TABLE codes (person int NOT NULL REFERENCES patients ON DELETE CASCADE, code text NOT NULL);
CREATE PROCEDURE enrol(first int, last int) LANGUAGE sql AS $$
	INSERT INTO patients SELECT g, g * 7 % 90, CASE WHEN g * 13 % 29 > 14 THEN 'f' ELSE 'm' END
		FROM generate_series(first, last) g;
	INSERT INTO codes SELECT g, 'c' || n FROM generate_series(first, last) g, generate_series(1,
		40) n
		WHERE hashint4(g * 41 + n) % (5 + n / 2) = 0 UNION SELECT g, 'c' || 1 + g % 5
			FROM generate_series(first, last) g $$;
CALL enrol(1, 1200)`

// openCodes protects the codes by themselves, or together with columns of the patients.
func openCodes(t *testing.T, name string, joint bool) *codesRegister {
	t.Helper()
	direct := makeDatabase(t, name, codesEpochs)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `
CALL tailor.define_hierarchy('age', 'interval', '{"widths": [10, 20, 40], "lower": 0, "upper":
	119}');
CALL tailor.protect('patients', subject => 'id', k => 5);
CALL tailor.classify('patients', 'id', 'direct_identifier');
CALL tailor.classify('patients', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.protect('codes', subject => 'person', k => 5);
CALL tailor.classify('codes', 'person', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('codes', column_name => 'code');
CALL tailor.grant_reader('researcher'); CALL tailor.activate('patients')`)
	if joint {
		mustExec(t, direct, `CALL tailor.joint('codes', ARRAY['age'], 60)`)
	}
	mustExec(t, direct, `CALL tailor.activate('codes')`)
	p := serveDatabase(t, name)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.log)
		}
	})
	r := &codesRegister{direct: direct, reader: connect(t, p.dsn("researcher")), joint: joint}
	answeredSoon(t, r.reader, "SELECT count(*) FROM codes")
	r.ask(t)
	return r
}

// refresh makes a copy, has it taken in and asks for everything.
func (r *codesRegister) refresh(t *testing.T, change string) (before, after map[string][]string) {
	t.Helper()
	mustExec(t, r.direct, change+`; CALL tailor.refresh('codes')`)
	awaitTakenIn(t, r.direct, "codes", r.reader)
	r.ask(t)
	return r.answers[len(r.answers)-2], r.answers[len(r.answers)-1]
}

func (r *codesRegister) ask(t *testing.T) {
	t.Helper()
	last := len(r.answers)
	waitFor(t, func() bool { // until the proxy has heard of it
		now := make(map[string][]string)
		sql := "SELECT person::text, code FROM codes"
		if r.joint {
			sql = "SELECT p.id::text, coalesce(c.code, '') FROM patients p LEFT JOIN codes c ON " +
				"c.person = p.id"
		}
		for _, values := range answered(t, r.reader, sql) {
			person := fmt.Sprint(values[0])
			now[person] = append(now[person], fmt.Sprint(values[1]))
			slices.Sort(now[person])
		}
		r.answers = append(r.answers[:last], now)
		subjects := one[int](t, r.direct, `SELECT subjects::int FROM tailor.chain
			WHERE relation = 'codes'::regclass`)
		return len(now) == subjects
	})
}

// pairs are the expected numbers of people who have c30 and one of c1 to c12.
func (r *codesRegister) pairs(t *testing.T) []float64 {
	t.Helper()
	out := make([]float64, 12)
	for i := range out {
		out[i] = again[float64](t, r.reader, `SELECT expected FROM tailor.case_count('codes', $1)`,
			[]string{"c30", fmt.Sprintf("c%d", 1+i)})
	}
	return out
}

// TestEpochsOfCodesNameNobody has few people come, change and go with each copy, one of
// whom the attacker knows by a code: what the last two answers differ in is compared.
func TestEpochsOfCodesNameNobody(t *testing.T) {
	for _, joint := range []bool{false, true} {
		t.Run(fmt.Sprintf("joint %t", joint), func(t *testing.T) {
			r := openCodes(t, fmt.Sprintf("codes_epochs_%t", joint), joint)
			first := r.answers[0]
			named, trials := 0, 0
			// The attacker knows that the victim has c30, and takes the one of twelve codes of which
			// the expected number together with it has changed most for what has changed with it.
			pairs := r.pairs(t)
			attack := func(secret int, change string) {
				t.Helper()
				trials++
				r.refresh(t, change)
				now := r.pairs(t)
				most, guess := 0.2, 0
				for code := range now {
					if d := math.Abs(now[code] - pairs[code]); d > most {
						most, guess = d, code+1
					}
				}
				pairs = now
				if guess == secret {
					named++
				}
			}
			for trial := range 6 {
				id := 5000 + 10*trial
				attack(1+trial, fmt.Sprintf(`INSERT INTO patients SELECT g, g %% 90, 'f'
					FROM generate_series(%[1]d, %[1]d + 4) g;
					INSERT INTO codes SELECT g, 'c' || n
						FROM generate_series(%[1]d, %[1]d + 3) g, generate_series(20, 23) n;
					INSERT INTO codes VALUES (%[1]d + 4, 'c30'), (%[1]d + 4,
						'c%[2]d')`, id, 1+trial))
			}
			for trial := range 4 {
				attack(5+trial, fmt.Sprintf(`WITH changing AS (SELECT id FROM patients
					WHERE id BETWEEN %[1]d AND %[1]d + 3)
					INSERT INTO codes SELECT id, 'c41' FROM changing;
					DELETE FROM codes WHERE person = %[1]d + 4;
						INSERT INTO codes VALUES (%[1]d + 4, 'c30'), (%[1]d + 4,
						'c%[2]d')`, 100+10*trial, 5+trial))
			}
			for trial := range 4 {
				attack(1+trial, fmt.Sprintf(`DELETE FROM patients
					WHERE id BETWEEN %[1]d AND %[1]d + 4`, 5000+10*trial))
			}
			if named > 0 {
				t.Errorf("%d of %d who came, changed or went are named", named, trials)
			}
			// Whoever was shown is shown as before, by the same number.
			last := r.answers[len(r.answers)-1]
			for person, codes := range first {
				if now, is := last[person]; is && !slices.Equal(now, codes) {
					t.Fatalf("%s was shown with %v and is shown with %v", person, codes, now)
				}
			}
			// A cohort is published when it is large enough, and of its codes any two fit k people.
			waiting := one[int](t, r.direct, `SELECT arrivals::int FROM tailor.epochs
				WHERE relation = 'codes'::regclass`)
			if waiting != 2*5 {
				t.Errorf("%d wait to be shown, want 10", waiting)
			}
			before, after := r.refresh(t, `CALL enrol(7001, 7200)`)
			var fresh []string
			for person := range after {
				if _, was := before[person]; !was {
					fresh = append(fresh, person)
				}
			}
			if len(fresh) != 210 || len(after) != len(before)+210 {
				t.Fatalf("%d newcomers are shown, and %d people in place of %d", len(fresh),
					len(after), len(before))
			}
			rows, err := r.direct.Query(t.Context(),
				`SELECT DISTINCT a.code, b.code FROM codes a JOIN codes b USING (person)
				WHERE a.code < b.code AND person BETWEEN 7001 AND 7200`)
			if err != nil {
				t.Fatal(err)
			}
			told, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p [2]string,
				err error,
			) {
				return p, row.Scan(&p[0], &p[1])
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, pair := range told {
				var upper int
				if err := r.reader.QueryRow(t.Context(),
					`SELECT upper FROM tailor.case_count('codes',
					$1)`, pair[:]).Scan(&upper); err != nil {
					t.Fatal(err)
				}
				if upper < 5 {
					t.Errorf("at most %d people fit %v", upper, pair)
				}
			}
			if smallest := one[int](t, r.direct, fmt.Sprintf(`SELECT min(n)::int FROM (
				SELECT count(*) AS n FROM tailor_store.member_%d GROUP BY cluster)
					c`, r.publication(t))); smallest < 5 {
				t.Errorf("a cluster of %d people", smallest)
			}
		})
	}
}

func (r *codesRegister) publication(t *testing.T) int {
	t.Helper()
	return one[int](t, r.direct, `SELECT tailor.publication_of('codes')`)
}

// TestCodesGoByClusters: who has left is shown while somebody of the cluster is there,
// and an erasure takes the cluster. None of it comes back, and no other row changes.
func TestCodesGoByClusters(t *testing.T) {
	for _, joint := range []bool{false, true} {
		t.Run(fmt.Sprintf("joint %t", joint), func(t *testing.T) {
			r := openCodes(t, fmt.Sprintf("codes_clusters_%t", joint), joint)
			members := func(cluster int) (ids string, n int) {
				t.Helper()
				row := r.direct.QueryRow(t.Context(),
					fmt.Sprintf(`SELECT string_agg(p.id::text, ','), count(*)
					FROM tailor_store.member_%d m
					JOIN patients p ON tailor.subject_digest(p.id::text, (SELECT key
						FROM tailor.subject_key)) = m."tailor key"
						WHERE cluster = $1`, r.publication(t)), cluster)
				if err := row.Scan(&ids, &n); err != nil {
					t.Fatal(err)
				}
				return ids, n
			}
			kept := func(before, after map[string][]string, gone int) {
				t.Helper()
				if len(after) != len(before)-gone {
					t.Errorf("%d people are shown, want %d less than %d", len(after), gone,
						len(before))
				}
				for person, codes := range after {
					if !slices.Equal(before[person], codes) {
						t.Fatalf("%s is shown with %v, before with %v", person, codes,
							before[person])
					}
				}
			}
			leaving, n := members(3)
			all := strings.Split(leaving, ",")
			before, after := r.refresh(t, fmt.Sprintf(`CREATE TABLE left_patients AS SELECT *
				FROM patients WHERE id IN (%[1]s);
				CREATE TABLE left_codes AS SELECT * FROM codes WHERE person IN (%[1]s);
				DELETE FROM patients WHERE id IN (%[2]s)`, leaving, strings.Join(all[1:], ",")))
			kept(before, after, 0)
			before, after = r.refresh(t, `DELETE FROM patients WHERE id = `+all[0])
			kept(before, after, n)
			before, after = r.refresh(t, `INSERT INTO patients SELECT * FROM left_patients;
				INSERT INTO codes SELECT * FROM left_codes`)
			kept(before, after, 0)

			erased, n := members(5)
			victim := strings.Split(erased, ",")[0]
			before = r.answers[len(r.answers)-1]
			mustExec(t, r.direct, fmt.Sprintf(`CALL tailor.erase('patients', '%s')`, victim))
			r.ask(t)
			kept(before, r.answers[len(r.answers)-1], n)
			before, after = r.refresh(t, `CALL enrol(8001, 8150)`)
			if len(after) != len(before)+150 {
				t.Errorf("%d people are shown after a refresh that follows an erasure, want 150 more than %d",
					len(after), len(before))
			}
			// Bounds hold of all that is left, whatever shared a code with what is gone.
			rows, err := r.direct.Query(t.Context(),
				fmt.Sprintf(`SELECT code, count(DISTINCT person)::int FROM codes
				JOIN tailor_store.member_%d m
				ON tailor.subject_digest(person::text, (SELECT key
					FROM tailor.subject_key)) = m."tailor key"
					WHERE cluster IS NOT NULL GROUP BY 1`, r.publication(t)))
			if err != nil {
				t.Fatal(err)
			}
			truth := make(map[string]int)
			var code string
			var count int
			if _, err := pgx.ForEachRow(rows, []any{&code, &count},
				func() error { truth[code] = count; return nil }); err != nil {
				t.Fatal(err)
			}
			for code, count := range truth {
				var lower, upper int
				if err := r.reader.QueryRow(t.Context(),
					`SELECT lower, upper FROM tailor.case_count('codes',
					ARRAY[$1])`, code).Scan(&lower, &upper); err != nil {
					t.Fatal(err)
				}
				if count < lower || count > upper {
					t.Errorf("%d people have %s, told %d to %d", count, code, lower, upper)
				}
			}
		})
	}
}

// TestCodesDoNotChangeWithinATransaction reads codes in a transaction that is REPEATABLE
// READ while a cohort is published and a cluster is erased.
func TestCodesDoNotChangeWithinATransaction(t *testing.T) {
	r := openCodes(t, "codes_snapshots", false)
	tx, err := connect(t, r.reader.Config().ConnString()).BeginTx(t.Context(),
		pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	look := func() (n, counted int) {
		t.Helper()
		if err := tx.QueryRow(t.Context(),
			"SELECT count(DISTINCT person) FROM codes").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if err := tx.QueryRow(t.Context(),
			"SELECT upper FROM tailor.case_count('codes', '{}')").Scan(&counted); err != nil {
			t.Fatal(err)
		}
		return n, counted
	}
	first, counted := look()
	r.refresh(t, `CALL enrol(8001, 8150)`)
	mustExec(t, r.direct, `CALL tailor.erase('patients', '77')`)
	r.ask(t)
	if n, c := look(); n != first || c != counted || n != 1200 {
		t.Errorf("%d and %d people within a transaction that saw %d and %d", n, c, first, counted)
	}
	if n := len(r.answers[len(r.answers)-1]); n >= 1350 || n < 1330 {
		t.Errorf("%d people are shown in the end", n)
	}
}

// TestCodesOfOtherKeysAreRefused gives everybody another key, as a load with new numbers
// does, and then half of the newest.
func TestCodesOfOtherKeysAreRefused(t *testing.T) {
	for _, joint := range []bool{false, true} {
		r := openCodes(t, fmt.Sprintf("codes_keys_%t", joint), joint)
		mustExec(t, r.direct, `ALTER TABLE codes DROP CONSTRAINT codes_person_fkey, ADD FOREIGN KEY
			(person) REFERENCES patients ON UPDATE CASCADE ON DELETE CASCADE`)
		for _, change := range []string{`true`, `id > 300`} {
			tx, err := r.direct.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `UPDATE patients SET id = id + 100000
				WHERE `+change); err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), `CALL
				tailor.refresh('codes')`); codeIn(err) != "55000" {
				t.Errorf("joint %t, %s: %v, want 55000", joint, change, err)
			}
			_ = tx.Rollback(t.Context())
		}
		if before, after := r.refresh(t, `CALL enrol(9001, 9150)`); len(after) != len(before)+150 {
			t.Errorf("joint %t: %d people are shown, want 150 more than %d", joint, len(after),
				len(before))
		}
	}
}
