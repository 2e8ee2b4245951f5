package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// statement is what resets a setting.
func (s removedSetting) statement() string {
	quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	parts := strings.Split(s.name, ".")
	for i := range parts {
		parts[i] = quoted(parts[i])
	}
	of := "DATABASE " + quoted(s.database)
	switch {
	case s.role != "" && s.database != "":
		of = "ROLE " + quoted(s.role) + " IN " + of
	case s.role != "":
		of = "ROLE " + quoted(s.role)
	case s.database == "":
		of = "ROLE ALL"
	}
	return fmt.Sprintf("ALTER %s RESET %s", of, strings.Join(parts, "."))
}

func (s removedSetting) String() string {
	text := "setting " + s.name
	if s.role != "" {
		text += " of role " + s.role
	}
	if s.database != "" {
		text += " in database " + s.database
	}
	return text
}

// carryOut removes what was planned, and fails where something stays.
func (p *removalPlan) carryOut(ctx context.Context, tx pgx.Tx) error {
	do := func(format string, args ...any) error {
		_, err := tx.Exec(ctx, fmt.Sprintf(format, args...))
		return err
	}
	borrowed, err := p.becomeOwner(ctx, tx)
	if err != nil {
		return err
	}
	for _, s := range p.settings {
		if err := do("%s", s.statement()); err != nil {
			return err
		}
	}
	for _, view := range p.views { // quoted by PostgreSQL
		if err := do("DROP VIEW %s", view); err != nil {
			return err
		}
	}
	if p.extension {
		if err := do("DROP EXTENSION tailor CASCADE"); err != nil {
			return err
		}
	}
	for _, schema := range p.schemas { // with the event trigger
		if err := do("DROP SCHEMA IF EXISTS %s CASCADE", schema); err != nil {
			return err
		}
	}
	for _, r := range p.roles {
		if len(r.elsewhere) == 0 {
			if err := do("DROP OWNED BY %s", r.name); err != nil {
				return err
			}
			continue
		}
		for _, revoke := range r.granted {
			if err := do("%s", revoke); err != nil {
				return err
			}
		}
	}
	for _, name := range borrowed {
		if err := do("REVOKE %s FROM CURRENT_USER", name); err != nil {
			return err
		}
	}
	for _, r := range p.roles {
		if len(r.elsewhere) > 0 {
			continue
		}
		if err := do("DROP ROLE %s", r.name); err != nil {
			return err
		}
	}
	return p.assertGone(ctx, tx)
}

// becomeOwner lets a role that may create roles drop what the roles own and were
// granted. It returns what it has granted.
func (p *removalPlan) becomeOwner(ctx context.Context, tx pgx.Tx) ([]string, error) {
	lacking, err := texts(ctx, tx,
		`SELECT rolname FROM pg_roles WHERE rolname = ANY ($1) AND NOT pg_has_role(oid, 'USAGE')
			ORDER BY 1`, serviceRoles)
	if err != nil {
		return nil, err
	}
	for _, name := range lacking {
		if _, err := tx.Exec(ctx, fmt.Sprintf("GRANT %s TO CURRENT_USER", name)); err != nil {
			return nil, err
		}
	}
	return lacking, nil
}

// assertGone looks again. Privileges that others granted to a role that stays can
// only be revoked by them.
func (p *removalPlan) assertGone(ctx context.Context, tx pgx.Tx) error {
	left, err := planRemoval(ctx, tx)
	if err != nil {
		return err
	}
	for i := range left.roles {
		if r := &left.roles[i]; len(r.elsewhere) > 0 && len(r.granted) > 0 {
			at := slices.IndexFunc(p.roles, func(o removedRole) bool { return o.name == r.name })
			p.roles[at].granted, p.roles[at].on = nil, nil
			p.roles[at].elsewhere = append(p.roles[at].elsewhere,
				"privileges here that its owner must take: "+strings.Join(r.granted, "; "))
			r.granted = nil
		}
	}
	if !left.isEmpty() {
		return &policyError{
			"something of Tailor's would be left: " + strings.Join(left.lines(), "; "),
			"nothing was changed; please report this",
		}
	}
	return nil
}

// lines word what is removed, one object each.
func (p *removalPlan) lines() []string {
	var lines []string
	if p.extension {
		lines = append(lines, "extension tailor")
	}
	lines = append(lines, p.contents...)
	for _, view := range p.views {
		lines = append(lines, "view "+view)
	}
	for _, trigger := range p.triggers {
		lines = append(lines, "event trigger "+trigger)
	}
	for _, s := range p.settings {
		lines = append(lines, s.String())
	}
	for _, r := range p.roles {
		for _, object := range r.on {
			lines = append(lines, fmt.Sprintf("privileges of %s on %s", r.name, object))
		}
		if len(r.elsewhere) > 0 {
			continue
		}
		line := "role " + r.name
		if len(r.members) > 0 {
			line += "; its members stay: " + strings.Join(r.members, ", ")
		}
		lines = append(lines, line)
	}
	return lines
}

func (p *removalPlan) write(w io.Writer, done bool) error {
	var out strings.Builder
	switch {
	case p.isEmpty():
		fmt.Fprintf(&out, "database %s holds nothing of Tailor's\n", p.database)
	case done:
		fmt.Fprintf(&out, "removed from database %s:\n", p.database)
	default:
		fmt.Fprintf(&out, "would be removed from database %s:\n", p.database)
	}
	if !p.isEmpty() {
		for _, line := range p.lines() {
			fmt.Fprintf(&out, "  %s\n", line)
		}
	}
	for _, r := range p.roles {
		if len(r.elsewhere) > 0 {
			fmt.Fprintf(&out, "role %s stays, which has more to do: %s\n", r.name, strings.Join(r.elsewhere,
				", "))
		}
	}
	switch {
	case p.isEmpty():
	case done:
		out.WriteString("nothing of Tailor's is left in the database; tables that were protected are " +
			"as any other, and readers have no new privileges on them\n")
	default:
		out.WriteString("nothing was changed; --yes removes it\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
