package tests

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestTypesOfAnAdministratorRunNoCode hides functions in types: in casts, in the
// constraints of domains and in what compares values. A sequence tells whether one
// ran as tailor_owner: nothing rolls that back.
func TestTypesOfAnAdministratorRunNoCode(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "usertypes"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	mustExec(t, s.superuser(t), `CREATE ROLE mallory LOGIN;
GRANT tailor_admin TO mallory;
CREATE SCHEMA mallory AUTHORIZATION mallory;
GRANT USAGE ON SCHEMA mallory TO PUBLIC`)
	mallory := s.as(t, "mallory")
	mustExec(t, mallory,
		`CREATE SEQUENCE mallory.caught; GRANT ALL ON SEQUENCE mallory.caught TO PUBLIC;
CREATE FUNCTION mallory.spy() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF current_user = 'tailor_owner' THEN PERFORM nextval('mallory.caught'); END IF;
    RETURN true;
END $$;
CREATE TYPE mallory.mood AS ENUM ('sad', 'ok', 'happy');
CREATE FUNCTION mallory.tell(mallory.mood) RETURNS text LANGUAGE sql
    AS 'SELECT CASE WHEN mallory.spy() THEN enum_out($1)::text END';
CREATE FUNCTION mallory.tell(mallory.mood[]) RETURNS text LANGUAGE sql
    AS 'SELECT CASE WHEN mallory.spy() THEN array_out($1)::text END';
CREATE FUNCTION mallory.feel(text) RETURNS mallory.mood LANGUAGE sql AS
    'SELECT m FROM unnest(enum_range(NULL::mallory.mood)) m WHERE enum_out(m)::text = $1
    AND mallory.spy()';
CREATE CAST (mallory.mood AS text) WITH FUNCTION mallory.tell(mallory.mood) AS IMPLICIT;
CREATE CAST (mallory.mood[] AS text) WITH FUNCTION mallory.tell(mallory.mood[]);
CREATE CAST (text AS mallory.mood) WITH FUNCTION mallory.feel(text) AS ASSIGNMENT;
CREATE FUNCTION mallory.same(mallory.mood, mallory.mood) RETURNS boolean LANGUAGE sql
    AS 'SELECT mallory.spy() AND enum_out($1)::text = enum_out($2)::text';
CREATE OPERATOR mallory.= (FUNCTION = mallory.same, LEFTARG = mallory.mood,
    RIGHTARG = mallory.mood);
CREATE DOMAIN mallory.mien AS mallory.mood;
CREATE DOMAIN mallory.grade AS integer;
CREATE DOMAIN mallory.note AS varchar(20);
CREATE TYPE mallory."%1$I ""'s" AS ENUM ('a', 'b');
CREATE DOMAIN mallory."%s\" AS mallory."%1$I ""'s";
CALL tailor.define_hierarchy('mallory.letters', 'table', '{"paths": [["a"], ["b"]]}');
CALL tailor.define_hierarchy('mallory.moods', 'table',
    '{"paths": [["sad", "low"], ["ok", "high"], ["happy", "high"]]}');
CALL tailor.define_hierarchy('mallory.grades', 'table',
    '{"paths": [["0", "low"], ["1", "low"], ["2", "high"]]}');
CALL tailor.define_hierarchy('mallory.bounds', 'interval',
    '{"widths": [2], "lower": 0, "upper": 9}')`)
	p := s.serve(t)
	reader := connect(t, p.dsn(s.reader(t)))

	for i, test := range []struct {
		name, columns, values, policy, later, query string
		want                                        []string
	}{
		{
			"an enum with a cast to text", "mood mallory.mood",
			"(enum_range(NULL::mallory.mood))[1 + n % 3]",
			`CALL tailor.classify('TABLE', 'mood', 'quasi_identifier', hierarchy => 'mallory.moods')`, ``,
			`SELECT mood, count(*) FROM TABLE WHERE mood <> 'sad' GROUP BY mood ORDER BY mood`,
			[]string{"happy|40", "ok|40"},
		},
		{
			"a domain over it", "mood mallory.mien", "(enum_range(NULL::mallory.mood))[1 + n % 3]",
			`CALL tailor.classify('TABLE', 'mood', 'quasi_identifier', hierarchy => 'mallory.moods')`,
			`ALTER DOMAIN mallory.mien ADD CHECK (mallory.spy())`,
			`SELECT mood, count(*) FROM TABLE GROUP BY mood ORDER BY mood`,
			[]string{"happy|40", "ok|40", "sad|40"},
		},
		{
			"a domain with a constraint that comes later", "grade mallory.grade", "n % 3",
			`CALL tailor.classify('TABLE', 'grade', 'quasi_identifier', hierarchy => 'mallory.grades')`,
			`ALTER DOMAIN mallory.grade ADD CHECK (mallory.spy())`,
			`SELECT grade, count(*) FROM TABLE WHERE grade > 0 GROUP BY grade ORDER BY grade`,
			[]string{"1|40", "2|40"},
		},
		{
			"numbers of a domain have ranges", "grade mallory.grade", "n % 3",
			`CALL tailor.classify('TABLE', 'grade', 'quasi_identifier', hierarchy => 'mallory.bounds')`, ``,
			`SELECT grade, count(*) FROM TABLE GROUP BY grade ORDER BY grade`,
			[]string{"0|40", "1|40", "2|40"},
		},
		{
			"what is shown as it is",
			"mood mallory.mood, moods mallory.mood[], note mallory.note, grades mallory.grade[]",
			`'ok', ARRAY['ok', NULL, 'sad']::mallory.mood[], 'a, "b"', ARRAY[1, NULL]`,
			`CALL tailor.classify('TABLE', 'mood', 'sensitive');
CALL tailor.classify('TABLE', 'moods', 'sensitive');
CALL tailor.classify('TABLE', 'note', 'sensitive');
CALL tailor.classify('TABLE', 'grades', 'sensitive')`,
			`ALTER DOMAIN mallory.note ADD CHECK (ts_rewrite('a'::tsquery, ` +
				`'SELECT ''a''::tsquery, ''b''::tsquery WHERE mallory.spy()') IS NOT NULL)`,
			`SELECT DISTINCT mood, moods, note, grades FROM TABLE`,
			[]string{`ok|{ok,NULL,sad}|a, "b"|{1,NULL}`},
		},
		{
			"names of types that are not only letters",
			`mood mallory."%1$I ""'s", moods mallory."%s\"[]`, `'a', ARRAY['b']::mallory."%s\"[]`,
			`CALL tailor.classify('TABLE', 'mood', 'quasi_identifier', hierarchy => 'mallory.letters');
CALL tailor.classify('TABLE', 'moods', 'sensitive')`,
			``, `SELECT DISTINCT mood, moods FROM TABLE`,
			[]string{`a|{b}`},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := fmt.Sprintf("mallory.typed_%d", i)
			fill := func(sql string) string { return strings.ReplaceAll(sql, "TABLE", table) }
			mustExec(t, mallory, fmt.Sprintf(`CREATE TABLE %[1]s (id integer PRIMARY KEY, %[2]s);
INSERT INTO %[1]s SELECT n, %[3]s FROM generate_series(1, 120) n;
CALL tailor.protect('%[1]s', subject => 'id', k => 5)`, table, test.columns, test.values))
			mustExec(t, mallory, fill(test.policy))
			mustExec(t, mallory, `CALL tailor.activate('`+table+`')`)
			if test.later != "" {
				mustExec(t, mallory, test.later)
			}
			waitFor(t, func() bool {
				_, err := reader.Exec(t.Context(), fill(test.query))
				return err == nil
			})
			if rows := rowsOf(t, reader, fill(test.query)); !slices.Equal(rows, test.want) {
				t.Errorf("answered %q, want %q", rows, test.want)
			}
			mustExec(t, mallory, `CALL tailor.refresh('`+table+`')`)
			notCaught(t, mallory)
		})
	}

	t.Run("a subject whose codes are a set", func(t *testing.T) {
		mustExec(t, mallory, `CREATE TABLE mallory.codes (who mallory.mood, code text);
INSERT INTO mallory.codes SELECT m, c FROM unnest(enum_range(NULL::mallory.mood)) m,
    unnest(ARRAY['a', 'b']) c;
CALL tailor.protect('mallory.codes', subject => 'who', k => 2);
CALL tailor.set_valued('mallory.codes', 'code', m => 1);
CALL tailor.activate('mallory.codes')`)
		notCaught(t, mallory)
	})
	t.Run("codes beside columns of hers, indexed, renewed and erased", func(t *testing.T) {
		mustExec(t, mallory, `CREATE DOMAIN mallory.degree AS integer;
CREATE DOMAIN mallory.remark AS text;
CREATE TABLE mallory.insured (id integer PRIMARY KEY, mood mallory.mood, mien mallory.mien,
    grade mallory.degree, note mallory.remark);
INSERT INTO mallory.insured SELECT n, (enum_range(NULL::mallory.mood))[1 + n % 3], 'ok', n % 3, n
    FROM generate_series(1, 600) n;
CREATE TABLE mallory.claims (who integer NOT NULL REFERENCES mallory.insured, code text);
INSERT INTO mallory.claims SELECT n, 'c' || n % 5 FROM generate_series(1, 600) n;
CALL tailor.protect('mallory.insured', subject => 'id', k => 5);
CALL tailor.classify('mallory.insured', 'mood', 'quasi_identifier', hierarchy => 'mallory.moods');
CALL tailor.classify('mallory.insured', 'mien', 'quasi_identifier', hierarchy => 'mallory.moods');
CALL tailor.classify('mallory.insured', 'grade', 'quasi_identifier', hierarchy => 'mallory.bounds');
CALL tailor.classify('mallory.insured', 'note', 'non_sensitive');
CALL tailor.indexes('mallory.insured', add => ARRAY['mood', 'mien', 'grade', 'note']);
CALL tailor.activate('mallory.insured');
CALL tailor.protect('mallory.claims', subject => 'who', k => 5);
CALL tailor.classify('mallory.claims', 'who', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('mallory.claims', column_name => 'code');
CALL tailor.joint('mallory.claims', ARRAY['mood', 'grade']);
CALL tailor.activate('mallory.claims')`)
		const joint = `SELECT mood, grade, code, count(*) FROM mallory.insured i
    JOIN mallory.claims c ON c.who = i.id GROUP BY 1, 2, 3`
		answeredSoon(t, reader, joint)
		answeredSoon(t, reader,
			`SELECT tailor.label(grade), tailor.bounds(grade), mien, note FROM mallory.insured`)
		mustExec(t, mallory, `ALTER DOMAIN mallory.degree ADD CONSTRAINT late CHECK (mallory.spy());
ALTER DOMAIN mallory.remark ADD CONSTRAINT later CHECK (mallory.spy())`)
		mustExec(t, mallory, `UPDATE mallory.insured SET note = 'changed' WHERE id % 2 = 0;
INSERT INTO mallory.insured SELECT n, 'sad', 'ok', 1, 'new' FROM generate_series(601, 700) n`)
		mustExec(t, mallory, `CALL tailor.erase('mallory.insured', '17')`)
		mustExec(t, mallory, `CALL tailor.refresh('mallory.insured')`)
		waitFor(t, func() bool {
			_, err := reader.Exec(t.Context(), `SELECT mood FROM mallory.insured WHERE note = 'new'`)
			return err == nil
		})
		mustExec(t, mallory, `CALL tailor.erase('mallory.claims', '19', 'at_once');
CALL tailor.represent('mallory.insured', 'grade', 'middle');
    CALL tailor.activate('mallory.insured')`)
		notCaught(t, mallory)
	})
	t.Run("a key that is cast to its parent's", func(t *testing.T) {
		if one[int](t, mallory, `SELECT current_setting('server_version_num')::integer`) >= 180000 {
			t.Skip("PostgreSQL makes no such key any more")
		}
		mustExec(t, mallory, `CREATE TABLE mallory.parent (id text PRIMARY KEY, age integer);
INSERT INTO mallory.parent SELECT enum_out(m)::text, 30 FROM
    unnest(enum_range(NULL::mallory.mood)) m;
CREATE TABLE mallory.child (who mallory.mood REFERENCES mallory.parent (id), age integer);
INSERT INTO mallory.child SELECT m, 40 FROM unnest(enum_range(NULL::mallory.mood)) m;
CALL tailor.protect('mallory.parent', subject => 'id', k => 2);
CALL tailor.classify('mallory.parent', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.activate('mallory.parent');
CALL tailor.protect('mallory.child', subject => 'who', k => 2);
CALL tailor.classify('mallory.child', 'age', 'quasi_identifier', hierarchy => 'age');
CALL tailor.activate('mallory.child')`)
		if !one[bool](t, s.superuser(t), `SELECT bool_and(policy ? 'parent') FROM tailor.policies
    WHERE relation = 'mallory.child'::regclass`) {
			t.Error("the child borrows nothing")
		}
		notCaught(t, mallory)
	})
	t.Run("types that hold hers", func(t *testing.T) {
		mustExec(t, mallory, `CREATE TYPE mallory.pair AS (first mallory.mood, second integer);
CREATE TYPE mallory.moods AS RANGE (subtype = mallory.mood);
CREATE DOMAIN mallory.pairs AS mallory.pair[]`)
		for i, kind := range []string{
			"mallory.pair", "mallory.pair[]", "mallory.pairs",
			"mallory.moods", "mallory.moods[]", "mallory.moods_multirange",
		} {
			table := fmt.Sprintf("mallory.holder_%d", i)
			protect(t, mallory, table)
			mustExec(t, mallory, fmt.Sprintf(`ALTER TABLE %[1]s ADD held %[2]s;
CALL tailor.classify('%[1]s', 'held', 'sensitive')`, table, kind))
			refusedWithHint(t, mallory, "42501", "Hide the column", `CALL tailor.activate('`+table+`')`)
		}
		notCaught(t, mallory)
	})
	t.Run("a partition key that is computed", func(t *testing.T) {
		mustExec(t, mallory, `CREATE FUNCTION mallory.place(integer) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN PERFORM mallory.spy();
RETURN $1;
END $$;
CREATE TABLE mallory.parted (id integer, shown text) PARTITION BY RANGE (mallory.place(id));
CREATE TABLE mallory.part PARTITION OF mallory.parted DEFAULT;
INSERT INTO mallory.parted SELECT n, 'x' FROM generate_series(1, 50) n;
CALL tailor.protect('mallory.parted', 'id', 5);
CALL tailor.classify('mallory.parted', 'shown', 'sensitive')`)
		refused(t, mallory, "42501", `CALL tailor.activate('mallory.parted')`)
		notCaught(t, mallory)
	})
	t.Run("a view that a hierarchy is made from", func(t *testing.T) {
		mustExec(t, mallory, `CREATE VIEW mallory.source AS SELECT m AS mood, mallory.spy()::text AS level
    FROM unnest(enum_range(NULL::mallory.mood)) m;
CALL tailor.define_hierarchy('mallory.viewed', 'table',
    '{"source": "mallory.source", "columns": ["mood", "level"]}')`)
		notCaught(t, mallory)
	})
	t.Run("a path for names that the database's owner has set", func(t *testing.T) {
		super := s.superuser(t)
		mustExec(t, super, `ALTER DATABASE hospital SET search_path = mallory, pg_catalog`)
		defer mustExec(t, super, `ALTER DATABASE hospital RESET search_path`)
		later := connect(t, s.serve(t).dsn(reader.Config().User))
		rowsOf(t, later, `SELECT mood FROM mallory.typed_0`, `SELECT grade FROM mallory.typed_2`)
		mustExec(t, s.as(t, "mallory"), `CALL tailor.refresh('mallory.typed_0')`)
		waitFor(t, func() bool {
			_, err := later.Exec(t.Context(), `SELECT mood FROM mallory.typed_0`)
			return err == nil
		})
		notCaught(t, mallory)
		// In the bodies of these every name has its schema: they can be inlined, and the query of
		// a data set has its owner's path.
		const open = `SELECT coalesce(string_agg(oid::regprocedure::text, ', '), '') FROM pg_proc
WHERE pronamespace = 'tailor'::regnamespace AND prokind <> 'a'
    AND proname NOT IN ('subject_digest', 'person_digest', 'most_digests', 'define_dataset')
    AND NOT coalesce(array_to_string(proconfig, ' '), '') LIKE '%search_path=pg_catalog, pg_temp%'`
		if routines := one[string](t, super, open); routines != "" {
			t.Errorf("without a path of their own: %s", routines)
		}
	})
	t.Run("copies and releases know no type of an administrator", func(t *testing.T) {
		const used = `SELECT coalesce(string_agg(DISTINCT a.attrelid::regclass || '.' || a.attname,
			', '), '')
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
WHERE c.relnamespace IN ('tailor_store'::regnamespace, 'tailor_release'::regnamespace,
    'research'::regnamespace) AND a.attnum > 0
  AND c.relkind <> 'i' AND t.typowner = 'mallory'::regrole`
		if columns := one[string](t, s.superuser(t), used); columns != "" {
			t.Errorf("of her types: %s", columns)
		}
	})
	t.Run("what an earlier version has stored", func(t *testing.T) {
		super := s.superuser(t)
		const query = `SELECT mood, count(*) FROM mallory.typed_0 GROUP BY mood ORDER BY mood`
		waitFor(t, func() bool { // the copy has just been made
			_, err := reader.Exec(t.Context(), query)
			return err == nil
		})
		before := rowsOf(t, reader, query)
		mustExec(t, super,
			`UPDATE tailor.policy_version
				SET policy = replace(policy::text, '"type": "text", "class": "quasi_identifier"',
    '"type": "mallory.mood", "class": "quasi_identifier"')::jsonb
    WHERE relation = 'mallory.typed_0'::regclass`)
		for range 2 {
			if err := s.install(t.Context(), "hospital"); err != nil {
				t.Fatal(err)
			}
		}
		if kind := one[string](t, super, `SELECT policy #>> '{columns,1,type}' FROM tailor.policies
    WHERE relation = 'mallory.typed_0'::regclass`); kind != "text" {
			t.Errorf("the policy still has type %s", kind)
		}
		later := connect(t, s.serve(t).dsn(reader.Config().User))
		for _, call := range []string{
			``, `CALL tailor.refresh('mallory.typed_0')`,
			`CALL tailor.activate('mallory.typed_0')`,
		} {
			mustExec(t, mallory, call)
			if hint := refusedSoon(t, later, query, "KA004").Hint; !strings.Contains(hint,
				"tailor.forget_chains('mallory.typed_0')") {
				t.Errorf("after %q: %s", call, hint)
			}
		}
		mustExec(t, mallory, `CALL tailor.forget_chains('mallory.typed_0')`)
		answeredSoon(t, later, query)
		if after := rowsOf(t, later, query); !slices.Equal(after, before) {
			t.Errorf("answered %q, before %q", after, before)
		}
		notCaught(t, mallory)
	})
}

// notCaught wants no function of an administrator to have run as tailor_owner.
func notCaught(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	if one[bool](t, conn, `SELECT is_called FROM mallory.caught`) {
		t.Error("an administrator's function ran with the rights of tailor_owner")
		mustExec(t, conn, `SELECT setval('mallory.caught', 1, false)`)
	}
}
