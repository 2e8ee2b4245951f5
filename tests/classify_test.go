package tests

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// thesisData is what is compared of the reference figures.
type thesisData struct {
	Rows   int
	Stage1 struct {
		Input   string
		Direct  []string `json:"direct_identifiers"`
		Alpha   float64
		Beta    float64
		Order   []string `json:"order_by_risk_desc_stable_in_column_order"`
		Figures map[string]struct {
			Risk     float64 `json:"risk_percent"`
			Distinct int     `json:"distinct_values"`
			Class    string
		} `json:"attributes"`
		Excluded map[string]float64 `json:"excluded_missing_gt_85"`
	} `json:"stage_1"`
	Stage2 struct {
		Original   string
		QIDs, SAs  []string
		Optimal    int `json:"optimal_dimension_by_the_documented_rule"`
		Dimensions []struct {
			File    string
			K       int            `json:"k_after"`
			T       float64        `json:"t_after"`
			Gain    int            `json:"privacy_gain"`
			Percent float64        `json:"nue_percent"`
			Inverse float64        `json:"inverse_nue_percent"`
			L       map[string]int `json:"l_after"`
		}
	} `json:"stage_2"`
}

func thesis(t *testing.T) map[string]thesisData {
	t.Helper()
	raw, err := os.ReadFile(refdata.Path(t, "thesis/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Datasets map[string]thesisData }
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatal(err)
	}
	return e.Datasets
}

func readRecords(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(refdata.Path(t, "thesis/"+name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// loadRecords makes a table of texts in which an empty cell is NULL.
func loadRecords(t *testing.T, conn *pgx.Conn, table string, records [][]string) {
	t.Helper()
	var columns []string
	for _, c := range records[0] {
		columns = append(columns, pgx.Identifier{c}.Sanitize()+" text")
	}
	mustExec(t, conn, fmt.Sprintf(`CREATE TABLE %s (%s)`, table, strings.Join(columns, ", ")))
	t.Cleanup(func() { dropAfter(t, `DROP TABLE `+table) })
	var rows [][]any
	for _, r := range records[1:] {
		row := make([]any, len(r))
		for i, cell := range r {
			if cell != "" {
				row[i] = cell
			}
		}
		rows = append(rows, row)
	}
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{table}, records[0],
		pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
}

func TestClassifyGivesTheThesisFiguresOfFilesAndTables(t *testing.T) {
	for name, data := range thesis(t) {
		table := "thesis_" + name
		loadRecords(t, shared.superuser(t), table, readRecords(t, data.Stage1.Input))
		together := make(map[string]string) // what columns tell together, from a file and from a table
		for from, args := range map[string][]string{
			"file":  {"--csv", refdata.Path(t, "thesis/"+data.Stage1.Input)},
			"table": {"--dsn", shared.cluster.SuperuserDSN("hospital"), "--table", table},
		} {
			t.Run(name+" rows of a "+from, func(t *testing.T) {
				want := data.Stage1
				args := append([]string{
					"classify", "--format", "json", "--alpha", fmt.Sprint(want.Alpha),
					"--beta", fmt.Sprint(want.Beta), "--direct", strings.Join(want.Direct, ","),
				}, args...)
				code, stdout, stderr := tool(t, args...)
				if code != 0 {
					t.Fatal(stderr)
				}
				var report struct {
					Rows    int
					Caveat  string
					Sets    json.RawMessage `json:"singling_out"`
					Depend  json.RawMessage `json:"dependencies"`
					Columns []struct {
						Name     string
						Distinct int     `json:"distinct_values"`
						Risk     float64 `json:"risk_percent"`
						ByRisk   string  `json:"class_by_risk"`
					}
				}
				if err := json.Unmarshal([]byte(stdout), &report); err != nil {
					t.Fatal(err)
				}
				together[from] = string(report.Sets) + string(report.Depend)
				var order []string
				for _, c := range report.Columns {
					_, excluded := want.Excluded[c.Name]
					if slices.Contains(want.Direct, c.Name) || excluded {
						if c.ByRisk != "" {
							t.Errorf("%s has the class %s", c.Name, c.ByRisk)
						}
						continue
					}
					order = append(order, c.Name)
					if w := want.Figures[c.Name]; c.Risk != w.Risk || c.Distinct != w.Distinct ||
						c.ByRisk != w.Class {
						t.Errorf("%s: %v %%, %d values, %s; want %v, %d, %s", c.Name, c.Risk, c.Distinct, c.ByRisk,
							w.Risk, w.Distinct, w.Class)
					}
				}
				if !slices.Equal(order, want.Order) || report.Rows != data.Rows ||
					!strings.Contains(report.Caveat, "arbitrary") {
					t.Errorf("order %v, %d rows, %q", order, report.Rows, report.Caveat)
				}
			})
		}
		if together["file"] != together["table"] || !strings.Contains(together["table"],
			"rows_alone_percent") {
			t.Errorf("%s rows: of a table, columns tell together %s, of its file %s", name,
				together["table"], together["file"])
		}
	}
}

// hierarchyBetween writes the hierarchy by which one file became another.
func hierarchyBetween(t *testing.T, original, after [][]string, column string) string {
	t.Helper()
	from, to := slices.Index(original[0], column), slices.Index(after[0], column)
	labels := make(map[string]string)
	for i := range original[1:] {
		labels[original[i+1][from]] = after[i+1][to]
	}
	path := filepath.Join(t.TempDir(), column+".csv")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := csv.NewWriter(f)
	for value, label := range labels {
		if err := w.Write([]string{value, label}); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestClassifyReportsTheDimensionsOfTheThesis(t *testing.T) {
	for name, data := range thesis(t) {
		t.Run(name, func(t *testing.T) {
			want := data.Stage2
			original := readRecords(t, want.Original)
			args := []string{
				"classify", "--dimensions", "--format", "json", "--csv",
				refdata.Path(t, "thesis/"+want.Original),
				"--qid", strings.Join(want.QIDs, ","), "--sensitive", strings.Join(want.SAs, ","),
			}
			for i, column := range want.QIDs {
				after := readRecords(t, filepath.Dir(want.Original)+"/"+want.Dimensions[i].File)
				args = append(args, "--hierarchy", column+"="+hierarchyBetween(t, original, after, column))
			}
			code, stdout, stderr := tool(t, args...)
			if code != 0 {
				t.Fatal(stderr)
			}
			var report struct {
				Chosen     int `json:"chosen_dimension"`
				Dimensions []struct {
					Columns []string `json:"de_identified"`
					K       int
					Gain    int `json:"privacy_gain"`
					L       []int
					T       float64 `json:"t_worst"`
					Percent float64 `json:"nue_percent"`
					Inverse float64 `json:"inverse_nue_percent"`
				}
			}
			if err := json.Unmarshal([]byte(stdout), &report); err != nil {
				t.Fatal(err)
			}
			if report.Chosen != want.Optimal || len(report.Dimensions) != len(want.QIDs) {
				t.Errorf("dimension %d of %d chosen, want %d", report.Chosen, len(report.Dimensions),
					want.Optimal)
			}
			for i, d := range report.Dimensions {
				w := want.Dimensions[i]
				if !slices.Equal(d.Columns, want.QIDs[:i+1]) || d.K != w.K || d.Gain != w.Gain ||
					d.Percent != w.Percent || d.Inverse != w.Inverse || math.Abs(d.T-w.T) > 1e-9 {
					t.Errorf("dimension %d: %+v, want %+v", i+1, d, w)
				}
				for s, column := range want.SAs {
					if d.L[s] != w.L[column] {
						t.Errorf("dimension %d: l of %s is %d, want %d", i+1, column, d.L[s], w.L[column])
					}
				}
			}
		})
	}
}

func TestADraftIsAPolicyWithoutFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "draft.yaml")
	dsn := shared.cluster.SuperuserDSN("hospital")
	if code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", "patients", "--write",
		file); code != 0 {
		t.Fatal(stderr)
	}
	if code, _, stderr := tool(t, "policy", "lint", file); code != 0 {
		t.Error(stderr)
	}
	if code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, file); code != 0 ||
		strings.Contains(stdout, "!") {
		t.Errorf("%s%s", stdout, stderr)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for column, class := range map[string]string{
		"id": "direct_identifier", "name": "direct_identifier", "ssn": "direct_identifier",
		"token":      "direct_identifier",
		"birth_date": "quasi_identifier", "age": "quasi_identifier", "sex": "quasi_identifier",
		"race": "quasi_identifier",
		"zip":  "quasi_identifier", "diagnosis": "sensitive",
	} {
		if !strings.Contains(string(raw), fmt.Sprintf("\n      %s: {class: %s", column, class)) {
			t.Errorf("%s is not suggested as %s:\n%s", column, class, raw)
		}
	}
	if !strings.Contains(string(raw), "\n  race: {type: table, paths: [[") {
		t.Errorf("no groups of race are proposed:\n%s", raw)
	}
	// A draft that somebody has worked on is not overwritten.
	if code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", "patients", "--write",
		file); code != 1 || !strings.Contains(stderr, "exists") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestADraftHasAPlaceForMissingAndEmptyTexts(t *testing.T) {
	conn := shared.superuser(t)
	mustExec(t, conn, `CREATE TABLE moods (id integer PRIMARY KEY, mood text, colour text, `+
		`nation text)`)
	t.Cleanup(func() { dropAfter(t, `DROP TABLE moods`) })
	mustExec(t, conn, `INSERT INTO moods SELECT n, (ARRAY['low', 'medium', 'high', 'very high',
		NULL])[1 + n % 5],
		(ARRAY['red', 'green', 'blue', 'grey', ''])[1 + n / 7 % 5],
		(ARRAY['Chad', 'Cuba', 'Peru', 'Iran', 'Fiji', NULL])[1 + n / 3 % 6]
		FROM generate_series(1, 2000) n`)
	file := filepath.Join(t.TempDir(), "draft.yaml")
	dsn := shared.cluster.SuperuserDSN("hospital")
	if code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", "moods", "--write",
		file); code != 0 {
		t.Fatal(stderr)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"\n  mood: {type: table, paths: [[low, ", "\n  colour: {type: prefix, keep: []}",
		"[Germany, Western Europe, Europe]",
	} {
		if !strings.Contains(string(raw), line) {
			t.Errorf("the draft lacks %q:\n%s", line, raw)
		}
	}
	if code, stdout, stderr := tool(t, "policy", "plan", "--dsn", dsn, file); code != 0 ||
		strings.Contains(stdout, "!") {
		t.Errorf("%s%s", stdout, stderr)
	}
}

// TestDraftsCountThePeopleThatRowsAreAbout has several rows of one person, by a foreign key: the
// key of the table counts rows. A list that many rows refer to is nobody.
func TestDraftsCountThePeopleThatRowsAreAbout(t *testing.T) {
	conn := shared.superuser(t)
	mustExec(t, conn, `CREATE TABLE persons (id integer PRIMARY KEY, born date);
		CREATE TABLE places (id integer PRIMARY KEY);
		INSERT INTO persons SELECT n, DATE '1950-01-01' + n FROM generate_series(1, 800) n;
		INSERT INTO places SELECT generate_series(1, 4);
		CREATE TABLE stays (id integer PRIMARY KEY, person integer NOT NULL REFERENCES persons,
			place integer NOT NULL REFERENCES places, fee integer);
		CREATE TABLE beds (id integer PRIMARY KEY, place integer NOT NULL REFERENCES places);
		INSERT INTO stays SELECT n, 1 + n % 800, 1 + n % 4, n % 90 FROM generate_series(1, 2000) n;
		INSERT INTO beds SELECT n, 1 + n % 4 FROM generate_series(1, 2000) n`)
	t.Cleanup(func() { dropAfter(t, `DROP TABLE stays, beds, places, persons`) })
	dsn := shared.cluster.SuperuserDSN("hospital")
	for table, subject := range map[string]string{"stays": "person", "beds": "id", "persons": "id"} {
		file := filepath.Join(t.TempDir(), table+".yaml")
		code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", table, "--write", file)
		if code != 0 {
			t.Fatal(stderr)
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "subject: "+subject+"\n") ||
			strings.Contains(string(raw), "refers to public.persons") != (table == "stays") {
			t.Errorf("the draft of %s:\n%s", table, raw)
		}
	}
}

func TestClassifyRefusesWrongUsage(t *testing.T) {
	dsn := shared.cluster.SuperuserDSN("hospital")
	for _, c := range []struct {
		claim, fault string
		args         []string
	}{
		{"nothing to look at", "--table is missing", nil},
		{"a file and a table", "does not go with", []string{"--csv", "a.csv", "--dsn", dsn}},
		{"no database", "--dsn is missing", []string{"--table", "patients"}},
		{"thresholds the wrong way round", "0 < beta < alpha", []string{
			"--csv", "a.csv", "--alpha", "1",
			"--beta", "10",
		}},
		{"a threshold of 0", "0 < beta < alpha", []string{"--csv", "a.csv", "--beta", "0"}},
		{"an unknown format", "unknown format", []string{"--csv", "a.csv", "--format", "xml"}},
		{"an unknown direct identifier", "there is no column", []string{
			"--dsn", dsn, "--table",
			"patients", "--direct", "nickname",
		}},
		{"dimensions without a hierarchy", "has no hierarchy", []string{
			"--dsn", dsn, "--table",
			"patients", "--dimensions", "--qid", "age", "--sensitive", "diagnosis",
		}},
		{"a hierarchy without dimensions", "goes with --dimensions", []string{
			"--csv", "a.csv",
			"--hierarchy", "a=b",
		}},
		{"a level of 0", "wants COL=LEVEL", []string{"--csv", "a.csv", "--level", "a=0"}},
	} {
		t.Run(c.claim, func(t *testing.T) {
			if code, stdout, stderr := tool(t, append([]string{"classify"}, c.args...)...); code != 2 ||
				stdout != "" || !strings.Contains(stderr, c.fault) {
				t.Errorf("exit %d, %q, %q", code, stdout, stderr)
			}
		})
	}
	if code, _, stderr := tool(t, "classify", "--dsn", dsn, "--table", "nobody"); code != 1 ||
		!strings.Contains(stderr, "no such table") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

// TestClassifyTakesTablesWithoutNumbers: of no rows, or of NULL alone, there are no quantiles.
func TestClassifyTakesTablesWithoutNumbers(t *testing.T) {
	makeDatabase(t, "without_numbers", `CREATE TABLE nobody_yet (id int PRIMARY KEY, age int);
		CREATE TABLE unknown (id int PRIMARY KEY, age int);
		INSERT INTO unknown SELECT n FROM generate_series(1, 100) n`)
	dsn := shared.cluster.SuperuserDSN("without_numbers")
	for _, table := range []string{"nobody_yet", "unknown"} {
		if code, stdout, stderr := tool(t, "classify", "--dsn", dsn, "--table", table); code != 0 {
			t.Errorf("%s: exit %d: %s%s", table, code, stdout, stderr)
		}
	}
}

// TestClassifySamplesLargeTablesAndViews: of more than a million rows about a million are read.
func TestClassifySamplesLargeTablesAndViews(t *testing.T) {
	makeDatabase(t, "classify_large", `
		CREATE TABLE large AS SELECT n % 50 AS age FROM generate_series(1, 1100000) n;
		CREATE VIEW seen AS SELECT * FROM large`)
	for _, name := range []string{"large", "seen"} {
		code, stdout, stderr := tool(t, "classify", "--dsn",
			shared.cluster.SuperuserDSN("classify_large"), "--table", name)
		if code != 0 || !strings.Contains(stdout, "1100000 rows, measured on a random sample of 91 %") {
			t.Errorf("%s: exit %d, %s%s", name, code, stdout, stderr)
		}
	}
}
