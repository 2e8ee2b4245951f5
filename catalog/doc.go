// Package catalog is what Tailor knows of the database: policies as immutable
// snapshots for the planner, and epochs, chains and releases as PostgreSQL
// holds them.
//
// A [Snapshot] goes out to the planner, which is a pure function of it. A [Chain] is what the
// readers of a relation share: one root partition, made before anybody asks, and the release
// that shows it. A new copy of the table is taken in under the chain's lock, in one
// transaction, by rules under which what is shown at different times tells nobody's change
// (docs/decisions/epochs.md).
//
// A release is a plain table of tailor_store, a row for each row that is shown, with values
// and the numbers of labels, and a view of it in the schema tailor_release; one row beside it
// has the labels by their numbers (docs/decisions/release-layout.md).
//
// A relation whose subject column refers to another's key holds that one's
// quasi-identifiers beside its own ([Parent]); a second view of its release
// shows them, for joins.
//
// A set-valued relation has one publication instead, to which cohorts are added, and the
// release of every chain is a view of its rows (docs/decisions/set-valued.md).
package catalog
