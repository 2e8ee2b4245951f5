package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// hierarchyOptions are the flags and the argument of `tailor hierarchy`.
type hierarchyOptions struct{ dsn, name, delimiter, file string }

func runHierarchy(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	const verbs = "it is import or list"
	switch {
	case len(args) == 0:
		fmt.Fprintln(stderr, "tailor hierarchy: the verb is missing; "+verbs)
		return exitUsage
	case slices.Contains([]string{"help", "--help", "-help", "-h"}, args[0]):
		fmt.Fprint(stdout, `tailor hierarchy: list hierarchies, and import them from files

usage: tailor hierarchy import [--dsn DSN] --name NAME [--delimiter ';'] FILE
       tailor hierarchy list [--dsn DSN]

A FILE has the form of ARX: a line a value, which comes first, and its labels from level 1 up.
`)
		return exitSuccess
	case args[0] != "import" && args[0] != "list":
		fmt.Fprintf(stderr, "tailor hierarchy: unknown verb %q; %s\n", args[0], verbs)
		return exitUsage
	}
	o := &hierarchyOptions{}
	wanted, summary, run := 0, "list the hierarchies that policies can use by name", listHierarchies
	if args[0] == "import" {
		wanted, summary, run = 1, "define a hierarchy by a file in the form of ARX", importHierarchy
	}
	flags := newFlags("hierarchy "+args[0], summary, stderr)
	flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
		"`DSN` of the database, as a member of tailor_admin")
	if wanted == 1 {
		flags.StringVar(&o.name, "name", "",
			"`NAME` of the hierarchy; one that you defined is defined anew")
		flags.StringVar(&o.delimiter, "delimiter", "",
			"`CHARACTER` between cells; the first of ; tab , in the file if not given")
	}
	flagged, files := splitArguments(args[1:])
	if code, ok := parseFlags(flags, flagged, stdout, stderr); !ok {
		return code
	}
	switch {
	case len(files) != wanted:
		return complainUsage(flags, stderr, fmt.Sprintf("%d FILE is wanted, not %d", wanted, len(files)))
	case o.dsn == "":
		return complainUsage(flags, stderr, "--dsn is missing")
	case wanted == 1 && o.name == "":
		return complainUsage(flags, stderr, "--name is missing")
	}
	if wanted == 1 {
		o.file = files[0]
	}
	err := run(ctx, o, stdout)
	var refused *policyError
	var path *fs.PathError
	if errors.As(err, &refused) || errors.As(err, &path) {
		return complainPolicy("hierarchy "+args[0], o.file, stderr, err)
	}
	if err != nil {
		return complainEngine("hierarchy "+args[0], stderr, err)
	}
	return exitSuccess
}

// importHierarchy reads a file, asks the engine whether its levels nest and
// defines a hierarchy of kind table.
func importHierarchy(ctx context.Context, o *hierarchyOptions, stdout io.Writer) error {
	delimiter, err := parseDelimiter(o.delimiter)
	if err != nil {
		return err
	}
	paths, err := readFile(o.file, func(r io.Reader) ([][]string, error) {
		return anonymize.ReadPaths(r, delimiter)
	})
	if err != nil {
		return err
	}
	if _, err := anonymize.NewHierarchy(paths); err != nil {
		return fmt.Errorf("%s: %w", o.file, err)
	}
	paths = withoutTop(paths)
	definition, err := json.Marshal(map[string]any{"paths": paths})
	if err != nil {
		return err
	}
	conn, err := connectTo(ctx, o.dsn, nil)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	if _, err := conn.Exec(ctx, `CALL tailor.define_hierarchy($1, 'table', $2::text::jsonb)`, o.name,
		string(definition)); err != nil {
		return refusal(ctx, fmt.Sprintf("hierarchy %q", o.name), err)
	}
	_, err = fmt.Fprintf(stdout, "hierarchy %q: %d values, %d levels above them\n", o.name, len(paths),
		len(paths[0]))
	return err
}

// withoutTop leaves out a last level that is * everywhere: every hierarchy has
// that one.
func withoutTop(paths [][]string) [][]string {
	for _, p := range paths {
		if len(p) < 2 || p[len(p)-1] != anonymize.Top {
			return paths
		}
	}
	out := make([][]string, len(paths))
	for i, p := range paths {
		out[i] = p[:len(p)-1]
	}
	return out
}

func listHierarchies(ctx context.Context, o *hierarchyOptions, stdout io.Writer) error {
	conn, err := connectTo(ctx, o.dsn, nil)
	if err != nil {
		return err
	}
	defer closeQuietly(conn)
	rows, err := conn.Query(ctx,
		`SELECT name, kind, owner::text FROM tailor.hierarchies ORDER BY name COLLATE "C"`)
	if err != nil {
		return refusal(ctx, "", err)
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tKIND\tOWNER")
	var name, kind, owner string
	if _, err := pgx.ForEachRow(rows, []any{&name, &kind, &owner}, func() error {
		_, err := fmt.Fprintf(table, "%s\t%s\t%s\n", name, kind, owner)
		return err
	}); err != nil {
		return refusal(ctx, "read the hierarchies", err)
	}
	return table.Flush()
}
