package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// tailor runs a command as the shell would.
func tailor(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, fault bytes.Buffer
	code = dispatch(context.Background(), args, strings.NewReader(""), &out, &fault)
	return code, out.String(), fault.String()
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func adultArguments(t *testing.T) []string {
	args := []string{
		"anonymize", "--csv", refdata.Path(t, "arx/adult/adult.csv"), "--delimiter", ";",
		"--k", "5",
	}
	for _, c := range []string{
		"salary-class", "age", "race", "marital-status", "education",
		"native-country", "workclass", "occupation", "sex",
	} {
		args = append(args, "--hierarchy", c+"="+refdata.Path(t, "arx/adult/adult_hierarchy_"+c+".csv"))
	}
	return args
}

func TestAnonymizeWritesWhatItReports(t *testing.T) {
	out, report := filepath.Join(t.TempDir(), "out.csv"), filepath.Join(t.TempDir(), "report.json")
	code, _, fault := tailor(t, append(adultArguments(t), "--out", out, "--report", report)...)
	if code != exitSuccess {
		t.Fatalf("exit %d: %s", code, fault)
	}
	var r anonymizeReport
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Levels, []int{0, 3, 0, 0, 2, 1, 1, 2, 0}) ||
		math.Abs(r.Loss-0.2419323650662908) > 1e-6 ||
		r.SuppressedRows != 1346 || r.EquivalenceClasses != 397 || r.MinClassSize != 5 || !r.Optimal ||
		r.LatticeSize != 12960 {
		t.Errorf("report %+v", r)
	}
	for _, key := range []string{
		"rows", "attributes", "recoding", "k", "suppression_limit",
		"nodes_checked", "loss_per_attribute", "elapsed_ms", "peak_rss_bytes",
	} {
		if !bytes.Contains(text, []byte(`"`+key+`"`)) {
			t.Errorf("the report has no %q", key)
		}
	}
	// What is written has the classes that the report tells of.
	code, stdout, fault := tailor(t, "assess", "--csv", out, "--qid", strings.Join(r.Attributes, ","),
		"--format", "json")
	var a assessReport
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitSuccess {
		t.Fatalf("exit %d, %v: %s", code, err, fault)
	}
	if a.K != 5 || a.SuppressedRows != 1346 || a.Classes != 398 || a.Rows != 30162 {
		t.Errorf("assessed k %d, %d suppressed, %d classes", a.K, a.SuppressedRows, a.Classes)
	}
}

func TestAssessSaysInTextAndJSONWhatTheThesisFound(t *testing.T) {
	args := []string{
		"assess", "--csv", refdata.Path(t, "thesis/df_1000_rows/stage_2_df_comorbidities.csv"),
		"--original", refdata.Path(t, "thesis/df_1000_rows/stage_2_df_original.csv"),
		"--qid", "age,comorbidities,covid19_symptoms", "--sensitive", "bmi,ms_diagnosis_date,edss",
	}
	code, stdout, fault := tailor(t, append(args, "--format", "json")...)
	var a assessReport
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitSuccess {
		t.Fatalf("exit %d, %v: %s", code, err, fault)
	}
	if a.K != 6 || a.Classes != 36 || a.Sensitive[1].L != 3 ||
		math.Abs(float64(a.Sensitive[1].T)-0.615) > 1e-9 {
		t.Errorf("%+v", a)
	}
	if a.Change.Entropy.ConventionalPercent != 53.61 {
		t.Errorf("entropy %+v", a.Change.Entropy)
	}
	if code, stdout, _ = tailor(t, args...); code != exitSuccess ||
		!strings.Contains(stdout, "k = 6") {
		t.Errorf("exit %d: %s", code, stdout)
	}
}

