package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// A snapshot is a moment old. What follows from it is asserted where it is
// written, under locks that an activation, a refresh and forget_chains respect,
// and by the server, where it is read: they take releases from their readers.

// ErrOvertaken is the outcome where a policy, an epoch or a chain is not what it
// was when a statement was planned.
// The client tries again.
func ErrOvertaken(r *Relation) *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure,
		"the policy or the copy of table %q has just changed", r.Name).
		WithHint("Send the statement again.")
}

// assertInForce fails where a policy or an epoch is no longer the present one, the
// database not that of the snapshot, or chains have been forgotten since: no chain is
// to be made or carried on under it any more. The policy's row stays locked against
// an activation until the transaction ends.
func assertInForce(ctx context.Context, tx pgx.Tx, r *Relation) error {
	var inForce bool
	err := tx.QueryRow(ctx,
		`SELECT active = $2 AND epoch = $3 AND starts_anew = $4 AND NOT tailor.restored()
			FROM tailor.protection WHERE relation = $1 FOR SHARE`,
		r.OID, r.Version, r.Epoch, r.startsAnew).Scan(&inForce)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && !inForce {
		return ErrOvertaken(r)
	}
	if err != nil {
		return fmt.Errorf("read policy in force: %w", err)
	}
	return nil
}

// lockChain locks the row of a chain until the transaction ends, and fails where the
// chain is not of its copy's edition any more, the policy is not in force or the
// database is another than the snapshot's. An
// activation waits for the row before it closes the release; it does so at its
// end, where the policy's row is locked while the table is copied.
func lockChain(ctx context.Context, tx pgx.Tx, r *Relation, chain *Chain) error {
	if _, err := tx.Exec(ctx, lockTimeout); err != nil {
		return err
	}
	locked, err := tx.Exec(ctx,
		`SELECT FROM tailor.chain WHERE chain = $1 AND edition = $2 FOR UPDATE`, chain.number,
		chain.edition)
	if err != nil {
		return fmt.Errorf("lock chain: %w", err)
	}
	if locked.RowsAffected() == 0 {
		return ErrOvertaken(r)
	}
	// A statement of its own sees what the first one has waited for.
	policy, err := tx.Exec(ctx,
		`SELECT FROM tailor.protection WHERE relation = $1 AND active = $2 AND NOT tailor.restored()`,
		r.OID, r.Version)
	if err != nil {
		return fmt.Errorf("read policy in force: %w", err)
	}
	if policy.RowsAffected() == 0 {
		return ErrOvertaken(r)
	}
	return nil
}

// errLost says that the database has a chain as it was before a commit of this proxy.
var errLost = errors.New("the database has lost a commit")

// allSeen are the generations in which this proxy has had chains.
func (c *Catalog) allSeen() map[int]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.seen)
}

// lacks says whether a snapshot has a chain as it was before a generation that has been
// seen of it.
func (s *Snapshot) lacks(seen map[int]int) bool {
	for _, r := range s.protected {
		for _, chain := range r.chains {
			if chain.Generation < seen[chain.Number] {
				return true
			}
		}
	}
	return false
}

// noteLoss has the database count as restored, which stops all proxies until somebody
// decides.
func (c *Catalog) noteLoss(ctx context.Context) error {
	if _, err := c.pool.Exec(ctx, `CALL tailor.count_as_restored()`); err != nil {
		return fmt.Errorf("note a loss: %w", err)
	}
	c.log.Error("the database has lost commits; see tailor doctor")
	return unavailable(errLost)
}

// assertLends fails where the parent of a relation no longer lends what it did.
// The caller has locked a chain of the relation: an activation of the parent
// waits for that before it closes joins.
func assertLends(ctx context.Context, tx pgx.Tx, r *Relation) error {
	if !r.Lent() {
		return nil
	}
	var inStep bool
	if err := tx.QueryRow(ctx, `SELECT tailor.in_step($1::oid::regclass)`, r.OID).
		Scan(&inStep); err != nil {
		return fmt.Errorf("read what is lent: %w", err)
	}
	if !inStep {
		return ErrOvertaken(r)
	}
	return nil
}

// patience bounds the waiting for a grant.
const patience = 2 * time.Minute

