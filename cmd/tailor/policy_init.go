package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// initOptions are the flags of `tailor policy init`.
type initOptions struct {
	schema     string
	yes, force bool
	k          int
	stdin      io.Reader
}

// addFlags declares the flags of init.
func (o *policyOptions) addFlags(flags *flag.FlagSet) {
	flags.StringVar(&o.schema, "schema", "public", "`SCHEMA` whose tables are asked about")
	flags.StringVar(&o.file, "out", "policy.yaml",
		"`FILE` to write the policy to, - for the standard output")
	flags.BoolVar(&o.force, "force", false, "replace the file if it is there")
	flags.BoolVar(&o.yes, "yes", false, "ask nothing and take all that is suggested")
	flags.IntVar(&o.k, "k", 0, "suggest this `K`, 2 or more; 5 if not given")
}

// fault says what is wrong with the arguments, "" for nothing.
func (o *policyOptions) fault(files []string) string {
	switch {
	case len(files) > 0:
		return "the file is named with --out"
	case o.dsn == "":
		return "--dsn is missing"
	case o.k != 0 && o.k < 2:
		return "--k must be at least 2: a person alone is not protected"
	case o.file == "":
		return "--out names no file"
	}
	return ""
}

// initPolicy asks what the tables of a schema are and writes a first policy. It changes nothing
// in the database, and writes nothing unless all is answered.
func initPolicy(ctx context.Context, o *policyOptions, stdout io.Writer) error {
	if err := o.mayAsk(); err != nil {
		return err
	}
	status, done := statusLine(o.notices)
	defer done()
	all, _ := settings(o.k)
	found, err := surveySchema(ctx, o.dsn, o.schema, "", all[len(all)-1].k, status)
	done()
	if err != nil {
		return err
	}
	g := o.newGuide(found, stdout, status, done)
	g.say("schema %s: %d tables with rows to protect, nothing is changed in them\n",
		o.schema, len(found.tables))
	for _, reason := range found.out {
		g.say("  left out %s\n", reason)
	}
	if !o.yes {
		g.say("Enter takes what stands in brackets, ? has help, b goes back, Ctrl-C ends it " +
			"and nothing is written.\n")
	}
	if len(found.tables) == 0 {
		return &policyError{
			"the schema " + o.schema + " has no table to protect", "name another with --schema",
		}
	}
	f, err := g.policy(ctx, o.schema)
	if err != nil {
		return err
	}
	if err := o.writePolicy(f, stdout); err != nil {
		return err
	}
	g.say("\n%s\n", o.next(f))
	return nil
}

// newGuide makes a guide that talks on the standard output, or beside it if the policy goes
// there.
func (o *policyOptions) newGuide(
	found *survey, stdout io.Writer, status func(string), done func(),
) *guide {
	g := &guide{
		survey: found, lines: readLines(o.stdin), out: stdout, echo: !isTerminal(o.stdin),
		yes: o.yes,
	}
	if o.file == "-" {
		g.out = o.notices
	}
	g.settings, g.chosen = settings(o.k)
	g.weigh = func(ctx context.Context, all []setting) ([][]effect, error) {
		defer done()
		return found.weigh(ctx, o.dsn, all, status)
	}
	return g
}

// policy asks, and makes a file of the answers.
func (g *guide) policy(ctx context.Context, schema string) (*policyfile.File, error) {
	err := g.run(ctx)
	switch {
	case errors.Is(err, errNoAnswer) && g.asked == 0:
		return nil, errNobodyAnswers
	case errors.Is(err, errNoAnswer):
		return nil, &policyError{err.Error(), "nothing was written; answer all, or add --yes"}
	case err != nil:
		return nil, err
	}
	return g.file(schema, g.settings, g.effects, g.chosen)
}

var errNobodyAnswers = &anonymize.ProblemError{
	What:   "the standard input is no terminal and has no answers",
	Remedy: "run it in a terminal, or add --yes to take all that is suggested",
}

// mayAsk fails early if nobody can answer, or if the file is there already.
func (o *policyOptions) mayAsk() error {
	if f, is := o.stdin.(*os.File); is && !o.yes && isEmpty(f) {
		return errNobodyAnswers
	}
	if o.file == "-" || o.force {
		return nil
	}
	if _, err := os.Lstat(o.file); err == nil {
		return errExists(o.file)
	}
	return nil
}

func errExists(file string) error {
	return &anonymize.ProblemError{
		What: file + " is there already", Remedy: "name another with --out, or add --force",
	}
}

// isEmpty says that a file is one without text, or the null device, where nobody answers.
func isEmpty(f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return info.Mode().IsRegular() && info.Size() == 0 || err == nil && os.SameFile(info, null)
}

// isTerminal says that what is read from shows by itself what is typed.
func isTerminal(in io.Reader) bool {
	_, is := terminal(in)
	return is
}

// writePolicy writes the file, all of it or nothing.
func (o *policyOptions) writePolicy(f *policyfile.File, stdout io.Writer) error {
	if o.file == "-" {
		return f.Write(stdout)
	}
	if o.force {
		return atomicfile.Write(o.file, 0o644, f.Write)
	}
	err := atomicfile.WriteNew(o.file, 0o644, f.Write)
	if errors.Is(err, fs.ErrExist) {
		return errExists(o.file)
	}
	return err
}

// next says which command follows. The DSN may hold a password.
func (o *policyOptions) next(f *policyfile.File) string {
	name, written := "FILE", "the policy of"
	if o.file != "-" {
		name, written = o.file, o.file+" has the policy of"
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return strings.ContainsRune(" \t'\"$`\\&;|<>()*?[]#~", r)
	}) {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	dsn := " --dsn DSN"
	if fromEnvironment("dsn", "") == o.dsn {
		dsn = ""
	}
	return fmt.Sprintf("%s %d tables; read it, then run: tailor policy plan%s %s",
		written, len(f.Tables), dsn, name)
}
