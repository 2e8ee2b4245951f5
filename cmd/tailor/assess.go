package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// assessOptions are the flags of `tailor assess`.
type assessOptions struct {
	csv, original, delimiter string
	qid, sensitive, subject  string
	hierarchies              hierarchyFiles
	dsn, table               string
	format                   string
}

func runAssess(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o := assessOptions{hierarchies: hierarchyFiles{}}
	flags := newFlags("assess",
		"measure the risk of a released CSV file or of a table, and what recoding lost", stderr)
	flags.StringVar(&o.csv, "csv", "", "released `FILE`; its first line names the columns")
	flags.StringVar(&o.original, "original", "",
		"`FILE` before recoding, the same rows in the same order")
	flags.StringVar(&o.delimiter, "delimiter", "",
		"`CHARACTER` between cells; the first of ; tab , in the file if not given")
	flags.StringVar(&o.qid, "qid", "", "quasi-identifiers `A,B`")
	flags.StringVar(&o.sensitive, "sensitive", "", "sensitive attributes `C,D`")
	flags.StringVar(&o.subject, "subject", "",
		"`COL` that tells whom a row is about; every row is a subject if not given")
	flags.Var(o.hierarchies, "hierarchy", "`COL=FILE` that the recoding followed, for loss, "+
		"precision and entropy by level; repeat for each")
	flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
		"`DSN` of a database whose --table to read in place of --csv")
	flags.StringVar(&o.table, "table", "", "`TABLE` or view in the database, such as "+
		"public.patients; columns are named as PostgreSQL stores them")
	flags.StringVar(&o.format, "format", "text", "`FORMAT` of the report: text or json")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if fault := o.fault(givenFlags(flags)); fault != "" {
		return complainUsage(flags, stderr, fault)
	}
	if err := assess(ctx, &o, stdout); err != nil {
		return complainEngine("assess", stderr, err)
	}
	return exitSuccess
}

// fault says what is wrong with the flags together, "" for nothing.
func (o *assessOptions) fault(given []string) string {
	if o.format != "text" && o.format != "json" {
		return fmt.Sprintf("unknown format %q", o.format)
	}
	if o.table == "" {
		switch {
		case slices.Contains(given, "dsn"):
			return "--table is missing"
		case o.csv == "":
			return "--csv is missing, or --dsn and --table"
		}
		return ""
	}
	if o.dsn == "" {
		return "--dsn is missing"
	}
	for _, f := range []string{"csv", "original", "hierarchy", "delimiter"} {
		if slices.Contains(given, f) { // the rows of a table have no order to compare along
			return fmt.Sprintf("--%s does not go with --table", f)
		}
	}
	return ""
}

func assess(ctx context.Context, o *assessOptions, stdout io.Writer) error {
	delimiter, err := parseDelimiter(o.delimiter)
	if err != nil {
		return err
	}
	release, err := o.release(ctx, delimiter)
	if err != nil {
		return err
	}
	m, err := anonymize.Assess(release)
	if err != nil {
		return err
	}
	report := newAssessReport(release, m)
	if o.format == "json" {
		return report.writeJSON(stdout)
	}
	return report.writeText(stdout)
}

// release reads the files, or the table.
func (o *assessOptions) release(ctx context.Context, delimiter rune) (*anonymize.Release, error) {
	sheet, err := o.sheet(ctx, delimiter)
	if err != nil {
		return nil, err
	}
	var original *anonymize.Sheet
	if o.original != "" {
		if original, err = openColumns(o.original, delimiter, o.named()); err != nil {
			return nil, err
		}
	}
	if err := onceEach(splitNames(o.qid), splitNames(o.sensitive)); err != nil {
		return nil, err
	}
	r := &anonymize.Release{}
	for _, name := range splitNames(o.qid) {
		q, err := o.column(name, sheet, original, delimiter)
		if err != nil {
			return nil, err
		}
		r.QuasiIdentifiers = append(r.QuasiIdentifiers, *q)
	}
	for name := range o.hierarchies {
		if !hasColumn(r.QuasiIdentifiers, name) {
			return nil, &anonymize.ProblemError{
				What:   fmt.Sprintf("hierarchy for %q, which is no quasi-identifier", name),
				Remedy: "name it in --qid",
			}
		}
	}
	for _, name := range splitNames(o.sensitive) {
		c, err := sheet.Find(name)
		if err != nil {
			return nil, err
		}
		r.Sensitive = append(r.Sensitive, anonymize.NewSensitiveAttribute(name, sheet.Cells(c)))
	}
	if o.subject != "" {
		if r.Subjects, err = sheet.Number(o.subject); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// sheet reads what is to be assessed.
func (o *assessOptions) sheet(ctx context.Context, delimiter rune) (*anonymize.Sheet, error) {
	if o.table == "" {
		return openColumns(o.csv, delimiter, o.named())
	}
	if o.qid == "" {
		return nil, &anonymize.ProblemError{
			What:   "no quasi-identifiers",
			Remedy: "name at least one in --qid",
		}
	}
	return readTable(ctx, o.dsn, o.table, o.named())
}

// named lists the columns that the flags name, each once.
func (o *assessOptions) named() []string {
	var columns []string
	for _, name := range append(splitNames(o.qid), splitNames(o.sensitive)...) {
		if !slices.Contains(columns, name) {
			columns = append(columns, name)
		}
	}
	if o.subject != "" && !slices.Contains(columns, o.subject) {
		columns = append(columns, o.subject)
	}
	return columns
}

func (o *assessOptions) column(
	name string, sheet, original *anonymize.Sheet, delimiter rune,
) (*anonymize.ReleasedColumn, error) {
	c, err := sheet.Find(name)
	if err != nil {
		return nil, err
	}
	q := &anonymize.ReleasedColumn{Name: name, Cells: sheet.Cells(c)}
	if original != nil {
		if c, err = original.Find(name); err != nil {
			return nil, err
		}
		q.Original = original.Cells(c)
	}
	if file, ok := o.hierarchies[name]; ok {
		if q.Hierarchy, err = openHierarchy(file, delimiter); err != nil {
			return nil, err
		}
	}
	return q, nil
}

// onceEach fails on a list that names a column twice.
func onceEach(lists ...[]string) error {
	for _, list := range lists {
		for i, name := range list {
			if slices.Contains(list[:i], name) {
				return &anonymize.ProblemError{
					What: fmt.Sprintf("column %q is named twice", name), Remedy: "name it once",
				}
			}
		}
	}
	return nil
}

func hasColumn(columns []anonymize.ReleasedColumn, name string) bool {
	for _, c := range columns {
		if c.Name == name {
			return true
		}
	}
	return false
}

func splitNames(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
