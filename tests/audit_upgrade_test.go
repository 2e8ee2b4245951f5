package tests

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAuditTableWithoutChainsIsUpgraded gives the table the shape of the
// version before chains were numbered.
func TestAnAuditTableWithoutChainsIsUpgraded(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "upgrade"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	direct := s.superuser(t)
	mustExec(t, direct, `
		DROP VIEW tailor.graphs, tailor.audit, tailor.audit_lines, tailor.audit_heads;
		DROP TABLE tailor.audit_entry, tailor.audit_head;
		ALTER TABLE tailor.audit_log DROP COLUMN log, DROP COLUMN sequence, ALTER record TYPE jsonb
			USING record::text::jsonb;
		CREATE INDEX audit_log_time ON tailor.audit_log ((record ->> 'time'));
		CREATE VIEW tailor.audit AS SELECT (record ->> 'time')::timestamptz AS time, id, record
			FROM tailor.audit_log;
		INSERT INTO tailor.audit_log (id, record)
			VALUES ('old', '{"time": "2026-01-01T00:00:00Z", "id": "old", "hash": "h", "previous_hash": "",
			"session": "s", "principal": "veteran", "database": "hospital", "client": "c",
			"fingerprint": "f", "sql": "SELECT $1", "verdict": "passed",
			"sqlstate": "", "relations": [], "epoch": 0, "policy_version": 0, "chain": 0,
			"stages": [], "aggregate_risk": 0, "aggregate_loss": 0,
			"min_block": 0, "recoding": "", "rows": 1, "duration_ms": 1, "plan_ms": 0}')`)
	for range 2 {
		if _, stderr, code := tailor(t, "install", "--dsn",
			s.cluster.SuperuserDSN("hospital")); code != 0 {
			t.Fatal(stderr)
		}
	}
	p := s.serve(t)
	user := someQueries(t, p)
	for principal, want := range map[string]int{"veteran": 1, user: 5} {
		if n := one[int](t, direct, "SELECT count(*) FROM tailor.audit WHERE principal = $1",
			principal); n != want {
			t.Errorf("%s has %d records, want %d", principal, n, want)
		}
	}
	out, stderr, code := tailor(t, "audit", "--verify", "--dsn", s.cluster.SuperuserDSN("hospital"))
	if code != 0 || !strings.Contains(out, "note: 1 records of a version that did not number them") {
		t.Errorf("exit code %d: %s %s", code, out, stderr)
	}
}
