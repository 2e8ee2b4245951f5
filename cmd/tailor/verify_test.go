package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/refdata"
)

// verified runs verify and reads its report.
func verified(t *testing.T, args ...string) (code int, r verifyReport, fault string) {
	t.Helper()
	code, stdout, fault := tailor(t, append([]string{"verify", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(stdout), &r); stdout != "" && err != nil {
		t.Fatal(err)
	}
	return code, r, fault
}

func TestVerifyFindsWhatAFileBreaks(t *testing.T) {
	const good = "age;zip;ill;cost\n3*;1;a;1\n3*;1;b;2\n4*;2;b;3\n4*;2;c;4\n4*;2;c;5\n*;*;*;*\n"
	for claim, c := range map[string]struct {
		text    string
		args    []string
		code, k int
		says    string
	}{
		"what is asked holds": {good, []string{
			"--k", "2", "--require", "distinct_l:ill:2",
			"--keep", "cost",
		}, 0, 2, ""},
		"k of 2 is asked if nothing is": {good, []string{"--sensitive", "ill,cost"}, 0, 2, ""},
		"a class is too small": {
			good,
			[]string{"--k", "3", "--sensitive", "ill,cost"},
			1, 2,
			"k = 3 fails in 2 rows",
		},
		"a model fails": {good, []string{
			"--require", "distinct_l:ill:3", "--keep",
			"cost",
		}, 1, 2, "distinct_l:ill:3 fails in 5 rows"},
		"a model fails in one class": {good, []string{
			"--require", "entropy_l:ill:1.95", "--keep",
			"cost",
		}, 1, 2, "entropy_l:ill:1.95 fails in 3 rows"},
		"closeness fails": {good, []string{
			"--require", "t_closeness:ill:0.1", "--keep",
			"cost",
		}, 1, 2, "t_closeness"},
		"a risk of the whole table": {good, []string{
			"--require", "average_risk:0.39",
			"--sensitive", "ill,cost",
		}, 1, 2, "average_risk"},
		"a risk of the whole table is met": {good, []string{
			"--require", "average_risk:0.41",
			"--sensitive", "ill,cost",
		}, 0, 2, ""},
		"unnamed columns recognize people": {
			good,
			[]string{"--sensitive", "ill"},
			1, 1,
			"k = 2 fails in 5 rows",
		},
		"named ones alone": {good, []string{"--qid", "zip"}, 0, 2, ""},
		"a suppressed row shows a payload": {
			strings.Replace(good, "*;*;*;*", "*;*;c;*", 1),
			[]string{"--sensitive", "ill,cost"},
			1, 1, "fails in 1 rows",
		},
		"suppressed rows that are two": {good + "*;*;c;1\n*;*;c;2\n", []string{
			"--sensitive",
			"ill,cost",
		}, 0, 2, ""},
		"all rows are suppressed":        {"a;b\n*;*\n", []string{"--sensitive", "b"}, 0, 0, ""},
		"cells that run into each other": {"a;b\nx;yz\nxy;z\n", nil, 1, 1, "fails in 2 rows"},
	} {
		code, r, fault := verified(
			t,
			append([]string{"--published", file(t, "p.csv", c.text)}, c.args...)...)
		if code != c.code || r.Holds != (c.code == 0) || r.K != c.k ||
			!strings.Contains(fault, c.says) ||
			c.code > 0 && strings.Count(fault, "\n") != 1 {
			t.Errorf("%s: exit %d, %+v, %q", claim, code, r, fault)
		}
	}
}

func TestVerifyCountsSubjectsByTheOriginal(t *testing.T) {
	published := file(t, "p.csv", "a;s\nx;1\nx;2\ny;3\ny;4\n*;*\n")
	original := file(t, "o.csv", "id;a;s\n1;x;1\n1;x;2\n2;y;3\n3;y;4\n4;z;5\n")
	args := []string{"--published", published, "--sensitive", "s"}
	if code, r, _ := verified(t, args...); code != exitSuccess || r.K != 2 {
		t.Errorf("by rows: exit %d, %+v", code, r)
	}
	if code, r, _ := verified(t, append(args, "--original", original, "--subject",
		"id")...); code != exitFailure ||
		r.K != 1 ||
		r.Checks[0].Failing != 2 {
		t.Errorf("by subjects: exit %d, %+v", code, r)
	}
}

func TestVerifyTrustsNoReport(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.csv")
	args := append(adultArguments(t), "--out", out)
	if code, _, fault := tailor(t, args...); code != exitSuccess {
		t.Fatal(fault)
	}
	if code, r, fault := verified(t, "--published", out, "--k", "5"); code != exitSuccess ||
		r.K != 5 ||
		r.SuppressedRows != 1346 ||
		r.Classes != 397 {
		t.Errorf("exit %d, %+v, %s", code, r, fault)
	}
	// One cell of one row is put back, and the row is found.
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	cells := strings.Split(lines[1], ";")
	cells[1] = "39"
	lines[1] = strings.Join(cells, ";")
	tampered := file(t, "tampered.csv", strings.Join(lines, "\n"))
	if code, r, _ := verified(t, "--published", tampered, "--k", "5"); code != exitFailure ||
		r.K != 1 {
		t.Errorf("a row with an age: exit %d, %+v", code, r)
	}
	for _, kind := range []string{"local", "cell"} {
		args := append(adultArguments(t), "--recoding", kind, "--out", out)
		if code, _, fault := tailor(t, args...); code != exitSuccess {
			t.Fatal(fault)
		}
		if code, r, fault := verified(t, "--published", out, "--k", "5"); code != exitSuccess ||
			r.K < 5 {
			t.Errorf("%s: exit %d, %+v, %s", kind, code, r, fault)
		}
	}
}

func TestVerifyAgreesWithPyCANONAtTheEdge(t *testing.T) {
	raw, err := os.ReadFile(refdata.Path(t, "pycanon/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected struct {
		Files map[string]struct {
			QIDs  []string          `json:"qids"`
			Types map[string]string `json:"sa_types"`
			Risk  struct {
				Smallest int `json:"smallest_class"`
			}
			ByDefinition map[string]struct {
				L     int     `json:"distinct_l"`
				T     float64 `json:"t"`
				Alpha float64 `json:"alpha"`
			} `json:"by_definition"`
		}
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	for name, f := range expected.Files {
		base := []string{
			"--published",
			refdata.Path(t, "pycanon/"+name),
			"--qid",
			strings.Join(f.QIDs, ","),
		}
		edge := func(holds bool, flags ...string) {
			code, r, fault := verified(t, append(base, flags...)...)
			if r.Checks == nil || r.Checks[len(r.Checks)-1].Holds != holds {
				t.Errorf("%s %v: exit %d, %+v, %s; want %v", name, flags, code, r, fault, holds)
			}
		}
		k := f.Risk.Smallest
		edge(false, "--k", fmt.Sprint(k+1))
		if k >= 2 {
			edge(true, "--k", fmt.Sprint(k))
		}
		for column, s := range f.ByDefinition {
			closeness := "t_closeness"
			if f.Types[column] == "numeric" {
				closeness = "ordered_t_closeness"
			}
			edge(true, "--require", fmt.Sprintf("distinct_l:%s:%d", column, s.L))
			edge(true, "--require", fmt.Sprintf("%s:%s:%v", closeness, column, s.T+1e-7))
			edge(true, "--require", fmt.Sprintf("alpha_k:%s:%v:1", column, s.Alpha))
			if s.T > 1e-3 {
				edge(false, "--require", fmt.Sprintf("%s:%s:%v", closeness, column, s.T-1e-7))
			}
			if s.Alpha < 1 {
				edge(false, "--require", fmt.Sprintf("alpha_k:%s:%v:1", column, s.Alpha-1e-7))
			}
		}
	}
}

func TestVerifyChecksFormsAgainstWhatIsAsked(t *testing.T) {
	form := filepath.Join(t.TempDir(), "form.json")
	if status, _, fault := disassociateRun(t, "", "--data", setValuedFile(t, 800), "--k", "4", "--m",
		"2", "--out", form, "--seed", "1"); status != 0 {
		t.Fatal(fault)
	}
	if code, r, fault := verified(t, "--published", form); code != exitSuccess ||
		len(r.Checks) != 6 ||
		r.Rows != 800 {
		t.Errorf("exit %d, %+v, %s", code, r, fault)
	}
	if code, _, fault := verified(t, "--published", form, "--k", "6"); code != exitFailure ||
		!strings.Contains(fault, "k = 6, m = 2") {
		t.Errorf("a larger k: exit %d, %s", code, fault)
	}
	raw, err := os.ReadFile(form)
	if err != nil {
		t.Fatal(err)
	}
	// The form claims more than it has: the claim is checked, not believed.
	boast := file(t, "boast.json", strings.Replace(string(raw), `"k":4`, `"k":9`, 1))
	if code, _, fault := verified(t, "--published", boast); code != exitFailure ||
		!strings.Contains(fault, "k = 9") {
		t.Errorf("a boast: exit %d, %s", code, fault)
	}
	for claim, args := range map[string][]string{
		"no form":              {"--published", file(t, "x.json", `{"version": 99}`)},
		"broken JSON":          {"--published", file(t, "y.json", `{"version`)},
		"columns of a form":    {"--published", form, "--qid", "a"},
		"m of a table":         {"--published", file(t, "z.csv", "a\n1\n"), "--m", "2"},
		"k of 1":               {"--published", form, "--k", "1"},
		"nothing":              nil,
		"an unknown column":    {"--published", file(t, "z.csv", "a\n1\n"), "--qid", "b"},
		"two roles":            {"--published", file(t, "z.csv", "a\n1\n"), "--qid", "a", "--keep", "a"},
		"an original alone":    {"--published", file(t, "z.csv", "a\n1\n"), "--original", "x"},
		"no quasi-identifiers": {"--published", file(t, "z.csv", "a\n1\n"), "--keep", "a"},
		"UTF-16":               {"--published", file(t, "z.csv", "\xff\xfea\x00")},
	} {
		if code, _, fault := verified(t, args...); code != exitUsage ||
			strings.Count(fault, "\n") != 1 {
			t.Errorf("%s: exit %d, %q", claim, code, fault)
		}
	}
}
