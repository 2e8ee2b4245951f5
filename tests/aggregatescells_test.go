package tests

import (
	"fmt"
	"strings"
	"testing"
)

// feesSchema makes three wards of ten. Of the second one person has a fee, so that its cell
// has another block in it.
const feesSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE TABLE fees (id int PRIMARY KEY, ward text, fee int);
INSERT INTO fees SELECT g, (ARRAY['a', 'b', 'c'])[1 + (g - 1) / 10], CASE WHEN g NOT BETWEEN 12
    AND 20 THEN 100 + g END FROM generate_series(1, 30) g;
CALL tailor.define_hierarchy('ward', 'table', '{"paths": [["a"], ["b"], ["c"]]}');
CALL tailor.protect('public.fees', subject => 'id', k => 5);
CALL tailor.classify('public.fees', 'ward', 'quasi_identifier', hierarchy => 'ward');
CALL tailor.classify('public.fees', 'fee', 'sensitive');
CALL tailor.rows('public.fees', false);
CALL tailor.cohort('public.fees', 10);
CALL tailor.activate('public.fees');
`

// TestCellsJoinAndAreNeverCut has other people come, and puts policies in force: two cells that
// overlapped would tell by their difference the fee of the one person of a ward who has one.
func TestCellsJoinAndAreNeverCut(t *testing.T) {
	const name = "aggregates_cells"
	schema, policy, _ := strings.Cut(feesSchema, "CALL")
	direct := makeDatabase(t, name, schema)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, "CALL"+policy)
	conn := connect(t, serveDatabase(t, name).dsn(shared.reader(t)))
	untilAnswered(t, conn, `SELECT sum(fee) FROM fees`)
	cells := func() map[string]string {
		t.Helper()
		rows, averaged, _ := payloadOf(t, direct, "fees")
		out := make(map[string]string)
		for number := range averaged {
			for _, row := range table(t, direct, fmt.Sprintf(
				`SELECT "tailor person", "tailor cell %s" FROM %s`, number, rows)) {
				out[row[0]] = row[1]
			}
		}
		return out
	}
	was := cells()
	follows := func(what, change string) {
		t.Helper()
		before := one[int](t, direct, `SELECT generation FROM tailor.chain`)
		mustExec(t, direct, change)
		waitFor(t, func() bool {
			return one[int](t, direct, `SELECT generation FROM tailor.chain`) > before
		})
		now, became := cells(), make(map[string]string)
		for person, cell := range was {
			into, shown := now[person]
			if !shown {
				continue
			}
			if known := became[cell]; known != "" && known != into {
				t.Errorf("%s: people of cell %s are in cells %s and %s", what, cell, known, into)
			}
			became[cell] = into
		}
		was = now
		assertAveraged(t, direct, "fees", 5)
	}
	follows("people who come",
		`INSERT INTO fees SELECT g, (ARRAY['a', 'b', 'c'])[1 + (g - 101) / 10], 500 + g `+
			`FROM generate_series(101, 130) g; CALL tailor.refresh('fees')`)
	follows("another policy", `CALL tailor.changes('fees', 'at_once'); CALL tailor.activate('fees')`)
	follows("a stricter policy", `CALL tailor.protect('fees', 'id', 7); CALL tailor.activate('fees')`)
	follows("a smaller share", `CALL tailor.max_share('fees', 0.15); CALL tailor.activate('fees')`)
	untilAnswered(t, conn, `SELECT sum(fee) FROM fees`)
	if got, want := table(t, conn, `SELECT sum(fee) FROM fees`),
		table(t, direct, `SELECT sum(fee) FROM fees`); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("sum %v, want %v", got, want)
	}
	follows("people who leave",
		`DELETE FROM fees WHERE ward = 'c' AND id < 100; CALL tailor.refresh('fees')`)
	follows("yet another policy", `CALL tailor.changes('fees', 'batch'); CALL tailor.activate('fees')`)
}

// TestACellOfShownAndUnshownBlocksShowsNothing joins a block by a stricter policy: the sum of
// both less that of the one would be that of the other, which never was enough.
func TestACellOfShownAndUnshownBlocksShowsNothing(t *testing.T) {
	const name = "aggregates_mixed"
	schema, _, _ := strings.Cut(feesSchema, "CALL")
	direct := makeDatabase(t, name, schema)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	// Block 1 was two, of cells 1 (shown) and 2 (not enough); block 3 goes on.
	mustExec(t, direct, `CREATE TABLE joined AS
		SELECT CASE WHEN g <= 12 THEN 1 ELSE 3 END AS "tailor block", g::bigint
			AS "tailor person", 0::bigint AS "tailor nth",
			CASE WHEN g <= 6 THEN 1 WHEN g <= 12 THEN 2 ELSE 3 END AS "tailor cell 3",
			CASE WHEN g BETWEEN 7 AND 11 THEN NULL ELSE 100 + g END AS fee, CASE WHEN g <= 6 OR g > 12
			THEN 103 END AS "tailor shown 3"
		FROM generate_series(1, 20) g`)
	const policy = `{"k": 5, "columns": [
		{"name": "fee", "number": 3, "type": "integer", "class": "sensitive"}]}`
	mustExec(t, direct, `CALL tailor.renew_cells('public.joined', $1)`, policy)
	mustExec(t, direct, `SELECT tailor.show_averages('public.joined', $1)`, policy)
	if got := rowsOf(t, direct,
		`SELECT "tailor block", count("tailor shown 3"), count(DISTINCT "tailor cell 3") FROM joined `+
			`GROUP BY 1 ORDER BY 1`); fmt.Sprint(got) != "[1|0|1 3|8|1]" {
		t.Errorf("blocks, averages and cells: %v", got)
	}
	mustExec(t, direct, `CALL tailor.renew_cells('public.joined', $1)`, policy)
	mustExec(t, direct, `SELECT tailor.show_averages('public.joined', $1)`, policy)
	if n := one[int](t, direct,
		`SELECT count("tailor shown 3") FROM joined WHERE "tailor block" = 1`); n > 0 {
		t.Errorf("%d averages under yet another policy", n)
	}
}

// oddSchema has payload of types and names that few tables have, and the largest and smallest
// numbers that there are.
const oddSchema = `
GRANT USAGE ON SCHEMA public TO PUBLIC;
CREATE DOMAIN pay AS numeric(10, 2);
CREATE TYPE mood AS ENUM ('sad', 'it''s "ok"');
CREATE TYPE pair AS (a int, "B %s" text);
CREATE TABLE "Odd %s $1 'Table'" ("Key" int PRIMARY KEY, "Ward %I" text,
    "say ""hi"" %1$s \" int, "tailor" numeric, "it's $1" numeric(12, 2), tiny real, huge float8,
    "unscaled" numeric,
    "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk" bigint,
    paid pay, felt mood, doc json, docb jsonb, list int[], cash money,
    two pair, "value" xml, "cell" "char", "order" oid);