func TestFurtherModelsAreMet(t *testing.T) {
	csv := file(t, "in.csv", "a;s\nx;p\nx;p\ny;q\ny;p\nz;q\nz;q\n")
	h := file(t, "h.csv", "x;xy;*\ny;xy;*\nz;z;*\n")
	for models, levels := range map[string]string{
		"distinct_l:s:2":                                        "levels [2]",
		"entropy_l:s:1.9":                                       "levels [2]",
		"t_closeness:s:0.5 distinct_l:s:1":                      "levels [0]",
		"recursive_cl:s:2:2 alpha_k:s:0.6:2":                    "levels [2]",
		"average_risk:0.4 records_at_risk:0.5:0":                "levels [1]",
		"highest_risk:0.3 sample_uniqueness:0":                  "levels [2]",
		"beta_likeness:s:5 delta_disclosure:s:0.5":              "levels [2]",
		"ordered_t_closeness:s:0 enhanced_beta_likeness:s:0.01": "levels [2]",
	} {
		args := []string{
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--suppression-limit", "0",
		}
		for _, m := range strings.Fields(models) {
			args = append(args, "--require", m)
		}
		if code, stdout, fault := tailor(t, args...); code != exitSuccess ||
			!strings.HasPrefix(stdout, levels) {
			t.Errorf("%s: exit %d, %s%s, want %s", models, code, stdout, fault, levels)
		}
	}
}

func TestWrongUsageOfTheEngineExits2InOneLine(t *testing.T) {
	csv := file(t, "in.csv", "a;secret\nx;secret1\ny;secret2\n")
	empty := file(t, "empty.csv", "a;b\n")
	h, nested := file(t, "h.csv", "x;*\ny;*\n"), file(t, "n.csv", "x;g;1\ny;g;2\n")
	short := file(t, "s.csv", "x;*\n")
	for claim, args := range map[string][]string{
		"k larger than the table": {"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "3"},
		"no k":                    {"anonymize", "--csv", csv, "--hierarchy", "a=" + h},
		"an empty table":          {"anonymize", "--csv", empty, "--hierarchy", "a=" + h, "--k", "2"},
		"levels that do not nest": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + nested,
			"--k", "2",
		},
		"a value not listed": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + short,
			"--k", "2",
		},
		"an unknown column": {"anonymize", "--csv", csv, "--hierarchy", "b=" + h, "--k", "2"},
		"no attributes":     {"anonymize", "--csv", csv, "--k", "2"},
		"a limit above 1": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--suppression-limit", "2",
		},
		"an unknown search": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--search", "x",
		},
		"an unknown quality": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--quality", "x",
		},
		"an unknown aggregate": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--aggregate", "x",
		},
		"an unknown recoding": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--recoding", "x",
		},
		"an unknown model": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--require", "x:1",
		},
		"a model without its column": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--require", "distinct_l:2",
		},
		"a long delimiter": {
			"anonymize", "--csv", csv, "--hierarchy", "a=" + h, "--k", "2",
			"--delimiter", ";;",
		},
		"an unknown flag":          {"anonymize", "--nonsense"},
		"no file":                  {"anonymize", "--k", "2"},
		"assess without qid":       {"assess", "--csv", csv},
		"assess a column twice":    {"assess", "--csv", csv, "--qid", "a,a"},
		"assess an unknown column": {"assess", "--csv", csv, "--qid", "b"},
		"assess a database":        {"assess", "--dsn", "x", "--table", "t"},
		"assess in another format": {"assess", "--csv", csv, "--qid", "a", "--format", "xml"},
	} {
		code, _, fault := tailor(t, args...)
		if code != exitUsage || strings.Count(fault, "\n") != 1 || !strings.Contains(fault, ";") {
			t.Errorf("%s: exit %d, %q; want 2 and one line with a hint", claim, code, fault)
		}
		if strings.Contains(fault, "secret1") || strings.Contains(fault, "secret2") {
			t.Errorf("%s: %q quotes a value", claim, fault)
		}
	}
	if code, _, _ := tailor(t, "anonymize", "--csv", csv+".absent", "--hierarchy", "a="+h, "--k",
		"2"); code != exitFailure {
		t.Errorf("a file that is not there exits %d", code)
	}
	for _, name := range []string{"anonymize", "assess"} {
		if code, stdout, _ := tailor(t, name, "--help"); code != exitSuccess || !strings.Contains(stdout,
			"--csv") && !strings.Contains(stdout, "-csv") {
			t.Errorf("help of %s exits %d", name, code)
		}
	}
}
