// Package extension carries the SQL side of Tailor: the schemas tailor
// (policies, chains, audit), tailor_store (epochs: the stored copies that
// releases are made from), tailor_release (what readers may read) and research
// (the released shape, for tools that list tables).
package extension

import (
	"embed"
	"strings"
)

//go:embed *.sql
var files embed.FS

// parts are the files of the script in the order in which they run: each uses
// only what those before it have made. privileges.sql comes last, because it
// takes and gives the rights on everything.
var parts = []string{
	"roles.sql", "tables.sql", "locks.sql", "views.sql", "audit.sql", "rights.sql", "hierarchies.sql",
	"policy.sql", "setvalued.sql", "publications.sql", "rows.sql",
	"workload.sql", "effects.sql", "progress.sql", "schedules.sql", "waiting.sql", "parent.sql",
	"datasets.sql", "families.sql", "facts.sql", "values.sql", "deltas.sql", "telling.sql",
	"handover.sql", "lasting.sql", "activation.sql", "rehearsal.sql", "erasure.sql", "unprotect.sql",
	"reports.sql", "fidelity.sql", "logins.sql", "admission.sql", "casecount.sql", "installation.sql",
	"privileges.sql",
}

// Script creates or upgrades the SQL side. It is idempotent and runs as one
// batch in one transaction.
func Script() string {
	var script strings.Builder
	for _, name := range parts {
		script.WriteString(part(name))
	}
	return script.String()
}

func part(name string) string {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // a part that is listed and not embedded: no build has this
	}
	return strings.ReplaceAll(string(text), "@VERSION@", Version)
}
