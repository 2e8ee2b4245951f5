package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/atomicfile"
	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

func exportPolicy(ctx context.Context, o *policyOptions, stdout io.Writer) error {
	var f *policyfile.File
	err := inSnapshot(ctx, o.dsn, func(tx pgx.Tx) error {
		if err := assertInstalled(ctx, tx); err != nil {
			return err
		}
		var err error
		if f, err = inForce(ctx, tx); err != nil {
			return refusal(ctx, "", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if o.file == "-" {
		return f.Write(stdout)
	}
	return atomicfile.Write(o.file, 0o600, f.Write)
}

// document is a policy version as the database keeps it.
type document struct {
	Subject  string     `json:"subject"`
	K        int        `json:"k"`
	Recoding string     `json:"recoding"`
	Scope    string     `json:"scope"`
	Seed     [][]string `json:"seed"`
	Rows     *bool      `json:"rows"` // nil: true
	Gate     *policyfile.Gate
	MaxShare float64 `json:"max_share"`
	Cohort   int     `json:"cohort"`
	// Cuts is "blind" or absent.
	Cuts string `json:"cuts"`
	// Departures and Changes are "at_once" or absent.
	Departures string              `json:"departures"`
	Changes    string              `json:"changes"`
	Indexes    *policyfile.Indexes `json:"indexes"`
	// SetValued is the policy of a table whose codes are sets.
	SetValued *policyfile.SetValued `json:"set_valued"`
	// DataSetOf is the making of a data set.
	DataSetOf *struct {
		Schema string `json:"schema"`
		Name   string `json:"name"`
		Query  string `json:"query"`
	} `json:"data_set_of"`
	Require []struct {
		Model     string  `json:"model"`
		Column    string  `json:"column"`
		Parameter float64 `json:"parameter"`
		C         float64 `json:"c"`
		Distance  string  `json:"distance"`
	} `json:"require"`
	Columns []documentColumn `json:"columns"`
	// Parent is the table whose quasi-identifiers are borrowed.
	Parent *struct {
		Schema  string `json:"schema"`
		Name    string `json:"name"`
		Columns []struct {
			Name string `json:"name"`
		} `json:"columns"`
	} `json:"parent"`
}

// documentColumn is a column of such a version.
type documentColumn struct {
	Name   string `json:"name"`
	Class  string `json:"class"`
	Action string `json:"action"`
	// SharedFact is "accepted" or absent.
	SharedFact string `json:"shared_fact"`
	// Representative is "middle" or absent.
	Representative string `json:"representative"`
	Margins        *bool  `json:"margins"` // nil: true
	Hierarchy      *struct {
		Name       string          `json:"name"`
		Kind       string          `json:"kind"`
		Definition json.RawMessage `json:"definition"`
	} `json:"hierarchy"`
}

// inForce reads the policies in force, by the names of the tables.
func inForce(ctx context.Context, tx pgx.Tx) (*policyfile.File, error) {
	readers, err := readerRoles(ctx, tx)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		SELECT n.nspname::text, c.relname::text, p.policy, coalesce(extract(epoch
			FROM s.every), 0)::bigint, coalesce(s.on_change, false)
		FROM tailor.policies p LEFT JOIN tailor.schedules s ON s.relation = p.relation
		JOIN pg_catalog.pg_class c ON c.oid = p.relation JOIN pg_catalog.pg_namespace n
			ON n.oid = c.relnamespace
		WHERE p.version IS NOT NULL ORDER BY 1, 2`)
	if err != nil {
		return nil, err
	}
	f := &policyfile.File{}
	var schema, name string
	var raw []byte
	var seconds int64
	var onChange bool
	_, err = pgx.ForEachRow(rows, []any{&schema, &name, &raw, &seconds, &onChange}, func() error {
		var d document
		if err := json.Unmarshal(raw, &d); err != nil {
			return fmt.Errorf("policy of %s.%s: %w", schema, name, err)
		}
		t, err := d.table(f, quoteTable(pgx.Identifier{schema, name}))
		if err != nil {
			return fmt.Errorf("policy of %s.%s: %w", schema, name, err)
		}
		t.Readers, t.Refresh, t.OnChange = readers, time.Duration(seconds)*time.Second, onChange
		f.Tables = append(f.Tables, *t)
		return nil
	})
	slices.SortFunc(f.Hierarchies, func(a, b policyfile.Hierarchy) int {
		return strings.Compare(a.Name, b.Name)
	})
	return f, err
}

// readerRoles lists the roles that were made readers, nil for none.
func readerRoles(ctx context.Context, tx pgx.Tx) ([]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT DISTINCT m.rolname::text FROM pg_catalog.pg_auth_members g
		JOIN pg_catalog.pg_roles r ON r.oid = g.roleid JOIN pg_catalog.pg_roles m ON m.oid = g.member
		WHERE r.rolname = 'tailor_reader' ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if len(names) == 0 {
		return nil, err
	}
	return names, err
}

// table turns a document into the policy of a table; its hierarchies go to the
// file.
func (d *document) table(f *policyfile.File, name string) (*policyfile.Table, error) {
	t := &policyfile.Table{
		Name: name, Subject: d.Subject, K: d.K, Recoding: d.Recoding, Scope: d.Scope, Seed: d.Seed,
		AggregateOnly: d.Rows != nil &&
			!*d.Rows, Gate: d.Gate, MaxShare: d.MaxShare, Cohort: d.Cohort, Indexes: d.Indexes,
		SetValued: d.SetValued,
		BlindCuts: d.Cuts == "blind", DeparturesAtOnce: d.Departures == "at_once",
		ChangesAtOnce: d.Changes == "at_once",
	}
	if s := d.DataSetOf; s != nil {
		t.DataSet = &policyfile.DataSet{Of: quoteTable(pgx.Identifier{s.Schema, s.Name}), Query: s.Query}
	}
	for _, q := range d.Require {
		t.Require = append(t.Require, policyfile.Requirement(q))
	}
	for _, c := range d.Columns {
		if c.Class == "" {
			continue
		}
		column := policyfile.Column{
			Name: c.Name, Class: c.Class, Action: c.Action, SharedFact: c.SharedFact == "accepted",
			Middle: c.Representative == "middle", NoMargins: c.Margins != nil && !*c.Margins,
		}
		if c.Hierarchy != nil {
			h, err := policyfile.FromDefinition(c.Hierarchy.Name, c.Hierarchy.Kind, c.Hierarchy.Definition)
			if err != nil {
				return nil, err
			}
			column.Hierarchy = f.Adopt(h)
		}
		t.Columns = append(t.Columns, column)
	}
	return t, nil
}

// quoteTable is the name of a table as SQL reads it, quoted where needed.
func quoteTable(relation pgx.Identifier) string {
	parts := make([]string, len(relation))
	for i, part := range relation {
		parts[i] = part
		if !plainName(part) {
			parts[i] = pgx.Identifier{part}.Sanitize()
		}
	}
	return strings.Join(parts, ".")
}

func plainName(s string) bool {
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r == '_'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '$') {
			return false
		}
	}
	return s != ""
}
