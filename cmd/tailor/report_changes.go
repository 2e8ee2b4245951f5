package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// reportedChange is something that is not as it was.
type reportedChange struct {
	Time *time.Time `json:"time"` // nil: between the two reports
	// Of is the table, or what else it is about.
	Of    string   `json:"of"`
	By    string   `json:"by"`
	What  string   `json:"what"`
	Lines []string `json:"lines"`
}

// readPrevious reads the JSON form of an earlier report.
func readPrevious(name string) (*report, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil || r.Form != reportForm || r.Made.IsZero() {
		return nil, &policyError{
			"the file of --previous is no report in JSON, of a version that is known",
			"give what tailor report wrote with --format json or --json FILE",
		}
	}
	return &r, nil
}

// readChanges finds what has changed since a time, or since the report before.
func (r *report) readChanges(ctx context.Context, conn *pgx.Conn, previous *report) error {
	since := r.Since
	if previous != nil {
		if previous.Database != r.Database {
			return &policyError{
				"the file of --previous is the report of another database",
				"give the last report of this one",
			}
		}
		since, r.Compared = previous.Made, &previous.Made
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, conn, snapshot, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `SET LOCAL search_path = pg_catalog, pg_temp`)
		if err == nil {
			err = r.readVersions(ctx, tx, since)
		}
		if err == nil {
			err = r.readRemoved(ctx, tx, since)
		}
		return err
	})
	if err != nil {
		return refusal(ctx, "read what has changed", err)
	}
	if previous != nil {
		r.compare(previous)
	}
	return nil
}

// readVersions lists the policies that came in force since a time.
func (r *report) readVersions(ctx context.Context, tx pgx.Tx, since time.Time) error {
	rows, err := tx.Query(ctx, `SELECT relation::oid, relation::text, author, created, policy
		FROM tailor.policy_history h
		WHERE version >= (SELECT coalesce(max(b.version), 0) FROM tailor.policy_history b
			WHERE b.relation = h.relation AND b.created < $1)
		ORDER BY 2, version`, since)
	if err != nil {
		return err
	}
	var oid, last uint32
	var name, author string
	var created time.Time
	var raw []byte
	var before *plainPolicy
	_, err = pgx.ForEachRow(rows, []any{&oid, &name, &author, &created, &raw}, func() error {
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("policy of %s: %w", name, err)
		}
		now := d.plain(nil)
		if oid != last {
			before, last = nil, oid
		}
		if !created.Before(since) {
			c := reportedChange{Time: ptr(created), Of: name, By: author}
			if before == nil {
				c.What = "protected for the first time"
			} else if c.Lines = policyDifference(before, &now); len(c.Lines) > 0 {
				c.What = "another version of the policy"
			} else {
				c.What = "the policy was put in force anew, as it was"
			}
			r.Changes = append(r.Changes, c)
		}
		before = &now
		return nil
	})
	return err
}

// readRemoved lists the policies that were taken away since a time.
func (r *report) readRemoved(ctx context.Context, tx pgx.Tx, since time.Time) error {
	rows, err := tx.Query(ctx, `SELECT name, author::text, created FROM tailor.unprotected
		WHERE created >= $1 ORDER BY created`, since)
	if err != nil {
		return err
	}
	var name, author string
	var created time.Time
	_, err = pgx.ForEachRow(rows, []any{&name, &author, &created}, func() error {
		r.Changes = append(r.Changes, reportedChange{
			Time: ptr(created), Of: name, By: author,
			What: "no longer protected; readers keep what they were shown",
		})
		return nil
	})
	return err
}

// compare finds what only the report before knows.
func (r *report) compare(previous *report) {
	say := func(of, what string, lines []string) {
		if len(lines) > 0 {
			r.Changes = append(r.Changes, reportedChange{Of: of, What: what, Lines: lines})
		}
	}
	for _, t := range r.Tables {
		at := slices.IndexFunc(previous.Tables, func(b reportedTable) bool { return b.Name == t.Name })
		if at < 0 {
			if !t.Seen {
				say(t.Name, "protected since", []string{fmt.Sprintf("version %d", t.Version)})
			}
			continue
		}
		b := &previous.Tables[at]
		// Of tables whose history may be seen, all is said but what belongs to no version.
		if !t.Seen {
			say(t.Name, "another policy", policyDifference(&b.Policy, &t.Policy))
		} else {
			say(t.Name, "another schedule", differentSettings(
				slices.DeleteFunc(slices.Clone(b.Policy.Settings), isNotRefresh),
				slices.DeleteFunc(slices.Clone(t.Policy.Settings), isNotRefresh)))
		}
		say(t.Name, "what is released", differentReleases(b, &t))
	}
	for _, b := range previous.Tables {
		if !slices.ContainsFunc(r.Tables, func(t reportedTable) bool { return t.Name == b.Name }) &&
			!slices.ContainsFunc(r.Changes, func(c reportedChange) bool { return c.Of == b.Name }) {
			say(b.Name, "no longer protected under this name", []string{"readers keep what they were shown"})
		}
	}
	say("readers", "who may read", differentTexts(asTexts(previous.Readers), asTexts(r.Readers)))
	say("projects", "who reads for what",
		differentTexts(asTexts(previous.Projects), asTexts(r.Projects)))
	say("exceptions", "known exceptions", differentTexts(previous.Exceptions, r.Exceptions))
}

