package tests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhatTailorAsksForItselfIsNotCompiled lets PostgreSQL compile whatever
// tailor_owner and a DBA ask, however little it costs, and say when it looks for its
// compiler, which the first statement of a session to be compiled makes it do.
// Compiling held up every start and every news of a policy by a second, and was five
// sixths of the activation of a small table.
func TestWhatTailorAsksForItselfIsNotCompiled(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "compiler"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	direct := s.superuser(t)
	mustExec(t, direct,
		`ALTER ROLE tailor_owner SET jit = on; ALTER ROLE tailor_owner SET jit_above_cost = 0; `+
			`ALTER ROLE tailor_owner SET log_min_messages = debug1`)
	looked := func() int {
		log, err := os.ReadFile(filepath.Join(s.dir, "postgresql.log"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(log), "probing availability of JIT provider")
	}

	p := s.serve(t)
	reader := connect(t, p.dsn("researcher"))
	mustExec(t, reader, "SELECT age, zip, token FROM patients")
	dba := s.superuser(t)
	mustExec(t, dba, `SET jit = on; SET jit_above_cost = 0; SET log_min_messages = debug1;
		SET SESSION AUTHORIZATION dba`)
	mustExec(t, dba,
		`CALL tailor.classify('public.patients', 'token', 'direct_identifier'); `+
			`CALL tailor.activate('public.patients'); CALL tailor.refresh('public.patients')`)
	refusedSoon(t, reader, "SELECT token FROM patients", "42501")
	answeredSoon(t, reader, "SELECT birth_date FROM patients")
	p.stop(t)
	before := looked()
	if before > 0 {
		t.Errorf("statements of %d sessions were compiled", before)
	}

	owner := connect(t, s.cluster.ServiceDSN("hospital"))
	mustExec(t, owner, "SELECT count(*) FROM tailor.protection")
	waitFor(t, func() bool { return looked() > before })
}
