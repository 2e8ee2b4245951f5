package main

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// writeDraftPolicy writes the draft of a table anew.
func writeDraftPolicy(ctx context.Context, tx pgx.Tx, t *policyfile.Table) error {
	call := func(sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
	if err := call(`CALL tailor.protect($1::text::regclass, $2, $3)`, t.Name, t.Subject,
		t.K); err != nil {
		return err
	}
	if err := call(`CALL tailor.clear_draft($1::text::regclass)`, t.Name); err != nil {
		return err
	}
	for _, c := range t.Columns {
		var hierarchy *string
		if c.Hierarchy != "" {
			hierarchy = &c.Hierarchy
		}
		if err := call(`CALL tailor.classify($1::text::regclass, $2, $3, hierarchy => $4, action => $5)`,
			t.Name, c.Name, c.Class, hierarchy, c.Action); err != nil {
			return err
		}
	}
	for _, c := range t.Columns {
		if !c.Middle && !c.NoMargins {
			continue
		}
		representative := "raked"
		if c.Middle {
			representative = "middle"
		}
		if err := call(`CALL tailor.represent($1::text::regclass, $2, $3, $4)`, t.Name, c.Name,
			representative, !c.NoMargins); err != nil {
			return err
		}
	}
	for _, c := range t.Columns {
		if !c.SharedFact {
			continue
		}
		if err := call(`CALL tailor.shared_fact($1::text::regclass, $2, 'accepted')`, t.Name,
			c.Name); err != nil {
			return err
		}
	}
	for _, q := range t.Require {
		err := call(`CALL tailor.require($1::text::regclass, $2, $3, $4, nullif($5::float8, 0),
			nullif($6, ''))`, t.Name, q.Model, q.Column, q.Parameter, q.C, q.Distance)
		if err != nil {
			return err
		}
	}
	if err := call(`CALL tailor.chain_scope($1::text::regclass, $2)`, t.Name, t.Scope); err != nil {
		return err
	}
	if err := call(`CALL tailor.recode($1::text::regclass, $2)`, t.Name, t.Recoding); err != nil {
		return err
	}
	if g := t.Gate; g != nil {
		if err := call(`CALL tailor.gate($1::text::regclass, $2, $3)`, t.Name, g.Measure,
			g.MaxRisk); err != nil {
			return err
		}
	}
	if t.MaxShare > 0 {
		if err := call(`CALL tailor.max_share($1::text::regclass, $2)`, t.Name, t.MaxShare); err != nil {
			return err
		}
	}
	if t.Cohort > 0 {
		if err := call(`CALL tailor.cohort($1::text::regclass, $2)`, t.Name, t.Cohort); err != nil {
			return err
		}
	}
	if t.BlindCuts {
		if err := call(`CALL tailor.cuts($1::text::regclass, 'blind')`, t.Name); err != nil {
			return err
		}
	}
	if t.DeparturesAtOnce {
		if err := call(`CALL tailor.departures($1::text::regclass, 'at_once')`, t.Name); err != nil {
			return err
		}
	}
	if t.ChangesAtOnce {
		if err := call(`CALL tailor.changes($1::text::regclass, 'at_once')`, t.Name); err != nil {
			return err
		}
	}
	if x := t.Indexes; x != nil {
		if err := call(`CALL tailor.indexes($1::text::regclass, coalesce($2::name[], '{}'),
			coalesce($3::name[], '{}'))`, t.Name, x.Add, x.Drop); err != nil {
			return err
		}
	}
	if s := t.SetValued; s != nil {
		if err := writeSetValued(ctx, tx, t.Name, s); err != nil {
			return err
		}
	}
	if t.AggregateOnly {
		if err := call(`CALL tailor.rows($1::text::regclass, false)`, t.Name); err != nil {
			return err
		}
	}
	if len(t.Seed) == 0 { // clear_draft has emptied it
		return nil
	}
	seed, err := json.Marshal(t.Seed)
	if err != nil {
		return err
	}
	return call(`CALL tailor.seed($1::text::regclass, $2::text::jsonb)`, t.Name, string(seed))
}

func writeSetValued(ctx context.Context, tx pgx.Tx, table string, s *policyfile.SetValued) error {
	var constraints *string
	var diversity *int
	if len(s.Constraints) > 0 {
		raw, err := json.Marshal(s.Constraints)
		if err != nil {
			return err
		}
		text := string(raw)
		constraints = &text
	}
	if s.Diversity > 0 {
		diversity = &s.Diversity
	}
	_, err := tx.Exec(ctx,
		`CALL tailor.set_valued($1::text::regclass, $2, m => $3, constraints => $4::text::jsonb,
			sensitive => $5, diversity => $6)`,
		table, s.Column, s.M, constraints, s.Sensitive, diversity)
	if err != nil || s.Joint == nil {
		return err
	}
	var size *int
	if s.Joint.GroupSize > 0 {
		size = &s.Joint.GroupSize
	}
	_, err = tx.Exec(ctx, `CALL tailor.joint($1::text::regclass, $2::name[], $3)`, table,
		s.Joint.Columns, size)
	return err
}
