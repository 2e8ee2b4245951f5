package tests

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kinds has quasi-identifiers of every way to store what a release shows of them:
// labels too long for a name, beyond ASCII, more than a byte can number; values of
// fixed and of other lengths; NULL among each; a name that SQL of Tailor's own might
// give to something else. Six people share each combination.
const kinds = `
CREATE TABLE kinds (id integer PRIMARY KEY, long text, letters text, many text, whole integer,
    "exact" numeric(8, 2), wide bigint, real double precision,
	day date, p boolean, at timestamp, "when" timestamptz, short timestamptz(0), pay integer);
INSERT INTO kinds SELECT n, CASE WHEN c % 5 > 0
    THEN repeat(chr(97 + c % 5), 58 + c % 5 * 3) END, CASE WHEN c % 4 > 0
    THEN repeat('ü€😀', c % 4 * 5) END,
	'code ' || lpad(c::text, 4, '0'), nullif(c % 7, 3), nullif(c % 6, 2) + 0.25,
	nullif(c % 3, 0) * 10000000000, nullif(c % 4, 1) + 0.5,
	date '2000-02-28' + nullif(c % 3, 1), nullif(c % 3, 2) = 1,
	timestamp '2024-02-28 23:59:59.25' + nullif(c % 4, 1) * interval '7 hours',
	timestamptz '2024-03-31 00:59:59.999999Z' + nullif(c % 5, 1) * interval '1 hour',
	timestamptz '2024-10-27 00:30:00Z' + nullif(c % 2, 1) * interval '1 hour', n
FROM (SELECT n, n / 6 AS c FROM generate_series(0, 2399) n) x;
CALL tailor.define_hierarchy('prefixes', 'prefix', '{"keep": [4]}');
CALL tailor.define_hierarchy('whole', 'interval', '{"widths": [5, 10], "lower": 0, "upper": 9}');
CALL tailor.define_hierarchy('exact', 'interval', '{"widths": [5, 10], "lower": 0, "upper": 10}');
CALL tailor.define_hierarchy('wide', 'interval',
    '{"widths": [50000000000], "lower": 0, "upper": 99999999999}');
CALL tailor.define_hierarchy('day', 'date', '{"levels": ["month", "year"]}');
CALL tailor.define_hierarchy('hours', 'date', '{"levels": ["hour", "day", "month", "year"]}');
CALL tailor.define_hierarchy('yes', 'table', '{"paths": [["true"], ["false"]]}');
CALL tailor.protect('public.kinds', subject => 'id', k => 5);
CALL tailor.classify('public.kinds', 'id', 'direct_identifier');
CALL tailor.classify('public.kinds', 'long', 'quasi_identifier', hierarchy => 'prefixes');
CALL tailor.classify('public.kinds', 'letters', 'quasi_identifier', hierarchy => 'prefixes');
CALL tailor.classify('public.kinds', 'many', 'quasi_identifier', hierarchy => 'prefixes');
CALL tailor.classify('public.kinds', 'whole', 'quasi_identifier', hierarchy => 'whole');
CALL tailor.classify('public.kinds', 'exact', 'quasi_identifier', hierarchy => 'exact');
CALL tailor.classify('public.kinds', 'wide', 'quasi_identifier', hierarchy => 'wide');
CALL tailor.classify('public.kinds', 'real', 'quasi_identifier', hierarchy => 'exact');
CALL tailor.classify('public.kinds', 'day', 'quasi_identifier', hierarchy => 'day');
CALL tailor.classify('public.kinds', 'p', 'quasi_identifier', hierarchy => 'yes');
CALL tailor.classify('public.kinds', 'at', 'quasi_identifier', hierarchy => 'hours');
CALL tailor.classify('public.kinds', 'when', 'quasi_identifier', hierarchy => 'hours');
CALL tailor.classify('public.kinds', 'short', 'quasi_identifier', hierarchy => 'hours');
CALL tailor.classify('public.kinds', 'pay', 'sensitive');
CALL tailor.grant_reader('researcher');
CALL tailor.activate('public.kinds')`

// TestAReleaseShowsEveryKindOfValue asks a table whose every combination of
// quasi-identifiers k people share: all of it is shown as it is.
func TestAReleaseShowsEveryKindOfValue(t *testing.T) {
	direct := makeDatabase(t, "kinds", "")
	if err := shared.install(t.Context(), "kinds"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, kinds)
	conn := connect(t, serveDatabase(t, "kinds").dsn("researcher"))
	mustExec(t, conn, "SET tailor.representation = 'value'")
	for _, column := range strings.Split(
		`long, letters, many, whole, "exact", wide, real, day, p, at, "when", short`, ", ") {
		t.Run(column, func(t *testing.T) {
			for _, form := range []string{
				"SELECT %[1]s, pay FROM kinds ORDER BY pay",
				"SELECT %[1]s, count(*), sum(pay) FROM kinds GROUP BY %[1]s ORDER BY 3",
				"SELECT count(%[1]s), count(*), sum(pay) FROM kinds WHERE %[1]s > (SELECT min(%[1]s) " +
					"FROM kinds)",
				"SELECT pay FROM kinds WHERE %[1]s IS NULL ORDER BY pay",
				"SELECT n, pay FROM generate_series(0, 20) n LEFT JOIN kinds ON pay = n AND %[1]s IS NOT " +
					"NULL ORDER BY n",
			} {
				if column == "p" && strings.Contains(form, "min(") {
					continue
				}
				sql := fmt.Sprintf(form, column)
				if want, got := rowsOf(t, direct, sql), rowsOf(t, conn, sql); !slices.Equal(got, want) {
					t.Errorf("%s: %d rows, want %d; the first other than it is to be: %s", sql, len(got),
						len(want), firstOther(got, want))
				}
			}
		})
	}
}

// TestValuesThatAreJoinedAreShownToNobodyElse asks for values of a type without a
// fixed length, which a release keeps apart from its rows.
func TestValuesThatAreJoinedAreShownToNobodyElse(t *testing.T) {
	direct := makeDatabase(t, "kinds_past", "")
	if err := shared.install(t.Context(), "kinds_past"); err != nil {
		t.Fatal(err)
	}
	mustExec(t, direct, kinds)
	mustExec(t, connect(t, serveDatabase(t, "kinds_past").dsn("researcher")),
		`SELECT "exact", p, whole FROM kinds`)
	mustExec(t, direct, `GRANT TEMP ON DATABASE kinds_past TO researcher`)
	chain := one[int](t, direct, `SELECT chain FROM tailor.chain`)
	showsNothing(t, "kinds_past", "researcher", chain, 5, "pay = -1", `"exact"`, "p", "whole")
}

// firstOther is the first row that is not what it is to be, and what that is.
func firstOther(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%q, not %q", got[i], want[i])
		}
	}
	return "none"
}
