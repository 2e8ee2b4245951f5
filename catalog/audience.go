package catalog

import (
	"slices"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// everyone is the audience of a table whose readers share one root.
const everyone = "table"

// audienceOf names the audience that a principal belongs to: all readers of the
// table, or those of a project, which have a root of their own.
func audienceOf(r *Relation, p *Principal) (string, error) {
	if r.Scope != "project" {
		return everyone, nil
	}
	var member []string
	for _, s := range r.Seeds {
		if s.Name != policySeed && slices.Contains(p.Projects, s.Name) {
			member = append(member, s.Name)
		}
	}
	switch {
	case len(p.Projects) > 1:
		return "", sqlstate.New(sqlstate.InsufficientPrivilege, "role %q reads for %d projects", p.Name,
			len(p.Projects)).
			WithHint("Two roots of the same people could be laid beside each other: a reader belongs to " +
				"one project. A database administrator calls tailor.leave_project.")
	case len(member) == 0:
		return "", sqlstate.New(sqlstate.InsufficientPrivilege,
			"table %q is read by projects, and role %q belongs to none of them", r.Name, p.Name).
			WithHint("A database administrator declares projects with tailor.project, and calls " +
				"tailor.join_project.")
	}
	return "project " + member[0], nil
}

// audiences are all that a relation has.
func (r *Relation) audiences() []string {
	if r.Scope != "project" {
		return []string{everyone}
	}
	var out []string
	for _, s := range r.Seeds {
		if s.Name != policySeed {
			out = append(out, "project "+s.Name)
		}
	}
	return out
}

// workload is what an audience is expected to ask for: the policy's own, or its
// project's.
func (r *Relation) workload(audience string) [][]string {
	var out [][]string
	for _, s := range r.Seeds {
		if s.Name == policySeed && audience == everyone || audience == "project "+s.Name {
			out = append(out, s.Combinations...)
		}
	}
	return out
}
