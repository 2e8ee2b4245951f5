package audit_test

import (
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

func TestCatalogsOnlyFoldsWhatToolsAskAndNothingElse(t *testing.T) {
	folded := []string{
		// psql's \d, without its literals
		`SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c
			LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			WHERE c.relname OPERATOR(pg_catalog.~) $1 COLLATE pg_catalog.default
			AND pg_catalog.pg_table_is_visible(c.oid) ORDER BY 2, 3`,
		"SELECT count(*) FROM pg_class",
		"SELECT table_name FROM information_schema.tables",
		"WITH t AS (SELECT oid FROM pg_type) SELECT * FROM t",
		"SELECT 1 WHERE EXISTS (SELECT FROM pg_roles)",
	}
	shown := []string{
		"SELECT 1", // reads no relation
		"SELECT * FROM numbers",
		"SELECT * FROM pg_class c, numbers n",
		"SELECT (SELECT max(n) FROM numbers) FROM pg_class",
		"SELECT * FROM public.pg_class",
		"SELECT app.log($1) FROM pg_class",
		"SELECT * INTO kept FROM pg_class",
		"SELECT * FROM pg_class FOR UPDATE",
		"DELETE FROM pg_class",
		"SELECT FROM pg_class; DROP TABLE numbers",
		"WITH d AS (DELETE FROM pg_class RETURNING 1) TABLE d",
		"SELECT FROM",
		"",
		"SELECT oid FROM pg_class -- " + strings.Repeat("x", 17<<10),
	}
	for _, text := range folded {
		if !audit.CatalogsOnly(text) {
			t.Errorf("%.60s is shown", text)
		}
	}
	for _, text := range shown {
		if audit.CatalogsOnly(text) {
			t.Errorf("%.60s is folded", text)
		}
	}
}
