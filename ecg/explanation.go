package ecg

// Explanation is the tailor's account of a query, for EXPLAIN (TAILOR).
type Explanation struct {
	Tables []ExplainedTable `json:"tables"`
}

// ExplainedTable is one branch of the graph.
type ExplainedTable struct {
	Table string `json:"table"`
	// Chain is the release, in a word or two.
	Chain     string           `json:"chain"`
	Blocks    int              `json:"blocks,omitempty"`
	MinBlock  int              `json:"min_block"` // subjects
	Risk      float64          `json:"risk"`      // highest, of the release
	Measure   string           `json:"gate"`
	Threshold float64          `json:"threshold"`
	Recoding  string           `json:"recoding,omitempty"`
	Loss      float64          `json:"loss"` // of the query's quasi-identifiers
	Score     float64          `json:"score"`
	Stages    []ExplainedStage `json:"stages"`
}

// ExplainedStage is one stage. RiskBefore and Source are for the table's owner.
type ExplainedStage struct {
	Stage      string      `json:"stage"`
	Follows    []string    `json:"follows"`
	Place      string      `json:"place"`
	Attributes []string    `json:"qids"`
	Condition  string      `json:"condition"`
	Action     string      `json:"action"`
	RiskBefore *float64    `json:"risk_before"`
	RiskAfter  float64     `json:"risk_after"`
	Loss       float64     `json:"loss"`
	Local      *Values     `json:"local,omitempty"`
	Aggregate  *Values     `json:"aggregate,omitempty"`
	Source     *Source     `json:"source,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	Considered int         `json:"considered,omitempty"`
	Possible   int         `json:"possible,omitempty"`
}

// Explain words an assessment. stored says whether to tell the risk of the table as
// it is.
func (r *Root) Explain(a *Assessment, table, chain string, stored bool) ExplainedTable {
	everything := r.values(r.all())
	out := ExplainedTable{
		Table: table, Chain: chain, Blocks: r.Shown.Blocks, MinBlock: r.Shown.MinBlock,
		Risk:    everything.Risk.Highest,
		Measure: r.Gate.Measure, Threshold: r.Gate.Threshold, Recoding: a.Recoding, Loss: a.Loss,
		Score: a.Score, Stages: []ExplainedStage{},
	}
	for i := range a.Stages {
		s := &a.Stages[i]
		e := ExplainedStage{
			Stage: s.Name, Follows: s.Follows, Place: s.Place, Attributes: s.Attributes,
			Condition: s.Condition,
			Action:    s.Action, RiskAfter: s.RiskAfter, Loss: s.Loss, Local: &s.Local,
			Aggregate:  &s.Aggregate,
			Candidates: s.Candidates, Considered: s.Considered, Possible: s.Possible,
		}
		if stored {
			e.RiskBefore, e.Source = &s.RiskBefore, s.Source
		}
		out.Stages = append(out.Stages, e)
	}
	return out
}

// choice says in a few words what was done at a stage.
func (s *ExplainedStage) choice() string {
	switch s.Action {
	case ActionNone:
		return "as it is"
	case ActionKept:
		return "as shown"
	}
	return s.Action
}
