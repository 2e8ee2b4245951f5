package planner

import pg "github.com/pganalyze/pg_query_go/v5"

// setOperation binds both arms; a column stays a quasi-identifier where it is
// one in each arm. UNION ALL alone shows labels: the others compare values.
func (b *binder) setOperation(s *pg.SelectStmt, sc *scope, top bool) (*boundQuery, error) {
	top = top && !mergesRows(s)
	left, err := b.selectStmt(s.Larg, sc, top)
	if err != nil {
		return nil, err
	}
	right, err := b.selectStmt(s.Rarg, sc, top)
	if err != nil {
		return nil, err
	}
	bound := &boundQuery{arms: []*boundQuery{left, right}, known: left.known && right.known}
	for i, c := range left.columns {
		if !bound.known || len(left.columns) != len(right.columns) || right.columns[i].qid == nil {
			c.qid = nil
		}
		if i < len(right.columns) {
			c.provenance = more(c.provenance, right.columns[i].provenance)
			c.bases = union(c.bases, right.columns[i].bases)
		}
		bound.add(c, origin{})
	}
	return bound, b.spend(bound)
}
