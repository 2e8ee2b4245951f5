// Package fidelity measures how far the answers of releases are from those of the protected
// tables, for whoever owns the tables.
//
// A workload (workload.go) is a file of queries. Each is run on the table and, by a reader
// through the proxy, on its release (run.go). What its output columns are is read from the
// query (outputs.go): keys tell the rows of an answer apart, measures are compared. Rows of the
// two answers are matched by their keys, in any order (match.go), the errors of the measures are
// summed up (errors.go) and set against the quasi-identifiers of each query (uses.go), and a
// report (report.go) is written as text, JSON or HTML.
//
// Reports hold true figures of protected tables. Memory is bounded: an answer is kept up to
// AnswerLimit, two at a time, and of each query the errors of its cells.
package fidelity
