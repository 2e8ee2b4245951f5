package main

import (
	"flag"
	"strconv"

	"github.com/hiatus-tailor/tailor/internal/audit"
)

// auditFlags are the flags of serve that say where records go. The result is
// filled when the flags are parsed.
func auditFlags(flags *flag.FlagSet) *audit.Config {
	c := audit.DefaultConfig()
	flags.StringVar(&c.File, "audit-log", fromEnvironment("audit-log", ""),
		"`FILE` of JSON lines for the audit log")
	flags.BoolVar(&c.Table, "audit-table", fromEnvironment("audit-table", "true") != "false",
		"keep the audit log in the database as well, where tailor.audit and the console read it")
	flags.StringVar((*string)(&c.SQL), "audit-sql", fromEnvironment("audit-sql", string(c.SQL)),
		"`WHAT` to keep of a statement's text: redacted, full or none")
	flags.Int64Var(&c.FileBytes, "audit-file-bytes",
		integerFromEnvironment("audit-file-bytes", c.FileBytes),
		"`BYTES` after which the file is set aside and a new one begun")
	flags.Int64Var(&c.TotalBytes, "audit-total-bytes",
		integerFromEnvironment("audit-total-bytes", c.TotalBytes),
		"`BYTES` that all files may hold; beyond them protected queries are refused; 0 for no bound")
	return &c
}

// integerFromEnvironment is the default of a flag; a text that is no number
// becomes one that no flag accepts.
func integerFromEnvironment(name string, otherwise int64) int64 {
	text := fromEnvironment(name, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
