package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// protected is a protected table as the list shows it.
type protected struct {
	Relation string `json:"relation"`
	// Audited is its name in the audit log, where no part of a name is quoted.
	Audited string `json:"audited"`
	// Version is that of the policy in force; nil for a draft.
	Version *int   `json:"version"`
	Subject string `json:"subject"`
	K       int    `json:"k"`
	Scope   string `json:"scope"`
	// Parent is the table whose quasi-identifiers it borrows, or that it is a data set of.
	Parent  string `json:"parent"`
	DataSet bool   `json:"data_set"`
	// M is set where the codes of a subject are a set: k holds against who knows m of them.
	M         int            `json:"m"`
	Readers   int64          `json:"readers"`
	Refreshed *time.Time     `json:"refreshed"`
	Schedule  *schedule      `json:"schedule"`
	Releases  []tableRelease `json:"releases"`
}

// schedule says when a proxy refreshes a table by itself.
type schedule struct {
	Every    string     `json:"every"`
	OnChange bool       `json:"on_change"`
	Due      time.Time  `json:"due"`
	Tried    *time.Time `json:"tried"`
	Failed   int        `json:"failed"`
	Failure  *string    `json:"failure"` // quotes no data: catalog/schedule.go
}

// tableRelease is what one audience is shown of a table.
type tableRelease struct {
	Chain      int       `json:"chain"`
	Audience   string    `json:"audience"`
	Version    *int      `json:"version"`
	Generation int       `json:"generation"`
	Copied     time.Time `json:"copied"`
	Changed    time.Time `json:"changed"`
	Behind     bool      `json:"behind"` // a newer copy or policy is not taken in yet
	Rows       int64     `json:"rows"`
	Subjects   int64     `json:"subjects"`
	Blocks     int64     `json:"blocks"`
	MinBlock   int64     `json:"min_block"`
	// Who waits, and since when.
	Arrivals        int64         `json:"arrivals"`
	ArrivalsSince   *time.Time    `json:"arrivals_since"`
	Departures      int64         `json:"departures"`
	DeparturesSince *time.Time    `json:"departures_since"`
	Changes         int64         `json:"changes"`
	ChangesSince    *time.Time    `json:"changes_since"`
	Stale           float64       `json:"stale"`
	Next            string        `json:"next"`
	Columns         []shownColumn `json:"columns"`
	Clusters        int64         `json:"clusters"` // of a publication of codes
	Bars            []classBar    `json:"bars"`
	Sizes           []classCount  `json:"-"`
	Models          []heldModel   `json:"models"`
	edition         int
	relation        string
}

// shownColumn is how exact a column of a release is.
type shownColumn struct {
	Name  string  `json:"name"`
	Class string  `json:"class"`
	Exact float64 `json:"exact"`
	Loss  float64 `json:"loss"`
}

// tables lists the protected tables.
func (c *Console) tables(ctx context.Context, _ *http.Request) (any, error) {
	return c.protected(ctx, "")
}

