package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// policy is one version of a table's policy.
type policy struct {
	Relation string    `json:"relation"`
	Version  int       `json:"version"`
	Active   bool      `json:"active"`
	Author   string    `json:"author"`
	Created  time.Time `json:"created"`
	document
	// Differences are those from the version before, one line each.
	Differences []string `json:"differences"`
}

// policies lists every version, the youngest of each table first.
func (c *Console) policies(ctx context.Context, _ *http.Request) (any, error) {
	list, err := c.versions(ctx, "")
	if err != nil {
		return nil, err
	}
	shown := make([]policy, 0, len(list))
	for i := range list {
		p := list[i]
		if i > 0 && list[i-1].Relation == p.Relation {
			p.Differences = differences(&list[i-1].document, &p.document)
		}
		shown = append(shown, p.shown())
	}
	slices.SortStableFunc(shown, func(a, b policy) int {
		return cmp.Or(strings.Compare(a.Relation, b.Relation), b.Version-a.Version)
	})
	return shown, nil
}

// versions reads the versions of a table's policy, or of all, the oldest of each first.
func (c *Console) versions(ctx context.Context, relation string) ([]policy, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT v.relation::regclass::text, v.version, v.version = p.active, v.author, v.created,
			v.policy
		FROM tailor.policy_version v JOIN tailor.protection p USING (relation)
		WHERE $1 = '' OR v.relation::regclass::text = $1
		ORDER BY v.relation::regclass::text, v.version`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (policy, error) {
		var p policy
		var active *bool
		var text []byte
		err := row.Scan(&p.Relation, &p.Version, &active, &p.Author, &p.Created, &text)
		if err != nil {
			return p, err
		}
		p.Active = active != nil && *active
		if err := json.Unmarshal(text, &p.document); err != nil {
			return p, fmt.Errorf("policy of %s, version %d: %w", p.Relation, p.Version, err)
		}
		return p, nil
	})
}

// shown is a policy as it leaves the console: of a definition only what its tree shows, and no
// part that may hold values.
func (p *policy) shown() policy {
	out := *p
	out.SetValued, out.DataSetOf, out.Indexes = nil, nil, nil
	out.Columns = slices.Clone(p.Columns)
	for i := range out.Columns {
		if h := out.Columns[i].Hierarchy; h != nil {
			out.Columns[i].Tree, out.Columns[i].Note = h.tree()
			out.Columns[i].Hierarchy = &hierarchy{Name: h.Name, Kind: h.Kind}
		}
	}
	return out
}
