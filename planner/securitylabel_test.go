package planner_test

import (
	"errors"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

func TestASecurityLabelIsACallOfClassify(t *testing.T) {
	for _, c := range []struct{ claim, statement, call string }{
		{
			"a class", `SECURITY LABEL FOR tailor ON COLUMN public.patients.diagnosis IS 'sensitive'`,
			`CALL tailor.classify('"public"."patients"'::pg_catalog.regclass, 'diagnosis', 'sensitive')`,
		},
		{
			"a hierarchy", ` security label for tailor on column patients.age is ` +
				`'quasi_identifier hierarchy=age';`,
			`CALL tailor.classify('"patients"'::pg_catalog.regclass, 'age', 'quasi_identifier', ` +
				`hierarchy => 'age')`,
		},
		{
			"an action", `SECURITY LABEL FOR 'tailor' ` +
				`ON COLUMN patients.id IS 'direct_identifier action=pseudonym'`,
			`CALL tailor.classify('"patients"'::pg_catalog.regclass, 'id', 'direct_identifier', ` +
				`action => 'pseudonym')`,
		},
		{
			"names that need quotes",
			`SECURITY LABEL FOR tailor ON COLUMN "Odd "" One"."it's" IS 'sensitive'`,
			`CALL tailor.classify('"Odd "" One"'::pg_catalog.regclass, 'it''s', 'sensitive')`,
		},
		{
			"a backslash", `SECURITY LABEL FOR tailor ON COLUMN t."a\'b" IS 'sensitive'`,
			`CALL tailor.classify('"t"'::pg_catalog.regclass,  E'a\\''b', 'sensitive')`,
		},
		{"another provider", `SECURITY LABEL FOR selinux ON COLUMN t.c IS 'x'`, ""},
		{"no provider", `SECURITY LABEL ON COLUMN t.c IS 'x'`, ""},
		{"two statements", `SECURITY LABEL FOR tailor ON COLUMN t.c IS 'sensitive'; DROP TABLE t`, ""},
		{"no such statement", `SECURITY LABELS`, ""},
		{"another statement", `SELECT 1`, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if call, err := planner.SecurityLabel(c.statement); err != nil || call != c.call {
				t.Errorf("%q (%v), want %q", call, err, c.call)
			}
		})
	}
	for _, c := range []struct {
		claim, statement string
		code             sqlstate.Code
	}{
		{
			"a label of a table", `SECURITY LABEL FOR tailor ON TABLE patients IS 'sensitive'`,
			sqlstate.FeatureNotSupported,
		},
		{
			"no label", `SECURITY LABEL FOR tailor ON COLUMN patients.age IS NULL`,
			sqlstate.FeatureNotSupported,
		},
		{
			"an unknown word", `SECURITY LABEL FOR tailor ON COLUMN patients.age IS 'sensitive secret'`,
			sqlstate.InvalidParameterValue,
		},
		{
			"an unknown key", `SECURITY LABEL FOR tailor ON COLUMN patients.age IS 'sensitive k=5'`,
			sqlstate.InvalidParameterValue,
		},
		{
			"a hierarchy twice",
			`SECURITY LABEL FOR tailor ON COLUMN patients.age IS 'quasi_identifier hierarchy=a hierarchy=b'`,
			sqlstate.InvalidParameterValue,
		},
	} {
		t.Run(c.claim, func(t *testing.T) {
			call, err := planner.SecurityLabel(c.statement)
			var known *sqlstate.Error
			if call != "" || !errors.As(err, &known) || known.Code != c.code || known.Hint == "" {
				t.Errorf("%q, %v; want SQLSTATE %s with a hint", call, err, c.code)
			}
		})
	}
}
