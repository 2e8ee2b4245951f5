package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// openChain reads a chain. Where what is stored of it does not serve, it is made, or
// brought up to date, under a lock for which other proxies wait, in one transaction:
// whatever ends that before its commit leaves everything as it was.
func (c *Catalog) openChain(
	ctx context.Context, r *Relation, audience string, serves func(stored) bool,
) (*Chain, error) {
	if r.DataSetOf != 0 {
		return c.openDataSet(ctx, r, audience, serves)
	}
	chain := &Chain{
		version: r.Catalog, policy: r.Version, opened: time.Now(), granted: make(map[string]bool),
	}
	served, err := c.readServed(ctx, r, audience, chain, serves)
	switch {
	case err != nil:
		return nil, err
	case served:
		c.see(chain)
		return chain, nil
	}
	select {
	case c.makers <- struct{}{}:
		defer func() { <-c.makers }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	written := false
	err = pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockTimeout); err != nil {
			return err
		}
		if err := assertInForce(ctx, tx, r); err != nil {
			return err
		}
		// Somebody else may be making it, for as long as that takes. (PostgreSQL 17 is the first
		// that bounds transactions.) What sorts and counts all rows has the memory of a copy.
		if _, err := tx.Exec(ctx, `
			SELECT set_config(name, CASE name WHEN 'work_mem' THEN '128MB' ELSE '0' END, true)
			FROM pg_settings WHERE name IN ('lock_timeout', 'transaction_timeout',
				'work_mem')`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM tailor.epoch WHERE epoch = $1 FOR UPDATE`,
			r.Epoch); err != nil {
			return fmt.Errorf("lock epoch %d: %w", r.Epoch, err)
		}
		was, err := c.readChain(ctx, tx, r, audience, chain)
		if err != nil || serves(was) {
			return err
		}
		if was.copy > r.Epoch { // another proxy was told of the new copy first
			return ErrOvertaken(r)
		}
		written = true
		if r.SetValued != nil {
			return c.showPublication(ctx, tx, r, audience, chain, was)
		}
		return c.takeIn(ctx, tx, r, audience, chain, was)
	})
	if err != nil {
		return nil, err
	}
	c.see(chain)
	if written {
		c.log.Info("release brought up to date", "relation", r.String(), "audience", audience, "copy",
			chain.copy, "chain", chain.number)
	}
	return chain, nil
}

// see notes the generation of a chain that was read, whatever the rest comes to.
func (c *Catalog) see(chain *Chain) {
	c.mu.Lock()
	c.seen[chain.number] = chain.generation
	c.mu.Unlock()
}

// readServed reads a chain, and says whether what is stored of it serves.
func (c *Catalog) readServed(
	ctx context.Context, r *Relation, audience string, chain *Chain, serves func(stored) bool,
) (does bool, err error) {
	err = pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		was, err := c.readChain(ctx, tx, r, audience, chain)
		does = err == nil && serves(was)
		return err
	})
	return does, err
}

// withRoot opens a chain that statements are to be planned over.
func (c *Catalog) withRoot(
	ctx context.Context, r *Relation, audience string, serves func(stored) bool,
) (*Chain, error) {
	chain, err := c.openChain(ctx, r, audience, serves)
	switch {
	case err != nil:
	case r.IsJoint():
		chain.root, err = c.readGroups(ctx, r, chain)
	case r.SetValued == nil && len(r.Dimensions()) > 0:
		chain.root, err = c.readRoot(ctx, r, chain)
	}
	return chain, err
}

// stored is a chain as the database has it.
type stored struct {
	copy    int
	version int
	layout  int
	current bool // stored as the policy that is in force and this version want it
}

// readChain reads the row of an audience's chain, if there is one.
func (c *Catalog) readChain(
	ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain,
) (was stored, err error) {
	err = tx.QueryRow(ctx,
		`SELECT c.chain, c.epoch, c.generation, c.edition, c.layout, coalesce(c.version, 0),
			c.subjects, c.min_block,
			coalesce((SELECT e.created FROM tailor.epoch e WHERE e.epoch = c.epoch), c.changed), c.arrivals,
			c.version = $3 AND c.layout = $4 AND NOT tailor.restored()
				AND EXISTS (SELECT FROM tailor.protection p
					WHERE p.relation = $1 AND p.active = $3),
			coalesce(tailor.publication_of(c.relation), 0)
		FROM tailor.chain c WHERE c.relation = $1 AND c.audience = $2`,
		r.OID, audience, r.Version, releaseLayout).
		Scan(&chain.number, &chain.copy, &chain.generation, &chain.edition, &was.layout, &was.version,
			&chain.subjects, &chain.minBlock, &chain.copied, &chain.arrivals, &was.current,
			&chain.publication)
	if errors.Is(err, pgx.ErrNoRows) {
		return was, nil
	}
	if err != nil {
		return was, fmt.Errorf("read chain: %w", err)
	}
	if chain.generation < c.lastSeen(chain.number) {
		return was, errLost
	}
	was.copy = chain.copy
	return was, nil
}

// takeIn makes a release, or brings it up to date with the relation's copy.
func (c *Catalog) takeIn(
	ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain, was stored,
) error {
	t := &takingIn{Catalog: c, tx: tx, r: r, audience: audience, chain: chain}
	first, edition := chain.number == 0, chain.edition
	// What an earlier version has shown, no copy will mend.
	if !first && was.layout < releaseLayout {
		return errEarlier(r)
	}
	if first {
		if err := assertNoneBefore(ctx, tx, r); err != nil {
			return err
		}
	}
	var there, differs bool
	err := tx.QueryRow(ctx,
		`SELECT e.keyed, e.rows = e.subjects AND NOT EXISTS (SELECT FROM tailor.chain c
			WHERE c.chain = $2 AND c.rows <> c.subjects),
			to_regclass('tailor_store.epoch_' || e.epoch) IS NOT NULL,
			e.chain IS NOT NULL, coalesce((e.chain, e.generation) = ($2, $3::integer), true)
		FROM tailor.epoch e WHERE e.epoch = $1`, r.Epoch, chain.number, chain.generation).
		Scan(&t.keyed, &t.oneRow, &there, &t.partial, &differs)
	if err != nil {
		return fmt.Errorf("read copy: %w", err)
	}
	switch {
	case !there || first && t.partial:
		return errNoCopy(r)
	case !differs || t.partial && was.version != r.Version:
		return errPastCopy(r)
	}
	// Of tables that are made on the way PostgreSQL often believes that they have one row.
	if _, err := tx.Exec(ctx, "SET LOCAL enable_nestloop = off"); err != nil {
		return err
	}
	if t.hashOfNull, err = t.nothing(ctx); err != nil {
		return err
	}
	if err := tx.QueryRow(ctx, `SELECT tailor.start_progress($1::oid::regclass)`, r.OID).
		Scan(&t.slot); err != nil {
		return err
	}
	if err := t.tell(ctx, makingBlocks, 0); err != nil {
		return err
	}
	if first {
		err := tx.QueryRow(ctx,
			`INSERT INTO tailor.chain
				(relation, audience, epoch, version, first_version, keyed, blocks, min_block, layout)
			VALUES ($1, $2, $3, $4, $4, $5, 0, 0, $6) RETURNING chain`, r.OID, audience, r.Epoch, r.Version,
			t.keyed, releaseLayout).Scan(&chain.number)
		if err != nil {
			return fmt.Errorf("create chain: %w", err)
		}
		t.dictionaries = newDictionaries(r)
		if err := t.refer(ctx, true); err != nil {
			return err
		}
		if err := t.readReferences(ctx); err != nil {
			return err
		}
		err = t.run(ctx, true)
		if err == nil {
			err = publishTables(ctx, tx, r, chain, t.dictionaries)
		}
		if err != nil {
			return err
		}
	} else if err := t.goOn(ctx, was); err != nil {
		return err
	}
	if err := t.note(ctx, first); err != nil {
		return err
	}
	return t.deriveDataSets(ctx, first || chain.edition != edition)
}

// goOn brings a release up to date that has been shown.
func (t *takingIn) goOn(ctx context.Context, was stored) (err error) {
	past := t.r
	edition := t.chain.edition
	if was.version != t.r.Version {
		if past, err = loadPast(ctx, t.tx, t.r, was.version); err != nil {
			return err
		}
		if !sameSubject(t.r, past) {
			return sqlstate.New(sqlstate.PolicyStale,
				"the subject of table %q was column %q when this audience was shown it", t.r.Name,
				past.Subject).
				WithHint("Its people would be shown in a second partition. Restore it, or start all chains " +
					"anew with tailor.forget_chains, which gives up the guarantee over what was shown before.")
		}
		if !sameDimensions(t.r, past) {
			return sqlstate.New(sqlstate.PolicyStale,
				"the quasi-identifiers of table %q have changed since this audience was shown it", t.r.Name).
				WithHint("Restore them, or start all chains anew with tailor.forget_chains, which gives up " +
					"the guarantee over what was shown before.")
		}
	}
	if t.dictionaries, err = readDictionaries(ctx, t.tx, t.r, t.chain); err != nil {
		return err
	}
	if err := t.readWithholdable(ctx); err != nil {
		return err
	}
	if past != t.r {
		if _, err := t.tx.Exec(ctx, "CALL tailor.assert_goes_on($1::oid::regclass, $2)", t.r.OID,
			t.r.Version); err != nil {
			return err
		}
		if t.copied, err = readCopy(ctx, t.tx, t.r); err != nil {
			return err
		}
		if err := t.renew(ctx, past); err != nil {
			return fmt.Errorf("renew: %w", err)
		}
		if err := t.withdrawMargins(ctx, past); err != nil {
			return fmt.Errorf("withdraw margins: %w", err)
		}
		if err := t.showMiddles(ctx, past); err != nil {
			return fmt.Errorf("show middles: %w", err)
		}
		if err := t.refer(ctx, false); err != nil {
			return err
		}
	}
	if err := t.readReferences(ctx); err != nil {
		return err
	}
	if past != t.r {
		if err := t.holdBack(ctx, past); err != nil {
			return fmt.Errorf("new columns: %w", err)
		}
		if err := t.coarsen(ctx, past); err != nil {
			return fmt.Errorf("coarsen: %w", err)
		}
		if err := t.renewCells(ctx); err != nil {
			return fmt.Errorf("cells: %w", err)
		}
	}
	if err := t.run(ctx, false); err != nil {
		return err
	}
	if t.chain.edition != edition {
		return publishTables(ctx, t.tx, t.r, t.chain, t.dictionaries)
	}
	return nil
}

// readRoot reads what a release shows of its quasi-identifiers.
func (c *Catalog) readRoot(ctx context.Context, r *Relation, chain *Chain) (*ecg.Root, error) {
	var root *ecg.Root
	err := pgx.BeginTxFunc(ctx, c.pool, pgx.TxOptions{
		IsoLevel:   pgx.RepeatableRead,
		AccessMode: pgx.ReadOnly,
	}, func(tx pgx.Tx) error {
		dictionaries, err := readDictionaries(ctx, tx, r, chain)
		if err != nil {
			return err
		}
		var document []byte
		shown := &ecg.Shown{}
		subjects, several := "count(*)", fmt.Sprintf("count(DISTINCT %s)", personColumn)
		if r.DataSetOf != 0 { // a row can be that of anybody of the parent's
			subjects, several = fmt.Sprintf("max(%s)", peopleColumn), fmt.Sprintf("max(%s)", peopleColumn)
		}
		if err := tx.QueryRow(ctx,
			`SELECT blocks, min_block, stored, CASE WHEN rows = subjects THEN $2 ELSE $3 END
				FROM tailor.chain WHERE chain = $1`,
			chain.number, subjects, several).Scan(&shown.Blocks, &shown.MinBlock, &document,
			&subjects); err != nil {
			return err
		}
		var stored []ecg.StoredRisk
		if err := json.Unmarshal(document, &stored); err != nil {
			return err
		}
		var numbers []string
		for _, d := range dictionaries {
			shown.Attributes = append(shown.Attributes, d.column.Name)
			labels := []ecg.Label{{Exact: true}}
			for _, e := range d.entries {
				labels = append(labels, e.ends())
			}
			shown.Labels = append(shown.Labels, labels)
			numbers = append(numbers, d.own("number"))
		}
		shown.Classes = make([][]uint32, len(numbers))
		for i := range numbers { // no more than there are blocks
			shown.Classes[i] = make([]uint32, 0, shown.Blocks)
		}
		shown.Rows = make([]uint32, 0, shown.Blocks)
		shown.Subjects = make([]uint32, 0, shown.Blocks)
		rows, err := tx.Query(ctx, fmt.Sprintf("SELECT %s, count(*), %s FROM %s GROUP BY %[1]s",
			commas(numbers), subjects, chain.table("row")))
		if err != nil {
			return err
		}
		values := make([]uint32, len(numbers)+2)
		into := make([]any, len(values))
		for i := range values {
			into[i] = &values[i]
		}
		_, err = pgx.ForEachRow(rows, into, func() error {
			for i := range numbers {
				shown.Classes[i] = append(shown.Classes[i], values[i])
			}
			shown.Rows, shown.Subjects = append(shown.Rows, values[len(numbers)]),
				append(shown.Subjects, values[len(numbers)+1])
			return nil
		})
		root = ecg.NewRoot(shown, r.gate(), r.recoding(), stored)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read release: %w", err)
	}
	return root, nil
}

// errNoCopy says that a release waits for another copy: what there was has been taken in.
func errNoCopy(r *Relation) error {
	return sqlstate.New(sqlstate.CannotConnectNow, "table %q is made ready for you with its next copy",
		r.Name).
		WithHint("A database administrator calls tailor.refresh('%s').", r)
}

// errPastCopy says that a copy has what differs from another state of the release than
// there is: of the rest nobody knows whether it is in the table.
func errPastCopy(r *Relation) error {
	return sqlstate.New(sqlstate.PolicyStale,
		"what is shown of table %q has changed since its last copy was begun", r.Name).
		WithHint("Call tailor.refresh('%s').", r)
}

// errEarlier refuses what an earlier version has shown: it did not remember of whom.
func errEarlier(r *Relation) error {
	return sqlstate.New(sqlstate.PolicyStale, "table %q was shown by an earlier version of Tailor, "+
		"which followed nobody from one copy to the next", r.Name).
		WithHint("A database administrator decides: tailor.forget_chains('%s') gives up the guarantee "+
			"over what was shown before.", r)
}

// errByMeans refuses what an earlier version showed by means of groups of blocks.
// Labels of single blocks would tell what those means hold back.
func errByMeans(r *Relation) error {
	return &sqlstate.Error{
		Code: sqlstate.PolicyStale,
		Message: fmt.Sprintf("table %q was shown by means of blocks, which this version cannot do",
			r.Name),
		Detail: "The labels that would be shown now tell values that those means hold back.",
		Hint: fmt.Sprintf("Call tailor.activate('%[1]s'), after which ranges show their middle, and "+
			"tailor.forget_chains('%[1]s'), "+
			"which gives up the guarantee over what was shown before.", r),
	}
}

// errUnsafe refuses what does not meet the policy.
func errUnsafe(r *Relation, classes int) error {
	return sqlstate.New(sqlstate.InternalError,
		"%d classes of what would be shown of table %q do not meet its policy", classes, r.Name).
		WithHint("Nothing was released. This is a fault of Tailor: please report it.")
}

// assertNoneBefore fails where an earlier version has shown the relation to audiences
// that there are no more: a root beside what they know would be a second partition of
// the same people.
func assertNoneBefore(ctx context.Context, tx pgx.Tx, r *Relation) error {
	var earlier int
	err := tx.QueryRow(ctx,
		`SELECT count(*) FROM tailor.chain WHERE relation = $1
			AND (audience = 'table') IS DISTINCT FROM ($2 <> 'project')
			OR relation = $1 AND audience <> 'table' AND NOT starts_with(audience, 'project ')`,
		r.OID, r.Scope).Scan(&earlier)
	if err != nil {
		return fmt.Errorf("look for chains of earlier versions: %w", err)
	}
	if earlier > 0 {
		return sqlstate.New(sqlstate.PolicyStale,
			"table %q was shown by an earlier version, or in another scope, to %d audiences", r.Name,
			earlier).
			WithHint("A database administrator decides: tailor.forget_chains('%s') gives up the guarantee "+
				"over what was shown before.", r)
	}
	return nil
}

// Owns says whether a principal has the rights of a relation's owner, who may
// see whatever is in it.
func (c *Catalog) Owns(ctx context.Context, p *Principal, r *Relation) (bool, error) {
	var owns bool
	err := c.pool.QueryRow(ctx,
		`SELECT pg_catalog.pg_has_role($1, c.relowner, 'USAGE') FROM pg_catalog.pg_class c
			WHERE c.oid = $2`,
		p.Name, r.OID).Scan(&owns)
	if err != nil {
		return false, unavailable(fmt.Errorf("read owner: %w", err))
	}
	return owns, nil
}
