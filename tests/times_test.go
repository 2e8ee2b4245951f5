package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stays are times of which hardly two are alike, in a database whose zone is not UTC.
const stays = `
ALTER DATABASE stays SET timezone = 'Asia/Kolkata';
SET timezone = 'UTC';
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE TABLE stays (id integer PRIMARY KEY, came timestamptz, went timestamp, ward text);
INSERT INTO stays SELECT n, timestamptz '2024-01-01Z' + random() * interval '700 days',
	timestamp '2024-01-01' + random() * interval '700 days', 'ward ' || n % 7
FROM generate_series(1, 3000) n;
CALL tailor.define_hierarchy('time', 'date',
	'{"levels": ["hour", "day", "month", "year"], "lower": "2020-01-01", "upper": "2029-12-31"}');
CALL tailor.protect('public.stays', subject => 'id', k => 5);
CALL tailor.classify('public.stays', 'id', 'direct_identifier');
CALL tailor.classify('public.stays', 'came', 'quasi_identifier', hierarchy => 'time');
CALL tailor.classify('public.stays', 'went', 'quasi_identifier', hierarchy => 'time');
CALL tailor.classify('public.stays', 'ward', 'sensitive');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.stays')`

// outsideTheirLabels counts values of a column that are not within the ends of their labels,
// and labels that are not what UTC says of the value.
const outsideTheirLabels = `
SELECT count(*)
FROM (SELECT COLUMN, tailor.label(COLUMN) AS label, tailor.bounds(COLUMN) AS ends FROM stays) x
WHERE NOT COLUMN BETWEEN ends[1] AND ends[2] OR label <> '*' AND label NOT IN (
	to_char(IN UTC, 'YYYY-MM-DD HH24"h"'), to_char(IN UTC, 'YYYY-MM-DD'),
	to_char(IN UTC, 'YYYY-MM'), to_char(IN UTC, 'YYYY'))`

