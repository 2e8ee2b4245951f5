package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/anonymize/identify"
	"github.com/hiatus-tailor/tailor/catalog"
)

// classifyOptions are the flags of `tailor classify`.
type classifyOptions struct {
	dsn, table, csv, delimiter string
	thresholds                 identify.Thresholds
	direct, subject            string
	format, write              string

	dimensions     bool
	qid, sensitive string
	hierarchies    hierarchyFiles
	levels         levelChoices
}

func runClassify(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o := classifyOptions{
		thresholds: identify.DefaultThresholds(), hierarchies: hierarchyFiles{},
		levels: levelChoices{},
	}
	flags := newFlags("classify",
		"say what the columns of an unknown table may be, and draft a policy", stderr)
	flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
		"`DSN` of the database with the --table")
	flags.StringVar(&o.table, "table", "", "`TABLE` in the database, such as public.patients")
	flags.StringVar(&o.csv, "csv", "",
		"`FILE` to look at in place of a table; its first line names the columns")
	flags.StringVar(&o.delimiter, "delimiter", "",
		"`CHARACTER` between cells; the first of ; tab , in the file if not given")
	flags.Float64Var(&o.thresholds.Alpha, "alpha", o.thresholds.Alpha,
		"risk rate in `PERCENT` above which an attribute counts as sensitive")
	flags.Float64Var(&o.thresholds.Beta, "beta", o.thresholds.Beta,
		"risk rate in `PERCENT` from which an attribute counts as a quasi-identifier")
	flags.StringVar(&o.direct, "direct", "", "columns `COL,…` that are known to be direct identifiers")
	flags.StringVar(&o.subject, "subject", "",
		"`COL` that says whom a row is about, for --write; the primary key if not given")
	flags.StringVar(&o.format, "format", "text", "`FORMAT` of the report: text or json")
	flags.StringVar(&o.write, "write", "", "`FILE` to write a draft of a policy to; it must not exist")
	flags.BoolVar(&o.dimensions, "dimensions", false,
		"report in place of the classes how many quasi-identifiers to de-identify; reads the columns")
	flags.StringVar(&o.qid, "qid", "",
		"quasi-identifiers `A,B` of --dimensions; those by the risk rate if not given")
	flags.StringVar(&o.sensitive, "sensitive", "",
		"sensitive attributes `C,D` of --dimensions; those by the risk rate if not given")
	flags.Var(o.hierarchies, "hierarchy",
		"`COL=FILE` by which --dimensions de-identifies a column; repeat for each")
	flags.Var(o.levels, "level",
		"`COL=LEVEL` of the hierarchy that --dimensions shows; 1 if not given")
	describe(flags, "\n"+identify.Caveat+"\n")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if fault := o.fault(givenFlags(flags)); fault != "" {
		return complainUsage(flags, stderr, fault)
	}
	run := classify
	if o.dimensions {
		run = classifyDimensions
	}
	if err := run(ctx, &o, stdout); err != nil {
		return complainEngine("classify", stderr, err)
	}
	return exitSuccess
}

// fault says what is wrong with the flags together, "" for nothing.
func (o *classifyOptions) fault(given []string) string {
	has := func(name string) bool { return slices.Contains(given, name) }
	if err := o.thresholds.Validate(); err != nil {
		return err.Error()
	}
	switch {
	case o.format != "text" && o.format != "json":
		return fmt.Sprintf("unknown format %q", o.format)
	case o.csv != "" && has("dsn"):
		return "--csv does not go with --dsn"
	case o.csv == "" && o.table == "":
		return "--table is missing, or --csv"
	case o.csv == "" && o.dsn == "":
		return "--dsn is missing"
	case o.csv == "" && has("delimiter"):
		return "--delimiter does not go with --table"
	case o.dimensions && o.write != "":
		return "--write does not go with --dimensions"
	}
	if !o.dimensions {
		for _, name := range []string{"qid", "sensitive", "hierarchy", "level"} {
			if has(name) {
				return fmt.Sprintf("--%s goes with --dimensions", name)
			}
		}
	}
	return ""
}

// classified is what was measured, and of what.
type classified struct {
	table string
	*catalog.Identification
	shown        *identify.Rows // cells of the columns that may be shown
	combinations *identify.Combinations
	dependencies []identify.Dependency
	refers       []string // what columns refer to, in words
	// allPairs says that every pair was looked at for a dependency.
	allPairs bool
	// named is how many rows a value has at least that labels name, draftK if it is less.
	named int
}

