package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// writeEntry shows a statement on one line.
func writeEntry(w io.Writer, e audit.Entry) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %-8s  %s", e.Time.Local().Format(time.DateTime), e.Verdict,
		printable(e.Principal))
	if e.SQLState != "" {
		fmt.Fprintf(&b, "  %s", e.SQLState)
	}
	if e.Event == audit.Login {
		fmt.Fprintf(&b, "  login to %s from %s", printable(e.Database), e.Client)
	}
	if len(e.Relations) > 0 {
		fmt.Fprintf(&b, "  %s", strings.Join(e.Relations, ","))
	}
	if e.MinBlock > 0 {
		fmt.Fprintf(&b, "  risk 1/%d  loss %.1f %%", e.MinBlock, 100*e.AggregateLoss)
	}
	if e.Rows != nil {
		fmt.Fprintf(&b, "  %d rows in %.1f ms", *e.Rows, e.DurationMS)
	}
	if e.LeftOut > 0 {
		fmt.Fprintf(&b, "  (%d before it were not recorded)", e.LeftOut)
	}
	if e.SQL != "" {
		fmt.Fprintf(&b, "  %s", printable(strings.Join(strings.Fields(e.SQL), " ")))
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// printable keeps what a client wrote from moving the terminal's cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}

// auditTotals adds up what the table or the file holds.
func auditTotals(ctx context.Context, o auditOptions, conn *pgx.Conn) ([]audit.Total, error) {
	if conn != nil {
		return audit.Totals(ctx, conn, o.filter)
	}
	sums := make(map[[2]string]*audit.Total)
	err := audit.ReadFile(o.file, o.filter, func(e audit.Entry) error {
		relations := e.Relations
		if len(relations) == 0 {
			relations = []string{""}
		}
		for _, r := range relations {
			key := [2]string{e.Principal, r}
			if sums[key] == nil {
				sums[key] = &audit.Total{Principal: e.Principal, Relation: r}
			}
			sums[key].Add(e)
		}
		return nil
	})
	order := slices.SortedFunc(maps.Keys(sums), func(a, b [2]string) int {
		return cmp.Or(strings.Compare(a[0], b[0]), strings.Compare(a[1], b[1]))
	})
	totals := make([]audit.Total, len(order))
	for i, key := range order {
		totals[i] = *sums[key]
	}
	return totals, err
}

func writeTotals(w io.Writer, totals []audit.Total) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t,
		"principal\trelation\treleased\trefused\tfailed\tpassed\trows\tmax risk\tmean loss\tmax loss\t")
	for _, s := range totals {
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.1f %%\t%.1f %%\t\n", printable(s.Principal),
			cmp.Or(s.Relation, "-"),
			s.Released, s.Refused, s.Failed, s.Passed, s.Rows, s.MaxRisk, 100*s.MeanLoss, 100*s.MaxLoss)
	}
	return t.Flush()
}

// verifyAudit checks the log, and fails where it is not as it was written.
func verifyAudit(ctx context.Context, o auditOptions, conn *pgx.Conn, stdout io.Writer) error {
	report, err := audit.Verify(ctx, audit.Source{
		File: o.file, Conn: conn, Anchors: o.anchors,
		Now: time.Now(),
	})
	if err != nil {
		return err
	}
	if o.format == "json" {
		if err := json.NewEncoder(stdout).Encode(report); err != nil {
			return err
		}
	} else {
		for _, c := range report.Chains {
			fmt.Fprintf(stdout, "chain %s: records %d to %d, head %s\n", c.Log, c.First, c.Last, c.Head)
		}
		for _, n := range report.Notes {
			fmt.Fprintf(stdout, "note: %s\n", n)
		}
		for _, f := range report.Faults {
			fmt.Fprintf(stdout, "FAULT: %s\n", f)
		}
		if len(report.Faults) == 0 {
			fmt.Fprintln(stdout, "every record is as it was written; none is missing up to the heads "+
				"above, which are worth noting elsewhere")
		}
	}
	if len(report.Faults) > 0 {
		return fmt.Errorf("%d faults in the audit log; compare with a copy or the other sink",
			len(report.Faults))
	}
	return nil
}
