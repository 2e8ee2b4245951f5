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
var explanation = regexp.MustCompile(
	`(?is)^(?:\s|--[^\n]*\n|/\*.*?\*/)*explain\s*\([^)]*\btailor\b`)

// explainsTailor says whether a text may be EXPLAIN (TAILOR).
func explainsTailor(text string) bool { return explanation.MatchString(text) }

// explained answers EXPLAIN (TAILOR) by a query that shows the account of it.
// A record that is given is durable when it returns. Nothing depends on who asks but
// what is said of the table as it is: that is for its owner.
func (s *session) explained(
	ctx context.Context, plan *planner.Plan, record *audit.Record,
) (text string, err error) {
	ctx, done := s.work.during(ctx)
	defer done()
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return "", err
	}
	account := &ecg.Explanation{Tables: []ecg.ExplainedTable{}}
	branches := composed(plan)
	for i, planned := range plan.Relations {
		r := current(snapshot, planned)
		if r == nil {
			return "", errChangedResult(planned)
		}
		table, err := s.explainedTable(ctx, r, branches[i])
		if err != nil {
			return "", err
		}
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
	s.expect.add(&pendingReply{kind: 'C', silent: true})
	if err := send(s.up, &pgproto3.Close{ObjectType: 'S', Name: p.name}); err != nil {
		return err
	}
	s.expect.add(&pendingReply{kind: 'P', silent: true})
	return send(s.up, &pgproto3.Parse{Name: p.name, Query: account})
}

// explainedTable is the account of one relation. Its owner is told the risk of the
// table as it is, too.
func (s *session) explainedTable(
	ctx context.Context, r *catalog.Relation, branch []ecg.Stage,
) (ecg.ExplainedTable, error) {
	if !s.principal.Reader {
		owns, err := s.proxy.catalog.Owns(ctx, s.principal, r)
		if err != nil {
			return ecg.ExplainedTable{}, err
		}
		if !owns {
			return ecg.ExplainedTable{}, sqlstate.New(sqlstate.InsufficientPrivilege,
				"must be owner of table %q", r.Name).
				WithHint("EXPLAIN (TAILOR) is for readers and for the table's owner.")
		}
	}
	reader, err := s.readerOf(ctx, r)
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	release, err := s.proxy.catalog.Show(ctx, r, reader)
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	if err := assertRecoding(release, s.settings.recoding); err != nil {
		return ecg.ExplainedTable{}, err
	}
	if release.Root == nil {
		return ecg.ExplainedTable{
			Table: r.String(), Chain: generationOf(release),
			Stages: []ecg.ExplainedStage{},
		}, nil
	}
	found, err := release.Root.Assess(afresh(branch, release))
	if err != nil {
		return ecg.ExplainedTable{}, err
	}
	return release.Root.Explain(found, r.String(), generationOf(release), !s.principal.Reader), nil
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
	return fmt.Sprintf(
		`SELECT line AS "QUERY PLAN" FROM (VALUES %s) AS account (number, line) ORDER BY number`,
		strings.Join(lines, ", ")), nil
}

var literalEscapes = strings.NewReplacer(`\`, `\\`, `'`, `\'`)

// literal quotes text for SQL whatever standard_conforming_strings says.
func literal(text string) string {
	return `E'` + literalEscapes.Replace(text) + `'`
}
