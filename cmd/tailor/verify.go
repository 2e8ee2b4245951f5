package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// verifyOptions are the flags of `tailor verify`.
type verifyOptions struct {
	published, delimiter string
	k, m                 int
	qid, sensitive, keep columnNames
	require              requiredModels
	original, subject    string
	format               string
	delimiterRune        rune
}

const verifyHelp = `
A CSV file is checked as what any reader can see: its rows are grouped by the
quasi-identifiers, which are all columns that --sensitive, --keep and --require
do not name, and each group is held against k and the models. Rows that show *
in every column are suppressed and count for nothing. Models that compare with
the whole table compare with the rows that are shown.

The JSON form of tailor disassociate is checked for k^m-anonymity, with --k and
--m in place of what it claims if they are given. That its counts are those of
the original, and diversity against readers who know how often a sensitive code
occurs, cannot be told from outside.

The exit code is 0 if all holds and 1 if something does not.
`

func runVerify(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o := verifyOptions{}
	flags := newFlags("verify", "check an anonymized file from outside, without its report", stderr)
	flags.StringVar(
		&o.published, "published", "", "`FILE` to check: CSV, or the form that disassociate writes",
	)
	flags.StringVar(
		&o.delimiter, "delimiter", "",
		"`CHARACTER` between cells; the first of ; tab , in the file if not given",
	)
	flags.IntVar(
		&o.k, "k", 0,
		"fewest `ROWS` of a class, or subjects with --subject; 2 if not given, or what a form claims",
	)
	flags.IntVar(
		&o.m, "m", 0, "`CODES` of a record that somebody knows; what the form claims if not given",
	)
	flags.Var(
		&o.qid, "qid", "quasi-identifiers `A,B`; all columns that no other flag names if not given",
	)
	flags.Var(&o.sensitive, "sensitive", "sensitive attributes `C,D`")
	flags.Var(&o.keep, "keep", "columns `E,F` that nobody is recognized by")
	flags.Var(
		&o.require, "require",
		"further `MODEL` that is to hold; repeat for each: "+requirementNames(),
	)
	flags.StringVar(
		&o.original, "original", "",
		"`FILE` before recoding, the same rows in the same order, for --subject",
	)
	flags.StringVar(
		&o.subject, "subject", "",
		"`COL` of --original that tells whom a row is about; every row is a subject if not given",
	)
	flags.StringVar(&o.format, "format", "text", "`FORMAT` of the report: text or json")
	describe(flags, verifyHelp)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	given := make(map[string]bool)
	for _, name := range givenFlags(flags) {
		given[name] = true
	}
	switch {
	case o.published == "":
		return complainUsage(flags, stderr, "--published is missing")
	case o.format != "text" && o.format != "json":
		return complainUsage(flags, stderr, fmt.Sprintf("unknown format %q", o.format))
	case given["k"] && o.k < 2:
		return complainUsage(flags, stderr, "--k must be at least 2")
	case given["m"] && o.m < 1:
		return complainUsage(flags, stderr, "--m must be at least 1")
	case (o.original == "") != (o.subject == ""):
		return complainUsage(flags, stderr, "--original and --subject go together")
	}
	var err error
	if o.delimiterRune, err = parseDelimiter(o.delimiter); err != nil {
		return complainEngine("verify", stderr, err)
	}
	report, err := o.verify(ctx, given)
	if err == nil {
		err = report.write(stdout, o.format)
	}
	if err != nil {
		return complainEngine("verify", stderr, err)
	}
	if !report.Holds {
		fmt.Fprintf(
			stderr,
			"tailor verify: the file does not keep what is asked of it: %s; do not hand it out\n",
			report.broken(),
		)
		return exitFailure
	}
	return exitSuccess
}

// verify checks the file as what it is.
func (o *verifyOptions) verify(ctx context.Context, given map[string]bool) (*verifyReport, error) {
	isForm, err := looksLikeForm(o.published)
	if err != nil {
		return nil, err
	}
	if !isForm {
		if given["m"] {
			return nil, &anonymize.ProblemError{
				What:   "--m is about the form of tailor disassociate",
				Remedy: "leave it out for a CSV file",
			}
		}
		return o.verifyTable()
	}
	for _, name := range []string{"qid", "sensitive", "keep", "require", "original", "delimiter"} {
		if given[name] {
			return nil, &anonymize.ProblemError{
				What: fmt.Sprintf(
					"--%s is about CSV files, and this is the form of tailor disassociate", name,
				), Remedy: "leave it out",
			}
		}
	}
	return o.verifyForm(ctx)
}

// looksLikeForm says that a file starts as JSON does.
func looksLikeForm(name string) (bool, error) {
	return readFile(name, func(r io.Reader) (bool, error) {
		start, err := bufio.NewReader(r).Peek(64) // a short file gives what there is
		if err != nil && !errors.Is(err, io.EOF) {
			return false, &anonymize.CSVError{Reason: err.Error()}
		}
		return bytes.HasPrefix(bytes.TrimLeft(start, " \t\r\n"), []byte("{")), nil
	})
}

// verifyReport is what `tailor verify` prints.
type verifyReport struct {
	Published        string        `json:"published"`
	Rows             int           `json:"rows"` // or records
	SuppressedRows   int           `json:"suppressed_rows"`
	QuasiIdentifiers []string      `json:"quasi_identifiers,omitempty"`
	Classes          int           `json:"classes"` // or clusters
	K                int           `json:"k"`       // the smallest class, 0 without rows
	Checks           []verifyCheck `json:"checks"`
	Holds            bool          `json:"holds"`
}

// verifyCheck is one thing that was asked. Failing counts what fails it: the
// rows that would have to be suppressed, or the places of a form.
type verifyCheck struct {
	Asked   string `json:"asked"`
	Holds   bool   `json:"holds"`
	Failing int    `json:"failing"`
	Unit    string `json:"unit"`
}

func (r *verifyReport) add(asked string, failing int, unit string) {
	r.Checks = append(r.Checks, verifyCheck{asked, failing == 0, failing, unit})
	r.Holds = r.Holds && failing == 0
}

// broken is the first check that fails.
func (r *verifyReport) broken() string {
	for _, c := range r.Checks {
		if !c.Holds {
			return fmt.Sprintf("%s fails in %d %s", c.Asked, c.Failing, c.Unit)
		}
	}
	return ""
}

func (r *verifyReport) write(w io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	if r.QuasiIdentifiers == nil {
		fmt.Fprintf(
			w, "%s: %d records in %d clusters of at least %d\n", r.Published, r.Rows, r.Classes,
			r.K,
		)
	} else {
		fmt.Fprintf(w, "%s: %d rows, %d suppressed, %d classes of at least %d by %s\n",
			r.Published, r.Rows, r.SuppressedRows, r.Classes, r.K, strings.Join(r.QuasiIdentifiers, ", "))
	}
	for _, c := range r.Checks {
		word := "holds"
		if !c.Holds {
			word = fmt.Sprintf("FAILS in %d %s", c.Failing, c.Unit)
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", c.Asked, word); err != nil {
			return err
		}
	}
	return nil
}
