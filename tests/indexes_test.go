package tests

import (
	"fmt"
	"slices"
	"testing"
)

// TestAPolicySaysWhatIsIndexed looks at the indexes of a release under three policies.
func TestAPolicySaysWhatIsIndexed(t *testing.T) {
	direct, p := wardOf(t, "indexed",
		`CREATE INDEX ON people (born); CALL tailor.indexes('people', add => ARRAY['zip', 'diagnosis']);`)
	conn := connect(t, p.dsn("researcher"))
	indexed := func() []string {
		t.Helper()
		answered(t, conn, `SELECT count(*) FROM people`)
		out := rowsOf(t, direct,
			`SELECT coalesce((SELECT c.attname FROM pg_attribute c WHERE c.attrelid = 'people'::regclass
				AND c.attnum = substring(a.attname FROM 'tailor value ([0-9]+)')::int), a.attname)
				FROM tailor.chain h JOIN pg_class r ON r.oid = format('tailor_store.chain_%s%s_row',
					h.chain, CASE WHEN h.edition > 0 THEN '_g' || h.edition END)::regclass
				JOIN pg_index i ON i.indrelid = r.oid JOIN pg_attribute a ON a.attrelid = r.oid
					AND a.attnum = i.indkey[0]
				WHERE h.relation = 'people'::regclass`)
		slices.Sort(out)
		return out
	}
	if got, want := indexed(), []string{"born", "diagnosis", "zip"}; !slices.Equal(got, want) {
		t.Errorf("indexes on %v, want %v", got, want)
	}
	mustExec(t, direct,
		`CALL tailor.indexes('people', "drop" => ARRAY['born'], add => ARRAY['zip']); `+
			`CALL tailor.activate('people')`)
	waitFor(t, func() bool { return slices.Equal(indexed(), []string{"zip"}) })
	subject := one[string](t, direct,
		`SELECT subject FROM tailor.protection WHERE relation = 'people'::regclass`)
	for sql, code := range map[string]string{
		`CALL tailor.indexes('people', add => ARRAY['nobody'])`: "42703",
		`CALL tailor.indexes('people', add => ARRAY['zip'], ` +
			`"drop" => ARRAY['zip'])`: "22023",
		fmt.Sprintf(`CALL tailor.indexes('people', add => ARRAY['%s']); CALL tailor.activate('people')`,
			subject): "22023",
	} {
		if _, err := direct.Exec(t.Context(), sql); codeIn(err) != code {
			t.Errorf("%s: %v, want %s", sql, err, code)
		}
	}
}
