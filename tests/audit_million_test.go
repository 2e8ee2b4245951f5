package tests

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// fillAudit writes as many records as given, of several readers over a year,
// with stages as wide as those of real queries.
const fillAudit = `
WITH n AS (
    INSERT INTO tailor.audit_log (id, record)
    SELECT md5(i::text), json_build_object('time',
        to_char(timestamptz '2026-01-01' + i * interval '31 seconds', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
        'id', md5(i::text), 'hash', repeat('a', 64), 'previous_hash', repeat('b', 64),
        'session', md5((i / 50)::text),
        'principal', 'reader' || i % 40, 'database', 'hospital', 'client', '10.0.0.1:40000',
        'fingerprint', repeat('c', 16),
        'sql', 'SELECT age, zip, sex, avg(cost) FROM patients '
        'WHERE age >= $1 GROUP BY age, zip, sex',
        'verdict', (ARRAY['passed', 'released', 'released', 'refused', 'failed'])[1 + i % 5],
        'sqlstate', '',
        'relations', CASE WHEN i % 3 = 0 THEN '[]'::json WHEN i % 997 = 0 THEN '["public.rare"]'
        ELSE '["public.patients"]' END,
        'epoch', 1, 'policy_version', 1, 'chain', i % 40, 'aggregate_risk', random() * 0.2,
        'aggregate_loss', random() * 0.3,
        'min_block', 5, 'recoding', 'local', 'rows', 10, 'duration_ms', 3.5, 'plan_ms', 1,
        'stages', json_build_array(json_build_object('stage', 'S1', 'place', 'scan', 'table',
        'public.patients', 'qids', json_build_array('age', 'zip', 'sex'),
            'condition', 'scan on [age zip sex]', 'risk_before', 1, 'risk_after', 0.2, 'loss',
            0.1, 'candidates', '[]'::json)))
    FROM generate_series(1, $1::integer) i
    RETURNING position, record)
INSERT INTO tailor.audit_entry
SELECT position, (j ->> 'time')::timestamptz, j ->> 'principal', 'hospital', j ->> 'verdict', '',
    ARRAY(SELECT jsonb_array_elements_text(j -> 'relations')), (j ->> 'chain')::integer,
    (j ->> 'aggregate_risk')::float8,
    (j ->> 'aggregate_loss')::float8, 5, 10, 3.5
FROM n, LATERAL (SELECT record::jsonb AS j OFFSET 0) p`

// TestAMillionRecordsAreListedAndFilteredAtOnce: eighty thousand where
// time is short.
func TestAMillionRecordsAreListedAndFilteredAtOnce(t *testing.T) {
	const limit = 200 * time.Millisecond
	records := 80_000
	if os.Getenv("TAILOR_SOAK") != "" {
		records = 1_000_000
	}
	s, err := newStand(filepath.Join(stands, "million"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	conn := s.superuser(t)
	mustExec(t, conn, fillAudit, records)
	mustExec(t, conn, "VACUUM ANALYZE tailor.audit_log")
	mustExec(t, conn, "VACUUM ANALYZE tailor.audit_entry")
	first := one[int64](t, conn, "SELECT min(position) FROM tailor.audit_entry")
	middle := audit.Page{Most: 50, Position: first + int64(records/2)}
	last := audit.Page{Most: 50}
	day := time.Date(2026, 1, 4, 0, 0, 0, 0, time.UTC)
	cases := []struct {
		claim  string
		filter audit.Filter
		page   audit.Page
		want   int
	}{
		{"the last ones", audit.Filter{}, last, 50},
		{"a page in the middle", audit.Filter{}, middle, 50},
		{"of a principal", audit.Filter{Principal: "reader7"}, middle, 50},
		{"of nobody", audit.Filter{Principal: "nobody"}, last, 0},
		{"of a day", audit.Filter{Since: day, Until: day.AddDate(0, 0, 1)}, last, 50},
		{"refused ones", audit.Filter{Verdict: audit.Refused}, middle, 50},
		{"on a table", audit.Filter{Relation: "patients"}, last, 50},
		{"on a table that is rarely asked for", audit.Filter{Relation: "public.rare"}, last, 50},
		{"on no table", audit.Filter{Relation: "public.nothing"}, last, 0},
		{"of high risk", audit.Filter{RiskAbove: 0.1999}, last, -1},
		{"of higher risk than there is", audit.Filter{RiskAbove: 0.5}, last, 0},
		{
			"of high loss, of a principal, refused",
			audit.Filter{LossAbove: 0.2999, Principal: "reader3", Verdict: audit.Refused},
			last, -1,
		},
	}
	for _, c := range cases {
		best := time.Hour
		for range 3 {
			started := time.Now()
			list, err := audit.List(t.Context(), conn, c.filter, c.page)
			best = min(best, time.Since(started))
			if err != nil || c.want >= 0 && len(list) != c.want {
				t.Fatalf("%s: %d statements, %v", c.claim, len(list), err)
			}
		}
		t.Logf("%-40s %v", c.claim, best)
		if best > limit {
			t.Errorf("%s took %v, more than %v", c.claim, best, limit)
		}
	}
	// Sums look at every statement of the time: only those of a day are promised.
	end := time.Date(2026, 1, 1, 0, 0, 31*records, 0, time.UTC)
	for claim, since := range map[string]time.Time{
		"totals of a day":   end.AddDate(0, 0, -1),
		"totals of a month": end.AddDate(0, -1, 0), "totals of all": {},
	} {
		best := time.Hour
		for range 3 {
			started := time.Now()
			if _, err := audit.Totals(t.Context(), conn, audit.Filter{Since: since}); err != nil {
				t.Fatal(err)
			}
			best = min(best, time.Since(started))
		}
		t.Logf("%-40s %v", claim, best)
		if best > limit && claim == "totals of a day" {
			t.Errorf("%s took %v, more than %v", claim, best, limit)
		}
	}
	for _, sql := range []string{
		"SELECT * FROM tailor.audit ORDER BY time DESC LIMIT 50",
		"SELECT * FROM tailor.audit WHERE principal = 'reader7' ORDER BY position DESC LIMIT 50",
		"SELECT * FROM tailor.audit WHERE verdict = 'refused' ORDER BY time DESC LIMIT 50",
		"SELECT time, principal, sql FROM tailor.audit WHERE 'public.rare' = ANY (relations) ORDER BY " +
			"time DESC LIMIT 50",
		"SELECT count(*) FROM tailor.audit WHERE aggregate_risk > 0.19",
	} {
		best := time.Hour
		for range 3 {
			started := time.Now()
			rows, err := conn.Query(context.Background(), sql)
			if err != nil {
				t.Fatal(err)
			}
			for rows.Next() {
			}
			if rows.Err() != nil {
				t.Fatal(rows.Err())
			}
			best = min(best, time.Since(started))
		}
		t.Logf("%-40s %v", sql, best)
		if best > limit {
			t.Errorf("%s took %v, more than %v", sql, best, limit)
		}
	}
}
