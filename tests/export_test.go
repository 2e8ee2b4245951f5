package tests

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/parquet-go/parquet-go"
)

// exported is what an export wrote, by the manifest.
type exported struct {
	Recipient string
	Tables    []struct {
		Table, File, SHA256 string
		Rows                int
		Release             []map[string]any
	}
}

// export runs tailor export and reads the manifest.
func exportTo(t *testing.T, dir string, args ...string) exported {
	t.Helper()
	_, errs, code := tailor(t, append([]string{"export", "--out", dir}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	document, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m exported
	if err := json.Unmarshal(document, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAnExportHoldsWhatReadersSee exports in all formats and reads the files back: CSV and
// SQL by PostgreSQL, Parquet by its library.
func TestAnExportHoldsWhatReadersSee(t *testing.T) {
	s, _ := ownStand(t, "exported")
	p := s.serve(t)
	user := s.reader(t)
	reader := connect(t, p.dsn(user))
	direct := s.superuser(t)
	answeredSoon(t, reader, "SELECT age FROM patients")
	const list = "row(birth_date, age, sex, race, zip, ward, diagnosis, cost)::text"
	want := rowsOf(t, reader, "SELECT "+list+" FROM patients ORDER BY 1")
	if len(want) == 0 {
		t.Fatal("nothing is shown")
	}
	same := func(t *testing.T, got []string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%d rows, not the %d that are shown; first %.200q, want %.200q", len(got), len(want),
				got[:min(1, len(got))], want[0])
		}
	}
	args := []string{
		"--dsn", p.dsn(user), "--table", "patients", "--recipient", "University of X",
		"--format",
	}
	t.Run("csv", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		m := exportTo(t, dir, append(args, "csv", "--labels")...)
		if len(m.Tables) != 1 || m.Tables[0].Rows != len(want) || m.Recipient != "University of X" ||
			len(m.Tables[0].Release) != 1 {
			t.Errorf("manifest: %+v", m)
		}
		file, err := os.ReadFile(filepath.Join(dir, m.Tables[0].File))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(file)
		if hex.EncodeToString(sum[:]) != m.Tables[0].SHA256 {
			t.Error("the checksum is another")
		}
		check := exec.Command("sha256sum", "--check", "--strict", "SHA256SUMS")
		check.Dir = dir
		if output, err := check.CombinedOutput(); err != nil {
			t.Errorf("sha256sum: %v %s", err, output)
		}
		lines, err := csv.NewReader(strings.NewReader(string(file))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		head := strings.Join(lines[0], ",")
		if head != "birth_date,birth_date_label,age,age_label,sex,sex_label,race,race_label,"+
			"zip,zip_label,ward,diagnosis,cost,token" {
			t.Errorf("columns %s", head)
		}
		dictionary, err := os.ReadFile(filepath.Join(dir, "dictionary.csv"))
		if err != nil || !strings.Contains(string(dictionary),
			"public.patients,age,integer,quasi_identifier,age,raked,") {
			t.Errorf("dictionary: %v %s", err, dictionary)
		}
		for _, identifying := range []string{"name", "patient_id"} {
			if strings.Contains(string(dictionary), ","+identifying+",") {
				t.Errorf("column %s is exported", identifying)
			}
		}
	})
	t.Run("sql", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "sql")...)
		mustExec(t, direct, "DROP DATABASE IF EXISTS exported_back")
		mustExec(t, direct, "CREATE DATABASE exported_back")
		t.Cleanup(func() {
			_, _ = s.superuser(t).Exec(t.Context(), "DROP DATABASE exported_back WITH (FORCE)")
		})
		load := exec.Command("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", filepath.Join(dir,
			"public.patients.sql"), s.cluster.SuperuserDSN("exported_back"))
		if output, err := load.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, output)
		}
		same(t, rowsOf(t, connect(t, s.cluster.SuperuserDSN("exported_back")),
			"SELECT "+list+" FROM patients ORDER BY 1"))
	})
	t.Run("parquet", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		exportTo(t, dir, append(args, "parquet")...)
		rows, err := parquet.ReadFile[struct {
			BirthDate *int32  `parquet:"birth_date,optional,date"`
			Age       *int32  `parquet:"age,optional"`
			Sex       *string `parquet:"sex,optional"`
			Race      *string `parquet:"race,optional"`
			Zip       *string `parquet:"zip,optional"`
			Ward      *string `parquet:"ward,optional"`
			Diagnosis *string `parquet:"diagnosis,optional"`
			Cost      *int64  `parquet:"cost,optional,decimal(2:10)"`
		}](filepath.Join(dir, "public.patients.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		text := func(s *string) string {
			switch {
			case s == nil:
				return ""
			case strings.ContainsAny(*s, " ,()\"\\") || *s == "":
				return `"` + *s + `"`
			}
			return *s
		}
		for _, r := range rows {
			day, age, cost := "", "", ""
			if r.BirthDate != nil {
				day = time.Unix(int64(*r.BirthDate)*24*60*60, 0).UTC().Format("2006-01-02")
			}
			if r.Age != nil {
				age = fmt.Sprint(*r.Age)
			}
			if r.Cost != nil {
				cost = fmt.Sprintf("%d.%02d", *r.Cost/100, *r.Cost%100)
			}
			got = append(got, fmt.Sprintf("(%s,%s,%s,%s,%s,%s,%s,%s)", day, age, text(r.Sex), text(r.Race),
				text(r.Zip), text(r.Ward), text(r.Diagnosis), cost))
		}
		sorted := slices.Clone(want)
		sort.Strings(sorted)
		sort.Strings(got)
		want := sorted
		if !slices.Equal(got, want) {
			t.Errorf("%d rows, not the %d that are shown; first %.200q, want %.200q", len(got), len(want),
				got[:min(1, len(got))], want[0])
		}
	})
	waitFor(t, func() bool { // who got it is in the audit log
		return one[int](t, direct, `SELECT count(*) FROM tailor.audit
			WHERE principal = $1 AND verdict = 'released' AND sql LIKE '%"for University of X"%'
				AND rows = $2`, user, len(want)) >= 3
	})
}

