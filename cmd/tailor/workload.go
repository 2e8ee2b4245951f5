package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

// workloadOptions are the flags of tailor workload.
type workloadOptions struct {
	csv, queries, seed, report, subject string
	delimiter                           rune
	hierarchies                         hierarchyFiles
	k                                   int
	outlook                             float64
	root, bound                         bool
}

// errUsage marks errors of usage, which exit with 2.
var errUsage = errors.New("wrong usage")

// runWorkload answers a file of queries as one chain or from one root, and
// reports the loss of each, their mean, and the smallest block of the common
// refinement.
func runWorkload(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o, err := parseWorkloadFlags(args, stdout, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err == nil {
		err = o.execute(ctx, stdout)
	}
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprintf(stderr, "tailor workload: %v (see tailor workload --help)\n", err)
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "tailor workload: %v\n", err)
		return 1
	}
	return 0
}

func parseWorkloadFlags(args []string, stdout, stderr io.Writer) (*workloadOptions, error) {
	o := &workloadOptions{hierarchies: hierarchyFiles{}}
	flags := flag.NewFlagSet("tailor workload", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&o.csv, "csv", "", "table, a CSV `file` with a header line")
	flags.Var(o.hierarchies, "hierarchy", "hierarchy of a quasi-identifier, `COL=FILE`; once for each")
	flags.IntVar(&o.k, "k", 0, "least number of subjects in every block")
	flags.StringVar(&o.queries, "queries", "",
		"queries, a `file` with the columns of one query a line, separated by commas")
	flags.StringVar(&o.seed, "seed", "",
		"declared queries, a `file` like --queries, that the chain or the root is prepared for")
	flags.BoolVar(&o.root, "root", false,
		"answer all queries from one root partition in place of a chain")
	flags.BoolVar(&o.bound, "bound", false,
		"print a loss over all columns that no blocks of k subjects fall below")
	flags.StringVar(&o.subject, "subject", "",
		"`column` that names the person a row is about (default: every row is another person)")
	flags.Float64Var(&o.outlook, "outlook", anonymize.DefaultOutlook,
		"weight of the columns that a query does not ask for")
	delimiter := flags.String("delimiter", ";", "what separates values in CSV files, one `character`")
	flags.StringVar(&o.report, "report", "", "write the report to a JSON `file` as well")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			flags.SetOutput(stdout)
			fmt.Fprintln(stdout,
				"Answers a file of queries as one chain, which each query refines, or with --root from one")
			fmt.Fprintln(stdout,
				"partition of the table. Reports what each query loses, and how well subjects stay together.")
			flags.PrintDefaults()
			return nil, err
		}
		return nil, fmt.Errorf("%w: %v", errUsage, err)
	}
	var unread error
	o.delimiter, unread = parseDelimiter(*delimiter)
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("%w: unexpected argument", errUsage)
	case o.csv == "" || o.queries == "" || len(o.hierarchies) == 0:
		return nil, fmt.Errorf("%w: --csv, --queries and at least one --hierarchy are needed", errUsage)
	case o.k < 1:
		return nil, fmt.Errorf("%w: --k must be at least 1", errUsage)
	case unread != nil || o.delimiter == 0:
		return nil, fmt.Errorf("%w: --delimiter must be one character", errUsage)
	case !(o.outlook >= 0 && o.outlook <= 100):
		return nil, fmt.Errorf("%w: --outlook must be from 0 to 100", errUsage)
	}
	return o, nil
}

// execute reads the files, runs the chain and writes the report.
func (o *workloadOptions) execute(ctx context.Context, stdout io.Writer) error {
	table, err := o.readTable()
	if err != nil {
		return err
	}
	queries, err := readQueries(o.queries, table)
	if err != nil {
		return err
	}
	var declared anonymize.Workload
	if o.seed != "" {
		if declared, err = readQueries(o.seed, table); err != nil {
			return err
		}
	}
	answer := o.chain
	if o.root {
		answer = o.fromRoot
	}
	report, err := answer(ctx, table, queries, declared)
	if err != nil {
		return err
	}
	for i, q := range report.Queries {
		fmt.Fprintf(stdout, "query %d\tloss %.4f\t%s\n", i+1, q.Loss, strings.Join(q.Columns, ","))
	}
	fmt.Fprintf(stdout, "mean loss\t%.4f\n", report.MeanLoss)
	fmt.Fprintf(stdout, "smallest block of the common refinement\t%d subjects\n", report.SmallestBlock)
	fmt.Fprintf(stdout, "blocks of the common refinement\t%d\n", report.Blocks)
	if o.bound {
		if err := o.printBound(ctx, table, stdout); err != nil {
			return err
		}
	}
	if o.report == "" {
		return nil
	}
	data, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	return atomicfile.Write(o.report, 0o600, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

// chain answers the queries one after the other, each by a refinement.
func (o *workloadOptions) chain(
	ctx context.Context, table *anonymize.Table, queries, declared anonymize.Workload,
) (*anonymize.WorkloadReport, error) {
	requirements := []anonymize.Requirement{anonymize.BlockK{K: o.k}}
	p := anonymize.NewPartition(table)
	if declared != nil {
		var err error
		if p, err = p.Refine(ctx, declared.Seed(table, requirements)); err != nil {
			return nil, err
		}
	}
	outlook := make([]float64, len(table.Columns()))
	for c := range outlook {
		outlook[c] = o.outlook
	}
	return queries.Run(ctx, p, func(columns []int) anonymize.Refinement {
		return anonymize.Refinement{Columns: columns, Requirements: requirements, Outlook: outlook}
	})
}

// fromRoot answers the queries from one root partition.
func (o *workloadOptions) fromRoot(
	ctx context.Context, table *anonymize.Table, queries, declared anonymize.Workload,
) (*anonymize.WorkloadReport, error) {
	plan := anonymize.RootPlan{Requirements: []anonymize.Requirement{anonymize.BlockK{K: o.k}}}
	if declared != nil {
		plan.Weights = declared.Weights(table)
	}
	root, err := anonymize.Root(ctx, table, plan)
	if err != nil {
		return nil, err
	}
	return queries.Read(root), nil
}

// printBound prints the lower bound of the loss over all columns.
func (o *workloadOptions) printBound(
	ctx context.Context, table *anonymize.Table, stdout io.Writer,
) error {
	bound, err := anonymize.LowerBound(ctx, table, o.k)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "lower bound of the loss over all columns\t%.4f\n", bound)
	return nil
}

func readQueries(path string, t *anonymize.Table) (anonymize.Workload, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return anonymize.ReadWorkload(f, t)
}

// readTable encodes the columns that have a hierarchy. A column that the file
// lacks is wrong usage.
func (o *workloadOptions) readTable() (*anonymize.Table, error) {
	names := slices.Collect(maps.Keys(o.hierarchies))
	sheet, err := openColumns(o.csv, o.delimiter, append(names, o.subject))
	if err != nil {
		return nil, err
	}
	columns, err := o.hierarchies.columns(sheet, o.delimiter)
	var missing *anonymize.ProblemError
	if err == nil && o.subject != "" {
		_, err = sheet.Find(o.subject)
	}
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("%w: %s: %w", errUsage, o.csv, err)
	}
	if err != nil {
		return nil, err
	}
	table, err := sheet.Encode(columns, o.subject)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.csv, err)
	}
	return table, nil
}
