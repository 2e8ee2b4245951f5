package ecg

import (
	"fmt"
	"slices"
)

// Place is where in a query a quasi-identifier acts. Places are in the order
// in which PostgreSQL's execution would meet them.
type Place int

// The places, from the first to the last.
const (
	Scan Place = iota
	Join
	Group
	Projection
	Order
)

var placeNames = [...]string{"scan", "join", "group", "projection", "order"}

func (p Place) String() string { return placeNames[p] }

// Use is one use of a quasi-identifier in a query.
type Use struct {
	Place     Place
	Table     string
	Attribute string
}

// Stage is a node of the graph: the combination of quasi-identifiers that a
// query has touched up to a place, and what the tailor found there. Risks are
// highest prosecutor risks, 1 / (subjects in the smallest class), in (0, 1].
// Losses are in [0, 1], averaged over the attributes of the combination.
type Stage struct {
	Name       string   `json:"stage"` // S1, S2, …
	Place      string   `json:"place"`
	Table      string   `json:"table"`
	Attributes []string `json:"qids"`      // the combination so far, in order of use
	Condition  string   `json:"condition"` // what is new at this stage, without literals
	// RiskBefore is the risk of showing the combination as it is.
	RiskBefore float64 `json:"risk_before"`
	// RiskAfter is the risk of what is released.
	RiskAfter  float64     `json:"risk_after"`
	Loss       float64     `json:"loss"`
	Candidates []Candidate `json:"candidates"`
}

// Candidate is one way to de-identify a stage.
type Candidate struct {
	Attributes []string `json:"attributes"`
	Recoding   string   `json:"recoding"`
	Risk       float64  `json:"risk"`
	Loss       float64  `json:"loss"`
	Chosen     bool     `json:"chosen"`
}

// Compose orders the uses of one table into stages. A place that adds no
// attribute makes no stage. No uses make no stages: the query needs no
// quasi-identifier and no refinement.
func Compose(table string, uses []Use) []Stage {
	var stages []Stage
	var combination []string
	for place := Scan; place <= Order; place++ {
		var added []string
		for _, u := range uses {
			if u.Table == table && u.Place == place && !slices.Contains(combination, u.Attribute) {
				combination = append(combination, u.Attribute)
				added = append(added, u.Attribute)
			}
		}
		if added == nil {
			continue
		}
		stages = append(stages, Stage{
			Name: fmt.Sprintf("S%d", len(stages)+1), Place: place.String(), Table: table,
			Attributes: slices.Clone(combination), Condition: fmt.Sprintf("%s on %v", place, added),
		})
	}
	return stages
}