// selectMayRead says whether a role may read all of some views; not if one of them is gone.
const selectMayRead = `
SELECT pg_catalog.bool_and(coalesce(pg_catalog.has_table_privilege($1,
	pg_catalog.to_regclass(v), 'SELECT'), false))
FROM pg_catalog.unnest($2::text[]) v`

// grant lets a principal read the chain's release, with what it shows of the
// parent where that is lent.
func (c *Catalog) grant(ctx context.Context, r *Relation, chain *Chain, p *Principal) error {
	reader := r.granteeFor(p)
	if chain.lets(reader, r.Lent()) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		// The row of a chain is locked for as long as a copy is taken in. A role that may
		// read the release already is not to wait for that.
		var may bool
		if err := tx.QueryRow(ctx, selectMayRead, reader, chain.views(r)).Scan(&may); err != nil || may {
			return err
		}
		if err := lockChain(ctx, tx, r, chain); err != nil {
			return err
		}
		if err := assertLends(ctx, tx, r); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, chain.grantStatement(r, ident(reader)))
		return err
	})
	if err != nil {
		return fmt.Errorf("grant release: %w", err)
	}
	if _, err := c.advance(ctx, c.pool.QueryRow); err != nil {
		return err
	}
	chain.mu.Lock()
	defer chain.mu.Unlock()
	chain.granted[reader] = r.Lent()
	return nil
}

// granteeFor is the role by which a principal reads releases of a relation: what
// all readers share, all may read.
func (r *Relation) granteeFor(p *Principal) string {
	if r.Scope != "project" && p.Inherits {
		return readers
	}
	return p.Name
}

// lets says whether a role is known to be able to read the release, with what it
// shows of the parent where that is asked for.
func (c *Chain) lets(reader string, parent bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	withParent, ok := c.granted[reader]
	return ok && (withParent || !parent)
}

// overtaken is classified of an error of the work on a chain. A copy of a chain
// that is not what it was is read again when it is next used.
func (c *Catalog) overtaken(chain *Chain, err error) error {
	var known *sqlstate.Error
	if errors.As(err, &known) && known.Code == sqlstate.SerializationFailure {
		c.forgetChain(chain.number)
	}
	return classified(err)
}

// forgetChain drops the copy of a chain.
func (c *Catalog) forgetChain(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, known := range c.chains {
		if known.number == number {
			delete(c.chains, key)
		}
	}
}

const selectOvertaken = `
SELECT u.place FROM unnest($1::integer[], $2::integer[], $3::integer[], $4::boolean[]) WITH
    ORDINALITY u(chain, edition, version, joined, place)
WHERE NOT EXISTS (SELECT FROM tailor.chain c JOIN tailor.protection p USING (relation)
    WHERE c.chain = u.chain AND c.edition = u.edition AND p.active = u.version
        AND (NOT u.joined OR tailor.in_step(p.relation)))
ORDER BY u.place LIMIT 1`

// ErrTooNew is the answer to a transaction that may have begun before a release was
// stored: its snapshot may show none of the rows.
func ErrTooNew() *sqlstate.Error {
	return sqlstate.New(sqlstate.SerializationFailure,
		"a release is newer than the snapshot of this transaction").
		WithHint("Start the transaction again.")
}

// AssertReleasesCurrent fails with 40001 where one of the releases that a statement was
// planned on is not, or not under the same policy, what it was: whatever the
// server says of the statement then, it was planned too early. Errors are of type
// *[sqlstate.Error].
func (c *Catalog) AssertReleasesCurrent(ctx context.Context, releases []*Release) error {
	var chains, editions, versions []int
	var joined []bool
	for _, r := range releases {
		chains, editions = append(chains, r.Chain), append(editions, r.Edition)
		versions, joined = append(versions, r.Relation.Version), append(joined, r.WithParent)
	}
	var place int
	err := c.pool.QueryRow(ctx, selectOvertaken, chains, editions, versions, joined).Scan(&place)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return unavailable(fmt.Errorf("look whether releases stand: %w", err))
	}
	for _, r := range releases {
		c.forgetChain(r.Chain)
	}
	return ErrOvertaken(releases[place-1].Relation)
}
