package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// policyDocument is a row of tailor.policy_version.
type policyDocument struct {
	Subject     string             `json:"subject"`
	K           int                `json:"k"`
	Recoding    string             `json:"recoding"`
	Scope       string             `json:"scope"`
	Rows        *bool              `json:"rows"` // nil: written before there was such a setting
	Fingerprint string             `json:"fingerprint"`
	Require     []requiredDocument `json:"require"`
	Gate        *struct {
		Measure string  `json:"measure"`
		MaxRisk float64 `json:"max_risk"`
	} `json:"gate"`
	MaxShare   float64           `json:"max_share"` // 0: DefaultShare
	Cohort     int               `json:"cohort"`
	Cuts       string            `json:"cuts"` // "": by models
	Indexes    Indexes           `json:"indexes"`
	Departures string            `json:"departures"` // "": batch
	Changes    string            `json:"changes"`
	Seed       [][]string        `json:"seed"`
	SetValued  *SetValued        `json:"set_valued"`
	Parent     *parentDocument   `json:"parent"`
	DataSets   []dataSetDocument `json:"data_sets"`
	DataSetOf  struct {
		Query string `json:"query"`
	} `json:"data_set_of"`
	Columns []columnDocument `json:"columns"`
}

type columnDocument struct {
	Name      string         `json:"name"`
	Number    int            `json:"number"`
	Type      string         `json:"type"`
	Category  string         `json:"category"`
	Class     Class          `json:"class"`
	Action    string         `json:"action"`
	Hierarchy *HierarchySpec `json:"hierarchy"`
	// Representative is "middle" where rows show the middle of their label, and "mean" in
	// policies that earlier versions stored for columns shown by means of blocks.
	Representative string `json:"representative"`
	Margins        *bool  `json:"margins"` // nil: true
}

func (c *columnDocument) column() Column {
	return Column{
		Name: c.Name, Number: c.Number, Type: c.Type, Category: c.Category, Class: c.Class,
		Pseudonym: c.Class == DirectIdentifier && c.Action == "pseudonym", Hierarchy: c.Hierarchy,
		Middle: c.Representative == "middle", NoMargin: c.Margins != nil && !*c.Margins,
	}
}

const selectProtected = `
SELECT p.relation::oid, n.nspname::text, c.relname::text, p.active, p.epoch, v.policy,
       tailor.fingerprint(p.relation),
       coalesce((SELECT bool_and(c.rows = c.subjects) FROM tailor.chain c
       WHERE c.relation = p.relation AND c.version = p.active),
                (SELECT e.rows = e.subjects FROM tailor.epoch e WHERE e.epoch = p.epoch), false),
       coalesce((SELECT CASE WHEN min(c.subjects) = max(c.subjects) THEN min(c.subjects)
       WHEN count(*) > 0 THEN 0 END FROM tailor.chain c WHERE c.relation = p.relation
       AND c.version = p.active),
                (SELECT e.subjects FROM tailor.epoch e WHERE e.epoch = p.epoch), 0),
       coalesce((SELECT jsonb_agg(jsonb_build_object('name', j.name, 'combinations',
       j.combinations) ORDER BY j.name)
                 FROM tailor.project j WHERE j.relation = p.relation), '[]'),
       p.starts_anew, (SELECT jsonb_agg(jsonb_build_object('number', c.chain, 'edition',
       c.edition, 'generation', c.generation) ORDER BY c.chain) FROM tailor.chain c
       WHERE c.relation = p.relation),
       tailor.in_step(p.relation), ARRAY(SELECT f::oid
       FROM tailor.parents(p.relation, (v.policy ->> 'subject')::name) f ORDER BY 1),
       coalesce(tailor.data_set_parent(p.relation)::oid, 0)
FROM tailor.protection p
JOIN tailor.policy_version v ON v.relation = p.relation AND v.version = p.active
JOIN pg_catalog.pg_class c ON c.oid = p.relation
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY n.nspname, c.relname`

// selectOthers lists the columns of relations without a policy, and the
// protected relation whose rows they show: parts and parents of it, and views
// of any of these, through other views too. Of the schema research it leaves
// out what Tailor publishes there.
const selectOthers = `
WITH RECURSIVE reaching (view, relation) AS (
    SELECT f::oid, p.relation::oid FROM tailor.protection p CROSS
        JOIN tailor.lineage(p.relation) f WHERE p.active IS NOT NULL
  UNION
    SELECT r.ev_class, reaching.relation
    FROM reaching
    JOIN pg_catalog.pg_depend d ON d.refobjid = reaching.view
        AND d.refclassid = 'pg_catalog.pg_class'::regclass
    JOIN pg_catalog.pg_rewrite r ON r.oid = d.objid
        AND d.classid = 'pg_catalog.pg_rewrite'::regclass
    WHERE r.ev_class <> reaching.view)
SELECT n.nspname::text, c.relname::text,
       coalesce((SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '{}'),
       coalesce((SELECT array_agg(a.attname::text) FROM pg_catalog.pg_attribute a
                 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                   AND (a.atttypid >= 16384 OR (SELECT t.typname ~ 'timetz|timestamptz|tstz'
                        FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid))), '{}'),
       coalesce((SELECT min(relation::regclass::text) FROM reaching WHERE view = c.oid), ''),
       CASE WHEN c.relkind = 'v' AND c.oid IN (SELECT view FROM reaching)
       THEN pg_catalog.pg_get_viewdef(c.oid) ELSE '' END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
  AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'tailor', 'tailor_store',
  'tailor_release')
  AND NOT (n.nspname = 'research' AND c.relowner = 'tailor_owner'::regrole AND c.relname IN (
      SELECT o.relname FROM tailor.protection p JOIN pg_catalog.pg_class o ON o.oid = p.relation))
  AND NOT EXISTS (SELECT FROM tailor.protection p WHERE p.relation = c.oid
  AND p.active IS NOT NULL)`

