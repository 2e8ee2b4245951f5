package ecg

// Stage is a node of the graph: the combination of quasi-identifiers that a
// query has touched up to a place, and what the tailor found there.
type Stage struct {
	Name       string   `json:"stage"` // S1, S2, …
	Follows    []string `json:"follows"`
	Place      string   `json:"place"`
	Table      string   `json:"table"`
	Attributes []string `json:"qids"`      // the combination so far, in order of use
	Condition  string   `json:"condition"` // what is new at this stage, without literals

	// Exactly are, at the last stage of a branch, the attributes that the query compares
	// with =, joins or groups by.
	Exactly []string `json:"-"`
	// Bounds are, at the last stage of a branch, where ranges cut the others.
	Bounds map[string][]Bound `json:"-"`

	// Action says what was done: "none" where the combination could be shown
	// as it is, "kept" where the chain has been refined for it before,
	// "generalize" where a candidate was chosen.
	Action string `json:"action"`
	// RiskBefore is the highest risk if the combination were shown as it is on
	// top of everything shown so far, RiskAfter that of everything shown with
	// this query's answer. Loss is that of the combination in the answer.
	RiskBefore float64 `json:"risk_before"`
	RiskAfter  float64 `json:"risk_after"`
	Loss       float64 `json:"loss"`
	// Before has the other measures of RiskBefore.
	Before Risk `json:"before"`
	// Local is the combination by itself as the answer shows it, Aggregate
	// everything that the chain has been shown.
	Local     Values `json:"local"`
	Aggregate Values `json:"aggregate"`
	// Score is the running sum of local risks along the graph ([Chen] §4). It
	// bounds nothing; Aggregate does.
	Score  float64 `json:"score"`
	Source *Source `json:"source,omitempty"`

	Candidates []Candidate `json:"candidates"`
	// Considered counts the candidates that were worked out, of Possible ones.
	Considered int `json:"considered"`
	Possible   int `json:"possible"`
}

// The actions of a stage.
const (
	ActionNone       = "none"
	ActionKept       = "kept"
	ActionGeneralize = "generalize"
)

// Values are risk and information loss of something shown.
type Values struct {
	Risk Risk `json:"risk"`
	// Loss is in [0, 1] by the model of the chain; Modified is the share of
	// cells that do not show their value (MR).
	Loss     float64 `json:"loss"`
	Modified float64 `json:"modified"`
}

// Source says where the risk of a stage comes from: the first attribute, in
// order of use, with which the risk is too high, and the classes of fewer than
// k subjects that it makes. It holds no values.
type Source struct {
	Attribute string `json:"attribute"`
	Classes   int    `json:"classes"`
	Subjects  int    `json:"subjects"` // in these classes, together
	Smallest  int    `json:"smallest"` // subjects
}

// Candidate is one way to de-identify a stage: the attributes that lose detail
// while all others are shown as they are.
type Candidate struct {
	Attributes []string `json:"attributes"`
	Recoding   string   `json:"recoding"`
	Risk       float64  `json:"risk"` // highest
	Loss       float64  `json:"loss"`
	Feasible   bool     `json:"feasible"`
	Chosen     bool     `json:"chosen"`
}
