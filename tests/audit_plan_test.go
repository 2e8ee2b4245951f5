package tests

import (
	"path/filepath"
	"testing"
)

// TestARecordReadsNoneOfThoseBefore counts the rows that PostgreSQL reads by
// scanning the audit log while records come in. The plan of the first record was
// made over an empty table, and would read all that came since, for each.
func TestARecordReadsNoneOfThoseBefore(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "auditplan"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t)
	reader := connect(t, p.dsn("researcher"))
	const statements = 150
	for range statements {
		mustExec(t, reader, "SELECT count(*) FROM patients")
	}
	p.stop(t) // its connection tells what it has counted

	direct := s.superuser(t)
	waitFor(t, func() bool {
		return one[int64](t, direct,
			`SELECT n_tup_ins FROM pg_stat_all_tables `+
				`WHERE relid = 'tailor.audit_log'::regclass`) >= statements
	})
	if read := one[int64](t, direct,
		`SELECT seq_tup_read FROM pg_stat_all_tables `+
			`WHERE relid = 'tailor.audit_log'::regclass`); read > statements {
		t.Errorf("%d rows of the audit log were read to add %d", read, statements)
	}
}
