package ecg

import (
	"fmt"
	"slices"
	"strings"
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
	// Condition is the fragment of the query in which it stands, without
	// literals.
	Condition string
	// Exactly says that the value itself is needed: it is compared with =, joined or
	// grouped by. An average needs less, and a range that no label lies on both ends of.
	Exactly bool
	Bounds  []Bound // of ranges that it is compared with
}

// Compose orders the uses of each table into stages, in the order of the
// tables: one branch a table. A place that adds no attribute makes no stage,
// and a table without uses has none: it needs no refinement. follows names the
// stage that the query comes after, "" at the start of a chain.
func Compose(tables []string, uses []Use, follows string) [][]Stage {
	branches := make([][]Stage, len(tables))
	number := 0
	for i, table := range tables {
		previous := follows
		var combination []string
		for place := Scan; place <= Order; place++ {
			var added, fragments []string
			for _, u := range uses {
				if u.Table != table || u.Place != place {
					continue
				}
				if !slices.Contains(combination, u.Attribute) {
					combination = append(combination, u.Attribute)
					added = append(added, u.Attribute)
				}
				if u.Condition != "" && !slices.Contains(fragments, u.Condition) {
					fragments = append(fragments, u.Condition)
				}
			}
			if added == nil {
				continue
			}
			number++
			s := Stage{
				Name: fmt.Sprintf("S%d", number), Follows: []string{}, Place: place.String(), Table: table,
				Attributes: slices.Clone(combination), Condition: joined(place, fragments),
				Candidates: []Candidate{},
			}
			if previous != "" {
				s.Follows = append(s.Follows, previous)
			}
			previous = s.Name
			branches[i] = append(branches[i], s)
		}
		if n := len(branches[i]); n > 0 {
			branches[i][n-1].Exactly = exactly(table, uses)
			branches[i][n-1].Bounds = boundsOf(table, uses)
		}
	}
	return branches
}

// exactly are the attributes of a table whose values themselves are needed.
func exactly(table string, uses []Use) []string {
	var out []string
	for _, u := range uses {
		if u.Table == table && u.Exactly && !slices.Contains(out, u.Attribute) {
			out = append(out, u.Attribute)
		}
	}
	return out
}

// boundsOf are those of the attributes of a table.
func boundsOf(table string, uses []Use) map[string][]Bound {
	var out map[string][]Bound
	for _, u := range uses {
		if u.Table == table && len(u.Bounds) > 0 {
			if out == nil {
				out = make(map[string][]Bound)
			}
			out[u.Attribute] = append(out[u.Attribute], u.Bounds...)
		}
	}
	return out
}

// joined is the condition of a stage: the fragments of its uses.
func joined(place Place, fragments []string) string {
	if place == Scan || place == Join {
		return strings.Join(fragments, " AND ")
	}
	return strings.Join(fragments, ", ")
}
