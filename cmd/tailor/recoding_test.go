package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// records reads a CSV file without the engine.
func records(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comma = ';'
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sizes counts the rows, or the subjects where a column of the input names
// them, that show the same in the columns of the hierarchies.
func sizes(
	in, out [][]string, paths map[string]map[string][]string, subject string,
) map[string]int {
	who := slices.Index(in[0], subject)
	seen := make(map[string]map[string]bool)
	count := make(map[string]int)
	for i, row := range out[1:] {
		var shown []string
		for c, name := range out[0] {
			if paths[name] != nil {
				shown = append(shown, row[c])
			}
		}
		class := strings.Join(shown, "\x00")
		if who >= 0 {
			if seen[class] == nil {
				seen[class] = make(map[string]bool)
			}
			if seen[class][in[i+1][who]] {
				continue
			}
			seen[class][in[i+1][who]] = true
		}
		count[class]++
	}
	return count
}

// pathsOf reads the arguments --hierarchy COL=FILE: the labels of each value.
func pathsOf(t *testing.T, args []string) map[string]map[string][]string {
	t.Helper()
	paths := make(map[string]map[string][]string)
	for i, a := range args {
		if a != "--hierarchy" {
			continue
		}
		name, path, _ := strings.Cut(args[i+1], "=")
		paths[name] = make(map[string][]string)
		for _, line := range records(t, path) {
			paths[name][line[0]] = line
		}
	}
	return paths
}

// recodeAndCheck runs a recoding and asserts, from the files alone, that every
// class has k subjects, that labels cover their values, that sensitive columns
// are untouched, others gone, and that the report says what the files show.
func recodeAndCheck(
	t *testing.T, k int, subject string, args []string,
) (anonymizeReport, [][]string) {
	t.Helper()
	out, reportFile := filepath.Join(t.TempDir(), "out.csv"), filepath.Join(t.TempDir(), "report.json")
	args = append(slices.Clone(args), "--out", out, "--report", reportFile)
	if code, _, fault := tailor(t, args...); code != exitSuccess {
		t.Fatalf("exit %d: %s", code, fault)
	}
	text, err := os.ReadFile(reportFile)
	if err != nil {
		t.Fatal(err)
	}
	var r anonymizeReport
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"levels": null`)) || r.Optimal || r.LatticeSize != 0 {
		t.Errorf("the report tells of a lattice: %s", text)
	}
	paths := pathsOf(t, args)
	before, after := records(t, args[slices.Index(args, "--csv")+1]), records(t, out)
	var shown []string
	for _, name := range before[0] {
		if paths[name] != nil || slices.Contains(r.Sensitive, name) {
			shown = append(shown, name)
		}
	}
	if len(before) != len(after) || !slices.Equal(shown, after[0]) || r.Rows != len(after)-1 {
		t.Fatalf("%d lines became %d, columns %q", len(before), len(after), after[0])
	}
	for i := range after[1:] {
		for c, name := range after[0] {
			value, label := before[i+1][slices.Index(before[0], name)], after[i+1][c]
			switch {
			case paths[name] == nil && value != label:
				t.Fatalf("row %d: %s, which is sensitive, has changed", i+1, name)
			case paths[name] == nil, label == "*", value == "" && label == "NULL":
			case !slices.Contains(paths[name][value], label):
				t.Fatalf("row %d: %s %q is shown as %q", i+1, name, value, label)
			}
		}
	}
	classes := sizes(before, after, paths, subject)
	smallest := math.MaxInt
	for class, n := range classes {
		smallest = min(smallest, n)
		if n < k {
			t.Errorf("%q is shown by %d subjects", class, n)
		}
	}
	if len(classes) != r.EquivalenceClasses || smallest != r.MinClassSize {
		t.Errorf("%d classes of at least %d, the report says %d of %d", len(classes), smallest,
			r.EquivalenceClasses, r.MinClassSize)
	}
	return r, after
}

// wards is a small table with NULL, a subject of several rows and a sensitive
// column.
func wards(t *testing.T) []string {
	t.Helper()
	return []string{
		"anonymize", "--csv", file(t, "in.csv", `id;ward;age;s
1;A;30;x
2;A;31;x
3;A;30;y
3;A;30;y
4;B;31;x
5;B;;y
6;B;40;x
7;B;41;y
8;C;40;x
`),
		"--sensitive", "s",
		"--hierarchy", "ward=" + file(t, "ward.csv", "A;north;*\nB;north;*\nC;south;*\n"),
		"--hierarchy", "age=" + file(t, "age.csv", "30;30-39;*\n31;30-39;*\n40;40-49;*\n41;40-49;*\n"),
	}
}

func TestLocalAndCellRecodingMeetKInWhatIsWritten(t *testing.T) {
	for _, kind := range []string{"local", "cell"} {
		t.Run(kind, func(t *testing.T) {
			for _, k := range []string{"2", "3", "4"} {
				args := append(wards(t), "--recoding", kind, "--suppression-limit", "1", "--k", k)
				r, _ := recodeAndCheck(t, int(k[0]-'0'), "", args)
				if r.Recoding != kind || len(r.LossPerAttribute) != 2 || !(r.Loss > 0 && r.Loss < 1) {
					t.Errorf("k = %s: %+v", k, r)
				}
				recodeAndCheck(t, int(k[0]-'0'), "id", append(args, "--subject", "id"))
			}
		})
	}
}

func TestLocalRecodingOfAdultLosesLessThanTheFullDomain(t *testing.T) {
	args := append(adultArguments(t), "--recoding", "local", "--aggregate", "arithmetic")
	r, _ := recodeAndCheck(t, 5, "", args)
	// The decision on local recoding has 0.0658 for these nine columns.
	if math.Abs(r.Loss-0.0658) > 0.002 || r.SuppressedRows != 0 || r.SuppressedCells != nil ||
		len(r.LossPerAttribute) != 9 {
		t.Errorf("%+v", r)
	}
	sum := 0.0
	for _, l := range r.LossPerAttribute {
		sum += l
	}
	if math.Abs(sum/9-r.Loss) > 1e-12 {
		t.Errorf("loss %v is not the mean of %v", r.Loss, r.LossPerAttribute)
	}
	geometric, _ := recodeAndCheck(t, 5, "", append(adultArguments(t), "--recoding", "local"))
	if !(geometric.Loss > 0 && geometric.Loss < r.Loss) {
		t.Errorf("geometric loss %v, arithmetic %v", geometric.Loss, r.Loss)
	}
}

func TestCellRecodingOfAdultCountsWhatItWithholds(t *testing.T) {
	args := append(adultArguments(t), "--recoding", "cell", "--aggregate", "arithmetic")
	r, after := recodeAndCheck(t, 5, "", args)
	before := records(t, refdata.Path(t, "arx/adult/adult.csv"))
	cells, rows := 0, 0
	for i, row := range after {
		hidden := 0
		for c, label := range row {
			if label != before[i][c] {
				hidden++
			}
		}
		cells += hidden
		if hidden == len(row) {
			rows++
		}
	}
	if r.SuppressedCells == nil || *r.SuppressedCells != cells || r.SuppressedRows != rows {
		t.Errorf("%d cells and %d rows are withheld, the report says %+v", cells, rows, r)
	}
	if want := float64(cells) / float64(9*r.Rows); math.Abs(r.Loss-want) > 1e-12 {
		t.Errorf("loss %v, want the share of cells withheld, %v", r.Loss, want)
	}
}

func TestModelsOfLocalRecodingHoldInEveryWrittenClass(t *testing.T) {
	args := append(wards(t), "--recoding", "local", "--k", "2", "--require", "distinct_l:s:2",
		"--require", "alpha_k:s:0.8:3", "--require", "highest_risk:0.3")
	r, after := recodeAndCheck(t, 4, "", args)
	if len(r.Models) != 4 {
		t.Errorf("models %v", r.Models)
	}
	values := make(map[string]map[string]bool)
	for _, row := range after[1:] {
		class := row[0] + " " + row[1]
		if values[class] == nil {
			values[class] = make(map[string]bool)
		}
		values[class][row[2]] = true
	}
	for class, v := range values {
		if len(v) < 2 {
			t.Errorf("%q has one sensitive value", class)
		}
	}
	// Models of numbers that the whole table does not meet end in failure.
	code, _, fault := tailor(t, append(wards(t), "--recoding", "local", "--k", "2", "--require",
		"entropy_l:s:2")...)
	if code != exitFailure || strings.Count(fault, "\n") != 1 || !strings.Contains(fault, ";") {
		t.Errorf("exit %d: %s", code, fault)
	}
}

func TestModelsOfLocalRecodingHoldByTheirDefinition(t *testing.T) {
	csv := refdata.Path(t, "arx/adult/adult.csv")
	for model, holds := range map[string]func(s assessSensitive) bool{
		"distinct_l:occupation:6":       func(s assessSensitive) bool { return s.L >= 6 },
		"entropy_l:occupation:5":        func(s assessSensitive) bool { return s.EntropyL >= 5-1e-6 },
		"recursive_cl:occupation:2:3":   func(s assessSensitive) bool { return s.RecursiveC["3"] < 2 },
		"t_closeness:occupation:0.3":    func(s assessSensitive) bool { return s.T <= 0.3+1e-6 },
		"beta_likeness:occupation:2":    func(s assessSensitive) bool { return s.BasicBeta <= 2+1e-6 },
		"delta_disclosure:occupation:4": func(s assessSensitive) bool { return s.StrictDelta <= 4+1e-6 },
		"enhanced_beta_likeness:occupation:2": func(s assessSensitive) bool {
			return s.EnhancedBeta <= 2+1e-6
		},
		"alpha_k:occupation:0.3:8":        func(s assessSensitive) bool { return s.Alpha <= 0.3+1e-6 },
		"ordered_t_closeness:age:0.2":     func(s assessSensitive) bool { return s.T <= 0.2+1e-6 },
		"highest_risk:0.05":               nil,
		"ordered_t_closeness:age:0.00001": func(s assessSensitive) bool { return s.T <= 0.00001+1e-6 },
	} {
		out := filepath.Join(t.TempDir(), "out.csv")
		sensitive := "occupation"
		if strings.Contains(model, ":age:") {
			sensitive = "age"
		}
		args := []string{
			"anonymize", "--csv", csv, "--recoding", "local", "--k", "5", "--require", model, "--sensitive",
			sensitive, "--out", out,
		}
		for _, c := range []string{"education", "sex", "race"} {
			args = append(args, "--hierarchy", c+"="+refdata.Path(t, "arx/adult/adult_hierarchy_"+c+".csv"))
		}
		if code, _, fault := tailor(t, args...); code != exitSuccess {
			t.Errorf("%s: exit %d: %s", model, code, fault)
			continue
		}
		_, stdout, _ := tailor(t, "assess", "--csv", out, "--qid", "education,sex,race", "--sensitive",
			sensitive, "--format", "json")
		var a assessReport
		if err := json.Unmarshal([]byte(stdout), &a); err != nil {
			t.Fatal(err)
		}
		least := map[string]int{"alpha_k:occupation:0.3:8": 8, "highest_risk:0.05": 20}[model]
		if a.K < max(5, least) || holds != nil && !holds(a.Sensitive[0]) {
			t.Errorf("%s does not hold: k = %d, %+v", model, a.K, a.Sensitive)
		}
		if a.Classes < 2 && model != "ordered_t_closeness:age:0.00001" {
			t.Errorf("%s leaves one class", model)
		}
	}
}

func TestRecodingsRefuseWhatTheyDoNotDo(t *testing.T) {
	for claim, flags := range map[string][]string{
		"no search in local":         {"--recoding", "local", "--search", "optimal"},
		"no base partition in local": {"--recoding", "local", "--base-partition", "id"},
		"no time limit in cell":      {"--recoding", "cell", "--time-limit", "1s"},
		"nothing but loss in local":  {"--recoding", "local", "--quality", "nue"},
		"nothing but loss in cell":   {"--recoding", "cell", "--quality", "precision"},
		"no average risk in local":   {"--recoding", "local", "--require", "average_risk:0.2"},
		"no alpha of subjects of several rows": {
			"--recoding", "local", "--require", "alpha_k:s:0.9:2",
			"--subject", "id",
		},
		"no diversity in cell":          {"--recoding", "cell", "--require", "distinct_l:s:2"},
		"no l of 1 in local":            {"--recoding", "local", "--require", "distinct_l:s:1"},
		"no k above the table in local": {"--recoding", "local", "--k", "20"},
		"no k above the table in cell":  {"--recoding", "cell", "--k", "20"},
		"no k of 1 in cell":             {"--recoding", "cell", "--k", "1"},
		"no limit above 1 in local":     {"--recoding", "local", "--suppression-limit", "2"},
	} {
		code, _, fault := tailor(t, append(append(wards(t), "--k", "2"), flags...)...)
		if code != exitUsage || strings.Count(fault, "\n") != 1 || !strings.Contains(fault, ";") {
			t.Errorf("%s: exit %d, %q", claim, code, fault)
		}
	}
	code, _, fault := tailor(t, append(wards(t), "--k", "8", "--recoding", "cell",
		"--suppression-limit", "0")...)
	if code != exitFailure || !strings.Contains(fault, "--suppression-limit") {
		t.Errorf("rows withheld beyond the limit: exit %d, %q", code, fault)
	}
	if code, stdout, _ := tailor(t, "anonymize", "--help"); code != exitSuccess ||
		!strings.Contains(stdout, "is unsafe if fewer than k") {
		t.Errorf("the help does not say when a combination is unsafe: exit %d", code)
	}
}
