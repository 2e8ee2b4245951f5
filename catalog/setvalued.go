package catalog

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hiatus-tailor/tailor/anonymize/disassociate"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/published"
	"github.com/hiatus-tailor/tailor/anonymize/disassociate/verify"
)

// SetValued is what a policy says of a table in which the codes of a subject
// are a set: rows of (subject, code), or an array of codes for each subject.
type SetValued struct {
	Column      string              `json:"column"`
	M           int                 `json:"m"` // codes that an attacker may know
	Constraints map[string][]string `json:"constraints"`
	Sensitive   []string            `json:"sensitive"`
	Diversity   int                 `json:"diversity"` // 0 without sensitive codes
	Joint       *Joint              `json:"joint"`     // nil: codes are published by themselves
}

// Joint says that codes are published together with quasi-identifiers of the parent.
type Joint struct {
	Columns   []string `json:"columns"`    // the most important first
	GroupSize int      `json:"group_size"` // 0 for the default
}

// IsJoint says whether codes are published together with quasi-identifiers of the parent.
func (r *Relation) IsJoint() bool { return r.SetValued != nil && r.SetValued.Joint != nil }

// config is how the table is published. The bound on sensitive codes holds for
// readers who know how many subjects of a cluster have one.
func (r *Relation) config() disassociate.Config {
	s := r.SetValued
	cfg := disassociate.Default(r.K, s.M)
	for _, name := range slices.Sorted(maps.Keys(s.Constraints)) {
		cfg.Constraints = append(cfg.Constraints, disassociate.Constraint{Name: name, Codes: s.Constraints[name]})
	}
	if len(s.Sensitive) > 0 {
		cfg.Sensitive, cfg.Diversity, cfg.StrictDiversity = s.Sensitive, s.Diversity, true
		cfg.MaxCluster = 2 * max(r.K, s.Diversity)
	}
	return cfg
}

// publish makes the publication of a set-valued relation's present epoch
// unless it has been made. Every audience and every query reads the same one:
// two of the same subjects could be intersected. So a proxy makes it under the
// lock of the epoch and stores it in the same transaction in which it drops
// what it was made from; whatever ends the proxy or the transaction before its
// commit leaves the epoch as it was.
func (c *Catalog) publish(ctx context.Context, r *Relation) error {
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf("SET LOCAL lock_timeout = '%ds'", int(makingPatience.Seconds()))); err != nil {
			return err
		}
		// An epoch that has been superseded is not published any more.
		if err := assertInForce(ctx, tx, r); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM tailor.epoch WHERE epoch = $1 FOR UPDATE`, r.Epoch); err != nil {
			return fmt.Errorf("lock epoch %d: %w", r.Epoch, err)
		}
		var done bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tailor.publication WHERE epoch = $1)`, r.Epoch).Scan(&done)
		if err != nil || done {
			return err
		}
		var there bool
		err = tx.QueryRow(ctx, `SELECT to_regclass('tailor_store.records_' || $1::integer) IS NOT NULL`,
			r.Epoch).Scan(&there)
		if err != nil {
			return err
		}
		if !there { // withdrawn, since somebody was erased
			return errNoCopy(r)
		}
		return c.publishEpoch(ctx, tx, r)
	})
}

// showPublication has an audience read the publication of the relation's present epoch.
func (c *Catalog) showPublication(ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain) error {
	earlier := chain.copy
	if chain.number == 0 {
		if err := assertNoneBefore(ctx, tx, r); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `INSERT INTO tailor.chain (relation, audience, epoch, blocks, min_block) VALUES ($1, $2, $3, 1, $4) RETURNING chain`,
			r.OID, audience, r.Epoch, r.K).Scan(&chain.number)
		if err != nil {
			return fmt.Errorf("create chain: %w", err)
		}
	} else {
		chain.generation++
		chain.edition = max(chain.edition, chain.generation-1) + 1
	}
	chain.copy, chain.minBlock = r.Epoch, r.K // candidates for whoever knows m codes
	views := []string{chain.createView(r, nil)}
	if r.IsJoint() {
		views = append(views, chain.createPeopleView(r))
	}
	if err := execute(ctx, tx, views...); err != nil {
		return fmt.Errorf("create release: %w", err)
	}
	if r.Scope != "project" {
		if err := execute(ctx, tx, chain.grantStatement(r, readers)); err != nil {
			return fmt.Errorf("grant release: %w", err)
		}
	}
	err := tx.QueryRow(ctx, `UPDATE tailor.chain c SET epoch = $2, generation = $3, edition = $4, version = $5, layout = $6, changed = now(), min_block = $7,
			(rows, subjects) = (SELECT e.rows, e.subjects FROM tailor.epoch e WHERE e.epoch = $2)
		WHERE c.chain = $1 RETURNING c.subjects`, chain.number, r.Epoch, chain.generation, chain.edition, r.Version, releaseLayout, r.K).Scan(&chain.subjects)
	if err != nil {
		return fmt.Errorf("note publication: %w", err)
	}
	if earlier == 0 || earlier == r.Epoch {
		return nil
	}
	return dropUnused(ctx, tx, r, earlier)
}

