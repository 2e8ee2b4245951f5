package ecg

// Explanation is the tailor's account of a query, for EXPLAIN (TAILOR).
type Explanation struct {
	Tables []ExplainedTable `json:"tables"`
}

// ExplainedTable is one branch of the graph.
type ExplainedTable struct {
	Table string `json:"table"`
	// Chain is what the audience has been shown so far, in a word or two.
	Chain     string  `json:"chain"`
	Blocks    int     `json:"blocks,omitempty"`
	MinBlock  int     `json:"min_block"` // subjects
	Risk      float64 `json:"risk"`      // highest, of the chain so far
	Measure   string  `json:"gate"`
	Threshold float64 `json:"threshold"`
	Recoding  string  `json:"recoding,omitempty"`
	// Loss is that of the query's quasi-identifiers, LossOfAll what generalizing
	// all of them at once would lose.
	Loss      float64          `json:"loss"`
	LossOfAll *float64         `json:"loss_of_all,omitempty"`
	Score     float64          `json:"score"`
	Stages    []ExplainedStage `json:"stages"`
	// Bounds says that some figures are bounds: the chain has not been asked for
	// the combination, and what it would come to is told by an answer only.
	Bounds bool `json:"bounds"`
	// Measures are quasi-identifiers of the query that are shown by means: they did
	// not enter the combination.
	Measures []string `json:"measures,omitempty"`
}

// ExplainedStage is one stage. RiskBefore is nil where it has not been
// assessed; AtMost says that RiskAfter and Loss are bounds.
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
	AtMost     bool        `json:"at_most"`
	Local      *Values     `json:"local,omitempty"`
	Aggregate  *Values     `json:"aggregate,omitempty"`
	Source     *Source     `json:"source,omitempty"`
	Candidates []Candidate `json:"candidates,omitempty"`
	Considered int         `json:"considered,omitempty"`
	Possible   int         `json:"possible,omitempty"`
}

// ActionRefine is the action of a stage of which only bounds are known: an
// answer would refine the chain.
const ActionRefine = "refine"

// Foresee says of the stages of a query what follows from what the chain has
// shown already, and nothing else: figures of a combination that it has been
// refined for, and bounds of others. Attacker: asks for the account of any
// number of queries and for the answer to none. Then he learns nothing that
// the answers so far have not told. TestExplainTellsNothingNew checks it.
func (c *Chain) Foresee(table string, stages []Stage, score float64) (ExplainedTable, error) {
	out := c.explained(table, score)
	out.Blocks = 0 // only who has asked for everything can count them
	for i := range stages {
		s := &stages[i]
		columns, err := c.columns(s.Attributes)
		if err != nil {
			return out, err
		}
		done := c.finished(c.Present, columns)
		e := ExplainedStage{
			Stage: s.Name, Follows: s.Follows, Place: s.Place, Attributes: s.Attributes, Condition: s.Condition,
			Action: ActionRefine, AtMost: true, RiskAfter: 1 / float64(c.Gate.K), Loss: 1,
		}
		if done {
			local := c.Shown(s.Attributes, &Outcome{Partition: c.Present})
			e.Action, e.AtMost, e.RiskAfter, e.Loss, e.Local = ActionKept, false, out.Risk, local.Loss, &local
		}
		out.Bounds = out.Bounds || !done
		out.Stages, out.Loss = append(out.Stages, e), e.Loss
	}
	return out, nil
}

// Explain words an assessment in full.
func (c *Chain) Explain(a *Assessment, table string, score float64) ExplainedTable {
	out := c.explained(table, score)
	out.Recoding, out.Loss, out.LossOfAll, out.Score = a.Recoding, a.Loss, &a.LossOfAll, a.Score
	for i := range a.Stages {
		s := &a.Stages[i]
		out.Stages = append(out.Stages, ExplainedStage{
			Stage: s.Name, Follows: s.Follows, Place: s.Place, Attributes: s.Attributes, Condition: s.Condition,
			Action: s.Action, RiskBefore: &s.RiskBefore, RiskAfter: s.RiskAfter, Loss: s.Loss,
			Local: &s.Local, Aggregate: &s.Aggregate, Source: s.Source,
			Candidates: s.Candidates, Considered: s.Considered, Possible: s.Possible,
		})
	}
	return out
}

func (c *Chain) explained(table string, score float64) ExplainedTable {
	return ExplainedTable{
		Table: table, Blocks: c.Present.Blocks(), MinBlock: c.Present.MinBlock(), Risk: c.riskOf(c.Present).Highest,
		Measure: c.Gate.Measure, Threshold: c.Gate.Threshold, Score: score, Stages: []ExplainedStage{},
	}
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