INSERT INTO "Odd %s $1 'Table'" SELECT g, chr(97 + g % 4), g,
    CASE g % 9 WHEN 0 THEN numeric 'NaN' ELSE g END,
    CASE WHEN g % 7 = 0 THEN numeric 'NaN' ELSE g / 8.0 END,
    CASE WHEN g % 8 = 0 THEN real '1e-45' ELSE 0 END,
    CASE WHEN g % 4 = 0 THEN float8 '1.7976931348623157e308'
    WHEN g % 4 = 1 THEN CASE WHEN g % 8 = 1 THEN float8 '5e-324' ELSE 0 END
    WHEN g % 5 = 0 THEN float8 'Infinity' ELSE -1e307 END,
    CASE g % 6 WHEN 0 THEN numeric '9e131071' WHEN 1 THEN numeric '1e-16383'
    WHEN 2 THEN numeric '-9e131071' ELSE 1.5 END, 9223372036854775807 - g % 2, g % 3,
    CASE WHEN g % 2 = 0 THEN 'it''s "ok"' ELSE 'sad' END::mood,
    json_build_object('a', g % 3), jsonb_build_object('a', g % 3), ARRAY[g % 3, NULL],
    (g % 3)::money, ROW(g % 3, 'x"y')::pair, '<a/>', 'x', (g % 3)::oid
    FROM generate_series(1, 200) g;
