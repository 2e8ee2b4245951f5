package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/audit"
)

// reportOptions are the flags of `tailor report`.
type reportOptions struct {
	dsn, format, out, json, previous string
	filter                           audit.Filter
}

// reportFormats are those that a report can have.
var reportFormats = []string{"md", "html", "json", "pdf"}

const reportHelp = `
The report says what of each table is protected and how, what is released now,
who may read and who did (by the audit log, whose chain it verifies), what risk
is left, which exceptions there are, and what has changed: the policies that
came in force since the last report or --since, and with --previous also
readers, releases and exceptions. It shows no values of protected tables. Of
tables whose owner's rights the role of the DSN has not, it knows the policy.

pdf needs chromium. The JSON form, of --format json or beside another one of
--json FILE, is what --previous of the next report reads.

The exit code is 0 if the report was written, 1 on failure, when nothing is
written, and 2 on wrong usage.
`

func runReport(
	ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer,
) int {
	o := reportOptions{}
	flags := newFlags(
		"report", "what is protected, what was released to whom, and what risk is left: for an "+
			"ethics board or data-protection officer", stderr,
	)
	flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
		"`connection` string of a member of tailor_admin, best the owner of the tables")
	timeFlag(flags, &o.filter.Since, "since",
		"from a `TIME` on: 2026-01-31, or 30d ago; the end of --previous if not given")
	timeFlag(flags, &o.filter.Until, "until", "before a `TIME`; now if not given")
	flags.StringVar(&o.format, "format", "md", "`FORMAT`: "+strings.Join(reportFormats, ", "))
	flags.StringVar(&o.out, "out", "",
		"`FILE` to write, in whole or not at all; standard output if not given")
	flags.StringVar(&o.json, "json", "", "`FILE` to write the JSON form to besides")
	flags.StringVar(&o.previous, "previous", "",
		"`FILE` of the last report in JSON, to say what has changed")
	describe(flags, reportHelp)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	switch {
	case o.dsn == "" || o.filter.Since.IsZero() && o.previous == "":
		return complainUsage(flags, stderr, "--dsn and --since (or --previous) are needed")
	case !slices.Contains(reportFormats, o.format):
		return complainUsage(flags, stderr, "--format is md, html, json or pdf")
	case o.format == "pdf" && o.out == "":
		return complainUsage(flags, stderr, "--format pdf needs --out")
	case o.json != "" && o.json == o.out:
		return complainUsage(flags, stderr, "--json and --out are the same file")
	}
	return complainPolicy("report", o.out, stderr, o.run(ctx, stdout))
}

// run makes a report and writes it: all files, or on an error none, but for one that
// the disk refuses.
func (o *reportOptions) run(ctx context.Context, stdout io.Writer) error {
	var browser string
	if o.format == "pdf" {
		var err error
		if browser, err = findBrowser(); err != nil {
			return err
		}
	}
	r, err := o.make(ctx)
	if err != nil {
		return err
	}
	form, err := r.asJSON()
	if err != nil {
		return err
	}
	var text []byte
	switch p := r.page(); o.format {
	case "json":
		text = form
	case "pdf":
		text, err = p.asPDF(ctx, browser)
	case "html":
		text, err = written(p.asHTML)
	default:
		text, err = written(p.asMarkdown)
	}
	if err != nil {
		return err
	}
	if o.json != "" {
		if err := writeReport(o.json, form); err != nil {
			return err
		}
	}
	if o.out != "" {
		return writeReport(o.out, text)
	}
	_, err = stdout.Write(text)
	return err
}

// make gathers what a report tells.
func (o *reportOptions) make(ctx context.Context) (*report, error) {
	var previous *report
	if o.previous != "" {
		var err error
		if previous, err = readPrevious(o.previous); err != nil {
			return nil, err
		}
	}
	f := o.filter
	if f.Since.IsZero() {
		f.Since = previous.Until
	}
	if f.Until.IsZero() {
		f.Until = time.Now()
	}
	conn, err := connectTo(ctx, o.dsn, nil)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(conn)
	r, err := gatherReport(ctx, conn, f)
	if err != nil {
		return nil, err
	}
	return r, r.readChanges(ctx, conn, previous)
}

func (r *report) asJSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	return append(text, '\n'), nil
}

func written(write func(io.Writer) error) ([]byte, error) {
	var b strings.Builder
	err := write(&b)
	return []byte(b.String()), err
}

// writeReport makes a file that only its owner reads.
func writeReport(name string, text []byte) error {
	return atomicfile.Write(name, 0o600, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
