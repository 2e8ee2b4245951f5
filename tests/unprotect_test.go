package tests

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// fails asserts that a statement ends in a SQLSTATE, and that its error tells
// something.
func fails(t *testing.T, conn *pgx.Conn, sql, code, tells string) {
	t.Helper()
	_, err := conn.Exec(t.Context(), sql)
	var answer *pgconn.PgError
	if !errors.As(err, &answer) || answer.Code != code ||
		!strings.Contains(answer.Message+answer.Detail+answer.Hint, tells) {
		t.Errorf("%s: %v, want %s with %q", sql, err, code, tells)
	}
}

// inStores counts what Tailor has stored of tables.
const inStores = `SELECT count(*) FROM pg_class WHERE relkind IN ('r', 'v')
	AND relnamespace IN ('tailor_store'::regnamespace, 'tailor_release'::regnamespace,
	'research'::regnamespace)
	AND relname NOT IN ('tailor_margins', 'tailor_columns')`

// soon bounds what waits for nobody.
func soon(t *testing.T, limit time.Duration, what string, do func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := do(ctx); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func unprotectStand(t *testing.T, name string) (s *testCluster, super, dba *pgx.Conn) {
	t.Helper()
	s, err := newStand(filepath.Join(stands, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	return s, s.superuser(t), connect(t, fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable",
		s.cluster.Address()))
}

func TestUnprotectTakesAllOfATableAndRemembersIt(t *testing.T) {
	s, super, dba := unprotectStand(t, "unprotect")
	user := s.reader(t)
	mustExec(t, super, fmt.Sprintf(
		`GRANT SELECT ON visits TO %s; CREATE ROLE mayor LOGIN PASSWORD 'mayor'; `+
			`GRANT tailor_admin TO mayor`, user))
	mustExec(t, dba, `CALL tailor.activate('visits')`) // which takes the privilege
	p := s.serve(t)
	reader := connect(t, p.dsn(user))
	questions := []string{
		`SELECT age, zip FROM patients`, `SELECT cost FROM visits`,
		`SELECT code FROM diagnoses`,
	}
	for _, q := range questions {
		mustExec(t, reader, q)
	}
	chains := one[int](t, super, `SELECT count(*) FROM tailor.chain`)

	fails(t, connect(t, p.dsn("mayor")), `CALL tailor.unprotect('visits')`, "42501", "must be owner")
	fails(t, reader, `CALL tailor.unprotect('visits')`, "42501", "")
	fails(t, dba, `CALL tailor.unprotect('numbers')`, "55000", "has no policy")
	fails(t, dba, `CALL tailor.unprotect('patients')`, "2BP01", "diagnoses")
	mustExec(t, reader, questions[0])

	for _, table := range []string{"visits", "diagnoses", "patients"} {
		mustExec(t, dba, fmt.Sprintf(`CALL tailor.unprotect('%s')`, table))
	}
	if left := one[int](t, super, inStores); left != 0 {
		t.Errorf("%d relations are left", left)
	}
	if left := one[int](t, super,
		`SELECT (SELECT count(*) FROM tailor.protection) + (SELECT count(*)
			FROM tailor.classification) + (SELECT count(*) FROM tailor.chain)
		+ (SELECT count(*) FROM tailor.publication)`); left != 0 {
		t.Errorf("%d rows are left", left)
	}
	for _, q := range questions {
		waitFor(t, func() bool {
			_, err := reader.Exec(t.Context(), q)
			var answer *pgconn.PgError
			return errors.As(err, &answer) && strings.Contains(answer.Message, "permission denied for table")
		})
	}
	if granted := one[int](t, super,
		`SELECT count(*) FROM pg_class c, tailor.reader_roles() r
			WHERE c.relname IN ('patients', 'visits', 'diagnoses')
		AND c.relkind = 'r' AND has_any_column_privilege(r, c.oid, 'SELECT')`); granted != 0 {
		t.Errorf("readers have %d privileges on what was protected", granted)
	}
	if one[bool](t, super, `SELECT has_any_column_privilege('tailor_owner', 'patients', 'SELECT')`) {
		t.Error("the service account reads a table that it has no use for")
	}
	if n := one[int](t, connect(t, p.dsn("dba")), `SELECT count(*) FROM patients`); n != patients {
		t.Errorf("the owner sees %d rows", n)
	}
	// What stays: who did it, how finely each audience was shown the table, and what is in the audit
	// log.
	if n := one[int](t, dba,
		`SELECT sum(jsonb_array_length(chains)) FROM tailor.unprotected WHERE author = 'dba' `+
			`AND version IS NOT NULL`); n != chains {
		t.Errorf("%d of %d chains are remembered", n, chains)
	}
	if n := one[int](t, dba,
		`SELECT count(DISTINCT e.chain) FROM tailor.audit e JOIN tailor.unprotected u
			ON u.name = ANY (e.relations),
		jsonb_array_elements(u.chains) c WHERE e.verdict = 'released'
		AND (c ->> 'chain')::integer = e.chain`); n != chains {
		t.Errorf("the audit log has released statements of %d of %d chains", n, chains)
	}
	if n := one[int](t, super, `SELECT count(*) FROM tailor.policy_version`); n < 4 {
		t.Errorf("%d versions of policies are left", n)
	}
	if _, findings := doctor(t, s); slices.ContainsFunc(findings, func(f finding) bool {
		return f.Check == "orphans" || f.Check == "dropped tables"
	}) {
		t.Errorf("the doctor finds: %+v", findings)
	}
}

// TestATableProtectedAgainDoesNotStartAnewInSilence: a second partition beside
// what was shown is the administrator's to decide.
func TestATableProtectedAgainDoesNotStartAnewInSilence(t *testing.T) {
	s, _, dba := unprotectStand(t, "unprotectagain")
	p := s.serve(t)
	reader := connect(t, p.dsn("researcher"))
	mustExec(t, reader, `SELECT age FROM patients`)
	mustExec(t, dba, `CALL tailor.unprotect('visits'); CALL tailor.unprotect('diagnoses'); `+
		`CALL tailor.unprotect('patients')`)
	protect := `CALL tailor.protect('patients', 'id', 5); ` +
		`CALL tailor.classify('patients', 'age', 'quasi_identifier', 'age')`
	mustExec(t, dba, protect)
	fails(t, dba, `CALL tailor.activate('patients')`, "55000", "tailor.forget_chains")
	mustExec(t, dba, `CALL tailor.unprotect('patients')`)
	fails(t, dba, `CALL tailor.forget_chains('patients')`, "55000", "tailor.protect")
	mustExec(t, dba, protect) // neither does this forget
	fails(t, dba, `CALL tailor.activate('patients')`, "55000", "tailor.forget_chains")
	mustExec(t, dba, `CALL tailor.forget_chains('patients'); CALL tailor.activate('patients')`)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), `SELECT age FROM patients`)
		return err == nil
	})
}

