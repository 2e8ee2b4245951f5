package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/console"
)

// drafter makes the drafts of the console, over connections of the proxy's own role.
type drafter struct{ dsn string }

// Draft implements console.Drafter by what policy init does.
func (d drafter) Draft(
	ctx context.Context, asked *console.DraftRequest, status func(string),
) (*console.Draft, error) {
	made, err := d.draft(ctx, asked, status)
	var refused *policyError
	var problem *anonymize.ProblemError
	switch {
	case errors.As(err, &refused):
		return nil, &console.RefusedError{Reason: refused.what, Remedy: refused.remedy}
	case errors.As(err, &problem):
		return nil, &console.RefusedError{Reason: problem.What, Remedy: problem.Remedy}
	}
	return made, err
}

func (d drafter) draft(
	ctx context.Context, asked *console.DraftRequest, status func(string),
) (*console.Draft, error) {
	all, chosen := settings(asked.K)
	if asked.Setting > 0 {
		chosen = min(asked.Setting, len(all)) - 1
	}
	s, err := surveySchema(ctx, d.dsn, asked.Schema, asked.Role, all[len(all)-1].k, status)
	if err != nil {
		return nil, err
	}
	if err := s.answer(asked.Answers); err != nil {
		return nil, err
	}
	out := &console.Draft{Schema: asked.Schema, Tables: []console.DraftTable{}, Chosen: chosen + 1}
	var effects [][]effect
	some := slices.ContainsFunc(s.tables, func(t *surveyedTable) bool { return !t.leave })
	if some {
		if effects, err = s.weigh(ctx, d.dsn, all, status); err != nil {
			return nil, err
		}
	}
	s.show(out)
	if !some {
		return out, nil
	}
	for i, g := range all {
		shown := console.DraftSetting{K: g.k, L: g.diversity}
		for _, e := range effects[i] {
			loss, highest := e.figures()
			shown.Effects = append(shown.Effects, console.DraftEffect{
				Table: e.table, Loss: loss, Risk: highest,
			})
		}
		out.Settings = append(out.Settings, shown)
	}
	for _, e := range effects[chosen] {
		if e.Unmet != "" {
			out.Out = append(out.Out,
				fmt.Sprintf("%s: all together do not meet %s", e.table, e.Unmet))
		}
	}
	f, err := s.file(asked.Schema, all, effects, chosen)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		return nil, err
	}
	out.File = text.String()
	return out, nil
}

// answer takes answers in place of what is suggested: those about tables first, as they change
// what is suggested of columns.
func (s *survey) answer(answers []console.DraftAnswer) error {
	for _, about := range []bool{true, false} {
		for _, a := range answers {
			if (a.Column == "") != about {
				continue
			}
			if complaint := s.take(a); complaint != "" {
				return &policyError{complaint, "begin the draft anew: the tables have changed"}
			}
		}
	}
	return nil
}

// take takes one answer, or complains.
func (s *survey) take(a console.DraftAnswer) (complaint string) {
	at := slices.IndexFunc(s.tables, func(t *surveyedTable) bool { return t.name == a.Table })
	if at < 0 {
		return fmt.Sprintf("there is no table %q to protect", a.Table)
	}
	t := s.tables[at]
	if a.Column == "" {
		return t.takeSubject(a.Answer)
	}
	c := t.column(a.Column)
	if c == nil {
		return fmt.Sprintf("%s has no column %q", t.name, a.Column)
	}
	return t.take(c, a.Answer)
}

// show has the tables as the page shows them.
func (s *survey) show(out *console.Draft) {
	out.Out = slices.Clone(s.out)
	for _, t := range s.tables {
		shown := console.DraftTable{
			Name: t.name, Measured: t.measured(), Subject: t.subject, Subjects: []string{},
			Columns: []console.DraftColumn{},
		}
		if t.leave {
			shown.Left = t.whyLeft()
		}
		for _, c := range t.columns {
			if c.Missing == 0 {
				shown.Subjects = append(shown.Subjects, c.Name)
			}
			if c.Name != t.subject {
				shown.Columns = append(shown.Columns, t.shown(c))
			}
		}
		out.Tables = append(out.Tables, shown)
	}
}

func (t *surveyedTable) shown(c *surveyedColumn) console.DraftColumn {
	shown := console.DraftColumn{
		Name: c.Name, Type: c.Type, Values: c.Distinct, Singles: c.singles / 100,
		Missing: c.MissingPercent() / 100, Class: string(c.choice()), Remark: c.remark(),
		Tells: []string{},
	}
	if set := t.set(); set != nil && c != set {
		shown.Class, shown.Remark = string(asHidden), besideCodes
	}
	for _, letter := range t.letters(c) {
		shown.Choices = append(shown.Choices, console.DraftChoice{
			Letter: string(letter), Name: wordOf[letter],
		})
	}
	if shown.Class == string(asQuasiIdentifier) {
		shown.Hierarchy = c.hierarchy.String()
	}
	for _, d := range t.dependencies {
		if d.From == c.Name {
			shown.Tells = append(shown.Tells, d.To)
		}
	}
	return shown
}

// letters are the answers that a column can have.
func (t *surveyedTable) letters(c *surveyedColumn) []byte {
	return slices.DeleteFunc(
		[]byte{asQuasiIdentifier, asSensitive, asKept, asHidden, asCodes},
		func(letter byte) bool { return t.complaint(c, letter) != "" })
}
