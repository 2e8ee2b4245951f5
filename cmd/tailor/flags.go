package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// newFlags makes the flags of a command. summary is its first line of help.
func newFlags(name, summary string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet("tailor "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "tailor %s: %s\n\nflags:\n", name, summary)
		flags.PrintDefaults()
	}
	return flags
}

// describe adds a text to the help, below the flags.
func describe(flags *flag.FlagSet, text string) {
	usage := flags.Usage
	flags.Usage = func() {
		usage()
		fmt.Fprint(flags.Output(), text)
	}
}

// givenFlags names the flags that were set.
func givenFlags(flags *flag.FlagSet) []string {
	var given []string
	flags.Visit(func(f *flag.Flag) { given = append(given, f.Name) })
	return given
}

// parseFlags reads the arguments. Where it returns false, the command is over
// with the code: help was asked for, or the usage was wrong.
func parseFlags(flags *flag.FlagSet, args []string, stdout, stderr io.Writer) (code int, ok bool) {
	flags.SetOutput(io.Discard)
	err := flags.Parse(args)
	flags.SetOutput(stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(stdout)
		flags.Usage()
		return exitSuccess, false
	case err != nil:
		return complainUsage(flags, stderr, err.Error()), false
	case flags.NArg() > 0:
		return complainUsage(flags, stderr, fmt.Sprintf("unexpected argument %q", flags.Arg(0))), false
	}
	return exitSuccess, true
}

// complainUsage says what is wrong with the arguments.
func complainUsage(flags *flag.FlagSet, stderr io.Writer, fault string) int {
	fmt.Fprintf(stderr, "%s: %s; \"%s --help\" lists the flags\n", flags.Name(), fault, flags.Name())
	return exitUsage
}

// complain says why a command failed.
func complain(name string, stderr io.Writer, err error) int {
	text := strings.ReplaceAll(err.Error(), "\n", "; ")
	if known := (*sqlstate.Error)(nil); errors.As(err, &known) && known.Hint != "" {
		text += "; " + known.Hint
	}
	fmt.Fprintf(stderr, "tailor %s: %s\n", name, text)
	return exitFailure
}

// fromEnvironment is the default of a flag: the variable TAILOR_NAME where it
// is set.
func fromEnvironment(name, otherwise string) string {
	if v, ok := os.LookupEnv("TAILOR_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))); ok {
		return v
	}
	return otherwise
}
