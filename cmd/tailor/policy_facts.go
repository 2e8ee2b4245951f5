package main

import (
	"context"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// sharedNames finds columns that the policy of a file shows exact under a name
// under which another table of the same subjects does, as activation will.
// Whether values agree or depend on each other is measured by activation only.
func (p *comparison) sharedNames(ctx context.Context, t *policyfile.Table) error {
	for _, o := range p.others(t) {
		if t.SetValued != nil || o.SetValued != nil {
			continue
		}
		for _, c := range t.Columns {
			other := o.Column(c.Name)
			if !c.Exact() || c.SharedFact || other == nil || !other.Exact() || other.SharedFact {
				continue
			}
			var tied bool
			if err := p.tx.QueryRow(ctx, `
				SELECT EXISTS (SELECT FROM tailor.key_columns($1::text::pg_catalog.regclass, $2) k
				               JOIN pg_catalog.pg_attribute a ON a.attrelid = k.relation AND a.attnum = k.number
				               WHERE k.relation = pg_catalog.to_regclass($3) AND a.attname = $4)`,
				t.Name, t.Subject, o.Name, o.Subject).Scan(&tied); err != nil {
				return err
			}
			if tied {
				p.obstacle("%s: %s shows a column of this name of the same subjects", c.Name, o.Name)
			}
		}
	}
	return nil
}

// others are the tables before one in the file, and those that are in force and
// not in the file.
func (p *comparison) others(t *policyfile.Table) []*policyfile.Table {
	var out []*policyfile.Table
	listed := make(map[string]bool)
	for i := range p.file.Tables {
		listed[p.file.Tables[i].Name] = true
		if p.file.Tables[i].Line < t.Line {
			out = append(out, &p.file.Tables[i])
		}
	}
	for i := range p.present.Tables {
		if !listed[p.present.Tables[i].Name] {
			out = append(out, &p.present.Tables[i])
		}
	}
	return out
}