// protected lists protected tables, those of a name if one is given.
func (c *Console) protected(ctx context.Context, relation string) ([]protected, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT p.relation::regclass::text, concat(n.nspname, '.', t.relname), p.active,
			coalesce(v.policy ->> 'subject', p.subject),
			coalesce((v.policy ->> 'k')::integer, p.k), p.scope,
			coalesce(tailor.data_set_parent(p.relation), tailor.lender(v.policy))::regclass::text,
			tailor.data_set_parent(p.relation) IS NOT NULL,
			coalesce((v.policy #>> '{set_valued,m}')::integer, 0),
			(SELECT count(*) FROM pg_roles r WHERE r.rolcanlogin
				AND r.rolname IN (SELECT tailor.reader_roles())),
			e.created, s.every::text, s.on_change, s.due, s.tried, s.failed, s.failure
		FROM tailor.protection p JOIN pg_class t ON t.oid = p.relation
		JOIN pg_namespace n ON n.oid = t.relnamespace
		LEFT JOIN tailor.policy_version v ON (v.relation, v.version) = (p.relation, p.active)
		LEFT JOIN tailor.epoch e ON e.epoch = p.epoch
		LEFT JOIN tailor.schedule s ON s.relation = p.relation
		WHERE $1 = '' OR p.relation::regclass::text = $1 ORDER BY 1`, relation)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (protected, error) {
		p := protected{Releases: []tableRelease{}}
		var parent, every *string
		var onChange *bool
		var due, tried *time.Time
		var failed *int
		var failure *string
		err := row.Scan(&p.Relation, &p.Audited, &p.Version, &p.Subject, &p.K, &p.Scope, &parent,
			&p.DataSet, &p.M, &p.Readers, &p.Refreshed,
			&every, &onChange, &due, &tried, &failed, &failure)
		if parent != nil {
			p.Parent = *parent
		}
		if every != nil {
			p.Schedule = &schedule{*every, *onChange, *due, tried, *failed, failure}
		}
		return p, err
	})
	if err != nil {
		return nil, err
	}
	releases, err := c.releasesOf(ctx, relation)
	if err != nil {
		return nil, err
	}
	for i := range list {
		for _, r := range releases {
			if r.relation == list[i].Relation {
				list[i].Releases = append(list[i].Releases, r)
			}
		}
	}
	if list == nil {
		list = []protected{}
	}
	return list, nil
}

// releasesOf lists what is shown of a table, or of all.
func (c *Console) releasesOf(ctx context.Context, relation string) ([]tableRelease, error) {
	rows, err := c.pool.Query(ctx, `
		SELECT e.relation::regclass::text, c.chain, c.audience, c.version, c.generation, c.edition,
			e.copied, c.changed, coalesce(e.behind, false), c.rows, c.subjects, c.blocks,
			c.min_block, c.arrivals, e.arrivals_since, c.departures, e.departures_since,
			c.changes, e.changes_since, coalesce(e.stale, 0), e.next,
			coalesce((SELECT u.clusters FROM tailor.publication u JOIN tailor.epoch o USING (epoch)
				WHERE o.relation = c.relation ORDER BY u.epoch DESC LIMIT 1), 0),
			(SELECT jsonb_agg(jsonb_build_object('name', d ->> 'name', 'class', d ->> 'class',
					'exact', coalesce((c.columns #>> ARRAY[d ->> 'number', 'exact'])::float8, 1),
					'loss', coalesce((c.columns #>> ARRAY[d ->> 'number', 'loss'])::float8, 0)))
				FROM tailor.policy_version v, jsonb_array_elements(v.policy -> 'columns') d
				WHERE (v.relation, v.version) = (c.relation, c.version)
					AND d ->> 'class' IN ('quasi_identifier', 'sensitive', 'non_sensitive'))
		FROM tailor.all_epochs e JOIN tailor.chain c USING (chain)
		WHERE $1 = '' OR e.relation::regclass::text = $1 ORDER BY 1, c.audience`, relation)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (tableRelease, error) {
		r := tableRelease{Models: []heldModel{}, Columns: []shownColumn{}}
		var columns []byte
		err := row.Scan(&r.relation, &r.Chain, &r.Audience, &r.Version, &r.Generation, &r.edition,
			&r.Copied, &r.Changed, &r.Behind, &r.Rows, &r.Subjects, &r.Blocks, &r.MinBlock,
			&r.Arrivals, &r.ArrivalsSince, &r.Departures, &r.DeparturesSince,
			&r.Changes, &r.ChangesSince, &r.Stale, &r.Next, &r.Clusters, &columns)
		if err == nil && columns != nil {
			err = json.Unmarshal(columns, &r.Columns)
		}
		return r, err
	})
}

// page is all that the page of a table shows.
type page struct {
	protected
	Policy   *policy    `json:"policy"` // nil for a draft
	Versions []version  `json:"versions"`
	Readers  []reader   `json:"reader_list"`
	Workload []workload `json:"workload"`
	Progress []progress `json:"progress"`
	Compared *compared  `json:"compared"`
	Fidelity *fidelity  `json:"fidelity"` // nil if nobody has measured it
}

// fidelity is what tailor fidelity --keep has found last; Summary is a fidelity.TableSummary.
type fidelity struct {
	Version  int             `json:"version"`
	Measured time.Time       `json:"measured"`
	Author   string          `json:"author"`
	Summary  json.RawMessage `json:"summary"`
}

// version is one version of a policy, and what came of the statements while it was in force.
type version struct {
	Version  int       `json:"version"`
	Active   bool      `json:"active"`
	Author   string    `json:"author"`
	Created  time.Time `json:"created"`
	K        int       `json:"k"`
	Released int64     `json:"released"`
	// MeanLoss and MaxRisk are of what was released, MinBlock the smallest class shown.
	MeanLoss *float64 `json:"mean_loss"`
	MaxRisk  *float64 `json:"max_risk"`
	MinBlock *int64   `json:"min_block"`
}

// compared are the differences between two versions.
type compared struct {
	From        int      `json:"from"`
	To          int      `json:"to"`
	Differences []string `json:"differences"`
}

// reader is a role that reads releases, and what it asked of the table in the last 30 days.
type reader struct {
	Role     string     `json:"role"`
	Projects []string   `json:"projects"`
	Released int64      `json:"released"`
	Last     *time.Time `json:"last"`
}

// workload is a combination of columns that a release is made for; Project is empty for that of
// the policy itself.
type workload struct {
	Project string   `json:"project"`
	Columns []string `json:"columns"`
}

// progress is a copy that is being made, or a release that is being written.
type progress struct {
	Phase string     `json:"phase"`
	Rows  *int64     `json:"rows"`
	Of    *int64     `json:"of_rows"`
	Since *time.Time `json:"since"`
}

// table is the page of one table. With from and to it compares two versions of the policy.
func (c *Console) table(ctx context.Context, r *http.Request) (any, error) {
	name := r.URL.Query().Get("name")
	found, err := c.protected(ctx, name)
	if err != nil {
		return nil, err
	}
	if name == "" || len(found) == 0 {
		return nil, fmt.Errorf("%w: no protected table of this name", errNothing)
	}
	p := &page{protected: found[0]}
	measuring, cancel := context.WithTimeout(ctx, measuring)
	defer cancel()
	for i := range p.Releases {
		if err := c.count(measuring, &p.Releases[i]); err != nil {
			c.log.Info("a release is shown without its classes", "chain", p.Releases[i].Chain,
				"error", err)
		}
		p.Releases[i].Bars = bars(p.Releases[i].Sizes)
	}
	policies, err := c.versions(ctx, name)
	if err != nil {
		return nil, err
	}
	for i := range policies {
		if policies[i].Active {
			shown := policies[i].shown()
			p.Policy = &shown
		}
	}
	if p.Compared, err = compare(policies, r); err != nil {
		return nil, err
	}
	for _, read := range []func(context.Context, *page) error{
		c.readVersions, c.readReaders, c.readWorkload, c.readProgress, c.readFidelity,
	} {
		if err := read(ctx, p); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// compare finds the two versions that a request names, nil if it names none.
func compare(policies []policy, r *http.Request) (*compared, error) {
	from, to := r.URL.Query().Get("from"), r.URL.Query().Get("to")
	if from == "" && to == "" {
		return nil, nil
	}
	find := func(text string) *policy {
		n, err := strconv.Atoi(text)
		for i := range policies {
			if err == nil && policies[i].Version == n {
				return &policies[i]
			}
		}
		return nil
	}
	a, b := find(from), find(to)
	if a == nil || b == nil {
		return nil, fmt.Errorf("%w: from and to are versions of the policy", errUsage)
	}
	return &compared{a.Version, b.Version, differences(&a.document, &b.document)}, nil
}

func (c *Console) readVersions(ctx context.Context, p *page) error {
	rows, err := c.pool.Query(ctx, `
		SELECT v.version, coalesce(v.version = p.active, false), v.author, v.created,
			(v.policy ->> 'k')::integer, a.released, a.loss, a.risk, a.min_block
		FROM (SELECT *, lead(created) OVER (ORDER BY version) AS ended FROM tailor.policy_version
			WHERE relation::regclass::text = $1) v
		JOIN tailor.protection p USING (relation)
		CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE verdict = 'released') AS released,
				avg(loss) FILTER (WHERE verdict = 'released') AS loss,
				max(risk) FILTER (WHERE verdict = 'released') AS risk,
				min(min_block) FILTER (WHERE verdict = 'released' AND min_block > 0)::bigint
					AS min_block
			FROM tailor.audit_entry e WHERE e.relations && ARRAY[$2]
				AND e.time >= v.created AND (v.ended IS NULL OR e.time < v.ended)) a
		ORDER BY v.version DESC`, p.Relation, p.Audited)
	if err != nil {
		return err
	}
	p.Versions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[version])
	return err
}

func (c *Console) readReaders(ctx context.Context, p *page) error {
	rows, err := c.pool.Query(ctx, `
		SELECT r.rolname::text, ARRAY(SELECT DISTINCT j.project FROM tailor.project_reader j
				WHERE pg_has_role(r.oid, j.reader, 'MEMBER') ORDER BY 1),
			coalesce(a.released, 0), a.last
		FROM pg_roles r LEFT JOIN (
			SELECT e.principal, count(*) FILTER (WHERE verdict = 'released') AS released,
				max(e.time) AS last
			FROM tailor.audit_entry e WHERE e.relations && ARRAY[$1]
				AND e.time >= now() - interval '30 days'
			GROUP BY 1) a ON a.principal = r.rolname
		WHERE r.rolcanlogin AND r.rolname IN (SELECT tailor.reader_roles())
		ORDER BY a.last DESC NULLS LAST, 1`, p.Audited)
	if err != nil {
		return err
	}
	p.Readers, err = pgx.CollectRows(rows, pgx.RowToStructByPos[reader])
	return err
}

// readWorkload reads which combinations the releases are made for: the policy's, and those of
// projects.
func (c *Console) readWorkload(ctx context.Context, p *page) error {
	rows, err := c.pool.Query(ctx, `
		SELECT w.project, ARRAY(SELECT jsonb_array_elements_text(s))
		FROM (SELECT '' AS project, v.policy -> 'seed' AS combinations
			FROM tailor.protection p JOIN tailor.policy_version v
				ON (v.relation, v.version) = (p.relation, p.active)
			WHERE p.relation::regclass::text = $1
			UNION ALL SELECT j.name, j.combinations FROM tailor.project j
			WHERE j.relation::regclass::text = $1) w
		CROSS JOIN LATERAL jsonb_array_elements(
			CASE jsonb_typeof(w.combinations) WHEN 'array' THEN w.combinations ELSE '[]' END) s
		ORDER BY 1`, p.Relation)
	if err != nil {
		return err
	}
	p.Workload, err = pgx.CollectRows(rows, pgx.RowToStructByPos[workload])
	return err
}

func (c *Console) readProgress(ctx context.Context, p *page) error {
	rows, err := c.pool.Query(ctx, `SELECT phase, rows, of_rows, since FROM tailor.progress
		WHERE relation::regclass::text = $1`, p.Relation)
	if err != nil {
		return err
	}
	p.Progress, err = pgx.CollectRows(rows, pgx.RowToStructByPos[progress])
	return err
}

func (c *Console) readFidelity(ctx context.Context, p *page) error {
	var m fidelity
	err := c.pool.QueryRow(ctx, `SELECT version, measured, author, summary FROM tailor.fidelity
		WHERE relation::regclass::text = $1`, p.Relation).Scan(
		&m.Version, &m.Measured, &m.Author, &m.Summary)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	p.Fidelity = &m
	return err
}
