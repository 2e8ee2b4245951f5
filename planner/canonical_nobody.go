package planner

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// ofNobody is what a subquery is for a key that is NULL, "" for NULL; unsure says that it is not
// known.
func ofNobody(kind pg.SubLinkType, query *pg.SelectStmt) (value string, unsure bool) {
	switch kind {
	case pg.SubLinkType_EXISTS_SUBLINK:
		return "false", false
	case pg.SubLinkType_ANY_SUBLINK:
		return "", false
	case pg.SubLinkType_ARRAY_SUBLINK:
		value = "'{}'"
	}
	// An aggregate has a row also of no rows, unless they are grouped.
	isSet := func(n *pg.Node) bool { return n.GetGroupingSet() != nil }
	grouped := len(query.GroupClause) > 0 && !slices.ContainsFunc(query.GroupClause, isSet)
	if grouped || query.HavingClause == nil && !aggregates(query.TargetList) {
		return value, false
	}
	call := query.TargetList[0].GetResTarget().GetVal().GetFuncCall()
	inside := aggregates(call.GetArgs()) || len(query.GroupClause) > 0 || query.HavingClause != nil ||
		query.LimitCount != nil || query.LimitOffset != nil
	if kind != pg.SubLinkType_EXPR_SUBLINK || call == nil || call.Over != nil || inside {
		return "", true
	}
	if last(call.Funcname) == "count" {
		value = "0"
	}
	return value, false
}
