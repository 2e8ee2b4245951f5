package tests

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestChainsAreCarriedToANewEpoch(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "epoch"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p.log)
		}
	})
	user, other := s.reader(t), "dba"
	conn := connect(t, p.dsn(user))
	before := make(disclosed)
	before.answer(t, conn, "SELECT token, age, zip, sex FROM patients")

	owner := connect(t, p.dsn(other))
	mustExec(t, owner, `UPDATE patients SET zip = '10000', age = age + 1 WHERE id % 10 = 0`)
	mustExec(t, owner, `INSERT INTO patients SELECT id + 100000, name, ssn, birth_date, age, sex, `+
		`race, zip, ward, diagnosis, cost FROM patients WHERE id % 7 = 0`)
	mustExec(t, owner, `DELETE FROM patients WHERE id = 13 AND NOT EXISTS (SELECT FROM visits `+
		`WHERE patient_id = 13)`)
	// Who has come is a cohort; one who has left goes on being shown, and who has moved where he was.
	want := patients + one[int](t, owner, `SELECT count(*) FROM patients WHERE id > 100000`)
	mustExec(t, owner, `CALL tailor.refresh('public.patients')`)
	direct := s.superuser(t)
	awaitTakenIn(t, direct, "patients", conn)
	if n := one[int](t, conn, `SELECT count(*) FROM patients`); n != want {
		t.Errorf("%d people are shown, want %d", n, want)
	}
	after := make(disclosed)
	after.answer(t, conn, "SELECT token, age, zip, sex FROM patients")
	after.answer(t, conn, "SELECT token, race, birth_date FROM patients")
	if least := after.smallestClass(); least < k {
		t.Errorf("smallest class in the new epoch: %d, want at least %d", least, k)
	}
	for token, shown := range before {
		if len(after[token]) == 0 || after[token][0] != shown[0] {
			t.Fatalf("somebody who was shown as %v is shown as %v", shown, after[token])
		}
	}
	// The publication of codes stays, which is read; of the other two tables nothing does.
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT count(*) FROM pg_class
			WHERE relkind = 'r' AND relname ~ '^(epoch|records)_'
				AND relnamespace = 'tailor_store'::regnamespace`) == 1
	})

	// A new column is hidden and makes the policy stale.
	mustExec(t, owner, `ALTER TABLE patients ADD shoe_size integer`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT age FROM patients")
		var answer *pgconn.PgError
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	mustExec(t, owner, `CALL tailor.activate('public.patients')`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT age FROM patients")
		return err == nil
	})
	_, err = conn.Exec(t.Context(), "SELECT shoe_size FROM patients")
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != "42501" {
		t.Errorf("an unclassified column: %v, want 42501", err)
	}

	// Other quasi-identifiers do not fit the history of a chain.
	mustExec(t, owner, `CALL tailor.classify('public.patients', 'race', 'sensitive')`)
	mustExec(t, owner, `CALL tailor.activate('public.patients')`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT age FROM patients")
		return errors.As(err, &answer) && answer.Code == "KA004"
	})
	mustExec(t, owner, `CALL tailor.forget_chains('public.patients')`)
	waitFor(t, func() bool {
		_, err := conn.Exec(t.Context(), "SELECT age, race FROM patients")
		return err == nil
	})
}
