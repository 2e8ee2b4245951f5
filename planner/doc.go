// Package planner decides what happens to a statement: it passes, it is
// rewritten over releases, or it is refused with a reason. It is a pure
// function of the statement, the session's search path and a catalog snapshot.
//
// The named passes, in order:
//
//	concern   a statement that names no protected relation passes unread
//	limits    text and tokens are bounded before the parser sees them
//	parse     PostgreSQL's own grammar, through pg_query
//	bind      names are resolved; a hidden column ends here
//	stage     every quasi-identifier used is noted with the place of its use
//	rewrite   the client's own text is edited by offsets
//
// # Labels
//
// Everything in a statement works on values. With tailor.representation = 'label' a
// quasi-identifier that reaches the client as itself is shown as its label, which its
// release holds beside its value:
//
//   - Of a row of the release, however many queries hand it on.
//   - Of a group, or of a row of SELECT DISTINCT, of the outermost query, if the column is
//     named by itself only: the number of the label then stands in place of the column
//     (groupkey.go), and groups are by label.
//   - Elsewhere rows have been merged by value (in a subquery, by UNION, where the column
//     is computed with), and the value is shown.
//   - A column merged by USING has the label of the side that keeps all rows,
//     of either side of an inner join, and none of a full join.
//
// tailor.label, tailor.exact and tailor.bounds (labelcall.go) say in any statement how a
// column is shown.
//
// # Statements prepared by SQL
//
// A query that PREPARE names is planned like one that runs, and sent on without
// what would let it read a release. EXECUTE is not planned: the query stands in
// its place by then (execute.go), and that text is.
//
// # Joins along keys
//
// Two protected tables in one FROM list have to be joined by an equation of
// their subject's keys (keyjoin.go). The parent is then read through the child's
// release, and its quasi-identifiers count as the child's: one relation, one
// branch of stages, one chain (docs/decisions/joins.md).
//
// Data sets and the relation that they are read off are one relation of many columns: they
// have the same number for a subject (family.go). What is asked of each subject's rows in a
// child is read from a column of a data set that says the same (derive.go, canonical.go): in
// place of a subquery, of an outer join that keeps the parent (keepparent.go), and of
// count(DISTINCT key), for groups by the key: for these alone a text is made anew (alongkey.go).
//
// # Set-valued relations
//
// Their releases are read like others, but not beside another protected
// relation. tailor.case_count('table', codes) reads the release of the table
// that its literal names.
//
// No privilege argument rests here. A protected table is replaced by its
// release, and the statement runs under the reader's own role, which has no
// privilege on anything else; a reference that the planner overlooked ends in
// PostgreSQL's "permission denied". What the planner does not understand about
// protected data it refuses.
package planner
