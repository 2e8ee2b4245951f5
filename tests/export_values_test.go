package tests

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
)

// oddValues are of types that have values which other formats lack.
const oddValues = `
CREATE TABLE odd (id integer PRIMARY KEY, age integer, age_label text, "%[1]s" integer,
    narrow real, wide float8, amount numeric(10, 2), plain numeric,
    day date, moment timestamp, instant timestamptz, note text);
INSERT INTO odd SELECT g, 20 + g / 100, 'none', 20 + g / 100, (ARRAY['NaN', 'Infinity',
    '-Infinity', '1.5'])[1 + g % 4]::real,
    (ARRAY['NaN', '-Infinity', 'Infinity', '-0.1'])[1 + g % 4]::float8, (ARRAY['NaN', '-0.05',
    '12345678.9'])[1 + g % 3]::numeric(10, 2),
    (ARRAY['NaN', '1e-20', '7'])[1 + g % 3]::numeric,
    (ARRAY['infinity', '-infinity', '4713-01-01 BC', '0001-12-31 BC', '0001-01-01',
    '12024-02-29', '290000-12-31'])[1 + g % 7]::date,
    (ARRAY['infinity', '-infinity', '0044-03-15 12:00:00.000001 BC', '12024-02-29 23:59:59',
    '294276-12-31'])[1 + g % 5]::timestamp,
    (ARRAY['infinity', '-infinity', '0005-02-29 12:00:00.5 BC', '2024-02-29 23:59:59',
    '1969-12-31 23:59:59.999999'])[1 + g % 5]::timestamptz,
    (ARRAY['', NULL, '\N', E'two\nlines, "quoted"\\'])[1 + g % 4]
    FROM generate_series(1, 400) g;
CALL tailor.define_hierarchy('odd_age', 'interval',
    '{"widths": [5, 10], "lower": 0, "upper": 119}');
CALL tailor.protect('public.odd', subject => 'id', k => 5);
CALL tailor.classify('public.odd', 'id', 'direct_identifier');
CALL tailor.classify('public.odd', 'age', 'quasi_identifier', hierarchy => 'odd_age');
CALL tailor.classify('public.odd', '%[1]s', 'quasi_identifier', hierarchy => 'odd_age');
CALL tailor.activate('public.odd');
`

// longColumn is as long as a name may be, with characters of two bytes.
var longColumn = "a" + strings.Repeat("ä", 31)

var oddColumns = []string{"narrow", "wide", "amount", "plain", "day", "moment", "instant", "note"}

