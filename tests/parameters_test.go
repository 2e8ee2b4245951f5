package tests

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// parametersOfTailor are those that a hint about an unknown one lists.
const parametersOfTailor = "tailor.notices, tailor.project, tailor.recoding, tailor.representation"

// TestWrongValuesOfParametersAreRefused sets them in each way in which a statement can.
func TestWrongValuesOfParametersAreRefused(t *testing.T) {
	conn := connect(t, shared.serve(t).dsn(shared.reader(t)))
	const representations, recodings = "auto, label, value", "auto, local, full_domain"
	for _, c := range []struct{ sql, code, tells string }{
		{`SET tailor.representation = 'values'`, "22023", representations},
		{`SET tailor.representation = ''`, "22023", representations},
		{`SET tailor.representation TO label, value`, "22023", representations},
		{`SET SESSION "tailor" . "representation" = 'values'`, "22023", representations},
		{`/* mine */ SET LOCAL TAILOR.Representation TO 1`, "22023", representations},
		{`SET tailor.recoding = cell`, "22023", recodings},
		{`SET tailor.notices = maybe`, "22023", "on, off"},
		{`SET tailor.notices = o`, "22023", "on, off"},
		{`SET tailor.notices = 2`, "22023", "on, off"},
		{`SELECT set_config('tailor.representation', 'values', false)`, "22023", representations},
		{`SELECT pg_catalog.set_config('Tailor.Notices'::text, 'maybe', true)`, "22023", "on, off"},
		{`PREPARE wrong AS SELECT set_config('tailor.recoding', 'cell', false)`, "22023", recodings},
		{`SELECT 1; SET tailor.representation = 'values'`, "22023", representations},
		{`SET tailor.xyz = 1`, "42704", parametersOfTailor},
		{`SET tailor.representations = 'value'`, "42704", parametersOfTailor},
		{`RESET tailor.xyz`, "42704", parametersOfTailor},
		{`SHOW tailor.xyz`, "42704", parametersOfTailor},
		{`SELECT set_config('tailor.xyz', '1', false)`, "42704", parametersOfTailor},
	} {
		fails(t, conn, c.sql, c.code, c.tells)
		if c.code == "22023" && !strings.Contains(c.sql, ";") {
			if _, err := conn.Prepare(t.Context(), "", c.sql); err == nil ||
				!strings.Contains(err.Error(), c.code) {
				t.Errorf("Parse %s: %v", c.sql, err)
			}
		}
	}
	for _, name := range strings.Split(parametersOfTailor, ", ") {
		if v := one[*string](t, conn, "SELECT NULLIF(current_setting($1, true), '')", name); v != nil {
			t.Errorf("%s has become %s", name, *v)
		}
	}
	mustExec(t, conn, `SELECT age FROM patients`)
}

// TestRightValuesOfParametersAreHonoured has them in the forms in which PostgreSQL's own
// enumerated and boolean parameters can be written.
func TestRightValuesOfParametersAreHonoured(t *testing.T) {
	p, user := shared.serve(t), shared.reader(t)
	isValue := func(conn *pgx.Conn) bool {
		t.Helper()
		results, err := conn.PgConn().Exec(t.Context(), `SELECT age FROM patients LIMIT 1`).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		const text = 25
		return results[0].FieldDescriptions[0].DataTypeOID != text
	}
	conn, notices := noticing(t, p.dsn(user))
	for sql, values := range map[string]bool{
		`SET tailor.representation = 'value'`: true, `SET tailor.representation = 'Value'`: true,
		`SET tailor.representation TO VALUE`:                         true,
		`SELECT set_config('tailor.representation', 'VALUE', false)`: true,
		`SET tailor.representation = Label`:                          false,
		`SET tailor.representation = auto`:                           false,
	} {
		mustExec(t, conn, `RESET tailor.representation`)
		mustExec(t, conn, sql)
		if isValue(conn) != values {
			t.Errorf("%s: values %t", sql, !values)
		}
		if mustExec(t, conn, `SET tailor.representation TO DEFAULT`); isValue(conn) {
			t.Errorf("%s is not reset", sql)
		}
	}
	for value, told := range map[string]bool{
		"0": false, "off": false, "OFF": false, "of": false, "false": false, "f": false, "no": false,
		"n": false,
		"1": true, "on": true, "true": true, "'T'": true, "yes": true, "y": true, "DEFAULT": true,
	} {
		mustExec(t, conn, `SET tailor.notices = `+value)
		*notices = nil
		if mustExec(t, conn, `SELECT age FROM patients`); (len(*notices) > 0) != told {
			t.Errorf("notices = %s: %d of them", value, len(*notices))
		}
	}
	for option, values := range map[string]bool{
		"options=" + escaped("-c tailor.representation=VALUE"):                      true,
		"options=" + escaped("-c work_mem=5MB --tailor.representation=value"):       true,
		"options=" + escaped("-ctailor.representation=value -c tailor.notices=OFF"): true,
		"options=" + escaped("-c tailor.representation=Auto"):                       false,
		"tailor.representation=Value":                                               true,
	} {
		if isValue(connect(t, p.dsn(user)+"&"+option)) != values {
			t.Errorf("%s: values %t", option, !values)
		}
	}
}

