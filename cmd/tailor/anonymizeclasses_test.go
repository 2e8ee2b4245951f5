package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// clinic is a table with everything that may not leave.
const clinic = `key;name;age;zip;ward;cost;"a;b"
1;Ann;30;10115;A;7;p
2;Bob;30;10115;A;8;q
3;Cid;31;10115;B;9;r
4;Dan;31;10115;B;6;s
5;Eve;99;20095;C;5;unlike
`

func clinicArguments(t *testing.T, text string) []string {
	t.Helper()
	return []string{
		"anonymize", "--csv", file(t, "in.csv", text), "--k", "2", "--suppression-limit", "0.2",
		"--hierarchy", "age=" + file(t, "age.csv", "30;*\n31;*\n99;*\n"),
	}
}

func TestAnonymizeShowsOnlyColumnsThatAreNamed(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	code, out, fault := tailor(t, append(
		clinicArguments(t, clinic), "--qid", "zip,age", "--sensitive", "ward", "--keep", "cost",
		"--drop", "name", "--subject", "key", "--out", "-", "--report", report,
	)...)
	if code != exitSuccess {
		t.Fatalf("exit %d: %s", code, fault)
	}
	const want = "age;zip;ward;cost\n30;10115;A;7\n30;10115;A;8\n31;10115;B;9\n31;10115;B;6\n*;*;*;*\n"
	if out != want {
		t.Errorf("the output is\n%s, want\n%s", out, want)
	}
	if !strings.Contains(fault, `left out, since no flag names them: "a;b"; `) {
		t.Errorf("stderr does not tell the column that nobody named: %s", fault)
	}
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r anonymizeReport
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Dropped, []string{"key", "name", "a;b"}) ||
		!slices.Equal(r.Unnamed, []string{"a;b"}) ||
		!slices.Equal(r.Sensitive, []string{"ward"}) ||
		!slices.Equal(r.Kept, []string{"cost"}) ||
		!slices.Equal(r.Attributes, []string{"age", "zip"}) {
		t.Errorf("the report has %+v", r)
	}
}

func TestAnonymizeWarnsOfShownColumnsThatUndoIt(t *testing.T) {
	var b strings.Builder
	b.WriteString("age;zip;zip3;note;ward\n")
	for n := range 200 {
		fmt.Fprintf(&b, "30;%d;%d;n%d;%d\n", 10000+100*(n%8), (10000+100*(n%8))/100, n, n%3)
	}
	args := clinicArguments(t, b.String())
	report := filepath.Join(t.TempDir(), "report.json")
	code, _, fault := tailor(
		t,
		append(
			args, "--qid", "zip", "--keep", "zip3,note", "--sensitive", "ward", "--report", report,
		)...)
	if code != exitSuccess || strings.Count(fault, "\n") != 1 || strings.Contains(fault, "ward") ||
		!strings.Contains(fault, `"zip3" is shown as it is, and tells "zip", which is recoded`) ||
		!strings.Contains(
			fault,
			`"note" is shown as it is, and 100 % of the rows have a value of their own in it`,
		) {
		t.Errorf("exit %d, %s", code, fault)
	}
	raw, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r anonymizeReport
	if err := json.Unmarshal(raw, &r); err != nil || len(r.Warnings) != 2 {
		t.Errorf("%v, %q", err, r.Warnings)
	}
	if code, _, fault := tailor(t, append(args, "--qid", "zip,zip3", "--sensitive",
		"ward")...); code != exitSuccess ||
		strings.Contains(fault, "warning") {
		t.Errorf("both as quasi-identifiers: exit %d, %s", code, fault)
	}
}

func TestNoRecodingLetsUnnamedColumnsOut(t *testing.T) {
	for _, kind := range []string{"full_domain", "local", "cell"} {
		code, out, fault := tailor(
			t,
			append(
				clinicArguments(t, clinic), "--recoding", kind, "--suppression-limit", "1",
				"--subject", "key", "--out", "-",
			)...)
		if code != exitSuccess || !strings.HasPrefix(out, "age\n") ||
			!strings.Contains(fault, `"name", "zip", "ward", "cost", "a;b"`) {
			t.Errorf("%s: exit %d, %q, %s", kind, code, out, fault)
		}
	}
}

func TestAModelMakesItsColumnSensitiveAndShown(t *testing.T) {
	code, out, fault := tailor(
		t,
		append(clinicArguments(t, clinic), "--require", "distinct_l:ward:1", "--out", "-")...)
	if code != exitSuccess || !strings.HasPrefix(out, "age;ward\n30;A\n") ||
		strings.Contains(out, "C") {
		t.Errorf("exit %d, %q, %s", code, out, fault)
	}
}

func TestAColumnNameWithACommaStandsInQuotes(t *testing.T) {
	text := "age;\"last, first\"\n30;x\n30;y\n"
	code, out, fault := tailor(
		t,
		append(clinicArguments(t, text), "--keep", `"last, first"`, "--out", "-")...)
	if code != exitSuccess || !strings.HasPrefix(out, "age;last, first\n30;x\n") {
		t.Errorf("exit %d, %q, %s", code, out, fault)
	}
}