// oddStand serves a table with odd values to a reader.
func oddStand(
	t *testing.T, name string, columns ...string,
) (s *testCluster, p *testProxy, user string) {
	t.Helper()
	s, admin := ownStand(t, name)
	policy := strings.ReplaceAll(oddValues, "%[1]s", longColumn)
	for _, c := range columns {
		policy = strings.Replace(policy, "CALL tailor.activate",
			"CALL tailor.classify('public.odd', '"+c+"', 'non_sensitive');\nCALL tailor.activate", 1)
	}
	mustExec(t, admin, policy)
	p, user = s.serve(t), s.reader(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM odd")
	return s, p, user
}

// TestAnExportHoldsValuesThatOtherFormatsLack: NaN, infinity and years before Christ or behind
// 9999 come back from CSV and SQL as they were. Parquet holds them where it can; what it has
// no value for is NULL there, and counted.
func TestAnExportHoldsValuesThatOtherFormatsLack(t *testing.T) {
	s, p, user := oddStand(t, "oddvalues", oddColumns...)
	direct, reader := s.superuser(t), connect(t, p.dsn(user))
	list := "row(" + strings.Join(oddColumns, ", ") + ")::text"
	want := rowsOf(t, reader, "SELECT "+list+" FROM odd ORDER BY 1")
	if len(want) != 400 {
		t.Fatalf("%d rows are shown", len(want))
	}
	mustExec(t, direct, "CREATE DATABASE odd_back")
	back := connect(t, s.cluster.SuperuserDSN("odd_back"))
	load := func(t *testing.T, args ...string) {
		t.Helper()
		command := exec.Command("psql", append([]string{
			"-X", "-q", "-v", "ON_ERROR_STOP=1",
			s.cluster.SuperuserDSN("odd_back"),
		}, args...)...)
		command.Env = append(os.Environ(), "PGCLIENTENCODING=LATIN1")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, output)
		}
	}
	same := func(t *testing.T) {
		t.Helper()
		if got := rowsOf(t, back, "SELECT "+list+" FROM odd ORDER BY 1"); !slices.Equal(got, want) {
			t.Errorf("%d rows, not the %d that are shown: %.300q", len(got), len(want), got)
		}
	}
	args := []string{"--dsn", p.dsn(user), "--table", "odd", "--format"}
	t.Run("sql", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "sql")...)
		load(t, "-f", filepath.Join(dir, "public.odd.sql"))
		same(t)
	})
	t.Run("csv", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "csv")...)
		load(t, "-c", "TRUNCATE odd", "-c", `\copy odd FROM `+filepath.Join(dir, "public.odd.csv")+
			` CSV HEADER ENCODING 'UTF8'`)
		same(t)
	})
	t.Run("labels", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "csv", "--labels")...)
		file, err := os.ReadFile(filepath.Join(dir, "public.odd.csv"))
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(string(file), "\n")
		if want := "age,age_label," + longColumn + ",a" + strings.Repeat("ä", 28) +
			"_label,narrow,"; !strings.HasPrefix(head, want) {
			t.Errorf("columns %s, want %s", head, want)
		}
		mustExec(t, back, "DROP TABLE odd")
		dir = filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "sql", "--labels")...)
		load(t, "-f", filepath.Join(dir, "public.odd.sql"))
		same(t)
	})
	t.Run("parquet", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		stdout, stderr, code := tailor(t, append([]string{"export", "--out", dir},
			append(args, "parquet")...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s %s", code, stdout, stderr)
		}
		type line struct {
			Narrow  *float32 `parquet:"narrow,optional"`
			Wide    *float64 `parquet:"wide,optional"`
			Amount  *int64   `parquet:"amount,optional,decimal(2:10)"`
			Plain   *string  `parquet:"plain,optional"`
			Day     *int32   `parquet:"day,optional,date"`
			Moment  *int64   `parquet:"moment,optional,timestamp(microsecond:local)"`
			Instant *int64   `parquet:"instant,optional,timestamp(microsecond)"`
			Note    *string  `parquet:"note,optional"`
		}
		rows, err := parquet.ReadFile[line](filepath.Join(dir, "public.odd.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, back, `CREATE TABLE from_parquet (narrow real, wide float8, amount bigint, `+
			`plain text, day bigint, moment bigint, instant bigint, note text)`)
		source := make([][]any, len(rows))
		for i, r := range rows {
			source[i] = []any{r.Narrow, r.Wide, r.Amount, r.Plain, r.Day, r.Moment, r.Instant, r.Note}
		}
		if _, err := back.CopyFrom(t.Context(), pgx.Identifier{"from_parquet"},
			[]string{"narrow", "wide", "amount", "plain", "day", "moment", "instant", "note"},
			pgx.CopyFromRows(source)); err != nil {
			t.Fatal(err)
		}
		got := rowsOf(t, back,
			`SELECT row(narrow, wide, amount, plain, day, moment, instant, note)::text FROM from_parquet `+
				`ORDER BY 1`)
		const micro = `CASE WHEN isfinite(%[1]s) AND %[1]s < '294247-01-01' ` +
			`THEN (extract(epoch FROM %[1]s) * 1000000)::bigint END`
		held := rowsOf(t, back,
			`SELECT row(narrow, wide, (nullif(amount, 'NaN') * 100)::bigint, plain, CASE
				WHEN isfinite(day) THEN day - date '1970-01-01' END,
			`+strings.ReplaceAll(micro, "%[1]s", "moment")+`, `+
				strings.ReplaceAll(micro, "%[1]s", "instant")+`, note)::text FROM odd ORDER BY 1`)
		if !slices.Equal(got, held) {
			for i := range min(len(got), len(held)) {
				if got[i] != held[i] {
					t.Errorf("row %d is %s, want %s", i, got[i], held[i])
					break
				}
			}
			t.Errorf("%d rows, want %d", len(got), len(held))
		}
		var m struct {
			Tables []struct {
				Columns []struct {
					Name string
					Null int `json:"null_in_parquet"`
				}
			}
		}
		file, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
		if err == nil {
			err = json.Unmarshal(file, &m)
		}
		if err != nil {
			t.Fatal(err)
		}
		null := map[string]int{}
		for _, c := range m.Tables[0].Columns {
			null[c.Name] = c.Null
		}
		for column, lacks := range map[string]string{
			"narrow": "false", "wide": "false", "plain": "false", "note": "false",
			"amount": "amount = 'NaN'", "day": "NOT isfinite(day)",
			"moment": "NOT isfinite(moment) OR moment >= '294247-01-01'", "instant": "NOT isfinite(instant)",
		} {
			if n := one[int](t, back, "SELECT count(*) FROM odd WHERE "+lacks); n != null[column] {
				t.Errorf("column %s: %d values are counted as NULL, want %d", column, null[column], n)
			}
			if told := strings.Contains(stderr, "column "+column+" "); told != (null[column] > 0) {
				t.Errorf("column %s: the command says %q", column, stderr)
			}
		}
	})
}

// TestLabelsBesideAColumnOfTheirNameAreRefused before anything is written.
func TestLabelsBesideAColumnOfTheirNameAreRefused(t *testing.T) {
	_, p, user := oddStand(t, "oddlabels", "age_label")
	for _, format := range []string{"csv", "sql", "parquet"} {
		dir := filepath.Join(t.TempDir(), "out")
		args := []string{"export", "--dsn", p.dsn(user), "--out", dir, "--format", format}
		_, stderr, code := tailor(t, append(args, "--labels")...)
		if code != 1 || !strings.Contains(stderr, `"age_label"`) ||
			!strings.Contains(stderr, "--labels") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d: %s", format, code, stderr)
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: the folder is there: %v", format, err)
		}
		if _, stderr, code = tailor(t, args...); code != 0 {
			t.Errorf("%s, without labels: exit code %d: %s", format, code, stderr)
		}
	}
}