`

const oddPolicy = `
CALL tailor.define_hierarchy('ward', 'table', '{"paths": [["a"], ["b"], ["c"], ["d"]]}');
CALL tailor.protect('"Odd %%s $1 ''Table''"', subject => 'Key', k => 5);
CALL tailor.classify('"Odd %%s $1 ''Table''"', 'Ward %%I', 'quasi_identifier', hierarchy => 'ward');
DO $$ DECLARE c name; BEGIN
    FOR c IN SELECT attname FROM pg_attribute
    WHERE attrelid = '"Odd %%s $1 ''Table''"'::regclass AND attnum > 2 LOOP
        CALL tailor.classify('"Odd %%s $1 ''Table''"', c, 'non_sensitive');
    END LOOP;
END $$;
%s
CALL tailor.rows('"Odd %%s $1 ''Table''"', false);
CALL tailor.activate('"Odd %%s $1 ''Table''"');
`

// TestPayloadOfAnyTypeIsTakenIn takes in what would make sums and averages fail.
func TestPayloadOfAnyTypeIsTakenIn(t *testing.T) {
	const name = "aggregates_odd"
	direct := makeDatabase(t, name, oddSchema)
	rounded := ""
	if one[int](t, direct, `SELECT current_setting('server_version_num')::int`) >= 150000 {
		mustExec(t, direct,
			`ALTER TABLE "Odd %s $1 'Table'" ADD rounded numeric(4, -3); `+
				`UPDATE "Odd %s $1 'Table'" SET rounded = "Key" * 1000`)
		rounded = `CALL tailor.classify('"Odd %s $1 ''Table''"', 'rounded', 'sensitive');`
	}
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, fmt.Sprintf(oddPolicy, rounded))
	p := serveDatabase(t, name)
	conn := connect(t, p.dsn(shared.reader(t)))
	defer func() {
		if t.Failed() {
			t.Logf("%s", p.log)
		}
	}()
	untilAnswered(t, conn, `SELECT count(*) FROM "Odd %s $1 'Table'"`)
	for _, column := range []string{
		`"say ""hi"" %1$s \"`, `"it's $1"`,
		"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk", "rounded",
	} {
		if column == "rounded" && rounded == "" {
			continue
		}
		sql := fmt.Sprintf(`SELECT sum(%[1]s) %[2]s FROM "Odd %%s $1 'Table'"`, column, "%s")
		got := table(t, conn, strings.Replace(sql, " %s FROM", " FROM", 1))
		want := table(t, direct, strings.Replace(sql, " %s FROM", fmt.Sprintf(" FILTER (WHERE %s::text "+
			"<> 'NaN') FROM", column), 1))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", column, got, want)
		}
	}
	before := one[int](t, direct, `SELECT generation FROM tailor.chain`)
	mustExec(t, direct,
		`UPDATE "Odd %s $1 'Table'" SET "say ""hi"" %1$s \" = 7, doc = '{"b": 1}', `+
			`unscaled = '1e-16383', two = ROW(1, NULL), huge = 1e308; `+
			`CALL tailor.refresh('"Odd %s $1 ''Table''"')`)
	waitFor(t, func() bool {
		return one[int](t, direct, `SELECT generation FROM tailor.chain`) > before
	})
	mustExec(t, direct,
		`CALL tailor.erase('"Odd %s $1 ''Table''"', '7'); `+
			`CALL tailor.erase('"Odd %s $1 ''Table''"', '8', 'at_once')`)
	refusedWith(t, conn, "0A000", `SELECT "say ""hi"" %1$s \" FROM "Odd %s $1 'Table'"`)
}
