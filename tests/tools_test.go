package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/demodata"
)

// TestToolsReadTheColumnsThatAreListed does what tools do that look at information_schema:
// they list tables and columns, and select all that they have listed. Hidden columns are
// in no list, and every statement that is made from one is answered.
func TestToolsReadTheColumnsThatAreListed(t *testing.T) {
	user := shared.reader(t)
	conn := connect(t, shared.serve(t).dsn(user))
	hidden := one[[]string](t, shared.superuser(t), `
SELECT array_agg(a.attname::text) FROM pg_attribute a
WHERE a.attrelid = 'public.patients'::regclass AND a.attnum > 0 AND NOT EXISTS (
    SELECT FROM tailor.classification c WHERE c.relation = a.attrelid AND c.column_name = a.attname
    AND c.class <> 'direct_identifier')`)
	if len(hidden) < 3 {
		t.Fatalf("only %v are hidden", hidden)
	}
	listed := make(map[string]string)
	for _, row := range rowsOf(t, conn, `SELECT format('%I.%I', t.table_schema, t.table_name),
    string_agg(quote_ident(c.column_name), ', ' ORDER BY c.ordinal_position)
FROM information_schema.tables t JOIN information_schema.columns c USING (table_schema, table_name)
WHERE t.table_schema IN ('public', 'research')
    AND t.table_name IN ('patients', 'visits', 'diagnoses', 'zip_city', 'numbers')
    -- of other tests none
GROUP BY 1`) {
		table, columns, _ := strings.Cut(row, "|")
		listed[table] = columns
	}
	for _, table := range []string{"research.patients", "research.visits", "research.diagnoses"} {
		if listed[table] == "" {
			t.Errorf("%s is not listed", table)
		}
	}
	for table, columns := range listed {
		_, name, _ := strings.Cut(table, ".")
		for _, column := range hidden {
			if name == "patients" && strings.Contains(", "+columns+", ", ", "+column+", ") {
				t.Errorf("%s is listed of %s", column, table)
			}
		}
		for _, sql := range []string{
			"SELECT %s FROM %s LIMIT 5", `SELECT %s FROM %s AS "T" ORDER BY 1 LIMIT 5`,
		} {
			text := fmt.Sprintf(sql, columns, table)
			if rows, err := simply(t, conn, text); err != nil || len(rows) == 0 {
				t.Errorf("%s: %d rows, %v", text, len(rows), err)
			} else if all := strings.Join(rows, " "); strings.Contains(all, demodata.CanaryName) {
				t.Errorf("%s shows a planted name", text)
			}
		}
	}
}

// TestReadersFindTheReleasedShapeFirst looks at what lists say of schemas: research is what a
// reader's names mean, and of Tailor's own schemas there is no more than must be granted.
func TestReadersFindTheReleasedShapeFirst(t *testing.T) {
	user := shared.reader(t)
	conn := connect(t, shared.serve(t).dsn(user))
	if got := one[string](t, conn,
		`SELECT concat_ws(' ', current_schema(), 'patients'::regclass::oid::regclass,
		(SELECT relnamespace::regnamespace FROM pg_class
		WHERE oid = 'patients'::regclass))`); got != "research patients research" {
		t.Errorf("names mean %s", got)
	}
	// which makes the release, if it is the first to ask
	rowsOf(t, conn, "SELECT count(*) FROM patients")
	schemas := rowsOf(t, conn, `SELECT DISTINCT table_schema FROM information_schema.tables
		WHERE table_schema LIKE 'tailor%' OR table_schema = 'research' ORDER BY 1`)
	if got := strings.Join(schemas, " "); got != "research tailor_release" {
		t.Errorf("tables are listed in %s", got)
	}
	strange := rowsOf(t, conn, `SELECT table_name || '.' || column_name FROM information_schema.columns
		WHERE table_schema = 'tailor_release' AND column_name !~ '^tailor_' AND column_name NOT IN (
			SELECT c.column_name FROM research.tailor_columns c)
		AND NOT (table_name ~ '_parent$'
		AND column_name = 'id') -- of a joint publication, random`)
	if len(strange) > 0 {
		t.Errorf("releases list %v", strange)
	}
	for schema, want := range map[string]string{
		"research":       "what readers are shown",
		"tailor_release": "tools look into research",
	} {
		if got := one[string](t, conn, `SELECT obj_description(to_regnamespace($1)::oid, 'pg_namespace')`,
			schema); !strings.Contains(got, want) {
			t.Errorf("the comment on %s is %q", schema, got)
		}
	}
}
