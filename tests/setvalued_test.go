package tests

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestSetValued publishes tables of codes on a stand of its own, because its
// tests refresh them, count stored copies and hold locks.
func TestSetValued(t *testing.T) {
	s, err := newStand(filepath.Join(stands, "setvalued"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cluster.Stop)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, s *testCluster)
	}{
		{"researchers ask as of any table", answersAsATable},
		{"codes are text, whatever they hold", keepsOddCodes},
		{"arrays of codes stay arrays", keepsArrays},
		{"a hidden subject stays hidden, and codes can be numbers", hidesSubjects},
		{"counts are bounded and k candidates fit every pair", boundsEveryPair},
		{"the stored form is k^m-anonymous by its definition", isAnonymousByDefinition},
		{"a publication cannot be linked with keys or with another", isUnlinkable},
		{"two proxies at once make one publication", publishesOnce},
		{"a killed proxy leaves nothing half", survivesKill},
		{"publishing can be cancelled", cancelsPublishing},
		{"a refresh publishes cohorts, and no other policy", guardsRefresh},
		{"an epoch that nobody asked for is not kept", dropsUnpublished},
		{"policies that cannot be kept are refused", refusesPolicies},
		{"statements that cannot be answered are refused", refusesStatements},
		{"too few subjects are not published", refusesTooFew},
		{"sensitive codes stay where nobody can be linked to them", hidesSensitive},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// oddities are codes that a text format could take for something else.
var oddities = []string{
	"two words", "tab\there", "line\nbreak", `back\slash`, `\N`, "NULL", "", "comma,and{brace}",
	`"quoted"`, "é✓", "250.00 ", "401.9#2", "'", "(1,2)",
}

// coded are the codes of some subjects, by the subject's key.
type coded map[int][]string

// drawCodes gives each subject some of 90 codes, few of them frequent, and of
// the oddities. Keys are large and have gaps. The seed is fixed.
func drawCodes(subjects int) coded {
	r := rand.New(rand.NewPCG(9, 25))
	codes := make([]string, 90)
	for i := range codes {
		codes[i] = fmt.Sprintf("%03d.%02d", 240+i, i%7*10)
	}
	codes = append(codes, oddities...)
	out := make(coded)
	for i := range subjects {
		own := make(map[string]bool)
		for range 1 + r.IntN(9) {
			own[codes[int(float64(len(codes))*r.Float64()*r.Float64()*r.Float64())]] = true
		}
		if i%40 == 0 {
			own[oddities[r.IntN(len(oddities))]] = true
		}
		for code := range own {
			out[1_000_000+7*i] = append(out[1_000_000+7*i], code)
		}
		slices.Sort(out[1_000_000+7*i])
	}
	return out
}

// pairs counts the subjects that have both of two codes.
func (c coded) pairs() map[[2]string]int {
	out := make(map[[2]string]int)
	for _, codes := range c {
		for i, a := range codes {
			for _, b := range codes[i+1:] {
				out[[2]string{a, b}]++
			}
		}
	}
	return out
}

// fill makes a table (person, code, day) of codes and protects it, k = 5 and
// m = 2; day is left unclassified. options are passed to tailor.set_valued.
func (c coded) fill(t *testing.T, owner *pgx.Conn, table, options string) {
	t.Helper()
	mustExec(t, owner, fmt.Sprintf(
		`CREATE TABLE %[1]s (person bigint NOT NULL, code varchar(40), day date DEFAULT '2026-01-01')`,
		table))
	c.insert(t, owner, table)
	mustExec(t, owner, fmt.Sprintf(`CALL tailor.protect('%[1]s', subject => 'person', k => 5);
CALL tailor.classify('%[1]s', 'person', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('%[1]s', column_name => 'code'%[2]s)`, table, options))
}

func (c coded) insert(t *testing.T, owner *pgx.Conn, table string) {
	t.Helper()
	var rows [][]any
	for person, codes := range c {
		for _, code := range codes {
			rows = append(rows, []any{person, code})
		}
	}
	if _, err := owner.CopyFrom(t.Context(), pgx.Identifier{table}, []string{"person", "code"},
		pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
}

// published makes a set-valued table, activates it and starts a proxy that
// knows of it. options are passed to tailor.set_valued.
func (s *testCluster) published(t *testing.T, table string, c coded, options ...string) *testProxy {
	t.Helper()
	owner := s.as(t, "dba")
	c.fill(t, owner, table, strings.Join(options, ""))
	mustExec(t, owner, fmt.Sprintf(`CALL tailor.activate('%s')`, table))
	return s.serve(t)
}

func answersAsATable(t *testing.T, s *testCluster) {
	c := drawCodes(3000)
	p := s.published(t, "asked", c)
	conn := connect(t, p.dsn(s.reader(t)))
	truth := make(map[string]int)
	for _, codes := range c {
		for _, code := range codes {
			truth[code]++
		}
	}
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeSimpleProtocol,
		pgx.QueryExecModeCacheStatement,
	} {
		rows, err := conn.Query(t.Context(),
			"SELECT code, count(DISTINCT person) FROM asked GROUP BY code", mode)
		if err != nil {
			t.Fatal(err)
		}
		var code string
		var n, exact, found int
		if _, err := pgx.ForEachRow(rows, []any{&code, &n}, func() error {
			found++
			if truth[code] == 0 {
				t.Errorf("a code that nobody has: %q", code)
			}
			if truth[code] == n {
				exact++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if found != len(truth) || exact < found*9/10 {
			t.Errorf("%d of %d codes, %d with their exact count; want all, and nine of ten exact", found,
				len(truth), exact)
		}
	}
	if n := one[int](t, conn, "SELECT count(DISTINCT person) FROM asked"); n != len(c) {
		t.Errorf("%d subjects, want %d", n, len(c))
	}
	having := `SELECT count(*) FROM (SELECT person FROM asked GROUP BY person ` +
		`HAVING array_agg(code::text) @> ARRAY['240.00', '241.10']) q`
	lower, upper := 0, 0
	if err := conn.QueryRow(t.Context(), `SELECT lower, upper FROM tailor.case_count('asked', $1)`,
		[]string{"240.00", "241.10"}).Scan(&lower, &upper); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, conn, having); n < lower || n > upper || upper == 0 {
		t.Errorf("%d subjects have both codes, want between %d and %d", n, lower, upper)
	}

	records := p.records(t)
	last := records[len(records)-1]
	if fmt.Sprint(last["relations"]) != "[public.asked]" || last["recoding"] != "disassociated" ||
		last["verdict"] != "released" ||
		last["k"] != 5.0 || last["m"] != 2.0 || last["epoch"] == 0.0 || last["aggregate_risk"] != 0.2 {
		t.Errorf("the record does not tell what was released: %v", last)
	}
	if n := len(records); n < 4 {
		t.Errorf("%d records of five statements", n)
	}
	_, notice, _ := p.psql(t, "researcher", "-c", "SELECT count(*) FROM asked")
	if !strings.Contains(notice, "asked: disassociated") {
		t.Errorf("the notice does not say what was done: %s", notice)
	}
}

func keepsOddCodes(t *testing.T, s *testCluster) {
	c := make(coded)
	for i := range 600 {
		for j, code := range oddities {
			if (i+j)%4 == 0 || i%len(oddities) == j {
				c[i] = append(c[i], code)
			}
		}
	}
	p := s.published(t, "odd", c)
	conn := connect(t, p.dsn(s.reader(t)))
	for _, code := range oddities {
		want := 0
		for _, codes := range c {
			if slices.Contains(codes, code) {
				want++
			}
		}
		got := one[int](t, conn, "SELECT count(DISTINCT person) FROM odd WHERE code = $1", code)
		lower := one[int](t, conn, "SELECT lower FROM tailor.case_count('odd', ARRAY[$1])", code)
		if got != want || lower != want {
			t.Errorf("%q: %d rows and at least %d cases, want %d", code, got, lower, want)
		}
	}
}

func keepsArrays(t *testing.T, s *testCluster) {
	c := drawCodes(1500)
	owner := s.as(t, "dba")
	mustExec(t, owner, `CREATE TABLE profiles (id text PRIMARY KEY, codes text[])`)
	var rows [][]any
	for person, codes := range c {
		rows = append(rows, []any{fmt.Sprintf("person %d", person), codes})
	}
	rows = append(rows, []any{"nothing", nil}, []any{"empty", []string{}})
	if _, err := owner.CopyFrom(t.Context(), pgx.Identifier{"profiles"}, []string{"id", "codes"},
		pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	mustExec(t, owner, `INSERT INTO profiles VALUES ('only NULL', '{NULL}'),
		('twice', '{240.00,240.00}');
CALL tailor.protect('profiles', subject => 'id', k => 5);
CALL tailor.classify('profiles', 'id', 'direct_identifier', action => 'pseudonym');
CALL tailor.set_valued('profiles', column_name => 'codes');
CALL tailor.activate('profiles')`)
	p := s.serve(t)
	conn := connect(t, p.dsn(s.reader(t)))
	if n := one[int](t, conn, "SELECT count(*) FROM profiles"); n != len(c)+1 {
		t.Errorf("%d rows, want one for each of %d subjects with a code", n, len(c)+1)
	}
	want := 1
	for _, codes := range c {
		if slices.Contains(codes, "240.00") {
			want++
		}
	}
	if n := one[int](t, conn,
		"SELECT count(*) FROM profiles WHERE codes @> ARRAY['240.00']"); n != want {
		t.Errorf("%d subjects have the code, want %d", n, want)
	}
	if n := one[int](t, conn, "SELECT count(*) FROM profiles WHERE cardinality(codes) = 0 OR "+
		"array_position(codes, NULL) IS NOT NULL"); n != 0 {
		t.Errorf("%d records are empty or hold NULL", n)
	}
	// A code that stands twice is two codes: (code, first) and (code, second).
	if n := one[int](t, conn,
		"SELECT upper FROM tailor.case_count('profiles', ARRAY['240.00', '240.00'])"); n < 5 {
		t.Errorf("at most %d subjects have the code twice: fewer than k fit", n)
	}
	if n := one[int](t, conn, "SELECT count(*) FROM profiles WHERE id !~ '^-[0-9]+$'"); n != 0 {
		t.Errorf("%d keys of the table were shown", n)
	}
}

func hidesSubjects(t *testing.T, s *testCluster) {
	owner := s.as(t, "dba")
	mustExec(t, owner, `CREATE TABLE counted (person integer, code smallint);
INSERT INTO counted SELECT n, m % 9 FROM generate_series(1, 500) n, generate_series(n, n + n % 4) m;
INSERT INTO counted SELECT n, 1 FROM generate_series(1, 60) n;
CALL tailor.protect('counted', subject => 'person', k => 5);
CALL tailor.set_valued('counted', column_name => 'code');
CALL tailor.activate('counted')`)
	conn := connect(t, s.serve(t).dsn(s.reader(t)))
	refused(t, conn, "42501", "SELECT person FROM counted")
	refused(t, conn, "42501", "SELECT count(DISTINCT person) FROM counted")
	refused(t, conn, "42501", "SELECT code FROM counted ORDER BY person")
	refused(t, conn, "42501", "SELECT code FROM counted ORDER BY ctid")
	rows, err := conn.Query(t.Context(), "SELECT * FROM counted WHERE code BETWEEN 2 AND 4")
	if err != nil {
		t.Fatal(err)
	}
	shown, err := pgx.CollectRows(rows, pgx.RowTo[int16])
	if err != nil {
		t.Fatal(err)
	}
	if want := one[int](t, owner, "SELECT count(*) FROM counted WHERE code BETWEEN 2 AND 4"); len(
		shown) != want {
		t.Errorf("%d rows of one column, want %d", len(shown), want)
	}
	// Whoever has a code in several rows has it several times.
	for _, test := range []struct {
		codes []string
		sql   string
	}{
		{[]string{"1"}, `SELECT count(DISTINCT person) FROM counted WHERE code = 1`},
		{
			[]string{"1", "1"},
			`SELECT count(*) FROM (SELECT FROM counted WHERE code = 1 GROUP BY person ` +
				`HAVING count(*) > 1) q`,
		},
	} {
		var lower, upper int
		if err := conn.QueryRow(t.Context(), `SELECT lower, upper FROM tailor.case_count('counted', $1)`,
			test.codes).Scan(&lower, &upper); err != nil {
			t.Fatal(err)
		}
		if n := one[int](t, owner, test.sql); n < lower || n > upper || upper < k {
			t.Errorf("%d codes: %d subjects, told %d to %d", len(test.codes), n, lower, upper)
		}
	}
	text := one[string](t, conn, "EXPLAIN (TAILOR, FORMAT JSON) SELECT code FROM counted")
	if !strings.Contains(text, "public.counted") {
		t.Errorf("the account does not name the table: %s", text)
	}
}
