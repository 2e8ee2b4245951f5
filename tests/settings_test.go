package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestAPipelineIsPlannedByTheSettingsItRunsUnder: what an unqualified name means in a pipeline
// is what it means at the server, or the statement is refused. Each case ends with a query over
// patients, of which public has the protected table and another schema one of a single row.
func TestAPipelineIsPlannedByTheSettingsItRunsUnder(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	other := "other_" + user
	mustExec(t, shared.superuser(t), fmt.Sprintf(
		`DROP SCHEMA IF EXISTS %[1]s CASCADE; CREATE SCHEMA %[1]s;
CREATE TABLE %[1]s.patients AS SELECT 1 AS age;
CREATE FUNCTION %[1]s.enters() RETURNS text AS $$
    SELECT set_config('search_path', '%[1]s', false) $$ LANGUAGE sql;
GRANT USAGE ON SCHEMA %[1]s TO %[2]s; GRANT SELECT ON %[1]s.patients TO %[2]s`, other, user))
	type turn []pgproto3.FrontendMessage
	const asked = "SELECT count(*) FROM patients"
	sync := &pgproto3.Sync{}
	simple := func(texts ...string) (all []turn) {
		for _, text := range texts {
			all = append(all, turn{query(text)})
		}
		return all
	}
	pipeline := func(texts ...string) (all turn) {
		for _, text := range texts {
			all = append(all, &pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{})
		}
		return append(all, sync)
	}
	local := "SET LOCAL search_path = " + other
	inLocal := simple(asked, "BEGIN", local, asked)
	config := func(isLocal bool) string {
		return fmt.Sprintf("SELECT set_config('search_path', '%s', %t)", other, isLocal)
	}
	prepare := turn{&pgproto3.Parse{Name: "s1", Query: asked}, sync}
	run := turn{&pgproto3.Bind{PreparedStatement: "s1"}, &pgproto3.Execute{}, sync}
	enters := "SELECT " + other + ".enters()"
	protected, single := fmt.Sprintf("D:%d SELECT 1 Z", patients), "D:1 SELECT 1 Z"
	const refused = "E:0A000 Z"
	for claim, c := range map[string]struct {
		turns []turn
		want  []string
	}{
		"BEGIN after a COMMIT that ended SET LOCAL": {
			append(inLocal, simple("COMMIT")[0], pipeline("BEGIN", asked)), []string{protected},
		},
		"behind a COMMIT that ends SET LOCAL": {
			append(inLocal, pipeline("COMMIT", asked)),
			[]string{protected, refused},
		},
		"behind an END that ends SET LOCAL": {
			append(inLocal, pipeline("END", asked)),
			[]string{protected, refused},
		},
		"behind a ROLLBACK that ends SET LOCAL": {
			append(inLocal, pipeline("ROLLBACK", asked)), []string{protected, refused},
		},
		"behind a ROLLBACK of a transaction that has failed": {
			append(inLocal, simple("SELECT 1 / 0")[0], pipeline("ROLLBACK", asked)),
			[]string{protected, refused},
		},
		"behind a COMMIT of a transaction that has failed": {
			append(inLocal, simple("SELECT 1 / 0")[0], pipeline("COMMIT", asked)),
			[]string{protected, refused},
		},
		"sent with the ROLLBACK of a transaction that has failed": {
			append(inLocal, simple("SELECT 1 / 0")[0], turn{query("ROLLBACK"), query(asked)}),
			[]string{protected, refused},
		},
		"behind a savepoint that ends SET LOCAL": {
			append(simple(asked, "BEGIN", "SAVEPOINT s", local, asked), pipeline("ROLLBACK TO s", asked)),
			[]string{protected, refused},
		},
		"behind set_config": {
			append(simple(asked), pipeline(config(false), asked)),
			[]string{single, refused},
		},
		"behind a local set_config": {
			append(simple(asked), pipeline(config(true), asked)),
			[]string{single, refused},
		},
		"after set_config": {
			append(simple(asked, config(false)), pipeline(asked)),
			[]string{single},
		},
		"BEGIN after set_config": {
			append(simple(asked, config(false)), pipeline("BEGIN", asked)),
			[]string{single},
		},
		"behind another after set_config": {
			append(simple(asked, config(false)), pipeline("SELECT 1", asked)), []string{single, refused},
		},
		"behind the COMMIT after set_config": {
			append(simple(asked, "BEGIN", config(true), asked), pipeline("COMMIT", asked)),
			[]string{protected, refused},
		},
		"behind the COMMIT after a temporary table": {
			append(simple(asked, "BEGIN", "CREATE TEMP TABLE patients ON COMMIT DROP AS SELECT 1 AS age",
				asked), pipeline("COMMIT", asked)),
			[]string{protected, refused},
		},
		"behind the COMMIT of a transaction that changed nothing": {
			append(simple(asked, "BEGIN", asked), pipeline("COMMIT", asked)), []string{protected},
		},
		"after a function": {append(simple(asked, enters), pipeline(asked)), []string{single}},
		"behind a function": {
			append(simple(asked), pipeline(enters, asked)),
			[]string{single, refused},
		},
		"BEGIN after a function": {
			append(simple(asked, enters), pipeline("BEGIN", asked)),
			[]string{single},
		},
		"behind another after a function": {
			append(simple(asked, enters), pipeline("SELECT 1", asked)), []string{single, refused},
		},
		"behind a function that changes nothing": {append(simple(asked),
			pipeline("SELECT lower('A')", asked)), []string{protected}},
		"bound behind SET of something else": {
			append(append(simple(asked), prepare), pipeline("SET statement_timeout = 0")[:3], run),
			[]string{protected},
		},
		"bound behind SET": {
			append(append(simple(asked), prepare), append(pipeline(local)[:3], run...)),
			[]string{single, refused},
		},
		"prepared before a temporary table of another name": {
			append(append(simple(asked), prepare),
				append(simple("CREATE TEMP TABLE others AS SELECT 1"), run)...), []string{protected},
		},
		"prepared before a temporary table": {
			append(append(simple(asked), prepare),
				append(simple("CREATE TEMP TABLE patients AS SELECT 1 AS age"), run)...),
			[]string{single, refused},
		},
		"prepared before SET": {append(append(simple(asked), prepare),
			append(simple("SET search_path = "+other), run)...), []string{single, refused}},
		"prepared before set_config": {append(append(simple(asked), prepare),
			append(simple(config(false)), run)...), []string{single, refused}},
		"prepared after SET LOCAL": {
			append(inLocal, prepare, simple("COMMIT")[0], run), []string{protected, refused},
		},
	} {
		t.Run(claim, func(t *testing.T) {
			w := dial(t, p.dsn(user))
			var got string
			for _, turn := range c.turns {
				w.send(t, turn...)
				ends := 0
				for _, m := range turn {
					switch m.(type) {
					case *pgproto3.Sync, *pgproto3.Query:
						ends++
					}
				}
				got = w.untilReady(t, ends)
			}
			if !slices.ContainsFunc(c.want, func(want string) bool { return strings.HasSuffix(got, want) }) {
				t.Errorf("%s, want %q", got, c.want)
			}
		})
	}
}

