package main

import (
	"bufio"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

const disassociateUsage = `usage: tailor disassociate --data FILE --k K --m M [FLAGS]

Publishes set-valued data with k^m-anonymity: whoever knows up to M codes of a
record finds at least K records that may be it. The published form is verified
before it is written.

  --data FILE         one record a line, codes separated by spaces; - reads
                      standard input; gzip is recognized
  --k K, --m M        at least 2, at least 1
  --constraints FILE  utility constraints: one a line, codes separated by
                      spaces, after an optional name with a colon
  --sensitive FILE    codes that nobody may link to a record
  --diversity L       link them with a probability of at most 1/L (default K)
  --strict-diversity  even where a reader knows how often they occur
  --max-cluster N     clusters stay below N records where they can
                      (default twice the larger of K and L)
  --refine HOW        none, joint or scoped (default scoped)
  --out FILE          the published form as JSON (default standard output)
  --reconstruct N     also write N data sets that the form can be read as, one
                      record a line, to FILE.1 ... FILE.N beside --out; the
                      report says how well they answer
  --report FILE       measures of the result as JSON; holds original counts,
                      so not for publication
  --min-support S     the report's workload: all sets of codes that at least
                      this share of the records hold (default 0.0125)
  --seed N            fixes all random choices; keep it secret
`

// disassociateFlags is the command line of tailor disassociate.
type disassociateFlags struct {
	data, constraints, sensitive, refine, out, report string
	k, m, diversity, maxCluster, reconstruct          int
	strict                                            bool
	minSupport                                        float64
	seed                                              uint64
	seeded                                            bool
}

// disassociateError is a failure with its exit status and what to do about it.
type disassociateError struct {
	status int
	err    error
	hint   string
}

func (e *disassociateError) Error() string {
	text := strings.ReplaceAll(e.err.Error(), "\n", "; ")
	return fmt.Sprintf("tailor disassociate: %s (%s)", text, e.hint)
}

func (e *disassociateError) Unwrap() error { return e.err }

// runDisassociate is the command tailor disassociate. It returns the exit
// status: 0, 1 on failure, 2 on wrong usage.
func runDisassociate(
	ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
) int {
	flags, err := parseDisassociate(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, disassociateUsage)
		return 0
	}
	if err == nil {
		err = disassociateFiles(ctx, flags, stdin, stdout, stderr)
	}
	if err == nil {
		return 0
	}
	failure := &disassociateError{1, err, "nothing was written"}
	errors.As(err, &failure)
	fmt.Fprintln(stderr, failure)
	return failure.status
}

func parseDisassociate(args []string) (*disassociateFlags, error) {
	f := &disassociateFlags{}
	set := flag.NewFlagSet("disassociate", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&f.data, "data", "", "")
	set.IntVar(&f.k, "k", 0, "")
	set.IntVar(&f.m, "m", 0, "")
	set.StringVar(&f.constraints, "constraints", "", "")
	set.StringVar(&f.sensitive, "sensitive", "", "")
	set.IntVar(&f.diversity, "diversity", 0, "")
	set.BoolVar(&f.strict, "strict-diversity", false, "")
	set.IntVar(&f.maxCluster, "max-cluster", 0, "")
	set.StringVar(&f.refine, "refine", disassociate.RefineScoped.String(), "")
	set.StringVar(&f.out, "out", "", "")
	set.StringVar(&f.report, "report", "", "")
	set.IntVar(&f.reconstruct, "reconstruct", 0, "")
	set.Float64Var(&f.minSupport, "min-support", 0.0125, "")
	set.Uint64Var(&f.seed, "seed", 0, "")
	wrong := func(err error) error {
		return &disassociateError{2, err, "see tailor disassociate --help"}
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, wrong(err)
	}
	set.Visit(func(given *flag.Flag) { f.seeded = f.seeded || given.Name == "seed" })
	switch {
	case set.NArg() > 0:
		return nil, wrong(fmt.Errorf("unexpected argument %q", set.Arg(0)))
	case f.data == "":
		return nil, wrong(errors.New("--data is missing"))
	case f.reconstruct < 0:
		return nil, wrong(errors.New("--reconstruct must not be negative"))
	case f.reconstruct > 0 && f.out == "" && f.report == "":
		return nil, wrong(errors.New("--reconstruct needs --out or --report"))
	case f.minSupport <= 0 || f.minSupport > 1:
		return nil, wrong(errors.New("--min-support must be above 0 and at most 1"))
	case (f.diversity != 0 || f.strict) && f.sensitive == "":
		return nil, wrong(errors.New("a diversity needs --sensitive"))
	}
	cfg, err := f.config()
	if err == nil {
		err = cfg.Validate()
	}
	if err != nil {
		return nil, wrong(err)
	}
	return f, nil
}

// config is the configuration that the flags ask for, without the contents of
// files.
func (f *disassociateFlags) config() (disassociate.Config, error) {
	cfg := disassociate.Default(f.k, f.m)
	var err error
	if cfg.Refine, err = disassociate.ParseRefinement(f.refine); err != nil {
		return cfg, err
	}
	if f.sensitive != "" {
		cfg.Diversity, cfg.StrictDiversity = f.k, f.strict
		if f.diversity != 0 {
			cfg.Diversity = f.diversity
		}
		cfg.MaxCluster = 2 * max(cfg.K, cfg.Diversity)
	}
	if f.maxCluster != 0 {
		cfg.MaxCluster = f.maxCluster
	}
	return cfg, nil
}

