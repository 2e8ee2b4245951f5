// Package extension carries the SQL side of Tailor: the schemas tailor
// (policies, chains, audit), tailor_store (epochs: the stored copies that
// releases are made from), tailor_release (what readers may read) and research
// (the released shape, for tools that list tables).
package extension

import _ "embed"

// Script creates or upgrades the SQL side. It is idempotent and runs as one
// batch in one transaction.
//
//go:embed tailor.sql
var Script string
