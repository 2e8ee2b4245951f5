package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// explanation is how a text begins that may ask for the tailor's account.
var explanation = regexp.MustCompile(`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*explain\s*\([^)]*\btailor\b`)

// explainsTailor says whether a text may be EXPLAIN (TAILOR).
func explainsTailor(text string) bool { return explanation.MatchString(text) }

// explained answers EXPLAIN (TAILOR) by a query that shows the account of it.
// A record that is given is durable when it returns. Readers are told what
// follows from the answers that their audience has had; the owner of a table
// gets the figures of a chain's first query in full.
func (s *session) explained(ctx context.Context, plan *planner.Plan, record *audit.Record) (text string, err error) {
	s.mayWait()
	ctx, done := s.work.during(ctx)
	defer done()
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return "", err
	}
	account := &ecg.Explanation{Tables: []ecg.ExplainedTable{}}
	branches := composed(plan)
	for i, planned := range plan.Relations {
		r, err := current(snapshot, planned)
		if err != nil {
			return "", err
		}
		table, err := s.explainedTable(ctx, r, branches[i])
		if err != nil {
			return "", err
		}
		table.Measures = plan.MeasuresOf(r)
		account.Tables = append(account.Tables, table)
		if record != nil {
			record.Relations = append(record.Relations, r.String())
			record.Epoch, record.PolicyVersion = r.Epoch, r.Version
		}
	}
	if record != nil && len(plan.Relations) > 0 {
		for _, parent := range plan.Parents {
			record.Relations = append(record.Relations, parent.String())
		}
		record.Verdict = audit.Passed
		if err := s.append(ctx, record); err != nil {
			return "", err
		}
	}
	return showing(account, plan.Explain)
}

// explainAgain prepares the account of a prepared EXPLAIN (TAILOR) once more: it
// tells what holds when it is run.
func (s *session) explainAgain(ctx context.Context, p *prepared) error {
	account, err := s.explained(ctx, p.plan, s.record(p.text))
	if err != nil {
		return err
	}
	s.expect.add(&expected{kind: 'C', silent: true})
	if err := send(s.up, &pgproto3.Close{ObjectType: 'S', Name: p.name}); err != nil {
		return err
	}
	s.expect.add(&expected{kind: 'P', silent: true})
	return send(s.up, &pgproto3.Parse{Name: p.name, Query: account})
}

func (s *session) explainedTable(ctx context.Context, r *catalog.Relation, branch []ecg.Stage) (ecg.ExplainedTable, error) {
	if s.principal.Reader {
		present, err := s.proxy.catalog.Peek(ctx, r, s.principal)
		if err != nil {
			return ecg.ExplainedTable{}, err
		}
		name := fmt.Sprintf("chain %d, generation %d", present.Chain, present.Generation)
		return s.account(ctx, r, branch, present, name, func(m *ecg.Chain, stages []ecg.Stage) (ecg.ExplainedTable, error) {
			return m.Foresee(r.String(), stages, present.Score)
		})
	}
	owns, err := s.proxy.catalog.Owns(ctx, s.principal, r)
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	if !owns {
		return ecg.ExplainedTable{}, sqlstate.New(sqlstate.InsufficientPrivilege, "must be owner of table %q", r.Name).
			WithHint("EXPLAIN (TAILOR) is for readers and for the table's owner.")
	}
	present, err := s.proxy.catalog.Fresh(ctx, r)
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	return s.account(ctx, r, branch, present, "a chain without any answer yet", func(m *ecg.Chain, stages []ecg.Stage) (ecg.ExplainedTable, error) {
		m.Eager = true
		for _, seed := range present.Unplanted {
			prepared, err := m.Prepare(ctx, seed.Combinations)
			if err != nil {
				return ecg.ExplainedTable{}, err
			}
			m.Present = prepared
		}
		a, err := ecg.Tailor(ctx, m, stages, m.Gate, 0)
		if err != nil {
			return ecg.ExplainedTable{}, refusedBy(err, r)
		}
		return m.Explain(a, r.String(), 0), nil
	})
}

// account has one table's stages told by tell.
func (s *session) account(ctx context.Context, r *catalog.Relation, branch []ecg.Stage, present catalog.Present, chain string,
	tell func(*ecg.Chain, []ecg.Stage) (ecg.ExplainedTable, error),
) (ecg.ExplainedTable, error) {
	if present.Partition == nil {
		return ecg.ExplainedTable{Table: r.String(), Chain: chain, Stages: []ecg.ExplainedStage{}}, ctx.Err()
	}
	m, err := materialOf(r, s.settings.recoding)
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	m.Present, m.Requirements = present.Partition, present.Requirements
	table, err := tell(m, afresh(branch, present))
	table.Chain = chain
	return table, err
}

// showing is a query whose answer is the account.
func showing(account *ecg.Explanation, format string) (string, error) {
	var lines []string
	switch format {
	case "json":
		document, err := json.MarshalIndent(account, "", "  ")
		if err != nil {
			return "", fmt.Errorf("encode account: %w", err)
		}
		return fmt.Sprintf(`SELECT %s::pg_catalog.json AS "QUERY PLAN"`, literal(string(document))), nil
	case "mermaid":
		lines = account.Mermaid()
	case "dot":
		lines = account.DOT()
	default:
		lines = account.Text()
	}
	for i := range lines {
		lines[i] = fmt.Sprintf("(%d, %s)", i, literal(lines[i]))
	}
	return fmt.Sprintf(`SELECT line AS "QUERY PLAN" FROM (VALUES %s) AS account (number, line) ORDER BY number`, strings.Join(lines, ", ")), nil
}

var literalEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// literal quotes text for SQL whatever standard_conforming_strings says.
func literal(text string) string {
	return `E'` + literalEscapes.Replace(text) + `'`
}
