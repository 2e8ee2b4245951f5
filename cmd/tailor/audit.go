package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// auditOptions are the flags of tailor audit.
type auditOptions struct {
	dsn, file, format      string
	filter                 audit.Filter
	most                   int
	follow, totals, verify bool
	anchors                []string
}

func runAudit(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var o auditOptions
	var verdict string
	flags := newFlags("audit", "read and verify the audit log", stderr)
	flags.StringVar(&o.dsn, "dsn", fromEnvironment("dsn", ""),
		"`connection` string of a member of tailor_admin, to read the table")
	flags.StringVar(&o.file, "file", "", "`FILE` of the log, to read it and those set aside beside it")
	timeFlag(flags, &o.filter.Since, "since",
		"from a `TIME` on: 2026-01-31, 2026-01-31T12:00:00Z, or 12h, 30m, 7d ago")
	timeFlag(flags, &o.filter.Until, "until", "before a `TIME`")
	flags.StringVar(&o.filter.Principal, "principal", "", "statements of a `ROLE`")
	flags.StringVar(&o.filter.Relation, "relation", "", "statements on a protected `TABLE`")
	flags.StringVar(&verdict, "verdict", "",
		"statements with a `VERDICT`: passed, released, refused or failed")
	flags.Float64Var(&o.filter.RiskAbove, "risk-above", 0,
		"statements with an aggregate risk above `R`, 0 to 1")
	flags.Float64Var(&o.filter.LossAbove, "loss-above", 0,
		"statements with an aggregate loss above `L`, 0 to 1")
	flags.IntVar(&o.most, "limit", 100, "the last `N` statements; 0 for all")
	flags.BoolVar(&o.follow, "follow", false, "go on with what comes")
	flags.BoolVar(&o.totals, "totals", false, "add up by principal and relation instead")
	flags.BoolVar(&o.verify, "verify", false,
		"check the chain of hashes instead; with --dsn and --file, also that both hold the same")
	flags.Func("anchor",
		"`HASH` noted earlier that must be part of a chain (with --verify; can be repeated)",
		func(s string) error {
			o.anchors = append(o.anchors, s)
			return nil
		})
	formatFlag(flags, &o.format)
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	o.filter.Verdict = audit.Verdict(verdict)
	if fault := o.fault(); fault != "" {
		return complainUsage(flags, stderr, fault)
	}
	if err := auditing(ctx, o, stdout, stderr); err != nil {
		return complain("audit", stderr, err)
	}
	return exitSuccess
}

// timeFlag adds a flag that takes a moment, or how long ago it was.
func timeFlag(flags *flag.FlagSet, into *time.Time, name, usage string) {
	flags.Func(name, usage, func(s string) error {
		t, err := moment(s, time.Now())
		*into = t
		return err
	})
}

// moment reads a time, a date (its beginning in local time), or how long ago.
func moment(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04", "2006-01-02 15:04",
		time.DateOnly,
	} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		if _, err := fmt.Sscanf(days, "%d", &n); err == nil && n > 0 {
			return now.AddDate(0, 0, -n), nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return time.Time{}, errors.New("neither a time nor a duration")
	}
	return now.Add(-d), nil
}

// formatFlag adds the flag that chooses between people and programs.
func formatFlag(flags *flag.FlagSet, into *string) {
	*into = "text"
	flags.Func("format", "`text` or json (default text)", func(s string) error {
		if s != "text" && s != "json" {
			return errors.New("is neither text nor json")
		}
		*into = s
		return nil
	})
}

