package tests

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadersCannotHoldUpAdministrators has a reader hold every advisory lock
// that would do, by the oid of any of Tailor's relations and by the names of
// what is done, and try the locks that do.
func TestReadersCannotHoldUpAdministrators(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "locks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	dba := connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
		s.cluster.Address()))
	user := s.reader(t)
	p := s.serve(t)
	reader := connect(t, p.dsn(user))
	mustExec(t, reader,
		`SELECT pg_advisory_lock(c.oid::int, key) FROM pg_class c CROSS
			JOIN (VALUES (0), (hashtext('patients'))) k(key)
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'tailor')`)
	mustExec(t, reader, `SELECT pg_advisory_lock(hashtext('tailor policy apply'))`)

	for _, sql := range []string{
		`LOCK TABLE tailor.lock_schedules IN ACCESS SHARE MODE`,
		`LOCK TABLE tailor.lock_apply IN ACCESS SHARE MODE`,
		`LOCK TABLE tailor.lock_progress_1 IN ACCESS SHARE MODE`,
		`INSERT INTO tailor.lock_name VALUES ('patients')`, `SELECT FROM tailor.protection FOR SHARE`,
		`SELECT tailor.apply_alone()`, `CALL tailor.take_turn('public.patients')`,
	} {
		if _, err := reader.Exec(t.Context(), sql); err == nil {
			t.Errorf("a reader may do: %s", sql)
		}
	}
	if taken := one[int](t, super,
		`SELECT count(*) FROM pg_class WHERE relnamespace = 'tailor'::regnamespace AND relkind = 'r'
		AND has_table_privilege('tailor_reader', oid,
		'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')`); taken != 0 {
		t.Errorf("readers have rights to %d tables of Tailor's, by which they may lock them", taken)
	}

	mustExec(t, dba, `SET statement_timeout = '30s'; CALL tailor.schedule('patients', '1 hour')`)
	for _, call := range []string{
		`CALL tailor.activate('patients')`,
		`CALL tailor.refresh('patients')`,
	} {
		if _, err := dba.Exec(t.Context(), call); err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	if !one[bool](t, dba, `SELECT tailor.apply_alone()`) {
		t.Error("no policy file can be applied")
	}
	mustExec(t, dba, `BEGIN; CALL tailor.refresh('patients')`)
	if n := one[int](t, super,
		`SELECT count(*) FROM tailor.progress WHERE pid <> pg_backend_pid() AND role = 'dba'`); n != 1 {
		t.Errorf("%d copies in progress are seen, want 1", n)
	}
	mustExec(t, dba, `COMMIT`)
	refreshed := `SELECT epoch FROM tailor.policies WHERE relation = 'patients'::regclass`
	before := one[int](t, super, refreshed)
	mustExec(t, super, `UPDATE tailor.schedule SET due = now() - interval '5 hours 10 minutes'`)
	waitFor(t, func() bool { return one[int](t, super, refreshed) != before })
}

func TestWhoWaitsForAnActivationIsToldSo(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "turns"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t), `ALTER PROCEDURE tailor.take_turn SET lock_timeout = '300ms'`)
	// Two tables of one name, each protected in a transaction that others see nothing of.
	activate := func(schema string) string {
		return fmt.Sprintf(
			`BEGIN; CREATE SCHEMA %[1]s; CREATE TABLE %[1]s.twin AS SELECT * FROM patients;
				ALTER TABLE %[1]s.twin ADD PRIMARY KEY (id);
			CALL tailor.protect('%[1]s.twin', 'id', 5);
				CALL tailor.classify('%[1]s.twin', 'diagnosis', 'sensitive');
			CALL tailor.shared_fact('%[1]s.twin', 'diagnosis', 'accepted');
				CALL tailor.activate('%[1]s.twin')`, schema)
	}
	first, second := s.superuser(t), connect(t, s.cluster.SuperuserDSN("hospital"))
	mustExec(t, first, activate("one"))
	_, err = second.Exec(t.Context(), activate("other"))
	if err == nil || !strings.Contains(err.Error(),
		"table other.twin, or another of its name, is being activated or refreshed (SQLSTATE 55P03)") {
		t.Errorf("the second is told: %v", err)
	}
	mustExec(t, second, `ROLLBACK`)
	mustExec(t, first, `COMMIT`)
	_, err = second.Exec(t.Context(), activate("other"))
	if err == nil || !strings.Contains(err.Error(), "has the name of the protected table one.twin") {
		t.Errorf("afterwards: %v", err)
	}
	mustExec(t, second, `ROLLBACK`)
}

func TestASchedulesFaultIsToldWithoutValues(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "overdue"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	super := s.superuser(t)
	mustExec(t, super, `CALL tailor.schedule('patients', '1 hour')`)

	// Who keeps schedules and does not get on is noticed by the others.
	keeper := connect(t, s.cluster.SuperuserDSN("hospital"))
	mustExec(t, keeper, `BEGIN; LOCK TABLE tailor.lock_schedules IN EXCLUSIVE MODE`)
	mustExec(t, super, `UPDATE tailor.schedule SET due = now() - interval '11 minutes'`)
	p := s.serve(t)
	waitFor(t, func() bool { return strings.Contains(p.log.String(), "scheduled refresh overdue") })

	// What a function of somebody else's raises may hold values.
	mustExec(t, super, `CREATE FUNCTION "tailor.x"() RETURNS event_trigger LANGUAGE plpgsql
		AS 'BEGIN RAISE EXCEPTION ''patient 4711''; END';
		CREATE EVENT TRIGGER tells ON ddl_command_start EXECUTE FUNCTION "tailor.x"()`)
	mustExec(t, keeper, `ROLLBACK`)
	waitFor(t, func() bool { return one[int](t, super, `SELECT failed FROM tailor.schedules`) > 0 })
	if reason := one[string](t, super,
		`SELECT failure FROM tailor.schedules`); reason != "the server says SQLSTATE P0001" {
		t.Errorf("the reason is %q", reason)
	}
	if strings.Contains(p.log.String(), "4711") {
		t.Error("the log holds the value")
	}
}

// TestAPolicyAndVacuumDoNotWaitForEachOther has VACUUM, as the server runs it by
// itself on a table just filled, come between protect and activate.
func TestAPolicyAndVacuumDoNotWaitForEachOther(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "vacuum"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	dba, super := s.superuser(t), connect(t, s.cluster.SuperuserDSN("hospital"))
	mustExec(t, dba, `CREATE TABLE filled AS SELECT id + 100000 AS id, diagnosis FROM patients; `+
		`ALTER TABLE filled ADD PRIMARY KEY (id)`)
	mustExec(t, dba, `BEGIN; CALL tailor.protect('filled', 'id', 5); `+
		`CALL tailor.classify('filled', 'diagnosis', 'sensitive')`)
	vacuumed := make(chan error, 1)
	vacuum := connect(t, s.cluster.SuperuserDSN("hospital"))
	pid := vacuum.PgConn().PID()
	go func() {
		_, err := vacuum.Exec(t.Context(), `VACUUM filled`)
		vacuumed <- err
	}()
	waitFor(t, func() bool {
		return one[bool](t, super, fmt.Sprintf(
			`SELECT (wait_event_type = 'Lock') IS TRUE FROM pg_stat_activity WHERE pid = %d`, pid))
	})
	mustExec(t, dba, `CALL tailor.activate('filled'); COMMIT`)
	if err := <-vacuumed; err != nil {
		t.Error(err)
	}
}
