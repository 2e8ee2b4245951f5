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

// chain is how fine the partition of one audience is.
type chain struct {
	Number     int       `json:"chain"`
	Relation   string    `json:"relation"`
	Audience   string    `json:"audience"`
	Epoch      int       `json:"epoch"`
	Generation int       `json:"generation"`
	Blocks     int64     `json:"blocks"`
	MinBlock   int64     `json:"min_block"`
	K          int64     `json:"k"`
	Subjects   int64     `json:"subjects"`
	Created    time.Time `json:"created"`
	Changed    time.Time `json:"changed"`
	// Asked and Loss are the attributes and the loss of the last statement that
	// was released, nil where there was none.
	Asked []string `json:"asked"`
	Loss  *float64 `json:"loss"`
	// Losses are those of single columns, as far as the record tells.
	Losses map[string]float64 `json:"losses"`
}

// chains lists them. What is left of the room is what the blocks do not use:
// at most subjects / k of them can be told apart.
func (c *Console) chains(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT c.chain, c.relation::regclass::text, c.audience, c.epoch, c.generation, c.blocks, c.min_block,
		       coalesce(p.k, 0), coalesce(e.subjects, 0), c.created, c.changed, last.stages, last.loss
		FROM tailor.chain c
		LEFT JOIN tailor.protection p ON p.relation = c.relation
		LEFT JOIN tailor.epoch e ON e.epoch = c.epoch
		LEFT JOIN LATERAL (
			SELECT l.record -> 'stages' AS stages, n.loss
			FROM (SELECT position, loss FROM tailor.audit_entry WHERE chain = c.chain AND verdict = 'released'
			      ORDER BY position DESC LIMIT 1) n JOIN tailor.audit_log l USING (position)) last ON true
		ORDER BY c.relation::regclass::text, c.audience`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (chain, error) {
		var h chain
		var stages []byte
		err := row.Scan(&h.Number, &h.Relation, &h.Audience, &h.Epoch, &h.Generation, &h.Blocks, &h.MinBlock,
			&h.K, &h.Subjects, &h.Created, &h.Changed, &stages, &h.Loss)
		if err == nil && stages != nil {
			h.Asked, h.Losses = lastStage(stages)
		}
		return h, err
	})
	if list == nil {
		list = []chain{}
	}
	return list, err
}

// lastStage is the combination of the last stage of a record, and the losses of
// the columns that are a stage by themselves.
func lastStage(stages []byte) ([]string, map[string]float64) {
	var all []struct {
		Attributes []string `json:"qids"`
		Loss       float64  `json:"loss"`
	}
	if json.Unmarshal(stages, &all) != nil || len(all) == 0 {
		return nil, nil
	}
	losses := make(map[string]float64)
	for _, s := range all {
		if len(s.Attributes) == 1 {
			losses[s.Attributes[0]] = s.Loss
		}
	}
	return all[len(all)-1].Attributes, losses
}

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
	rows, err := c.pool.Query(ctx, `
		SELECT v.relation::regclass::text, v.version, v.version = p.active, v.author, v.created, v.policy
		FROM tailor.policy_version v JOIN tailor.protection p USING (relation)
		ORDER BY v.relation::regclass::text, v.version`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (policy, error) {
		var p policy
		var active *bool
		var text []byte
		if err := row.Scan(&p.Relation, &p.Version, &active, &p.Author, &p.Created, &text); err != nil {
			return p, err
		}
		p.Active = active != nil && *active
		if err := json.Unmarshal(text, &p.document); err != nil {
			return p, fmt.Errorf("policy of %s, version %d: %w", p.Relation, p.Version, err)
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	shown := make([]policy, 0, len(list))
	for i := range list {
		p := list[i]
		if i > 0 && list[i-1].Relation == p.Relation {
			p.Differences = differences(&list[i-1].document, &p.document)
		}
		for j := range p.Columns {
			if h := p.Columns[j].Hierarchy; h != nil {
				p.Columns[j].Tree, p.Columns[j].Note = h.tree()
				// Only what the tree shows of a definition leaves.
				p.Columns[j].Hierarchy = &hierarchy{Name: h.Name, Kind: h.Kind}
			}
		}
		shown = append(shown, p)
	}
	slices.SortStableFunc(shown, func(a, b policy) int {
		return cmp.Or(strings.Compare(a.Relation, b.Relation), b.Version-a.Version)
	})
	return shown, nil
}

// epoch is a stored copy of a table.
type epoch struct {
	Number   int       `json:"epoch"`
	Relation string    `json:"relation"`
	Version  int       `json:"version"`
	Created  time.Time `json:"created"`
	Rows     int64     `json:"rows"`
	Tuples   int64     `json:"tuples"`
	Subjects int64     `json:"subjects"`
	Current  bool      `json:"current"`
	Chains   int64     `json:"chains"` // that are on it
}

// epochs lists the copies, the youngest first.
func (c *Console) epochs(ctx context.Context, _ *http.Request) (any, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT e.epoch, e.relation::regclass::text, e.version, e.created, e.rows, e.tuples, e.subjects,
		       coalesce(p.epoch = e.epoch, false), (SELECT count(*) FROM tailor.chain h WHERE h.epoch = e.epoch)
		FROM tailor.epoch e LEFT JOIN tailor.protection p USING (relation) ORDER BY e.epoch DESC LIMIT 500`)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[epoch])
	if list == nil {
		list = []epoch{}
	}
	return list, err
}