// load reads a snapshot in one transaction.
func load(ctx context.Context, db pgx.Tx) (*Snapshot, error) {
	var version int64
	var restored bool
	var protocol int
	err := db.QueryRow(ctx,
		`SELECT last_value, tailor.restored(), tailor.protocol() FROM tailor.catalog_version`).
		Scan(&version, &restored, &protocol)
	if err != nil {
		return nil, fmt.Errorf("read catalog version: %w", err)
	}
	if restored {
		// Its chains may be older than what readers have been shown.
		return nil, sqlstate.New(sqlstate.CannotConnectNow,
			"the SQL side was restored from a dump or a copy, or has lost commits").
			WithHint("Run tailor doctor, which says what to decide.")
	}
	protected, err := loadProtected(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("read policies: %w", err)
	}
	others := make(map[Name]*Other)
	rows, err := db.Query(ctx, selectOthers)
	if err != nil {
		return nil, fmt.Errorf("read relations: %w", err)
	}
	var name Name
	var columns, zoned []string
	var reaches, definition string
	_, err = pgx.ForEachRow(rows, []any{
		&name.Schema, &name.Name, &columns, &zoned, &reaches,
		&definition,
	}, func() error {
		others[name] = &Other{Columns: columns, Zoned: zoned, Reaches: reaches, Definition: definition}
		columns, zoned = nil, nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read relations: %w", err)
	}
	s := NewSnapshot(version, protected, others)
	s.Protocol = protocol
	return s, nil
}

func loadProtected(ctx context.Context, db pgx.Tx) ([]*Relation, error) {
	rows, err := db.Query(ctx, selectProtected)
	if err != nil {
		return nil, err
	}
	protected, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Relation, error) {
		r := &Relation{}
		var document, projects []byte
		var fingerprint string
		var inStep bool
		if err := row.Scan(&r.OID, &r.Schema, &r.Name, &r.Version, &r.Epoch, &document, &fingerprint,
			&r.OneRow, &r.Subjects, &projects,
			&r.startsAnew, &r.chains, &inStep, &r.References, &r.DataSetOf); err != nil {
			return nil, err
		}
		p, err := r.adopt(document)
		if err != nil {
			return nil, err
		}
		r.OneRow = r.OneRow && r.SetValued == nil // a cohort may have several codes a subject
		r.Stale = p.Fingerprint != fingerprint || r.ByMeans
		if r.Parent != nil {
			r.Parent.InStep = inStep
		}
		var declared []Seed
		if err := json.Unmarshal(projects, &declared); err != nil {
			return nil, fmt.Errorf("projects of %s: %w", r, err)
		}
		r.Seeds = append(r.Seeds, declared...)
		return r, nil
	})
	heedParents(protected)
	return protected, err
}

// adopt fills a relation from the document of a policy version.
func (r *Relation) adopt(document []byte) (policyDocument, error) {
	var p policyDocument
	if err := json.Unmarshal(document, &p); err != nil {
		return p, fmt.Errorf("policy of %s: %w", r, err)
	}
	r.Subject, r.K, r.Recoding, r.Scope = p.Subject, p.K, p.Recoding, p.Scope
	if p.Gate != nil {
		r.Gate, r.MaxRisk = p.Gate.Measure, p.Gate.MaxRisk
		if r.Gate == "highest" && r.MaxRisk > 0 {
			// Blocks of so many subjects have that risk at most.
			r.K = max(r.K, int(min(math.Ceil(1/r.MaxRisk), math.MaxInt32)))
		}
	}
	if len(p.Seed) > 0 {
		r.Seeds = append(r.Seeds, Seed{Name: policySeed, Combinations: p.Seed})
	}
	r.MaxShare, r.Cohort = cmp.Or(p.MaxShare, DefaultShare), p.Cohort
	r.BlindCuts = p.Cuts == "blind"
	r.Indexes = p.Indexes
	r.DeparturesAtOnce, r.ChangesAtOnce = p.Departures == "at_once", p.Changes == "at_once"
	r.SetValued = p.SetValued
	r.AggregateOnly = p.Rows != nil && !*p.Rows
	for _, q := range p.Require {
		r.Requirements = append(r.Requirements, Requirement(q))
	}
	for i := range p.Columns {
		r.Columns = append(r.Columns, p.Columns[i].column())
		r.ByMeans = r.ByMeans || p.Columns[i].Representative == "mean"
	}
	if p.Parent != nil {
		r.borrow(p.Parent)
	}
	r.carry(p.DataSets)
	r.Query = p.DataSetOf.Query
	return p, nil
}

// loadPast reads a relation as an earlier version of its policy had it.
func loadPast(ctx context.Context, db pgx.Tx, r *Relation, version int) (*Relation, error) {
	past := &Relation{OID: r.OID, Schema: r.Schema, Name: r.Name, Version: version}
	var document []byte
	err := db.QueryRow(ctx,
		`SELECT v.policy FROM tailor.policy_version v WHERE v.relation = $1 AND v.version = $2`, r.OID,
		version).Scan(&document)
	if err != nil {
		return nil, fmt.Errorf("read version %d of the policy: %w", version, err)
	}
	_, err = past.adopt(document)
	return past, err
}