func TestUnprotectWaitsForNoReader(t *testing.T) {
	s, super, dba := unprotectStand(t, "unprotectbusy")
	p := s.serve(t)
	first, second := connect(t, p.dsn("researcher")), connect(t, p.dsn("researcher"))
	mustExec(t, dba, `CALL tailor.unprotect('visits'); CALL tailor.unprotect('diagnoses')`)
	mustExec(t, first, `BEGIN; SELECT age FROM patients`)
	mustExec(t, second, `BEGIN; SELECT pg_get_viewdef('research.patients')`)
	soon(t, 5*time.Second, "unprotect", func(ctx context.Context) error {
		_, err := dba.Exec(ctx, `CALL tailor.unprotect('patients')`)
		return err
	})
	// No longer for anybody, but there.
	if n := one[int](t, super, `SELECT count(*) FROM pg_class c CROSS JOIN aclexplode(c.relacl) a
		WHERE c.relnamespace = 'tailor_release'::regnamespace AND a.grantee <> c.relowner`); n != 0 {
		t.Errorf("%d privileges on releases are left", n)
	}
	find := func() *finding {
		_, findings := doctor(t, s)
		for _, f := range findings {
			if f.Check == "orphans" {
				return &f
			}
		}
		return nil
	}
	found := find()
	if found == nil {
		t.Fatal("the doctor does not find what stays")
	}
	mustExec(t, first, `ROLLBACK`)
	mustExec(t, second, `ROLLBACK`)
	mustExec(t, dba, found.Mend)
	if found = find(); found != nil {
		t.Errorf("still found: %+v", found)
	}
	if left := one[int](t, super, inStores); left != 0 {
		t.Errorf("%d relations are left", left)
	}
}

