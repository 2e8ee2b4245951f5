// Package policyfile reads, checks and writes policies as code: the YAML files
// whose form docs/schema/policy.schema.json publishes.
//
// [Parse] turns the bytes of a file into a [File] or into every [Fault] it
// finds, each with line and column. A file without faults is complete in
// itself; whether it fits a database is for whoever applies it. [File.Write]
// prints the canonical form: parsing it gives the same File, and writing that
// gives the same bytes.
package policyfile
