package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// policyVerbs are the subcommands of `tailor policy`.
var policyVerbs = []struct {
	name, summary string
	database      bool
	run           func(ctx context.Context, o *policyOptions, stdout io.Writer) error
}{
	{"init", "ask what the tables of a schema are, and write a first policy file", true, initPolicy},
	{"lint", "check a policy file by itself", false, lintPolicy},
	{
		"plan", "show what applying a policy file would change, and what that does to risk and loss",
		true, planPolicy,
	},
	{"apply", "put a policy file in force, all of it or nothing", true, applyPolicy},
	{"export", "write the policies in force to a file, - for the standard output", true, exportPolicy},
	{"seed", "prepare chains for the queries of a file of SQL", true, seedPolicy},
}

// policyOptions are the flags and the argument of a subcommand.
type policyOptions struct {
	dsn, file string
	project   string // of seed
	path      string // of seed: schemas
	notices   io.Writer
	// forgetChains are the tables of plan and apply that are shown anew.
	forgetChains []string
	initOptions
}

func runPolicy(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	help := func(w io.Writer) {
		fmt.Fprintln(w, "tailor policy: keep policies in files, under version control\n\nusage: tailor "+
			"policy VERB [--dsn DSN] FILE\n       tailor policy init --dsn DSN [--schema SCHEMA] [--out "+
			"FILE] [--yes]\n\nverbs:")
		for _, v := range policyVerbs {
			fmt.Fprintf(w, "  %-7s %s\n", v.name, v.summary)
		}
	}
	if len(args) == 0 {
		fmt.Fprintln(stderr,
			`tailor policy: the verb is missing; it is init, lint, plan, apply, export or seed`)
		return exitUsage
	}
	if slices.Contains([]string{"help", "--help", "-help", "-h"}, args[0]) {
		help(stdout)
		return exitSuccess
	}
	for _, v := range policyVerbs {
		if v.name != args[0] {
			continue
		}
		o := &policyOptions{notices: stderr, initOptions: initOptions{stdin: stdin}}
		flags := newFlags("policy "+v.name, v.summary, stderr)
		flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
			"`DSN` of the database, as a member of tailor_admin who owns the tables")
		if v.name == "seed" {
			flags.StringVar(&o.project, "project", "",
				"declare the workload under this `name`, for SET tailor.project; without it, the seed of "+
					"each table is printed for a policy file")
			flags.StringVar(&o.path, "search-path", "public",
				"`schemas` in which unqualified names are looked up, separated by commas")
		}
		if v.name == "plan" || v.name == "apply" {
			flags.Func("forget-chains", "show this `table` of the file anew, which gives up the guarantee "+
				"over what was shown of it before; may be given again", func(table string) error {
				o.forgetChains = append(o.forgetChains, table)
				return nil
			})
		}
		if v.name == "init" {
			o.addFlags(flags)
		}
		flagged, files := splitArguments(args[1:])
		if code, ok := parseFlags(flags, flagged, stdout, stderr); !ok {
			return code
		}
		switch {
		case v.name == "init":
			if fault := o.fault(files); fault != "" {
				return complainUsage(flags, stderr, fault)
			}
		case len(files) != 1:
			return complainUsage(flags, stderr, fmt.Sprintf("one FILE is wanted, not %d", len(files)))
		case v.database && o.dsn == "":
			return complainUsage(flags, stderr, "--dsn is missing")
		}
		if v.name != "init" {
			o.file = files[0]
		}
		return complainPolicy("policy "+v.name, o.file, stderr, v.run(ctx, o, stdout))
	}
	fmt.Fprintf(stderr,
		"tailor policy: unknown verb %q; it is init, lint, plan, apply, export or seed\n", args[0])
	return exitUsage
}

// valued are the flags that take the argument behind them.
var valued = []string{
	"dsn", "project", "search-path", "name", "delimiter", "schema", "out", "k",
	"forget-chains",
}

// splitArguments tells flags, which may stand before or behind it, from the
// file.
func splitArguments(args []string) (flags, files []string) {
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a == "--":
			return flags, append(files, args[i+1:]...)
		case a == "-" || !strings.HasPrefix(a, "-"):
			files = append(files, a)
		case slices.Contains(valued, strings.TrimLeft(a, "-")) && i+1 < len(args):
			flags = append(flags, a, args[i+1])
			i++
		default:
			flags = append(flags, a)
		}
	}
	return flags, files
}

