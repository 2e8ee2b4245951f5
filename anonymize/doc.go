// Package anonymize is Tailor's engine: encoded tables and generalization
// hierarchies go in; partitions, transformations and their measures come out.
//
// A [Table] is dictionary-encoded against the [Hierarchy] of each of its
// quasi-identifiers and reduced to its distinct tuples, each with the number
// of subjects (persons) behind it. Everything is counted in subjects, never in
// rows. Two models of recoding work on a table:
//
//   - full-domain: one level per column for the whole table, searched exactly
//     over the generalization lattice, with suppression of small classes;
//   - local: a [Partition] of the tuples into blocks, only ever refined, each
//     block shown by the narrowest hierarchy node that covers it.
//
// The package is pure: no SQL, no sockets, no clock, no randomness that the
// caller did not hand in. The papers it draws on are listed by key in
// docs/references.md.
package anonymize
