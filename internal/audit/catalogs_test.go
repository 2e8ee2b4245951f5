package audit_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

func TestCatalogsOnlyFoldsWhatToolsAskAndNothingElse(t *testing.T) {
	for text, want := range map[string]bool{
		// psql's \d, without its literals
		`SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
			LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relname OPERATOR(pg_catalog.~) $1 COLLATE pg_catalog.default
			AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3`: true,
		"SELECT count(*) FROM pg_class":                       true,
		"SELECT table_name FROM information_schema.tables":    true,
		"WITH t AS (SELECT oid FROM pg_type) SELECT * FROM t": true,
		"SELECT 1 WHERE EXISTS (SELECT FROM pg_roles)":        true,
		"SELECT 1":                                                   false, // reads no relation
		"SELECT * FROM numbers":                                      false,
		"SELECT * FROM pg_class c, numbers n":                        false,
		"SELECT (SELECT max(n) FROM numbers) FROM pg_class":          false,
		"SELECT * FROM public.pg_class":                              false,
		"SELECT app.log($1) FROM pg_class":                           false,
		"SELECT * INTO kept FROM pg_class":                           false,
		"SELECT * FROM pg_class FOR UPDATE":                          false,
		"DELETE FROM pg_class":                                       false,
		"SELECT FROM pg_class; DROP TABLE numbers":                   false,
		"WITH d AS (DELETE FROM pg_class RETURNING 1) TABLE d":       false,
		"SELECT FROM":                                                false,
		"":                                                           false,
		"SELECT oid FROM pg_class -- " + strings.Repeat("x", 17<<10): false,
	} {
		if got := audit.CatalogsOnly(text); got != want {
			t.Errorf("%.60s: %t", text, got)
		}
	}
}