// fault is what is wrong with the flags, empty for nothing.
func (o auditOptions) fault() string {
	modes := 0
	for _, on := range []bool{o.follow, o.totals, o.verify} {
		if on {
			modes++
		}
	}
	verdicts := []audit.Verdict{"", audit.Passed, audit.Released, audit.Refused, audit.Failed}
	switch {
	case o.dsn == "" && o.file == "":
		return "--dsn or --file is missing"
	case o.dsn != "" && o.file != "" && !o.verify:
		return "--dsn and --file go together with --verify only"
	case modes > 1:
		return "--follow, --totals and --verify exclude each other"
	case o.anchors != nil && !o.verify:
		return "--anchor goes with --verify"
	case !slices.Contains(verdicts, o.filter.Verdict):
		return fmt.Sprintf("--verdict %q is none of passed, released, refused, failed", o.filter.Verdict)
	case !(o.filter.RiskAbove >= 0 && o.filter.RiskAbove <= 1):
		return "--risk-above is not a number from 0 to 1"
	case !(o.filter.LossAbove >= 0 && o.filter.LossAbove <= 1):
		return "--loss-above is not a number from 0 to 1"
	case o.most < 0:
		return "--limit is below 0"
	}
	return ""
}

// auditing does what the flags say.
func auditing(ctx context.Context, o auditOptions, stdout, notices io.Writer) error {
	var conn *pgx.Conn
	if o.dsn != "" {
		var err error
		if conn, err = pgx.Connect(ctx, o.dsn); err != nil {
			return err
		}
		defer closeQuietly(conn)
	}
	switch {
	case o.verify:
		return verifyAudit(ctx, o, conn, stdout)
	case o.totals:
		totals, err := auditTotals(ctx, o, conn)
		if err != nil {
			return err
		}
		if o.format == "json" {
			return json.NewEncoder(stdout).Encode(totals)
		}
		return writeTotals(stdout, totals)
	}
	show := writeEntry
	if o.format == "json" {
		show = func(w io.Writer, e audit.Entry) error { return json.NewEncoder(w).Encode(e) }
	}
	var last *audit.Entry
	do := func(e audit.Entry) error {
		last = &e
		return show(stdout, e)
	}
	if !o.follow {
		err := lastEntries(ctx, o, conn, do)
		if err == nil && last == nil {
			_, err = fmt.Fprintln(notices, "no statement is on record that the flags ask for")
		}
		return err
	}
	// The end is looked for first, so that nothing comes in between.
	if conn == nil {
		tail, err := audit.OpenTail(o.file)
		if err != nil {
			return err
		}
		if err := lastEntries(ctx, o, conn, do); err != nil {
			return err
		}
		return tail.Follow(ctx, o.filter, last, do)
	}
	after, err := audit.LastPosition(ctx, conn)
	if err != nil {
		return err
	}
	if err := lastEntries(ctx, o, conn, do); err != nil {
		return err
	}
	if last != nil {
		after = max(after, last.Position)
	}
	return audit.Follow(ctx, conn, o.filter, after, do)
}

// pageLength is how many entries are read at once.
const pageLength = 1000

// lastEntries calls a function with the last entries, the oldest first.
func lastEntries(
	ctx context.Context, o auditOptions, conn *pgx.Conn, do func(audit.Entry) error,
) error {
	if conn != nil && o.most == 0 {
		for page := (audit.Page{OldestFirst: true, Most: pageLength}); ; {
			entries, err := audit.List(ctx, conn, o.filter, page)
			if err != nil {
				return err
			}
			for _, e := range entries {
				if err := do(e); err != nil {
					return err
				}
				page.Position = e.Position
			}
			if len(entries) < pageLength {
				return nil
			}
		}
	}
	var last []audit.Entry
	var err error
	if conn != nil {
		if last, err = audit.List(ctx, conn, o.filter, audit.Page{Most: o.most}); err != nil {
			return err
		}
		slices.Reverse(last)
	} else if o.most == 0 {
		return audit.ReadFile(o.file, o.filter, do)
	} else if err := audit.ReadFile(o.file, o.filter, func(e audit.Entry) error {
		if len(last) == o.most {
			last = slices.Delete(last, 0, 1)
		}
		last = append(last, e)
		return nil
	}); err != nil {
		return err
	}
	for _, e := range last {
		if err := do(e); err != nil {
			return err
		}
	}
	return nil
}