func isNotRefresh(s plainSetting) bool { return s.Name != "refresh" }

// differentReleases says how the figures of releases have moved.
func differentReleases(before, now *reportedTable) []string {
	var out []string
	for _, n := range now.Releases {
		at := slices.IndexFunc(before.Releases,
			func(b reportedRelease) bool { return b.Audience == n.Audience })
		if at < 0 {
			out = append(out, fmt.Sprintf("a release for %s is new", audience(n.Audience)))
			continue
		}
		b := before.Releases[at]
		if b.Subjects != n.Subjects || b.Smallest != n.Smallest {
			out = append(out, fmt.Sprintf("%s: %d people, smallest class %d; before: %d, %d",
				audience(n.Audience), n.Subjects, n.Smallest, b.Subjects, b.Smallest))
		}
	}
	for _, b := range before.Releases {
		if !slices.ContainsFunc(now.Releases,
			func(n reportedRelease) bool { return n.Audience == b.Audience }) {
			out = append(out, fmt.Sprintf("the release for %s is gone", audience(b.Audience)))
		}
	}
	return out
}

// policyDifference says, one line each, what is not in a policy as it was.
func policyDifference(before, now *plainPolicy) []string {
	var out []string
	if before.K != now.K {
		out = append(out, fmt.Sprintf("k: %d, before %d", now.K, before.K))
	}
	out = append(out, differentSettings(before.Models, now.Models)...)
	out = append(out, differentSettings(before.Settings, now.Settings)...)
	for _, name := range slices.Sorted(maps.Keys(now.untold)) {
		if was, known := before.untold[name]; known && was != now.untold[name] {
			out = append(out, name+": changed")
		}
	}
	for _, c := range now.Columns {
		at := slices.IndexFunc(before.Columns, func(b plainColumn) bool { return b.Name == c.Name })
		if at < 0 {
			out = append(out, fmt.Sprintf("column %s is new: %s, %s", c.Name, c.Class, c.Shown))
			continue
		}
		if b := before.Columns[at]; b != c {
			out = append(out, fmt.Sprintf("column %s: %s, %s; before: %s, %s", c.Name, c.Class,
				c.Shown, b.Class, b.Shown))
		}
	}
	for _, b := range before.Columns {
		if !slices.ContainsFunc(now.Columns, func(c plainColumn) bool { return c.Name == b.Name }) {
			out = append(out, fmt.Sprintf("column %s is gone", b.Name))
		}
	}
	return out
}

func differentSettings(before, now []plainSetting) []string {
	var out []string
	text := func(of []plainSetting, name string) string {
		for _, s := range of {
			if s.Name == name {
				return s.Text
			}
		}
		return ""
	}
	for _, s := range now {
		switch was := text(before, s.Name); was {
		case s.Text:
		case "":
			out = append(out, fmt.Sprintf("%s, new: %s", s.Name, s.Text))
		default:
			out = append(out, fmt.Sprintf("%s: %s Before: %s", s.Name, s.Text, was))
		}
	}
	for _, s := range before {
		if text(now, s.Name) == "" {
			out = append(out, fmt.Sprintf("%s, no longer: %s", s.Name, s.Text))
		}
	}
	return out
}

// differentTexts says which are new and which are gone.
func differentTexts(before, now []string) []string {
	var out []string
	for _, s := range now {
		if !slices.Contains(before, s) {
			out = append(out, "new: "+s)
		}
	}
	for _, s := range before {
		if !slices.Contains(now, s) {
			out = append(out, "gone: "+s)
		}
	}
	return out
}

func asTexts[T fmt.Stringer](of []T) []string {
	out := make([]string, len(of))
	for i, v := range of {
		out[i] = v.String()
	}
	return out
}

func (r reportedReader) String() string {
	s := r.Role
	if !r.LogsIn {
		s += " (a group)"
	}
	if r.Projects != "" {
		s += ", for " + r.Projects
	}
	return s
}

func (p reportedProject) String() string {
	return fmt.Sprintf("%s, on %s, read for by %s", p.Project, p.Table,
		orNone(strings.Join(p.Readers, ", ")))
}

func orNone(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

// audience says who shares a release.
func audience(name string) string {
	if name == "table" {
		return "all readers"
	}
	return name
}

func ptr[T any](v T) *T { return &v }