// faultyFile is a file with faults.
type faultyFile []policyfile.Fault

func (f faultyFile) Error() string { return fmt.Sprintf("%d faults", len(f)) }

// policyError is what the database refused, in words that quote no data.
type policyError struct{ what, remedy string }

func (e *policyError) Error() string { return e.what }

// nothingChanged is the remedy of an error for which there is no other.
const nothingChanged = "nothing was changed"

// complainPolicy reports the outcome of a subcommand.
func complainPolicy(name, file string, stderr io.Writer, err error) int {
	var (
		faults  faultyFile
		refused *policyError
		known   *databaseError
		problem *anonymize.ProblemError
		path    *fs.PathError
	)
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &faults):
		for _, f := range faults {
			fmt.Fprintf(stderr, "%s:%s\n", file, f)
		}
	case errors.As(err, &refused):
		fmt.Fprintf(stderr, "tailor %s: %s; %s\n", name, refused.what, refused.remedy)
	case errors.As(err, &problem):
		fmt.Fprintf(stderr, "tailor %s: %s; %s\n", name, problem.What, problem.Remedy)
		return exitUsage
	case errors.As(err, &known):
		fmt.Fprintf(stderr, "tailor %s: %s; %s\n", name, known.what, known.remedy)
	case errors.As(err, &path):
		fmt.Fprintf(stderr, "tailor %s: %v; check the name of the file\n", name, err)
	default:
		return complain(name, stderr, err)
	}
	return exitFailure
}

// readPolicy reads a file without faults.
func readPolicy(name string) (*policyfile.File, error) {
	source, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	f, faults := policyfile.Parse(source)
	if faults != nil {
		return nil, faultyFile(faults)
	}
	return f, nil
}

func lintPolicy(_ context.Context, o *policyOptions, stdout io.Writer) error {
	f, err := readPolicy(o.file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: no faults in %d tables and %d hierarchies\n", o.file,
		len(f.Tables), len(f.Hierarchies))
	return err
}

// refusal keeps what Tailor's own procedures say, which never quotes data, and
// what PostgreSQL says of names; of other errors it keeps the SQLSTATE.
func refusal(ctx context.Context, about string, err error) error {
	var server *pgconn.PgError
	if !errors.As(err, &server) {
		return databaseFault(ctx, "ask the database", err)
	}
	own := server.Routine == "exec_stmt_raise"
	names := slices.Contains([]string{
		"42501", "42P01", "42703", "42704", "42883", "3F000", "40P01",
	}, server.Code)
	if text, remedy := busy(server.Code); text != "" && !own {
		return &policyError{strings.TrimPrefix(about+": "+text, ": "), remedy}
	}
	if !own && !names {
		return databaseFault(ctx, about, err)
	}
	what := server.Message
	if about != "" {
		what = about + ": " + what
	}
	if own && server.Detail != "" {
		what += " (" + strings.TrimSuffix(server.Detail, ".") + ")"
	}
	remedy := nothingChanged
	if own && server.Hint != "" {
		remedy = strings.TrimSuffix(server.Hint, ".")
	} else if server.Code == "42501" {
		remedy = "connect as the owner of the tables and a member of tailor_admin"
	} else if server.Code == "42P01" || server.Code == "3F000" {
		remedy = "check the name, and that tailor install has been run in this database"
	}
	return &policyError{strings.Join(strings.Fields(what), " "), strings.Join(strings.Fields(remedy),
		" ")}
}

// busy says what keeps a server from doing what it is asked for, and what to do.
func busy(code string) (text, remedy string) {
	switch code {
	case "55P03":
		return "somebody else is at work on it, such as a refresh", "try again when that is done: " +
			"pg_blocking_pids says who it is"
	case "57014":
		return "it was cancelled, or took longer than statement_timeout",
			"raise that for the role of --dsn"
	case "25006":
		return "the server is read-only", "connect to the primary"
	}
	return "", ""
}

// assertInstalled fails where the database has no SQL side, or one of another
// version.
func assertInstalled(ctx context.Context, tx pgx.Tx) error {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT pg_catalog.to_regclass('tailor.installation') IS NOT NULL`).
		Scan(&there); err != nil {
		return err
	}
	if !there {
		return &policyError{
			"the database has no SQL side of this version",
			"run tailor install --dsn DSN first",
		}
	}
	return nil
}
