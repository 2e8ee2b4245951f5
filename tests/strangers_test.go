package tests

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// strangers are tables that nobody has seen before who writes their first policy.
var strangers = []struct {
	name, file string
	delimiter  rune
	ask        string // of the protected table
	rows       int    // that it answers
}{
	{
		"adult", "arx/adult/adult.csv", ';',
		`SELECT "education", count(*), avg(age) FROM adult GROUP BY 1`, 2,
	},
	{
		"drugs", "pycanon/drug_type.csv", ',',
		`SELECT "Drug", count(*) FROM drugs GROUP BY 1`, 2,
	},
	{
		"sclerosis", "thesis/df_1000_rows/stage_1_df_mock_1000.csv", ',',
		`SELECT ms_type, count(*), avg(age) FROM sclerosis WHERE sex = 'female' GROUP BY 1`, 2,
	},
}

// TestStrangersTablesAreProtectedByTheGuideAlone goes the way of docs/policies.md, "A first
// policy, guided", from a CSV file to answers, with all that is suggested. It takes seconds;
// who reads what is asked takes minutes.
func TestStrangersTablesAreProtectedByTheGuideAlone(t *testing.T) {
	for i, s := range strangers {
		t.Run(s.name, func(t *testing.T) {
			oneIn(t, len(strangers), i+2)
			file, database := refdata.Path(t, s.file), "stranger_"+s.name
			started := time.Now()
			direct := makeDatabase(t, database, "")
			loadByHand(t, direct, s.name, file, s.delimiter)
			dsn := shared.cluster.SuperuserDSN(database)
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			for _, args := range [][]string{
				{"install", "--dsn", dsn},
				{"policy", "init", "--dsn", dsn, "--yes", "--out", policy},
				{"policy", "plan", "--dsn", dsn, policy},
				{"policy", "apply", "--dsn", dsn, policy},
			} {
				code, stdout, stderr := tool(t, args...)
				if t.Logf("tailor %s\n%s", strings.Join(args, " "), stdout); code != 0 {
					t.Fatal(stderr)
				}
			}
			mustExec(t, direct, "CALL tailor.grant_reader('researcher')")
			conn := connect(t, serveDatabase(t, database).dsn("researcher"))
			untilAnswered(t, conn, "SELECT count(*) FROM "+s.name)
			got := rowsOf(t, conn, s.ask)
			if len(got) < s.rows {
				t.Errorf("%d rows: %q", len(got), got)
			}
			t.Logf("%s\n%s\n%.1f s in all", s.ask, strings.Join(got, "\n"), time.Since(started).Seconds())
			isHeldTo(t, direct, s.name, 5)
		})
	}
}

// isHeldTo fails unless everybody is shown among k who are alike in all labels.
func isHeldTo(t *testing.T, direct *pgx.Conn, name string, k int) {
	t.Helper()
	labels := one[string](t, direct, `
		SELECT string_agg(format('tailor.label(%I)', c ->> 'name'), ', ')
		FROM tailor.protection p JOIN tailor.policy_version v
			ON v.relation = p.relation AND v.version = p.active
		CROSS JOIN jsonb_array_elements(v.policy -> 'columns') c
		WHERE c ->> 'class' = 'quasi_identifier'`)
	conn := connect(t, serveDatabase(t, direct.Config().Database).dsn("researcher"))
	sql := fmt.Sprintf("SELECT min(n) FROM (SELECT count(*) AS n FROM %s GROUP BY %s) x", name, labels)
	if least := one[int](t, conn, sql); least < k {
		t.Errorf("a class of %d", least)
	}
}

var (
	whole   = regexp.MustCompile(`^-?\d{1,9}$`)
	decimal = regexp.MustCompile(`^-?\d{1,9}(\.\d{1,6})?$`)
)

// loadByHand makes a table of a CSV file as somebody would by hand: numbers where all are, a
// number of each row for a key, and nothing where nothing stands.
func loadByHand(t *testing.T, direct *pgx.Conn, name, file string, delimiter rune) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma = delimiter
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	names, rows := lines[0], lines[1:]
	columns := []string{"row_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY"}
	for i, column := range names {
		cells := make([]string, len(rows))
		for j, row := range rows {
			cells[j] = row[i]
		}
		all := func(form *regexp.Regexp) bool {
			return !slices.ContainsFunc(cells,
				func(c string) bool { return c != "" && !form.MatchString(c) })
		}
		typ := "text"
		switch {
		case all(whole):
			typ = "integer"
		case all(decimal):
			typ = "numeric"
		}
		columns = append(columns, pgx.Identifier{column}.Sanitize()+" "+typ)
	}
	mustExec(t, direct, fmt.Sprintf("CREATE TABLE %s (%s)", name, strings.Join(columns, ", ")))
	var quoted []string
	for _, column := range names {
		quoted = append(quoted, pgx.Identifier{column}.Sanitize())
	}
	if _, err := f.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	copying := fmt.Sprintf("COPY %s (%s) FROM STDIN (FORMAT csv, HEADER, DELIMITER '%c')",
		name, strings.Join(quoted, ", "), delimiter)
	if _, err := direct.PgConn().CopyFrom(t.Context(), f, copying); err != nil {
		t.Fatal(err)
	}
}
