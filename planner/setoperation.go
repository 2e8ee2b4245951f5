package planner

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// sides says how a query that groups the rows of both arms of a set operation,
// each with the number of its arm, stands for the operation. Rows are equal
// where their values are, as in PostgreSQL, and show the labels of all rows of
// both arms that were equal and are not taken away:
//
//	UNION          every group
//	INTERSECT      groups with rows of both arms; ALL: as many as the arm that has fewer
//	EXCEPT         groups with rows of the first arm only; ALL: as many as it has more than the second
type sides struct {
	op  pg.SetOperation
	all bool
}

// told says whether it matters which arm a row is of.
func (s sides) told() bool {
	return s.op == pg.SetOperation_SETOP_INTERSECT || s.op == pg.SetOperation_SETOP_EXCEPT
}

// sideColumn holds the number of the arm.
const sideColumn = "tailor_side"

// column is the one that tells the arms apart.
func (s sides) column() []string {
	if s.told() {
		return []string{sideColumn}
	}
	return nil
}

// label is a label over the rows of a group that are not taken away.
func (s sides) label(label string) string {
	if s.op == pg.SetOperation_SETOP_EXCEPT && s.all {
		return joined(label) + fromSide(1)
	}
	return joined(label)
}

// having leaves the groups that the operation has.
func (s sides) having() string {
	switch {
	case !s.told() || s.all:
		return ""
	case s.op == pg.SetOperation_SETOP_INTERSECT:
		return fmt.Sprintf(" HAVING pg_catalog.min(%[1]s) OPERATOR(pg_catalog.<) pg_catalog.max(%[1]s)", sideColumn)
	}
	return fmt.Sprintf(" HAVING pg_catalog.max(%s) OPERATOR(pg_catalog.=) 1", sideColumn)
}

// copies is how many rows a group stands for, where ALL counts them.
func (s sides) copies() string {
	first, second := "pg_catalog.count(*)"+fromSide(1), "pg_catalog.count(*)"+fromSide(2)
	if s.op == pg.SetOperation_SETOP_INTERSECT {
		return "LEAST(" + first + ", " + second + ")"
	}
	return first + " OPERATOR(pg_catalog.-) " + second
}

// fromSide lets an aggregate see the rows of one arm.
func fromSide(side int) string {
	return fmt.Sprintf(" FILTER (WHERE %s OPERATOR(pg_catalog.=) %d)", sideColumn, side)
}

// markSides makes each row of a query say that it is of an arm.
func (q *boundQuery) markSides(side int) {
	if len(q.arms) == 0 || q.merging.wrapped {
		q.side = side
		return
	}
	for _, arm := range q.arms {
		arm.markSides(side)
	}
}
