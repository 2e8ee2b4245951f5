package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

//go:embed report.html.tmpl
var reportHTML string

//go:embed report.md.tmpl
var reportMarkdown string

// report is what an ethics board or a data-protection officer is told.
type report struct {
	Made, Since, Until time.Time
	Database           string
	Totals             []audit.Total
	Sum                audit.Total
	Refusals           []refusalCount
	Policies           []reportedPolicy
	Releases           []reportedRelease
	// Riskiest and Costliest are the released statements, one of each kind, with
	// the highest risk and the greatest loss.
	Riskiest, Costliest []audit.Entry
	Verification        *audit.Report
}

// refusalCount counts the statements that ended with an SQLSTATE.
type refusalCount struct {
	Verdict, SQLState string
	Count             int64
}

// reportedPolicy is a policy in force.
type reportedPolicy struct {
	Relation, Author string
	Version          int
	Activated        time.Time
	K                int
	Scope            string
	Require          []string
	Classes          []classColumns
}

// reportedRelease is how far what an audience is shown is behind its table.
type reportedRelease struct {
	Relation, Audience            string
	Copied                        time.Time
	Subjects                      int64
	Arrivals, Departures, Changes waitingSubjects
	Stale                         float64 // the share of those shown who have left
	Next                          string
}

// waitingSubjects are how many wait, and since when.
type waitingSubjects struct {
	Subjects int64
	Since    *time.Time
}

// classColumns are the columns of a class.
type classColumns struct{ Class, Columns string }

func runReport(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	var f audit.Filter
	flags := newFlags("report", "what was released to whom under which policy, for an ethics board or data-protection officer", stderr)
	dsn := flags.String("dsn", fromEnvironment("dsn", ""), "`connection` string of a member of tailor_admin")
	timeFlag(flags, &f.Since, "since", "from a `TIME` on: 2026-01-31, or 30d ago")
	timeFlag(flags, &f.Until, "until", "before a `TIME`; now if not given")
	format := "md"
	flags.Func("format", "`html` or md (default md)", func(s string) error {
		if s != "html" && s != "md" {
			return errors.New("is neither html nor md")
		}
		format = s
		return nil
	})
	out := flags.String("out", "", "`FILE` to write; standard output if not given")
	if code, ok := parseFlags(flags, args, stdout, stderr); !ok {
		return code
	}
	if *dsn == "" || f.Since.IsZero() {
		return complainUsage(flags, stderr, "--dsn and --since are needed")
	}
	if f.Until.IsZero() {
		f.Until = time.Now()
	}
	text, err := makeReport(ctx, *dsn, f, format)
	if err == nil && *out != "" {
		err = atomicfile.Write(*out, 0o600, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
	} else if err == nil {
		_, err = io.WriteString(stdout, text)
	}
	if err != nil {
		return complain("report", stderr, err)
	}
	return exitSuccess
}

// makeReport gathers and words a report.
func makeReport(ctx context.Context, dsn string, f audit.Filter, format string) (string, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return "", err
	}
	defer closeQuietly(conn)
	r, err := gatherReport(ctx, conn, f)
	if err != nil {
		return "", err
	}
	words := map[string]any{
		"percent": func(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) },
		"risk":    func(risk float64) string { return fmt.Sprintf("%.3f", risk) },
		"day":     func(t time.Time) string { return t.Local().Format("2006-01-02 15:04") },
		"waits": func(w waitingSubjects) string {
			if w.Subjects == 0 || w.Since == nil {
				return strconv.FormatInt(w.Subjects, 10)
			}
			return fmt.Sprintf("%d since %s", w.Subjects,
				w.Since.Local().Format("2006-01-02 15:04"))
		},
		"list": func(names []string) string { return strings.Join(names, ", ") },
		"or": func(s, otherwise string) string {
			return map[bool]string{
				true:  otherwise,
				false: s,
			}[s == ""]
		},
		"line": func(s string) string { return printable(strings.Join(strings.Fields(s), " ")) },
		"code": func(s string) string {
			return "`" + strings.ReplaceAll(printable(strings.Join(strings.Fields(s), " ")), "`", "'") + "`"
		},
		"cell": cell,
	}
	var b strings.Builder
	if format == "html" {
		t, err := htmltemplate.New("report").Funcs(words).Parse(reportHTML)
		if err != nil {
			return "", err
		}
		err = t.Execute(&b, r)
		return b.String(), err
	}
	t, err := template.New("report").Funcs(words).Parse(reportMarkdown)
	if err != nil {
		return "", err
	}
	err = t.Execute(&b, r)
	return b.String(), err
}

// cell keeps a text from ending its cell, or its line, in Markdown, and from
// being taken for markup.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "`", "'", "<", "&lt;", "[", `\[`, "*", `\*`, "_", `\_`, "\\", `\\`).Replace(printable(strings.Join(strings.Fields(s), " ")))
}