// disassociateFiles reads, publishes and writes.
func disassociateFiles(
	ctx context.Context, f *disassociateFlags, stdin io.Reader, stdout, stderr io.Writer,
) error {
	cfg, err := f.config()
	if err != nil {
		return err
	}
	d, blank, err := readSetValued(f.data, stdin)
	if err != nil {
		return &disassociateError{
			1, fmt.Errorf("--data: %w", err),
			"give one record a line, codes separated by spaces",
		}
	}
	if err := f.readRoles(&cfg); err != nil {
		return err
	}
	rng, err := f.random()
	if err != nil {
		return err
	}
	line := newDisassociateProgress(stderr)
	started := time.Now()
	res, err := disassociate.Disassociate(ctx, d, cfg, rng, line.show)
	elapsed := time.Since(started)
	line.clear()
	if err != nil {
		return explainDisassociate(err)
	}
	var drawn [][]published.Record
	for range f.reconstruct {
		drawn = append(drawn, res.Form.Reconstruct(rng))
	}
	report := func() (*disassociateReport, error) {
		return newDisassociateReport(ctx, f, &cfg, d, blank, res.Form, drawn, elapsed)
	}
	return f.write(stdout, res.Form, drawn, report)
}

// explainDisassociate adds a hint to the errors that a user can do something
// about.
func explainDisassociate(err error) error {
	var few *disassociate.TooFewError
	var constraint *disassociate.ConstraintError
	switch {
	case errors.As(err, &few):
		return &disassociateError{1, err, "lower k or the diversity, or add records"}
	case errors.As(err, &constraint):
		return &disassociateError{1, err, "each code may be in one constraint only"}
	case errors.Is(err, context.Canceled):
		return &disassociateError{1, errors.New("interrupted"), "nothing was written"}
	}
	return err
}

// readSetValued reads a data file, gzipped or not.
func readSetValued(path string, stdin io.Reader) (d *disassociate.Dataset, blank int, err error) {
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		defer file.Close()
		in = file
	}
	buffered := bufio.NewReaderSize(in, 1<<16)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, 0, err
	}
	in = buffered
	if string(magic) == "\x1f\x8b" {
		if in, err = gzip.NewReader(buffered); err != nil {
			return nil, 0, err
		}
	}
	return disassociate.ReadDataset(in)
}

// readRoles reads the files of constraints and sensitive codes.
func (f *disassociateFlags) readRoles(cfg *disassociate.Config) error {
	if f.constraints != "" {
		file, err := os.Open(f.constraints)
		if err != nil {
			return &disassociateError{1, err, "check --constraints"}
		}
		defer file.Close()
		if cfg.Constraints, err = disassociate.ReadConstraints(file); err != nil {
			return &disassociateError{
				1, fmt.Errorf("--constraints: %w", err),
				"one constraint a line: [name:] code code ...",
			}
		}
	}
	if f.sensitive != "" {
		text, err := os.ReadFile(f.sensitive)
		if err != nil {
			return &disassociateError{1, err, "check --sensitive"}
		}
		cfg.Sensitive = strings.Fields(string(text))
	}
	return nil
}

// random is the source of the run: seeded, or from the system.
func (f *disassociateFlags) random() (*rand.Rand, error) {
	var seed [16]byte
	if !f.seeded {
		if _, err := crand.Read(seed[:]); err != nil {
			return nil, err
		}
		return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]),
			binary.LittleEndian.Uint64(seed[8:]))), nil
	}
	return rand.New(rand.NewPCG(f.seed, 0)), nil
}

// write writes what was asked for, the published form last, so that it is
// there only if everything is.
func (f *disassociateFlags) write(stdout io.Writer, form *published.Form,
	drawn [][]published.Record,
	report func() (*disassociateReport, error),
) error {
	failed := func(what string, err error) error {
		return &disassociateError{
			1, fmt.Errorf("%s: %w", what, err),
			"check that the folder exists and has room",
		}
	}
	if f.report != "" {
		r, err := report()
		if err != nil {
			return explainDisassociate(err)
		}
		if err := atomicfile.Write(f.report, 0o600, r.encode); err != nil {
			return failed("--report", err)
		}
	}
	if f.out == "" {
		if err := form.Encode(stdout); err != nil {
			return failed("standard output", err)
		}
		return nil
	}
	for i, records := range drawn {
		path := fmt.Sprintf("%s.%d", f.out, i+1)
		if err := atomicfile.Write(path, 0o600, func(w io.Writer) error {
			return writeReconstructed(w, form, records)
		}); err != nil {
			return failed("--reconstruct", err)
		}
	}
	if err := atomicfile.Write(f.out, 0o600, func(w io.Writer) error {
		buffered := bufio.NewWriter(w)
		return errors.Join(form.Encode(buffered), buffered.Flush())
	}); err != nil {
		return failed("--out", err)
	}
	return nil
}

// writeReconstructed writes one record a line.
func writeReconstructed(w io.Writer, form *published.Form, records []published.Record) error {
	buffered := bufio.NewWriter(w)
	for _, r := range records {
		for i, it := range r {
			if i > 0 {
				buffered.WriteByte(' ')
			}
			buffered.WriteString(form.Codes[it].Text)
		}
		buffered.WriteByte('\n')
	}
	return buffered.Flush()
}