// dropUnused removes the publication of an epoch that no chain is on any more.
func dropUnused(ctx context.Context, tx pgx.Tx, r *Relation, epochNumber int) error {
	var used bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM tailor.chain WHERE epoch = $1)
		OR EXISTS (SELECT FROM tailor.protection WHERE relation = $2 AND epoch = $1)`, epochNumber, r.OID).Scan(&used)
	if err != nil || used {
		return err
	}
	// What another transaction reads goes with a later one.
	if _, err = tx.Exec(ctx, "SELECT tailor.drop_unless_used('TABLE', $1)", []string{fmt.Sprintf("tailor_store.epoch_%d", epochNumber)}); err != nil {
		return err
	}
	return dropPublication(ctx, tx, epochNumber)
}

// publishEpoch makes and stores the publication in a transaction that holds
// the lock of the epoch.
func (c *Catalog) publishEpoch(ctx context.Context, tx pgx.Tx, r *Relation) error {
	started := time.Now()
	log := c.log.With("relation", r.String(), "epoch", r.Epoch)
	log.Info("publishing set-valued table")
	var people *people
	if r.IsJoint() {
		var err error
		if people, err = readPeople(ctx, tx, r); err != nil {
			return fmt.Errorf("group subjects of epoch %d: %w", r.Epoch, err)
		}
	}
	records, err := readRecords(ctx, tx, r.Epoch, people)
	if err != nil {
		return fmt.Errorf("read records of epoch %d: %w", r.Epoch, err)
	}
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails: crypto/rand ends the process instead
	var stage disassociate.Stage
	p, err := disassociated(ctx, records, people, r.config(), mathrand.New(mathrand.NewChaCha8(seed)), func(s disassociate.Stage, _, total int) {
		if s != stage {
			stage = s
			log.Debug("publishing set-valued table", "stage", string(s), "steps", total)
		}
	})
	if err != nil {
		return fmt.Errorf("publish epoch %d: %w", r.Epoch, err)
	}
	err = p.store(ctx, tx, r)
	if err == nil && people != nil {
		err = p.storePeople(ctx, tx, r, people)
	}
	if err != nil {
		return fmt.Errorf("store publication of epoch %d: %w", r.Epoch, err)
	}
	log.Info("published set-valued table", "records", len(p.records), "clusters", len(p.form.Clusters), "duration", time.Since(started))
	return nil
}

// publication is the published form of an epoch, and one data set that it can
// be read as: what a query sees in place of the table.
type publication struct {
	form    *published.Form
	encoded []byte
	records []publishedRecord // in random order
	cells   []cell            // every code of every record, in random order
	members [][]int32         // of a joint publication: the records of each group, by their places
}

// cell is one code of a record.
type cell struct {
	record int32
	item   published.Item
}

// publishedRecord is a record of the reconstruction. Its number is drawn at
// random for this publication: it has nothing to do with the subject's key,
// nor with a number in another publication or another table.
type publishedRecord struct {
	number int32
	items  published.Record
}

// disassociated publishes records. The form depends on the records and the
// configuration alone, but for the order of its clusters: to publish the same
// records again tells nothing new, whatever the seed. What is verified, against
// the records, is the form as it has been encoded, and everything that a reader
// is ever shown is made from that.
//
// The records of a joint publication are in groups: those that share their labels.
func disassociated(
	ctx context.Context, records [][]string, groups *people, cfg disassociate.Config, rng *mathrand.Rand, progress disassociate.Progress,
) (*publication, error) {
	for _, codes := range records {
		slices.Sort(codes)
	}
	if groups == nil {
		slices.SortFunc(records, slices.Compare)
	} else {
		cfg.Groups = groups.sorted(records)
		cfg.MayBeEmpty = slices.ContainsFunc(records, func(codes []string) bool { return len(codes) == 0 })
	}
	builder := disassociate.Builder{MayBeEmpty: cfg.MayBeEmpty}
	for _, codes := range records {
		if err := builder.Add(codes...); err != nil {
			return nil, err
		}
	}
	data := builder.Dataset()
	result, err := disassociate.Disassociate(ctx, data, cfg, rng, progress)
	if err != nil {
		return nil, err
	}
	var encoded bytes.Buffer
	if err := result.Form.Encode(&encoded); err != nil {
		return nil, err
	}
	form, err := published.Decode(bytes.NewReader(encoded.Bytes()))
	if err != nil {
		return nil, err
	}
	report, err := verify.Check(ctx, form, data, result.ClusterOf)
	if err != nil {
		return nil, err
	}
	if err := report.Err(); err != nil {
		return nil, err
	}
	p := &publication{form: form, encoded: encoded.Bytes()}
	var place []int32 // of each record of the reconstruction, after shuffling
	p.records, place = numbered(form.Reconstruct(rng), rng)
	if groups != nil {
		p.members = groups.members(form, result.ClusterOf, place)
	}
	for i := range p.records {
		for _, it := range p.records[i].items {
			p.cells = append(p.cells, cell{int32(i), it})
		}
	}
	rng.Shuffle(len(p.cells), func(i, j int) { p.cells[i], p.cells[j] = p.cells[j], p.cells[i] })
	return p, nil
}

// numbered gives each record a random number of its own and shuffles them. It says where
// each has got.
func numbered(records []published.Record, rng *mathrand.Rand) (out []publishedRecord, place []int32) {
	out = make([]publishedRecord, len(records))
	place = make([]int32, len(records))
	order := rng.Perm(len(records))
	taken := make(map[int32]bool, len(records))
	for i, items := range records {
		number := 1 + rng.Int32N(maxPseudonym)
		for taken[number] {
			number = 1 + rng.Int32N(maxPseudonym)
		}
		taken[number] = true
		at := order[i]
		out[at], place[i] = publishedRecord{number, items}, int32(at)
	}
	return out, place
}

// maxPseudonym is the largest number of a published record: whole numbers of
// four bytes hold it, and two publications have few numbers in common.
const maxPseudonym = 1<<31 - 1