// TestTimesAreQuasiIdentifiers releases times, with and without a zone, as days, months and
// years, whose ends are those of UTC whatever zone anybody is in.
func TestTimesAreQuasiIdentifiers(t *testing.T) {
	direct := makeDatabase(t, "stays", "")
	if err := shared.install(t.Context(), "stays"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, stays)
	p := serveDatabase(t, "stays")
	conn := connect(t, p.dsn("researcher"))
	untilAnswered(t, conn, "SELECT count(*) FROM stays")
	mustExec(t, conn, "SET timezone = 'America/New_York'; SET tailor.representation = 'value'")
	if n := one[int](t, conn, `
		SELECT min(n) FROM (SELECT count(*) AS n FROM stays
		GROUP BY tailor.label(came), tailor.label(went)) x`); n < 5 {
		t.Errorf("a class of %d", n)
	}
	for column, inUTC := range map[string]string{"came": "came AT TIME ZONE 'UTC'", "went": "went"} {
		of := strings.NewReplacer("COLUMN", column, "IN UTC", inUTC)
		if n := one[int](t, conn, of.Replace(outsideTheirLabels)); n > 0 {
			t.Errorf("%d values of %s are not in their labels", n, column)
		}
		sql := of.Replace(
			"SELECT count(*) FROM stays WHERE COLUMN >= '2024-07-01' AND COLUMN < '2025-07-01'")
		got, want := one[float64](t, conn, sql), one[float64](t, direct, sql)
		if got < 0.9*want || got > 1.1*want {
			t.Errorf("%g stays of a year by %s, want about %g", got, column, want)
		}
	}
	code, stdout, stderr := tool(t, "fidelity", "--dsn", shared.cluster.SuperuserDSN("stays"),
		"--proxy", p.dsn("researcher"), "--format", "json", "--k", "6", "--workload",
		workloadFile(t, "SELECT count(*) FROM stays WHERE came >= '2024-07-01';"))
	if code != 0 || !strings.Contains(stdout, `"queries": 1,
      "reason": "",`) {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	mustExec(t, direct, `
		INSERT INTO stays SELECT n, timestamptz '2026-03-01Z' + random() * interval '30 days',
			timestamp '2026-03-01' + random() * interval '30 days', 'ward ' || n % 7
		FROM generate_series(3001, 3400) n;
		CALL tailor.refresh('public.stays')`)
	waitFor(t, func() bool { return one[int](t, conn, "SELECT count(*) FROM stays") == 3400 })
	sql := "SELECT count(*) FROM stays WHERE came >= '2026-02-20'"
	if n := one[int](t, conn, sql); n < 350 || n > 450 {
		t.Errorf("%d of 400 stays that came with a refresh", n)
	}
}

// TestTimesWithoutAPlaceAreRefused activates what no release could show.
func TestTimesWithoutAPlaceAreRefused(t *testing.T) {
	const name = "stays_refused"
	direct := makeDatabase(t, name, "")
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	script := strings.ReplaceAll(stays, "DATABASE stays", "DATABASE "+name)
	script, _, _ = strings.Cut(script, "CALL tailor.activate")
	mustExec(t, direct, script)
	const activation = "CALL tailor.activate('public.stays')"
	mustExec(t, direct, "UPDATE stays SET went = 'infinity' WHERE id = 1")
	refusedWith(t, direct, "22023", activation)
	mustExec(t, direct, "UPDATE stays SET went = '2030-01-01' WHERE id = 1")
	refusedWith(t, direct, "22023", activation)
	mustExec(t, direct, "UPDATE stays SET went = '2029-12-31 23:59:59.999999' WHERE id = 1")
	mustExec(t, direct, `ALTER TABLE stays ADD day date;
		CALL tailor.classify('public.stays', 'day', 'quasi_identifier', hierarchy => 'time')`)
	refusedWith(t, direct, "42804", activation)
	mustExec(t, direct, "CALL tailor.classify('public.stays', 'day', 'non_sensitive')")
	mustExec(t, direct, activation)
}

// TestBoundsBeyondATypeAreRefused activates a hierarchy with values that the column cannot
// show: the release could not be made once a row is shown as one of them.
func TestBoundsBeyondATypeAreRefused(t *testing.T) {
	direct := makeDatabase(t, "bounds_beyond", "")
	if err := shared.install(t.Context(), "bounds_beyond"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, `
CREATE TABLE narrow
	(id integer PRIMARY KEY, small smallint, scaled numeric(3, 1), short real, free numeric);
INSERT INTO narrow SELECT n, 3000 * n, n, n, n FROM generate_series(1, 10) n;
CALL tailor.define_hierarchy('fits', 'interval',
	'{"widths": [10], "lower": -32768, "upper": 32767}');
CALL tailor.protect('public.narrow', subject => 'id', k => 5);
CALL tailor.classify('public.narrow', 'id', 'direct_identifier')`)
	classify := func(column, class string) {
		mustExec(t, direct, fmt.Sprintf("CALL tailor.classify('public.narrow', '%s', %s)", column, class))
	}
	for _, c := range []struct{ column, lower, upper, code string }{
		{"small", "0", "32768", "22003"},
		{"small", "-32769", "32767", "22003"},
		{"small", "-0.5", "32767", "42804"},
		{"small", "0", "32766.5", "42804"},
		{"scaled", "0", "100", "22003"},
		{"short", "0", "1e39", "22003"},
	} {
		mustExec(t, direct, fmt.Sprintf(`CALL tailor.define_hierarchy('beyond', 'interval',
			'{"widths": [10], "lower": %s, "upper": %s}')`, c.lower, c.upper))
		classify(c.column, "'quasi_identifier', hierarchy => 'beyond'")
		refusedWith(t, direct, c.code, "CALL tailor.activate('public.narrow')")
		classify(c.column, "'non_sensitive'")
	}
	mustExec(t, direct, `CALL tailor.define_hierarchy('beyond', 'interval',
		'{"widths": [10], "lower": 0, "upper": 1e300}')`)
	classify("free", "'quasi_identifier', hierarchy => 'beyond'")
	classify("small", "'quasi_identifier', hierarchy => 'fits'")
	mustExec(t, direct,
		"CALL tailor.grant_reader('researcher'); CALL tailor.activate('public.narrow')")
	conn := connect(t, serveDatabase(t, "bounds_beyond").dsn("researcher"))
	untilAnswered(t, conn, "SELECT small, free, tailor.bounds(small) FROM narrow")
}

// admissions has columns of many types.
const admissions = `
CREATE TYPE severity AS ENUM ('mild', 'moderate', 'severe');
CREATE DOMAIN postcode AS text CHECK (VALUE ~ '^[0-9]{5}$');
CREATE DOMAIN home AS postcode;
CREATE TABLE admissions (id integer PRIMARY KEY, came timestamptz(0), went timestamp, born date,
	smoker boolean, sev severity, zip home, weight numeric(5, 1), visits smallint, score real,
	code char(3), addr inet, token uuid, hour time, during daterange);
INSERT INTO admissions SELECT n, timestamptz '2024-01-01Z' + n * interval '5 hours',
	timestamp '2024-01-01' + n * interval '7 hours', date '1940-01-01' + n * 11, n % 3 = 0,
	(enum_range(NULL::severity))[1 + n % 3], lpad((n % 90)::text, 5, '1'), 40 + n % 80, n % 9, n % 10,
	(ARRAY['abc', 'd'])[1 + n % 2], '10.1.0.0'::inet + n, gen_random_uuid(),
	time '0:00' + n * interval '1 minute', daterange(date '2024-01-01' + n % 300, NULL)
FROM generate_series(1, 1000) n;`

// TestADraftHasAHierarchyForEveryTypeThatCanHaveOne has a table of many types classified, and
// the draft put in force as it is, whatever zone and style of dates the database has.
func TestADraftHasAHierarchyForEveryTypeThatCanHaveOne(t *testing.T) {
	const name = "many_types"
	direct := makeDatabase(t, name, admissions+`
ALTER DATABASE many_types SET timezone = 'Asia/Kolkata';
ALTER DATABASE many_types SET datestyle = 'German';`)
	if err := shared.install(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	p := serveDatabase(t, name)
	file := filepath.Join(t.TempDir(), "draft.yaml")
	dsn := shared.cluster.SuperuserDSN(name)
	code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", "admissions", "--write", file)
	if code != 0 {
		t.Fatal(stderr)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`  came: {type: date, levels: [hour, day, month, year, decade], lower: "2020-01-01",`,
		`  sev: {type: table, paths: [[mild], [moderate], [severe]]}`,
		`  zip: {type: prefix, keep: [4, 3, 2, 1]}`,
		`      addr: {class: direct_identifier}`,
		`      token: {class: direct_identifier}`,
		`# hour stays hidden: no hierarchy fits its type, time without time zone`,
		`# during stays hidden: no hierarchy fits its type, daterange`,
	} {
		if !strings.Contains(string(raw), "\n"+line) {
			t.Errorf("the draft lacks %q:\n%s", line, raw)
		}
	}
	code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, file)
	if code != 0 || strings.Contains(stdout, "!") {
		t.Errorf("%s%s", stdout, stderr)
	}
	if code, stdout, stderr := tool(t, "policy", "apply", "--dsn", dsn, file); code != 0 {
		t.Fatalf("%s%s", stdout, stderr)
	}
	mustExec(t, direct, "CALL tailor.grant_reader('researcher')")
	conn := connect(t, p.dsn("researcher"))
	untilAnswered(t, conn, "SELECT count(*) FROM admissions")
	mustExec(t, conn, "SET tailor.representation = 'value'")
	got := rowsOf(t, conn, `SELECT count(*), count(came) + count(went) + count(born) + count(zip),
		pg_typeof(min(came)), pg_typeof(min(went)), pg_typeof(min(sev)), min(sev) FROM admissions`)
	const want = "1000|4000|timestamp with time zone|timestamp without time zone|text|mild"
	if len(got) != 1 || got[0] != want {
		t.Errorf("%q, want %q", got, want)
	}
	refusedWith(t, conn, "42501", "SELECT hour FROM admissions")
}
