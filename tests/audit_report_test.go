package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestTheReportTellsWhatWasReleasedToWhom(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "report"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	p := s.serve(t, "--audit-sql", "full")
	user := someQueries(t, p)
	conn := connect(t, p.dsn(user))
	for _, sql := range []string{
		"SELECT age, zip, sex FROM patients WHERE zip <> 'canary' AND '<script>' <> 'a|b'", "SELECT name FROM patients",
	} {
		_, _ = conn.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	direct := s.superuser(t)
	waitFor(t, func() bool {
		return one[int](t, direct, "SELECT count(*) FROM tailor.audit WHERE principal = $1 AND rows IS NOT NULL", user) == 7
	})
	// As the database administrator, who has no rights beyond tailor_admin's.
	dsn := fmt.Sprintf("postgres://dba:dba@%s/hospital?sslmode=disable", s.cluster.Address())
	for format, want := range map[string][]string{
		"md": {
			"| " + user + " | public.patients | 6 | 0 | 0 | 0 | 4005 |", "| refused | 42501 | 1 |", "| sensitive | diagnosis |",
			"SELECT age, zip, sex FROM patients WHERE zip <> $1", "Yes, as far as the database", "| S1 ",
		},
		"html": {"<td>" + user + "</td>", "<td>42501</td>", "zip &lt;&gt; $1", "Yes, as far as the database", "<td>S1 "},
	} {
		out := filepath.Join(t.TempDir(), "report")
		_, stderr, code := tailor(t, "report", "--dsn", dsn, "--since", "1h", "--format", format, "--out", out)
		text, err := os.ReadFile(out)
		if err != nil || code != 0 {
			t.Fatalf("%s: exit code %d: %s", format, code, stderr)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s lacks %q:\n%s", format, w, text)
			}
		}
		if strings.Contains(string(text), "canary") || strings.Contains(string(text), "<script") {
			t.Errorf("%s shows a literal", format)
		}
	}
	if _, stderr, code := tailor(t, "report", "--dsn", dsn); code != 2 || !strings.Contains(stderr, "--help") {
		t.Errorf("without --since: exit code %d, %s", code, stderr)
	}
}
