package tests

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// refusesWrongCalls wants each wrong call to fail with an error of its own.
func refusesWrongCalls(t *testing.T, s *testCluster, _ string) {
	said := make(map[string]string)
	mayor, super := s.as(t, "mayor"), s.superuser(t)
	mustExec(t, mayor, `CALL tailor.define_hierarchy('try', 'interval', `+
		`'{"widths": [5], "lower": 0, "upper": 119}'); CALL tailor.protect('town.few', 'id', 5)`)
	before := state(t, super)
	for _, c := range []struct{ claim, sqlstate, sql string }{
		{"a table that does not exist", "42P01", `CALL tailor.protect('town.nobody', 'id', 5)`},
		{"a view", "42809", `CALL tailor.protect('town.elders', 'id', 5)`},
		{"a table of somebody else", "42501", `CALL tailor.protect('public.patients', 'id', 5)`},
		{"a table of the catalog", "42501", `CALL tailor.protect('pg_class', 'oid', 5)`},
		{"a subject that does not exist", "42703", `CALL tailor.protect('town.people', 'person', 5)`},
		{"k of 0", "22023", `CALL tailor.protect('town.people', 'id', 0)`},
		{"k of 1", "22023", `CALL tailor.protect('town.people', 'id', 1)`},
		{"a negative k", "22023", `CALL tailor.protect('town.people', 'id', -5)`},
		{"no k", "22023", `CALL tailor.protect('town.people', 'id', NULL)`},
		{"an unknown kind", "22023", `CALL tailor.define_hierarchy('h', 'tree', '{}')`},
		{"no kind", "22023", `CALL tailor.define_hierarchy('h', NULL, '{}')`},
		{"no definition", "22023", `CALL tailor.define_hierarchy('h', 'prefix', NULL)`},
		{"no name", "22023", `CALL tailor.define_hierarchy('', 'prefix', '{"keep": [2]}')`},
		{"a definition that is a list", "22023", `CALL tailor.define_hierarchy('h', 'prefix', '[2]')`},
		{
			"an unknown key", "22023",
			`CALL tailor.define_hierarchy('h', 'prefix', '{"keep": [2], "kept": [1]}')`,
		},
		{
			"negative widths", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": [-5], "lower": 0, "upper": 9}')`,
		},
		{
			"a width of 0", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": [0], "lower": 0, "upper": 9}')`,
		},
		{
			"widths that do not nest", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": [5, 12], "lower": 0, "upper": 9}')`,
		},
		{
			"widths that fall", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": [10, 5], "lower": 0, "upper": 9}')`,
		},
		{
			"a width of text", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": ["5"], "lower": 0, "upper": 9}')`,
		},
		{
			"no widths", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"lower": 0, "upper": 9}')`,
		},
		{"no bounds", "22023", `CALL tailor.define_hierarchy('h', 'interval', '{"widths": [5]}')`},
		{
			"bounds the wrong way round", "22023",
			`CALL tailor.define_hierarchy('h', 'interval', '{"widths": [5], "lower": 9, "upper": 0}')`,
		},
		{
			"a prefix that grows", "22023",
			`CALL tailor.define_hierarchy('h', 'prefix', '{"keep": [2, 3]}')`,
		},
		{"a prefix below 0", "22023", `CALL tailor.define_hierarchy('h', 'prefix', '{"keep": [-1]}')`},
		{"half a character", "22023", `CALL tailor.define_hierarchy('h', 'prefix', '{"keep": [1.5]}')`},
		{"no prefix", "22023", `CALL tailor.define_hierarchy('h', 'prefix', '{}')`},
		{
			"an unknown unit", "22023",
			`CALL tailor.define_hierarchy('h', 'date', '{"levels": ["fortnight"]}')`,
		},
		{
			"units that do not nest", "22023",
			`CALL tailor.define_hierarchy('h', 'date', '{"levels": ["week", "month"]}')`,
		},
		{
			"units that fall", "22023",
			`CALL tailor.define_hierarchy('h', 'date', '{"levels": ["year", "month"]}')`,
		},
		{
			"a bound that is no date", "22023",
			`CALL tailor.define_hierarchy('h', 'date', '{"levels": ["year"], "lower": "soon"}')`,
		},
		{
			"dates the wrong way round", "22023",
			`CALL tailor.define_hierarchy('h', 'date', ` +
				`'{"levels": ["year"], "lower": "2000-01-01", "upper": "1990-01-01"}')`,
		},
		{"a list without paths", "22023", `CALL tailor.define_hierarchy('h', 'table', '{}')`},
		{"an empty list", "22023", `CALL tailor.define_hierarchy('h', 'table', '{"paths": []}')`},
		{
			"paths of different length", "22023",
			`CALL tailor.define_hierarchy('h', 'table', '{"paths": [["a", "x"], ["b"]]}')`,
		},
		{
			"paths that do not nest", "22023",
			`CALL tailor.define_hierarchy('h', 'table', '{"paths": [["a", "x", "p"], ["b", "x", "q"]]}')`,
		},
		{
			"paths of numbers", "22023",
			`CALL tailor.define_hierarchy('h', 'table', '{"paths": [[1, 2]]}')`,
		},
		{
			"paths that are words", "22023",
			`CALL tailor.define_hierarchy('h', 'table', '{"paths": ["a"]}')`,
		},
		{
			"a source that does not exist", "42P01",
			`CALL tailor.define_hierarchy('h', 'table', '{"source": "town.nothing", "columns": ["a"]}')`,
		},
		{
			"a source without columns", "22023",
			`CALL tailor.define_hierarchy('h', 'table', '{"source": "town.codes"}')`,
		},
		{
			"a source with NULL", "22023",
			`CALL tailor.define_hierarchy('h', 'table', ` +
				`'{"source": "town.codes", "columns": ["code", "label"]}')`,
		},
		{
			"a hierarchy by the name of a built-in one", "42939",
			`CALL tailor.define_hierarchy('builtin.age', 'prefix', '{"keep": []}')`,
		},
		{
			"a hierarchy by a reserved name", "42939",
			`CALL tailor.define_hierarchy('builtin.mine', 'prefix', '{"keep": []}')`,
		},
		{"a schedule of an unprotected table", "55000", `CALL tailor.schedule('town.people', '1 day')`},
		{
			"a schedule of somebody else's table", "42501",
			`CALL tailor.schedule('public.patients', '1 day')`,
		},
		{"a schedule by the second", "22023", `CALL tailor.schedule('town.few', '1 second')`},
		{"a schedule backwards in time", "22023", `CALL tailor.schedule('town.few', '-1 day')`},
		{"a span of time that is none", "22007", `CALL tailor.schedule('town.few', 'often')`},
		{"an unknown measure of a gate", "22023", `CALL tailor.gate('town.few', 'prosecutor', 0.1)`},
		{"no measure of a gate", "22023", `CALL tailor.gate('town.few', NULL, 0.1)`},
		{"a risk of 0", "22023", `CALL tailor.gate('town.few', 'average', 0)`},
		{"a risk above 1", "22023", `CALL tailor.gate('town.few', 'average', 1.5)`},
		{"an m of 0", "22023", `CALL tailor.set_valued('town.few', 'illness', 0)`},
		{
			"a set-valued column that does not exist", "42703",
			`CALL tailor.set_valued('town.few', 'ills', 2)`,
		},
		{
			"constraints that are a list", "22023",
			`CALL tailor.set_valued('town.few', 'illness', 2, constraints => '["a"]')`,
		},
		{
			"a code in two constraints", "22023",
			`CALL tailor.set_valued('town.few', 'illness', 2, constraints => '{"a": ["x"], "b": ["x"]}')`,
		},
		{
			"sensitive codes without a diversity", "22023",
			`CALL tailor.set_valued('town.few', 'illness', 2, sensitive => ARRAY['x'])`,
		},
		{
			"a diversity of 1", "22023",
			`CALL tailor.set_valued('town.few', 'illness', 2, sensitive => ARRAY['x'], diversity => 1)`,
		},
		{"a seed of a column without a hierarchy", "42703", `CALL tailor.seed('town.few', '[["age"]]')`},
		{"a seed that is a word", "22023", `CALL tailor.seed('town.few', '"age"')`},
		{"a project without a name", "22023", `CALL tailor.project('', 'town.few', '[]')`},
		{"an unprotected table", "55000", `CALL tailor.classify('town.people', 'age', 'sensitive')`},
		{
			"a column that does not exist", "42703",
			`CALL tailor.classify('town.few', 'agee', 'sensitive')`,
		},
		{"a system column", "42703", `CALL tailor.classify('town.few', 'ctid', 'sensitive')`},
		{"an unknown class", "22023", `CALL tailor.classify('town.few', 'age', 'sensitve')`},
		{"no class", "22023", `CALL tailor.classify('town.few', 'age', NULL)`},
		{
			"a quasi-identifier without a hierarchy", "22023",
			`CALL tailor.classify('town.few', 'age', 'quasi_identifier')`,
		},
		{
			"a hierarchy of a sensitive column", "22023",
			`CALL tailor.classify('town.few', 'age', 'sensitive', hierarchy => 'try')`,
		},
		{
			"a hierarchy that does not exist", "42704",
			`CALL tailor.classify('town.few', 'age', 'quasi_identifier', hierarchy => 'aeg')`,
		},
		{
			"an unknown action", "22023",
			`CALL tailor.classify('town.few', 'id', 'direct_identifier', action => 'drop')`,
		},
		{
			"a pseudonym of a sensitive column", "22023",
			`CALL tailor.classify('town.few', 'age', 'sensitive', action => 'pseudonym')`,
		},
		{"an unknown model", "22023", `CALL tailor.require('town.few', 'm_invariance', 'illness', 2)`},
		{"no model", "22023", `CALL tailor.require('town.few', NULL, 'illness', 2)`},
		{"a parameter of 1", "22023", `CALL tailor.require('town.few', 'l_diversity', 'illness', 1)`},
		{"no parameter", "22023", `CALL tailor.require('town.few', 'l_diversity', 'illness', NULL)`},
		{
			"a model of a column that does not exist", "42703",
			`CALL tailor.require('town.few', 'l_diversity', 'disease', 2)`,
		},
		{"an unknown scope", "22023", `CALL tailor.chain_scope('town.few', 'principle')`},
		{"no scope", "22023", `CALL tailor.chain_scope('town.few', NULL)`},
		{"an unknown recoding", "22023", `CALL tailor.recode('town.few', 'global')`},
		{"a reader who does not exist", "42704", `CALL tailor.grant_reader('nobody_at_all')`},
		{"the activation of an unprotected table", "55000", `CALL tailor.activate('town.people')`},
		{"the refresh of a table that is not active", "55000", `CALL tailor.refresh('town.few')`},
		{"the draft of an unprotected table emptied", "55000", `CALL tailor.clear_draft('town.people')`},
		{"a restore accepted by an administrator", "42501", `CALL tailor.accept_restore()`},
		{
			"a subject that would be shown", "22023",
			`CALL tailor.classify('town.few', 'id', 'non_sensitive'); CALL tailor.activate('town.few')`,
		},
		{
			"a model of a hidden column", "22023",
			`CALL tailor.require('town.few', 'l_diversity', 'illness', 2); ` +
				`CALL tailor.activate('town.few')`,
		},
		{
			"a subject that is gone", "42703",
			`ALTER TABLE town.few DROP COLUMN id; CALL tailor.activate('town.few')`,
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			_, err := mayor.Exec(t.Context(), c.sql)
			answer, ok := err.(*pgconn.PgError)
			if !ok || answer.Code != c.sqlstate {
				t.Fatalf("%v, want SQLSTATE %s", err, c.sqlstate)
			}
			if strings.Contains(answer.Message, "\n") || strings.HasSuffix(answer.Message, ".") ||
				len(answer.Message) > 160 {
				t.Errorf("the message is %q", answer.Message)
			}
			// of a table, not of the question
			for _, vague := range []string{"constraint \"", "null value in column", "syntax error"} {
				if strings.Contains(answer.Message, vague) {
					t.Errorf("the message is %q", answer.Message)
				}
			}
			said[answer.Message] = c.claim
			if after := state(t, super); after != before {
				t.Error("something was half applied")
			}
		})
	}
	if len(said) < wrongInputs {
		t.Errorf("%d different errors, want at least %d", len(said), wrongInputs)
	}
}

// wrongInputs is the least number of different errors that wrong calls have to
// give; faults of files come on top (internal/policyfile, appliesAllOrNothing).
const wrongInputs = 60
