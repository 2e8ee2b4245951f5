// Package catalog is what Tailor knows of the database: policies as immutable
// snapshots for the planner, and epochs, chains and releases as PostgreSQL
// holds them.
//
// A [Snapshot] goes out to the planner, which is a pure function of it. A
// [Chain] comes in when a query needs quasi-identifiers: [Catalog.Refine]
// locks the chain in the database, refines its partition and rewrites its
// release in one transaction, so that whatever a reader is shown afterwards is
// a function of the latest partition (DESIGN: one partition per chain).
//
// A release is a view in the schema tailor_release over tables of tailor_store:
// the epoch's copy of the relation, and one row with a dictionary of labels for
// each quasi-identifier and the number of each row's label in it. Rows are matched
// by their random row number, never by their tuple, so that no plan can bring rows
// of equal original values together. Another view has one row, the labels by their
// numbers, for queries that group by the numbers.
//
// A relation whose subject column refers to another's key holds that one's
// quasi-identifiers beside its own ([Parent]); a second view of its release
// shows them, for joins.
//
// A set-valued relation has one publication instead, to which cohorts are added, and the
// release of every chain is a view of its rows (docs/decisions/set-valued.md).
package catalog
