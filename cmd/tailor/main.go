// Command tailor is the proxy, its installer and its tools.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Exit codes of every command.
const (
	exitSuccess = 0
	exitFailure = 1
	exitUsage   = 2
)

// command is one subcommand. run returns the exit code and has said on stderr,
// in one line with a hint, what went wrong.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdin io.Reader, stdout,
		stderr io.Writer) int
}

var commands = []command{
	{"anonymize", "recode a CSV file until every class has k subjects", runAnonymize},
	{"assess", "measure the risk and the loss of a released CSV file or a table", runAssess},
	{"audit", "read and verify the audit log", runAudit},
	{"classify", "say what the columns of an unknown table may be, and draft a policy", runClassify},
	{"demo", "a private PostgreSQL with a synthetic hospital behind the proxy", runDemo},
	{"doctor", "find ways round the proxy, and what else is wrong", runDoctor},
	{"export", "write what a reader is shown of tables as files", runExport},
	{"fidelity", "compare the answers of releases with those of the tables", runFidelity},
	{"health", "ask whether a proxy on this machine is ready", runHealth},
	{"hierarchy", "list hierarchies, and import them from files", runHierarchy},
	{"install", "install or upgrade the SQL side in a database", runInstall},
	{"password", "set the password of a role where nobody is superuser", runPassword},
	{"policy", "keep policies in files: init, lint, plan, apply, export, seed", runPolicy},
	{"refresh", "copy tables anew, and bring what readers are shown up to date", runRefresh},
	{"serve", "run the proxy", runServe},
	{"disassociate", "publish set-valued data with k^m-anonymity", runDisassociate},
	{"report", "what is protected and was released to whom, for an ethics board", runReport},
	{"uninstall", "remove the SQL side from a database", runUninstall},
	{"verify", "check an anonymized file from outside", runVerify},
	{"workload", "run a file of queries on a CSV file as one chain", runWorkload},
}

// allCommands are the commands and those that tell about them.
func allCommands() []command {
	return append(
		slices.Clone(commands),
		command{"completion", "print a script by which bash completes commands and flags", runCompletion},
		command{"manual", "write the manual pages, one for each command", runManual},
		command{"version", "print the version, the commit and what tailor was built with", runVersion},
	)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := dispatch(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func dispatch(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		usage(stderr)
		return exitUsage
	}
	switch args[0] {
	case "help", "--help", "-h":
		usage(stdout)
		return exitSuccess
	case "--version":
		args = []string{"version"}
	}
	for _, c := range allCommands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:], stdin, stdout, stderr)
		}
	}
	fmt.Fprintf(stderr, "tailor: unknown command %q; \"tailor help\" lists the commands\n", args[0])
	return exitUsage
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "usage: tailor COMMAND [FLAGS]\n\ncommands:")
	for _, c := range allCommands() {
		fmt.Fprintf(w, "  %-13s %s\n", c.name, c.summary)
	}
	fmt.Fprintln(w, "\n\"tailor COMMAND --help\" lists the flags of a command.")
}
