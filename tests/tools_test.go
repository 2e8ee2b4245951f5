package tests

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/hospital"
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
    AND t.table_name IN ('patients', 'visits', 'diagnoses', 'zip_city', 'numbers') -- of other tests none
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
			} else if all := strings.Join(rows, " "); strings.Contains(all, hospital.CanaryName) {
				t.Errorf("%s shows a planted name", text)
			}
		}
	}
}
