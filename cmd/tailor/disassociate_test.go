package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/setdata"
)

// setValuedFile writes made-up records.
func setValuedFile(t *testing.T, records int) string {
	t.Helper()
	d, err := setdata.Synthetic(records, 60, 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := setdata.Lines(&text, d); err != nil {
		t.Fatal(err)
	}
	return disassociateInput(t, "data.txt", text.String())
}

func disassociateInput(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// disassociateRun runs the command.
func disassociateRun(
	t *testing.T, stdin string, args ...string,
) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = runDisassociate(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return status, out.String(), errs.String()
}

func TestDisassociateWritesFormReportAndReconstructions(t *testing.T) {
	dir := t.TempDir()
	out, report := filepath.Join(dir, "form.json"), filepath.Join(dir, "report.json")
	constraints := disassociateInput(t, "u.txt", "u1: C00001 C00002\nu2: C00005\n")
	status, stdout, stderr := disassociateRun(t, "", "--data", setValuedFile(t, 800), "--k", "4",
		"--m", "2",
		"--constraints", constraints, "--out", out, "--report", report, "--reconstruct", "3", "--seed",
		"1")
	if status != 0 || stdout != "" || stderr != "" {
		t.Fatalf("status %d, output %q, errors %q", status, stdout, stderr)
	}
	file, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	form, err := published.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if form.Records() != 800 || form.Promise.K != 4 {
		t.Errorf("%d records with k = %d", form.Records(), form.Promise.K)
	}
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r disassociateReport
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if !r.Verified || r.Records != 800 || r.ARE == nil || r.AREReconstructed == nil ||
		r.MREWithin5 == nil || len(r.MRE) != 2 {
		t.Errorf("report %s", raw)
	}
	for _, n := range []string{".1", ".2", ".3"} {
		text, err := os.ReadFile(out + n)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines != 800 {
			t.Errorf("reconstruction %s has %d lines", n, lines)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%d files, want 5 (%v)", len(entries), err)
	}
}

func TestDisassociateReadsStandardInputAndGzip(t *testing.T) {
	text, err := os.ReadFile(setValuedFile(t, 100))
	if err != nil {
		t.Fatal(err)
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var forms []string
	for _, stdin := range []string{string(text), zipped.String()} {
		status, stdout, stderr := disassociateRun(t, stdin, "--data", "-", "--k", "3", "--m", "2",
			"--seed", "5")
		if status != 0 {
			t.Fatalf("status %d: %s", status, stderr)
		}
		forms = append(forms, stdout)
	}
	if forms[0] != forms[1] {
		t.Error("gzipped input gives another form")
	}
}

func TestDisassociateSensitiveCodesGetTheDiversity(t *testing.T) {
	sensitive := disassociateInput(t, "s.txt", "C00002\n")
	status, stdout, stderr := disassociateRun(t, "", "--data", setValuedFile(t, 300), "--k", "3",
		"--m", "2",
		"--sensitive", sensitive, "--diversity", "6")
	if status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	form, err := published.Decode(strings.NewReader(stdout))
	if err != nil {
		t.Fatal(err)
	}
	if form.Promise.Diversity != 6 || len(form.Promise.Sensitive) != 1 {
		t.Errorf("promise %+v", form.Promise)
	}
}

func TestDisassociateExitStatus(t *testing.T) {
	data := setValuedFile(t, 50)
	overlap := disassociateInput(t, "u.txt", "C00001\nC00001\n")
	for name, c := range map[string]struct {
		args []string
		want int
	}{
		"help is a success": {[]string{"--help"}, 0},
		"no data":           {[]string{"--k", "3", "--m", "2"}, 2},
		"no k":              {[]string{"--data", data, "--m", "2"}, 2},
		"k of 1":            {[]string{"--data", data, "--k", "1", "--m", "2"}, 2},
		"no m":              {[]string{"--data", data, "--k", "3"}, 2},
		"an unknown flag": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--what",
		}, 2},
		"an argument too many": {[]string{"--data", data, "--k", "3", "--m", "2", "more"}, 2},
		"an unknown refinement": {[]string{
			"--data", data, "--k", "3", "--m", "2", "--refine",
			"best",
		}, 2},
		"clusters too small for k": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--max-cluster", "4",
		}, 2},
		"diversity without sensitive": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--diversity", "4",
		}, 2},
		"reconstructions that go nowhere": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--reconstruct", "2",
		}, 2},
		"a file that is not there": {[]string{"--data", data + "x", "--k", "3", "--m", "2"}, 1},
		"constraints that are not there": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--constraints", "/nowhere",
		}, 1},
		"sensitive codes not there": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--sensitive", "/nowhere",
		}, 1},
		"constraints that overlap": {[]string{
			"--data", data, "--k", "3", "--m", "2",
			"--constraints", overlap,
		}, 1},
		"fewer than k records": {[]string{"--data", data, "--k", "51", "--m", "2"}, 1},
		"an output folder that is missing": {[]string{
			"--data", data, "--k", "3", "--m", "2", "--out",
			"/nowhere/x",
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			status, stdout, stderr := disassociateRun(t, "", c.args...)
			if status != c.want {
				t.Errorf("status %d, want %d: %s", status, c.want, stderr)
			}
			if c.want == 0 {
				if !strings.Contains(stdout, "--data FILE") || stderr != "" {
					t.Errorf("help says %q, %q", stdout, stderr)
				}
				return
			}
			if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "(") || stdout != "" {
				t.Errorf("want one line with a hint, got %q and output %q", stderr, stdout)
			}
		})
	}
}

func TestDisassociateInterruptedWritesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := filepath.Join(t.TempDir(), "form.json")
	var stdout, stderr bytes.Buffer
	status := runDisassociate(ctx, []string{
		"--data", setValuedFile(t, 50), "--k", "3", "--m", "2",
		"--out", out,
	}, nil, &stdout, &stderr)
	if status != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("status %d: %s", status, stderr.String())
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("the output is there: %v", err)
	}
}
