package planner

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// Declared is what the statements of a workload ask of one relation: the
// combination of quasi-identifiers of each statement that uses any.
type Declared struct {
	Relation     *catalog.Relation
	Combinations [][]string
}

// Workload composes the statements of a text, separated by semicolons, as if
// they were asked one after the other, and lists what a chain is to be prepared
// for. It fails on the first statement that could not be answered; the error
// says which.
func Workload(text string, session Session, snapshot *catalog.Snapshot) ([]Declared, error) {
	statements, err := split(text)
	if err != nil {
		return nil, err
	}
	var out []Declared
	for i, statement := range statements {
		plan, err := Make(statement, session, snapshot)
		if err != nil {
			return nil, fmt.Errorf("statement %d: %w", i+1, err)
		}
		tables := make([]string, len(plan.Relations))
		for j, r := range plan.Relations {
			tables[j] = r.String()
		}
		for j, branch := range ecg.Compose(tables, plan.Uses, "") {
			if len(branch) == 0 {
				continue
			}
			r, combination := plan.Relations[j], branch[len(branch)-1].Attributes
			at := slices.IndexFunc(out, func(d Declared) bool { return d.Relation == r })
			if at < 0 {
				at = len(out)
				out = append(out, Declared{Relation: r})
			}
			out[at].Combinations = append(out[at].Combinations, combination)
		}
	}
	return out, nil
}

// split cuts a text at its semicolons, without the empty statements.
func split(text string) ([]string, error) {
	scanned, err := pg.Scan(text)
	if err != nil {
		return nil, sqlstate.New(sqlstate.SyntaxError, "the text cannot be split into tokens").Wrap(err)
	}
	var out []string
	from := 0
	add := func(to int) {
		if s := strings.TrimSpace(text[from:to]); s != "" {
			out = append(out, s)
		}
	}
	for _, t := range scanned.Tokens {
		if t.Token == pg.Token_ASCII_59 {
			add(int(t.Start))
			from = int(t.End)
		}
	}
	add(len(text))
	return out, nil
}