// TestWhatIsUnnamedOutlivesQuestionsOfTheProxy: the proxy asks for settings between two
// pipelines of the client, whose unnamed statement and portal stay.
func TestWhatIsUnnamedOutlivesQuestionsOfTheProxy(t *testing.T) {
	p := shared.serve(t)
	w := dial(t, p.dsn(shared.reader(t)))
	sync := &pgproto3.Sync{}
	asks := []pgproto3.FrontendMessage{
		&pgproto3.Parse{Name: "other", Query: "SELECT lower('X')"},
		&pgproto3.Bind{DestinationPortal: "other", PreparedStatement: "other"},
		&pgproto3.Execute{Portal: "other"}, &pgproto3.Close{ObjectType: 'P', Name: "other"},
		&pgproto3.Close{ObjectType: 'S', Name: "other"}, sync,
		&pgproto3.Parse{Name: "s1", Query: "SELECT count(*) FROM patients"}, sync,
		&pgproto3.Bind{DestinationPortal: "p1", PreparedStatement: "s1"}, &pgproto3.Execute{Portal: "p1"},
		&pgproto3.Close{ObjectType: 'P', Name: "p1"}, &pgproto3.Close{ObjectType: 'S', Name: "s1"}, sync,
	}
	w.send(t, query("BEGIN"))
	w.untilReady(t, 1)
	w.send(t, &pgproto3.Parse{Query: "SELECT n FROM generate_series(1, 3) n"}, &pgproto3.Bind{},
		&pgproto3.Execute{MaxRows: 1}, sync)
	w.untilReady(t, 1)
	for i := range 2 {
		w.send(t, asks...)
		if got := w.untilReady(t, 3); !strings.Contains(got, fmt.Sprintf("D:%d SELECT 1", patients)) {
			t.Fatal(got)
		}
		w.send(t, &pgproto3.Execute{MaxRows: 1}, sync)
		if got, want := w.untilReady(t, 1), fmt.Sprintf("D:%d Z", i+2); got != want {
			t.Errorf("the portal gives %s, want %s", got, want)
		}
	}
	w.send(t, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 1}, sync)
	if got := w.untilReady(t, 1); got != "D:1 Z" {
		t.Errorf("the statement gives %s", got)
	}
}