func TestColumnsInTwoRolesAndSenselessNumbersExit2(t *testing.T) {
	for claim, c := range map[string]struct {
		flags []string
		says  string
	}{
		"kept twice": {
			[]string{"--keep", "cost,cost"},
			`"cost" is named twice as kept`,
		},
		"kept by two flags":        {[]string{"--keep", "cost", "--keep", "cost"}, "named twice"},
		"a quasi-identifier twice": {[]string{"--qid", "zip,zip"}, "named twice"},
		"kept and dropped": {
			[]string{"--keep", "cost", "--drop", "cost"},
			"is kept and dropped",
		},
		"a hierarchy of a kept column": {[]string{"--keep", "age"}, "is a quasi-identifier and kept"},
		"sensitive and kept": {
			[]string{"--sensitive", "ward", "--keep", "ward"},
			"is sensitive and kept",
		},
		"a model of a quasi-identifier": {
			[]string{"--require", "distinct_l:age:2"},
			"is a quasi-identifier and sensitive",
		},
		"the subject shown": {
			[]string{"--subject", "key", "--keep", "key"},
			"is kept and the subject",
		},
		"the subject recoded": {
			[]string{"--subject", "age"},
			"is a quasi-identifier and the subject",
		},
		"an unknown column kept":      {[]string{"--keep", "secret"}, "no column"},
		"an unknown column dropped":   {[]string{"--drop", "secret"}, "no column"},
		"an unknown quasi-identifier": {[]string{"--qid", "secret"}, "no column"},
		"an unknown base partition":   {[]string{"--base-partition", "secret"}, "no column"},
		"an empty name":               {[]string{"--keep", "cost,"}, "wants COL"},
		"k of 1":                      {[]string{"--k", "1"}, "protects nobody"},
		"a negative k":                {[]string{"--k", "-5"}, "protects nobody"},
		"a negative time limit":       {[]string{"--time-limit", "-1s"}, "negative"},
		"two hierarchies of a column": {[]string{"--hierarchy", "age=x"}, "two hierarchies"},
	} {
		code, out, fault := tailor(
			t,
			append(clinicArguments(t, clinic), append(c.flags, "--out", "-")...)...)
		if code != exitUsage || out != "" || strings.Count(fault, "\n") != 1 ||
			!strings.Contains(fault, c.says) {
			t.Errorf("%s: exit %d, %q, %q; want 2 and %q", claim, code, out, fault, c.says)
		}
	}
}

func TestAFileThatWantsALargeWindowIsRefused(t *testing.T) {
	var packed bytes.Buffer
	w, err := zstd.NewWriter(&packed, zstd.WithWindowSize(16<<20))
	if err != nil {
		t.Fatal(err)
	}
	for range 9 << 20 / len(clinic) { // written in pieces, so that the frame tells its window
		if _, err := w.Write([]byte(clinic)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	args := clinicArguments(t, clinic)
	args[2] = file(t, "in.csv.zst", packed.String())
	code, _, fault := tailor(t, args...)
	if code != exitUsage || !strings.Contains(fault, "window size exceeded") {
		t.Errorf("exit %d, %s", code, fault)
	}
}

func TestFilesAreCompressedAsTheirSuffixSays(t *testing.T) {
	pack := map[string]func(io.Writer) io.WriteCloser{
		".gz": func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".zst": func(w io.Writer) io.WriteCloser {
			z, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	}
	unpack := map[string]func(io.Reader) (io.Reader, error){
		".gz":  func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		".zst": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for suffix := range pack {
		var packed bytes.Buffer
		w := pack[suffix](&packed)
		if _, err := w.Write([]byte(clinic)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		out := filepath.Join(t.TempDir(), "out.csv"+suffix)
		args := clinicArguments(t, clinic)
		args[2] = file(t, "in.csv"+suffix, packed.String())
		if code, _, fault := tailor(t, append(args, "--out", out)...); code != exitSuccess {
			t.Fatalf("%s: exit %d: %s", suffix, code, fault)
		}
		raw, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		r, err := unpack[suffix](bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: the output is not compressed: %v", suffix, err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != "age\n30\n30\n31\n31\n*\n" {
			t.Errorf("%s: %q, %v", suffix, text, err)
		}
		// A file cut short, or none of its kind, is told and is no table.
		for claim, content := range map[string]string{
			"cut short": packed.String()[:packed.Len()/2],
			"plain":     clinic,
		} {
			args[2] = file(t, "in.csv"+suffix, content)
			if code, _, fault := tailor(t, args...); code != exitUsage ||
				strings.Count(fault, "\n") != 1 {
				t.Errorf("%s, %s: exit %d, %s", suffix, claim, code, fault)
			}
		}
	}
}