// mostShown is how many statements a report shows with their graphs.
const mostShown = 5

func gatherReport(ctx context.Context, conn *pgx.Conn, f audit.Filter) (*report, error) {
	r := &report{Made: time.Now(), Since: f.Since, Until: f.Until, Database: conn.Config().Database}
	var err error
	if r.Totals, err = audit.Totals(ctx, conn, f); err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT verdict, sqlstate, count(*) FROM tailor.audit
		WHERE time >= $1 AND time < $2 AND verdict IN ('refused', 'failed') GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2`, f.Since, f.Until)
	if err != nil {
		return nil, err
	}
	if r.Refusals, err = pgx.CollectRows(rows, pgx.RowToStructByPos[refusalCount]); err != nil {
		return nil, err
	}
	if r.Sum, err = sumOf(ctx, conn, f); err != nil {
		return nil, err
	}
	if r.Policies, err = reportedPolicies(ctx, conn); err != nil {
		return nil, err
	}
	if r.Releases, err = reportedReleases(ctx, conn); err != nil {
		return nil, err
	}
	if r.Riskiest, err = audit.Foremost(ctx, conn, f, audit.ByRisk, mostShown); err != nil {
		return nil, err
	}
	if r.Costliest, err = audit.Foremost(ctx, conn, f, audit.ByLoss, mostShown); err != nil {
		return nil, err
	}
	for _, entries := range [][]audit.Entry{r.Riskiest, r.Costliest} {
		for i := range entries {
			entries[i].SQL, _ = audit.WithoutLiterals(entries[i].SQL)
		}
	}
	r.Verification, err = audit.Verify(ctx, audit.Source{Conn: conn, Now: r.Made})
	return r, err
}

// sumOf counts every statement once, however many relations it reads.
func sumOf(ctx context.Context, conn *pgx.Conn, f audit.Filter) (s audit.Total, err error) {
	err = conn.QueryRow(ctx, `SELECT count(*) FILTER (WHERE verdict = 'released'), count(*) FILTER (WHERE verdict = 'refused'),
			count(*) FILTER (WHERE verdict = 'failed'), count(*) FILTER (WHERE verdict = 'passed'), coalesce(max(aggregate_risk), 0),
			coalesce(max(aggregate_loss), 0), coalesce(avg(aggregate_loss) FILTER (WHERE verdict = 'released'), 0),
			coalesce(min(min_block) FILTER (WHERE min_block > 0), 0)
		FROM tailor.audit WHERE time >= $1 AND time < $2`, f.Since, f.Until).
		Scan(&s.Released, &s.Refused, &s.Failed, &s.Passed, &s.MaxRisk, &s.MaxLoss, &s.MeanLoss, &s.MinBlock)
	return s, err
}

// reportedPolicies reads the policies in force.
func reportedPolicies(ctx context.Context, conn *pgx.Conn) ([]reportedPolicy, error) {
	rows, err := conn.Query(ctx, `SELECT relation::regclass::text, version, coalesce(author, ''), created, k, scope, policy
		FROM tailor.policies WHERE version IS NOT NULL ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p reportedPolicy, err error) {
		var text []byte
		if err := row.Scan(&p.Relation, &p.Version, &p.Author, &p.Activated, &p.K, &p.Scope, &text); err != nil {
			return p, err
		}
		var document struct {
			Require []policyfile.Requirement
			Columns []struct{ Name, Class string }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return p, fmt.Errorf("policy of %s: %w", p.Relation, err)
		}
		for _, q := range document.Require {
			p.Require = append(p.Require, q.Phrase())
		}
		for _, class := range []string{"direct_identifier", "quasi_identifier", "sensitive", "non_sensitive", ""} {
			var names []string
			for _, c := range document.Columns {
				if c.Class == class {
					names = append(names, c.Name)
				}
			}
			if names != nil {
				slices.Sort(names)
				p.Classes = append(p.Classes, classColumns{map[bool]string{true: "hidden (no class)", false: strings.ReplaceAll(class, "_", " ")}[class == ""], strings.Join(names, ", ")})
			}
		}
		return p, nil
	})
}

// reportedReleases reads who waits in the releases of one's own tables.
func reportedReleases(ctx context.Context, conn *pgx.Conn) ([]reportedRelease, error) {
	rows, err := conn.Query(ctx, `SELECT relation::regclass::text, audience, copied, subjects,
		arrivals, arrivals_since,
			departures, departures_since, changes, changes_since, coalesce(stale, 0), next
		FROM tailor.epochs ORDER BY 1, 2`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (r reportedRelease, err error) {
		return r, row.Scan(&r.Relation, &r.Audience, &r.Copied, &r.Subjects, &r.Arrivals.Subjects,
			&r.Arrivals.Since,
			&r.Departures.Subjects, &r.Departures.Since, &r.Changes.Subjects, &r.Changes.Since, &r.Stale, &r.Next)
	})
}