// TestAnExportWritesNothingOver and refuses what cannot be exported, in one line.
func TestAnExportWritesNothingOver(t *testing.T) {
	p := shared.serve(t)
	user := shared.reader(t)
	answeredSoon(t, connect(t, p.dsn(user)), "SELECT age FROM patients")
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []struct {
		code int
		says string
		args []string
	}{
		{1, "there are files in", []string{"--dsn", p.dsn(user), "--out", dir}},
		{1, "shown no table nowhere", []string{
			"--dsn", p.dsn(user), "--table", "nowhere", "--out",
			filepath.Join(dir, "a"),
		}},
		{
			2, "--format is csv, sql or parquet",
			[]string{"--dsn", p.dsn(user), "--format", "xls", "--out", filepath.Join(dir, "b")},
		},
		{2, "--out is missing", []string{"--dsn", p.dsn(user)}},
		{2, "--dsn is missing", []string{"--out", filepath.Join(dir, "c")}},
		{1, "connect as a reader", []string{"--dsn", p.dsn("dba"), "--out", filepath.Join(dir, "d")}},
	} {
		_, errs, code := tailor(t, append([]string{"export"}, refused.args...)...)
		if code != refused.code || !strings.Contains(errs, refused.says) {
			t.Errorf("%v: exit code %d, %q; want %d, %q", refused.args, code, errs, refused.code,
				refused.says)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*/*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q %v", left, err)
	}
}

// TestAnExportOfAllTablesLeavesNoneOut: while the release of one is being made, there is no
// export but of tables that are named.
func TestAnExportOfAllTablesLeavesNoneOut(t *testing.T) {
	s, admin := ownStand(t, "exportall")
	p := s.serve(t, "--release-wait", "1ms")
	name := s.reader(t)
	reader := connect(t, p.dsn(name))
	for _, table := range []string{"diagnoses", "patients", "visits"} {
		answeredSoon(t, reader, "SELECT FROM "+table)
	}
	mustExec(t, admin, largeTable, pgx.QueryExecModeSimpleProtocol)
	waitFor(t, func() bool {
		_, err := reader.Exec(t.Context(), "SELECT FROM large LIMIT 0")
		refusal, is := asRefusal(err)
		return is && refusal.Code == "57P03"
	})
	dir := filepath.Join(t.TempDir(), "out")
	_, says, code := tailor(t, "export", "--dsn", p.dsn(name), "--out", dir)
	if code != 1 || !strings.Contains(says, `table "large" is being prepared`) ||
		len(filesIn(t, dir)) > 0 {
		t.Fatalf("exit code %d: %s", code, says)
	}
	named := exportTo(t, filepath.Join(t.TempDir(), "named"), "--dsn", p.dsn(name), "--table",
		"patients")
	if len(named.Tables) != 1 {
		t.Errorf("by name: %+v", named.Tables)
	}
	waitFor(t, func() bool {
		_, _, code = tailor(t, "export", "--dsn", p.dsn(name), "--out", dir)
		return code == 0
	})
	files := filesIn(t, dir)
	if !slices.Contains(files, "public.large.csv") || !slices.Contains(files, "public.patients.csv") {
		t.Errorf("exported: %q", files)
	}
}