// TestShowOfAParameterAnswersBeforeItIsSet answers by defaults, the role's and what is set.
func TestShowOfAParameterAnswersBeforeItIsSet(t *testing.T) {
	p, user := shared.serve(t), shared.reader(t)
	mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s SET tailor.recoding = 'local'", user))
	conn := connect(t, p.dsn(user))
	shown := func(sql, want string) {
		t.Helper()
		if got := one[string](t, conn, sql); got != want {
			t.Errorf("%s: %q, want %q", sql, got, want)
		}
		if rows, err := simply(t, conn, sql); err != nil || len(rows) != 1 || rows[0] != "["+want+"]" {
			t.Errorf("%s: %v %v", sql, rows, err)
		}
	}
	shown(`SHOW tailor.representation`, "auto")
	shown(`show "tailor"."notices" ;`, "on")
	shown(`SHOW tailor.project`, "")
	shown(`SHOW tailor.recoding`, "local")
	mustExec(t, conn, `SET tailor.representation = 'Value'`)
	shown(`SHOW Tailor.Representation`, "value")
	mustExec(t, conn, `RESET tailor.representation`)
	shown(`SHOW tailor.representation`, "auto")
	mustExec(t, conn, `BEGIN READ ONLY; SET LOCAL tailor.notices = off`)
	shown(`SHOW tailor.notices`, "off")
	mustExec(t, conn, `COMMIT`)
	shown(`SHOW tailor.notices`, "on")
}

// TestAWrongValueThatCameOtherwiseIsNotIgnored has values that no statement of the session
// shows: the first protected statement tells of them.
func TestAWrongValueThatCameOtherwiseIsNotIgnored(t *testing.T) {
	p := shared.serve(t)
	for _, c := range []struct{ name, value, right, tells string }{
		{"tailor.representation", "values", "auto", "auto, label, value"},
		{"tailor.notices", "maybe", "off", "on, off"},
		{"tailor.recoding", "cell", "auto", "auto, local, full_domain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			user := shared.reader(t)
			mustExec(t, shared.superuser(t), fmt.Sprintf("ALTER ROLE %s SET %s = '%s'", user, c.name,
				c.value))
			conn := connect(t, p.dsn(user))
			fails(t, conn, `SELECT age FROM patients`, "22023", c.tells)
			fails(t, conn, `EXPLAIN (TAILOR) SELECT age FROM patients`, "22023", c.tells)
			mustExec(t, conn, `SELECT 1`)
			mustExec(t, conn, fmt.Sprintf(`SET %s TO %s`, c.name, c.right))
			mustExec(t, conn, `SELECT age FROM patients`)
			mustExec(t, conn, fmt.Sprintf(`DO $$ BEGIN PERFORM set_config('%s', '%s', false); END $$`,
				c.name, c.value))
			fails(t, conn, `SELECT age, sex FROM patients`, "22023", c.tells)

			options := "&options=" + escaped(fmt.Sprintf("-c %s=%s", c.name, c.value))
			for _, way := range []string{options, "&" + c.name + "=" + c.value} {
				config, err := pgx.ParseConfig(p.dsn(user) + way)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := pgx.ConnectConfig(t.Context(), config); err == nil ||
					!strings.Contains(err.Error(), "22023") {
					t.Errorf("login with %s: %v", way, err)
				}
			}
		})
	}
	user := shared.reader(t)
	for _, way := range []string{"&options=" + escaped("-c tailor.xyz=1"), "&tailor.xyz=1"} {
		if _, err := pgx.Connect(t.Context(), p.dsn(user)+way); err == nil ||
			!strings.Contains(err.Error(), "42704") {
			t.Errorf("login with %s: %v", way, err)
		}
	}
}

// escaped is a value within a connection string.
func escaped(value string) string { return strings.ReplaceAll(url.QueryEscape(value), "+", "%20") }
