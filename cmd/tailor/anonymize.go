package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// anonymizeOptions are the flags of `tailor anonymize`.
type anonymizeOptions struct {
	csv, delimiter    string
	hierarchies       hierarchyFiles
	qid, sensitive    columnNames
	keep, drop        columnNames
	k                 int
	limit             float64
	strict            bool
	recodingName      string
	search            string
	quality           string
	aggregate         string
	subject, base     string
	require           requiredModels
	timeLimit         time.Duration
	out, report       string
	delimiterRune     rune
	classes           columnClasses
	recoding          *recoding
	algorithm         anonymize.Algorithm
	mean              anonymize.Aggregate
	qualityModel      anonymize.Quality
	requirementModels []anonymize.Privacy
}

func runAnonymize(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o := anonymizeOptions{hierarchies: hierarchyFiles{}}
	flags := newFlags("anonymize",
		"recode a CSV file until every class has k subjects, with the least loss", stderr)
	flags.StringVar(&o.csv, "csv", "",
		"`FILE` to anonymize; its first line names the columns; .gz and .zst are read compressed")
	flags.StringVar(&o.delimiter, "delimiter", "",
		"`CHARACTER` between cells; the first of ; tab , in the file if not given")
	flags.Var(o.hierarchies, "hierarchy", "`COL=FILE` with the generalization hierarchy of a "+
		"column, which makes it a quasi-identifier; repeat for each")
	flags.Var(&o.qid, "qid",
		"quasi-identifiers `A,B`; one without --hierarchy is shown as it is or withheld")
	flags.Var(&o.sensitive, "sensitive",
		"sensitive attributes `C,D`: shown as they are; see --require for what protects them")
	flags.Var(&o.keep, "keep",
		"columns `E,F` to show as they are that neither identify nor are sensitive")
	flags.Var(&o.drop, "drop", "columns `G,H` to leave out, as all are that no flag names")
	flags.IntVar(&o.k, "k", 0, "fewest `SUBJECTS` of a class, at least 2")
	flags.Float64Var(&o.limit, "suppression-limit", 0.05, "`SHARE` of rows that may be suppressed")
	flags.BoolVar(&o.strict, "strict", false,
		"ask that the suppressed rows are none or those of k subjects, as a release should")
	flags.StringVar(&o.recodingName, "recoding", "full_domain",
		"`KIND` of recoding: full_domain, local or cell, see below")
	flags.StringVar(&o.search, "search", "optimal",
		"`ALGORITHM`: optimal, flash, best_first or greedy")
	flags.StringVar(&o.quality, "quality", "loss", "`MODEL` to minimize: "+qualityNames())
	flags.StringVar(&o.aggregate, "aggregate", "geometric",
		"`MEAN` of the loss of columns: geometric or arithmetic")
	flags.StringVar(&o.subject, "subject", "",
		"`COL` that tells whom a row is about, which is left out; every row is a subject if not given")
	flags.StringVar(&o.base, "base-partition", "",
		"`COL` of block numbers: classes are formed within blocks")
	flags.Var(&o.require, "require", "further `MODEL` of privacy; repeat for each: "+
		requirementNames())
	flags.DurationVar(&o.timeLimit, "time-limit", 0,
		"`DURATION` after which the best found so far is taken")
	flags.StringVar(&o.out, "out", "",
		"`FILE` for the anonymized CSV, compressed if it ends in .gz or .zst; - is the standard output")
	flags.StringVar(&o.report, "report", "", "`FILE.json` for the report; - is the standard output")
	describe(flags, recodingHelp)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if o.csv == "" {
		return complainUsage(flags, stderr, "--csv is missing")
	}
	if err := o.resolve(givenFlags(flags)); err != nil {
		return complainEngine("anonymize", stderr, err)
	}
	if err := anonymizeFile(ctx, &o, stdout, stderr); err != nil {
		return complainEngine("anonymize", stderr, err)
	}
	return exitSuccess
}

// resolve turns names into what they name. given are the flags that were set.
func (o *anonymizeOptions) resolve(given []string) (err error) {
	if o.k < 2 {
		return &anonymize.ProblemError{
			What:   fmt.Sprintf("k = %d protects nobody", o.k),
			Remedy: "give --k of at least 2",
		}
	}
	if o.timeLimit < 0 {
		return &anonymize.ProblemError{
			What:   "--time-limit is negative",
			Remedy: "give a duration such as 30s",
		}
	}
	if o.classes, err = o.classifyColumns(); err != nil {
		return err
	}
	if len(o.qid)+len(o.hierarchies) == 0 {
		return &anonymize.ProblemError{What: "no quasi-identifiers", Remedy: "name at least one by " +
			"--qid or --hierarchy COL=FILE"}
	}
	if o.recoding, err = parseRecoding(o.recodingName, given); err != nil {
		return err
	}
	if o.delimiterRune, err = parseDelimiter(o.delimiter); err != nil {
		return err
	}
	if o.algorithm, err = parseAlgorithm(o.search); err != nil {
		return err
	}
	if o.mean, err = parseAggregate(o.aggregate); err != nil {
		return err
	}
	if o.qualityModel, err = parseQuality(o.quality, o.mean); err != nil {
		return err
	}
	o.requirementModels = append([]anonymize.Privacy{anonymize.KAnonymity{K: o.k}},
		o.require.models...)
	return nil
}

func anonymizeFile(ctx context.Context, o *anonymizeOptions, stdout, stderr io.Writer) error {
	sheet, err := readFile(o.csv, func(r io.Reader) (*anonymize.Sheet, error) {
		return anonymize.ReadColumns(r, o.delimiterRune, o.choose)
	})
	if err != nil {
		return err
	}
	columns, err := o.quasiIdentifiers(sheet)
	if err != nil {
		return err
	}
	start := time.Now()
	p, err := o.problem(sheet, columns)
	if err != nil {
		return err
	}
	r, err := o.recode(ctx, p, stderr)
	if err != nil {
		return err
	}
	if o.out != "" {
		write := func(w io.Writer) error { return o.writeAnonymized(w, sheet, p.Table, r) }
		if err := writeTo(o.out, stdout, write); err != nil {
			return err
		}
	}
	report := newAnonymizeReport(o, sheet, p, r, r.found.Sub(start))
	tellUnnamed(stderr, report.Unnamed)
	tellUndoing(stderr, report.Warnings)
	if o.report != "" {
		if err := writeTo(o.report, stdout, report.writeJSON); err != nil {
			return err
		}
	}
	summary := stdout
	if o.out == "-" || o.report == "-" {
		summary = stderr
	}
	return report.writeText(summary)
}

// problem encodes the sheet.
func (o *anonymizeOptions) problem(
	sheet *anonymize.Sheet, columns []anonymize.Column,
) (*anonymize.Problem, error) {
	table, err := sheet.Encode(columns, o.subject)
	if err != nil {
		return nil, err
	}
	p := &anonymize.Problem{
		Table: table, Privacy: o.requirementModels, Quality: o.qualityModel,
		SuppressionLimit: o.limit, Strict: o.strict,
	}
	if o.base != "" {
		if p.Blocks, err = sheet.Number(o.base); err != nil {
			return nil, err
		}
	}
	for _, name := range o.require.sensitive() {
		c, err := sheet.Find(name)
		if err != nil {
			return nil, err
		}
		p.Sensitive = append(p.Sensitive, anonymize.NewSensitiveAttribute(name, sheet.Cells(c)))
	}
	return p, nil
}
