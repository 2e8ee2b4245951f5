package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// workloadFiles writes a small table, its hierarchy and two queries.
func workloadFiles(t *testing.T) (dir string, args []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"t.csv":  "id;sex;age\n1;f;30\n2;f;31\n3;m;30\n4;m;31\n5;f;40\n6;m;41\n",
		"sex":    "f;*\nm;*\n",
		"age":    "30;30-39;*\n31;30-39;*\n40;40-49;*\n41;40-49;*\n",
		"q":      "sex\nage,sex\n",
		"bad":    "name\n",
		"header": "id;sex;age\n", "short": "id;sex;age\n1;f\n", "broken": "1;a;*\n1;b;*\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	return dir, []string{
		"--csv", at("t.csv"), "--hierarchy", "sex=" + at("sex"), "--hierarchy", "age=" + at("age"),
		"--queries", at("q"),
	}
}

func workload(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = runWorkload(context.Background(), args, strings.NewReader(""), &out, &errs)
	return code, out.String(), errs.String()
}

func TestWorkloadReportsLossAndSmallestBlock(t *testing.T) {
	dir, args := workloadFiles(t)
	report := filepath.Join(dir, "report.json")
	code, stdout, stderr := workload(append(args, "--k", "2", "--report", report, "--subject",
		"id")...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"query 1\tloss", "query 2\tloss", "mean loss\t",
		"smallest block of the common refinement\t",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("output lacks %q: %s", want, stdout)
		}
	}
	data, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Queries []struct {
			Columns []string `json:"columns"`
		} `json:"queries"`
		SmallestBlock int `json:"smallest_block"`
	}
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Queries) != 2 || strings.Join(got.Queries[1].Columns, ",") != "age,sex" ||
		got.SmallestBlock < 2 {
		t.Errorf("report is %+v", got)
	}
}

func TestWorkloadIsAnsweredFromOneRoot(t *testing.T) {
	dir, args := workloadFiles(t)
	if err := os.WriteFile(filepath.Join(dir, "ages"), []byte("age\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append(args, "--k", "2", "--root", "--bound")
	code, shared, stderr := workload(args...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"query 2\tloss", "smallest block of the common refinement\t",
		"lower bound of the loss over all columns\t",
	} {
		if !strings.Contains(shared, want) {
			t.Errorf("output lacks %q: %s", want, shared)
		}
	}
	code, prepared, stderr := workload(append(args, "--seed", filepath.Join(dir, "ages"))...)
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if prepared == shared {
		t.Errorf("a root prepared for ages shows the same: %s", shared)
	}
}

func TestWorkloadExitCodes(t *testing.T) {
	dir, args := workloadFiles(t)
	for claim, c := range map[string]struct {
		args []string
		code int
	}{
		"help is no failure":             {[]string{"--help"}, 0},
		"nothing given is wrong usage":   {nil, 2},
		"an unknown flag is wrong usage": {[]string{"--nope"}, 2},
		"k of zero is wrong usage":       {append(args, "--k", "0"), 2},
		"no delimiter is wrong usage":    {append(args, "--k", "2", "--delimiter", ""), 2},
		"a column not there, wrong usage": {append(args, "--k", "2", "--hierarchy",
			"nobody="+filepath.Join(dir, "sex")), 2},
		"no rows fail": {append(args, "--k", "2", "--csv",
			filepath.Join(dir, "header")), 1},
		"lines of other length fail": {append(args, "--k", "2", "--csv",
			filepath.Join(dir, "short")), 1},
		"a broken hierarchy fails": {append(args, "--k", "2", "--hierarchy",
			"id="+filepath.Join(dir, "broken")), 1},
		"two delimiters are wrong usage":  {append(args, "--k", "2", "--delimiter", ";;"), 2},
		"a stray argument is wrong usage": {append(args, "--k", "2", "stray"), 2},
		"no such subject is wrong usage":  {append(args, "--k", "2", "--subject", "nobody"), 2},
		"an unknown column fails": {append(args, "--k", "2", "--queries", filepath.Join(dir,
			"bad")), 1},
		"a missing file fails": {append(args, "--k", "2", "--queries", filepath.Join(dir,
			"none")), 1},
		"too few subjects fail": {append(args, "--k", "7"), 1},
		"a seed that cannot be read fails": {append(args, "--k", "2", "--seed",
			filepath.Join(dir, "none")), 1},
		"too few for a root fail": {append(args, "--k", "7", "--root"), 1},
	} {
		code, _, stderr := workload(c.args...)
		if code != c.code {
			t.Errorf("%s: exit %d, %s", claim, code, stderr)
		}
		if n := strings.Count(stderr, "\n"); code != 0 && n != 1 {
			t.Errorf("%s: %d lines on stderr: %s", claim, n, stderr)
		}
	}
}

func TestWorkloadQuotesNoValueInErrors(t *testing.T) {
	dir, args := workloadFiles(t)
	canary := "id;sex;age\n1;canary;30\n"
	if err := os.WriteFile(filepath.Join(dir, "t.csv"), []byte(canary), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := workload(append(args, "--k", "2")...)
	if code != 1 || strings.Contains(stderr, "canary") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
