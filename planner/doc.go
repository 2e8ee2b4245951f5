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
//	rewrite   the client's own text is edited by offsets, never deparsed
//
// No privilege argument rests here. A protected table is replaced by its
// release, and the statement runs under the reader's own role, which has no
// privilege on anything else; a reference that the planner overlooked ends in
// PostgreSQL's "permission denied". What the planner does not understand about
// protected data it refuses.
package planner