// TestReadersAreToldOfAnUnprotectedTable has readers ask without a pause while
// the policy goes.
func TestReadersAreToldOfAnUnprotectedTable(t *testing.T) {
	s, _, dba := unprotectStand(t, "unprotectrush")
	mustExec(t, dba, `CALL tailor.unprotect('visits'); CALL tailor.unprotect('diagnoses')`)
	p := s.serve(t)
	type outcome struct {
		answers int
		err     *pgconn.PgError
	}
	outcomes := make(chan outcome)
	started := make(chan struct{}, 4)
	for i := range 4 {
		conn := connect(t, p.dsn("researcher"))
		go func() {
			var o outcome
			for {
				_, err := conn.Exec(t.Context(),
					[]string{
						`SELECT age, zip, count(*) FROM patients GROUP BY 1, 2`,
						`SELECT sex, avg(cost) FROM patients GROUP BY 1`,
					}[i%2])
				if errors.As(err, &o.err); err != nil {
					outcomes <- o
					return
				}
				if o.answers++; o.answers == 3 {
					started <- struct{}{}
				}
			}
		}()
	}
	for range 4 {
		<-started
	}
	mustExec(t, dba, `CALL tailor.unprotect('patients')`)
	for range 4 {
		o := <-outcomes
		if o.err == nil || o.err.Code != "42501" && o.err.Code != "40001" ||
			strings.Contains(o.err.Message, "chain_") {
			t.Errorf("after %d answers: %v", o.answers, o.err)
		}
	}
}

func TestCopiesOfDroppedTablesAreFoundAndRemoved(t *testing.T) {
	s, super, dba := unprotectStand(t, "dropped")
	p := s.serve(t)
	mustExec(t, connect(t, p.dsn("researcher")), `SELECT code FROM diagnoses`)
	stored := one[int](t, super,
		`SELECT epoch FROM tailor.policies WHERE relation = 'diagnoses'::regclass`)
	ofDiagnoses := fmt.Sprintf(` AND relname ~ '^((?!chain).*_%d|chain_%d(_.*)?|diagnoses)$'`, stored,
		one[int](t, super, `SELECT chain FROM tailor.chain WHERE relation = 'diagnoses'::regclass`))
	if left := one[int](t, super, inStores+ofDiagnoses); left == 0 {
		t.Fatal("nothing is stored of the table")
	}
	mustExec(t, dba, `CREATE TABLE draft (id integer); CALL tailor.protect('draft', 'id', 5)`)
	mustExec(t, super, `DROP TABLE diagnoses; DROP TABLE draft; `+
		`CREATE TABLE tailor_store.epoch_4711 (); `+
		`ALTER TABLE tailor_store.epoch_4711 OWNER TO tailor_owner`)
	for range 4 {
		_, findings := doctor(t, s)
		left := false
		for _, f := range findings {
			if strings.Trim(f.Object, "0123456789") == "" && f.Check != "dropped tables" {
				t.Errorf("of a table that is gone: %+v", f)
			}
			if f.Check == "dropped tables" || f.Check == "orphans" {
				mustExec(t, dba, f.Mend)
				left = true
			}
		}
		if !left {
			break
		}
	}
	if left := one[int](t, super,
		`SELECT count(*) FROM tailor.protection p WHERE NOT EXISTS (SELECT FROM pg_class c `+
			`WHERE c.oid = p.relation)`); left != 0 {
		t.Errorf("%d policies of tables that are gone are left", left)
	}
	for _, which := range []string{ofDiagnoses, ` AND relname ~ '_4711$'`} {
		if left := one[int](t, super, inStores+which); left != 0 {
			t.Errorf("%d relations are left:%s", left, which)
		}
	}
	mustExec(t, connect(t, p.dsn("researcher")), `SELECT age FROM patients`)
}