// together looks at the columns together that may be shown.
func (c *classified) together(o *classifyOptions) {
	var names []string
	for _, k := range c.Columns {
		switch s := k.Suggest(o.thresholds, slices.Contains(splitNames(o.direct), k.Name)); {
		case s.Class == identify.DirectIdentifier || s.Class == identify.Unclassified:
		case k.Name == o.subject || k.Distinct < 2:
		default:
			names = append(names, k.Name)
		}
	}
	c.shown = c.Cells.Of(names)
	c.combinations = identify.Combine(c.shown)
	c.combinations.Accompany(c.Columns)
	c.dependencies, c.allPairs = identify.Depend(c.shown)
}

func classify(ctx context.Context, o *classifyOptions, stdout io.Writer) error {
	c, err := o.measure(ctx)
	if err != nil {
		return err
	}
	for _, name := range append(splitNames(o.direct), splitNames(o.subject)...) {
		if !slices.ContainsFunc(c.Columns, func(k *identify.Column) bool { return k.Name == name }) {
			return &anonymize.ProblemError{
				What:   fmt.Sprintf("there is no column %q", name),
				Remedy: "name a column as it is stored",
			}
		}
	}
	c.together(o)
	inOrder := slices.Clone(c.Columns)
	identify.ByRisk(c.Columns)
	report := newClassifyReport(o, c)
	if o.write != "" {
		draft, err := writeDraft(o, c, inOrder)
		if err != nil {
			return err
		}
		report.propose(o.write, draft)
	}
	if o.format == "json" {
		return report.writeJSON(stdout)
	}
	return report.writeText(stdout)
}

// measure looks at the file or the table.
func (o *classifyOptions) measure(ctx context.Context) (*classified, error) {
	if o.csv == "" {
		return measureTable(ctx, o.dsn, o.table)
	}
	delimiter, err := parseDelimiter(o.delimiter)
	if err != nil {
		return nil, err
	}
	sheet, err := openSheet(o.csv, delimiter)
	if err != nil {
		return nil, err
	}
	name := o.table
	if name == "" {
		base := filepath.Base(o.csv)
		name = "public." + pgx.Identifier{strings.TrimSuffix(base, filepath.Ext(base))}.Sanitize()
	}
	c := &classified{table: name, Identification: &catalog.Identification{
		Rows:  sheet.Rows(),
		Share: 1,
	}}
	var names []string
	var cells [][]string
	for i, column := range sheet.Header() {
		if column == "" { // an index that some program wrote
			continue
		}
		c.Columns = append(c.Columns, identify.NewColumn(column, sheet.Cells(i)))
		names, cells = append(names, column), append(cells, sheet.Cells(i))
	}
	c.Cells = identify.NewRows(names, cells, sheet.Rows(), catalog.SampleRows)
	return c, nil
}

func measureTable(ctx context.Context, dsn, name string) (*classified, error) {
	var c *classified
	err := inSnapshot(ctx, dsn, func(tx pgx.Tx) error {
		relation, err := findRelation(ctx, tx, name, nil)
		if err != nil {
			return err
		}
		measured, err := catalog.Identify(ctx, tx, relation)
		if err != nil {
			return err
		}
		c = &classified{table: quoteTable(relation), Identification: measured}
		return c.findSubject(ctx, tx)
	})
	return c, err
}

// findSubject takes a column that refers to another table as the subject, as policy init does,
// where several rows may be of one whom they are about. One that many rows have refers to a list.
func (c *classified) findSubject(ctx context.Context, tx pgx.Tx) error {
	t := &surveyedTable{name: c.table}
	for _, k := range c.Columns {
		t.columns = append(t.columns, &surveyedColumn{Column: k})
	}
	s := &survey{refers: make(map[tableColumn]tableColumn), tables: []*surveyedTable{t}}
	if err := s.readKeys(ctx, tx); err != nil {
		return fmt.Errorf("read the foreign keys: %w", err)
	}
	for _, key := range t.keys {
		c.refers = append(c.refers, fmt.Sprintf("%s refers to %s", key.column, key.to.table))
	}
	if name := t.suggestSubject(c.Subject); name != "" && name != c.Subject {
		if k := t.column(name); k.Distinct*mostRowsOfSubject >= k.Rows {
			c.Subject = name
		}
	}
	return nil
}

// mostRowsOfSubject is how many rows each has on average whom a column may refer to as a subject.
const mostRowsOfSubject = 100
