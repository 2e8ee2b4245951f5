package catalog

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
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
		cfg.Constraints = append(cfg.Constraints,
			disassociate.Constraint{Name: name, Codes: s.Constraints[name]})
	}
	if len(s.Sensitive) > 0 {
		cfg.Sensitive, cfg.Diversity, cfg.StrictDiversity = s.Sensitive, s.Diversity, true
		cfg.MaxCluster = 2 * max(r.K, s.Diversity)
	}
	return cfg
}

// showPublication has an audience read the publication of a set-valued relation, which it
// brings up to date with the relation's copy if no other audience has. Every audience and
// every query reads the same one. The transaction holds the lock of the copy, and drops
// what people are published from in the same commit that publishes them: nobody can be
// published twice.
func (c *Catalog) showPublication(
	ctx context.Context, tx pgx.Tx, r *Relation, audience string, chain *Chain, was stored,
) error {
	if chain.number == 0 {
		if err := assertNoneBefore(ctx, tx, r); err != nil {
			return err
		}
	}
	var err error
	if chain.publication, err = c.takeInCodes(ctx, tx, r); err != nil {
		return err
	}
	first := chain.number == 0
	if first {
		err := tx.QueryRow(ctx,
			`INSERT INTO tailor.chain (relation, audience, epoch, blocks, min_block, first_version)
				VALUES ($1, $2, $3, 1, $4, $5) RETURNING chain`,
			r.OID, audience, r.Epoch, r.K, r.Version).Scan(&chain.number)
		if err != nil {
			return fmt.Errorf("create chain: %w", err)
		}
	} else {
		chain.generation++
	}
	if was.version != r.Version || was.layout != releaseLayout {
		if !first {
			chain.edition = max(chain.edition, chain.generation-1) + 1
		}
		if err := guardPublication(ctx, tx, r, chain.publication); err != nil {
			return fmt.Errorf("guard publication: %w", err)
		}
		views := []string{chain.createCodesView(r)}
		if r.IsJoint() {
			views = append(views, chain.createPeopleView(r), chain.createFamiliesView(r))
		}
		if r.Scope != "project" {
			views = append(views, chain.grantStatement(r, readers))
		}
		if err := execute(ctx, tx, views...); err != nil {
			return fmt.Errorf("create release: %w", err)
		}
	}
	chain.copy, chain.minBlock = r.Epoch, r.K // candidates for whoever knows m codes
	_, err = tx.Exec(ctx, `UPDATE tailor.chain c SET epoch = $2, generation = $3, edition = $4,
		version = $5, layout = $6, changed = now(), min_block = $7
		WHERE c.chain = $1`, chain.number, r.Epoch, chain.generation, chain.edition, r.Version,
		releaseLayout, r.K)
	if err == nil {
		_, err = tx.Exec(ctx, `CALL tailor.count_published($1::oid::regclass)`, r.OID)
	}
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT c.subjects, c.arrivals, e.created FROM tailor.chain c
			JOIN tailor.epoch e USING (epoch) WHERE c.chain = $1`, chain.number).
			Scan(&chain.subjects, &chain.arrivals, &chain.copied)
	}
	if err != nil {
		return fmt.Errorf("note publication: %w", err)
	}
	return execute(ctx, tx, "SELECT nextval('tailor.catalog_version')",
		"SELECT pg_notify('tailor', 'policies')")
}

// createCodesView is the statement that defines a release of codes.
func (c *Chain) createCodesView(r *Relation) string {
	list := c.shownList(r, nil, "")
	if r.Parent != nil && !r.IsJoint() {
		list = append(list, fmt.Sprintf("e.%s AS %s", rowColumn, RowColumn))
	}
	return c.publishedView(c.name(), list, "epoch")
}

// publishedView is the statement that defines a view of one of a publication's tables.
// Admission is asked by the table, before it shows a row to anything (guardPublication).
func (c *Chain) publishedView(name string, list []string, table string) string {
	return fmt.Sprintf("CREATE VIEW tailor_release.%s AS SELECT %s FROM tailor_store.%s_%d e",
		name, commas(list), table, c.publication)
}

// guardPublication makes the tables of a publication that views show ask for admission, if
// they do not yet. Chains of several audiences read them, so the condition names none: it
// asks for one that the statement's ticket names. They are found by their subjects.
func guardPublication(ctx context.Context, tx pgx.Tx, r *Relation, publication int) error {
	subject := r.Column(r.Subject)
	var own string
	if subject != nil && subject.Pseudonym {
		own = ident(subject.Name)
	}
	if err := guardPart(ctx, tx, publication, "epoch", own); err != nil || !r.IsJoint() {
		return err
	}
	err := guardPart(ctx, tx, publication, "people",
		fmt.Sprintf("(%s::%s)", rowColumn, subject.Type))
	if err != nil {
		return err
	}
	return guardPart(ctx, tx, publication, "family", "")
}

// guardPart guards one of the tables, which is indexed by what stands for its subjects.
func guardPart(
	ctx context.Context, tx pgx.Tx, publication int, part, subject string,
) error {
	table := fmt.Sprintf("tailor_store.%s_%d", part, publication)
	var guarded bool
	err := tx.QueryRow(ctx, "SELECT relrowsecurity FROM pg_class WHERE oid = $1::text::regclass",
		table).Scan(&guarded)
	if err != nil || guarded {
		return err
	}
	statements := []string{fmt.Sprintf("ALTER TABLE %s ADD %s smallint NOT NULL DEFAULT 0", table,
		gateColumn)}
	if subject != "" {
		statements = append(statements,
			fmt.Sprintf("CREATE INDEX ON %s (%s, %s)", table, subject, gateColumn))
	}
	admitted := fmt.Sprintf("(SELECT tailor.admit(a.chain, a.edition, a.layout) "+
		"FROM tailor.asked(%d, %t) a)", publication, part != "epoch")
	statements = append(statements, guard(table, admitted, subject != "")...)
	return execute(ctx, tx, append(statements, fmt.Sprintf("ANALYZE %s (%s)", table, gateColumn))...)
}

// takeInCodes brings the publication of codes up to date with the relation's copy, and
// returns its number. Who is published keeps the record, whatever has changed; newcomers
// are published by themselves when they are a cohort; a cluster goes when all of it have.
func (c *Catalog) takeInCodes(ctx context.Context, tx pgx.Tx, r *Relation) (int, error) {
	var publication int
	var there bool
	err := tx.QueryRow(ctx, `SELECT coalesce(tailor.publication_of($1::oid::regclass), 0),
		tailor.is_stored('records_' || $2::integer)`,
		r.OID, r.Epoch).Scan(&publication, &there)
	switch {
	case err != nil:
		return 0, fmt.Errorf("look for a publication: %w", err)
	case !there && publication == 0:
		return 0, errNoCopy(r)
	case !there: // another audience has taken it in
		return publication, nil
	case publication == 0:
		if err := c.publish(ctx, tx, r, r.Epoch); err != nil {
			return 0, err
		}
		return r.Epoch, dropCodes(ctx, tx, r.Epoch)
	}
	member := fmt.Sprintf("tailor_store.member_%d", publication)
	differs := fmt.Sprintf("tailor_store.differs_%d", r.Epoch)
	var gone []int32
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT ARRAY(
		SELECT m.cluster FROM %s m LEFT JOIN %s d USING ("tailor key")
		WHERE m.cluster IS NOT NULL
		GROUP BY 1 HAVING bool_and(coalesce(d.gone, false)))`, member, differs)).Scan(&gone)
	if err == nil {
		_, err = tx.Exec(ctx, `CALL tailor.withdraw_clusters($1, $2)`, publication, gone)
	}
	if err != nil {
		return 0, fmt.Errorf("withdraw clusters: %w", err)
	}
	var shown, arrivals int
	err = tx.QueryRow(ctx, fmt.Sprintf(`SELECT u.records,
			(SELECT count(*) FROM tailor_store.digest_%d)
		FROM tailor.publication u WHERE u.epoch = $1`, r.Epoch), publication).
		Scan(&shown, &arrivals)
	if err != nil {
		return 0, fmt.Errorf("count who waits: %w", err)
	}
	enough := r.cohortSize()
	if shown == 0 { // as for a first copy
		enough = r.K
	}
	if r.IsJoint() {
		enough = max(enough, r.groupSize())
	}
	if arrivals >= enough {
		err := c.publish(ctx, tx, r, publication)
		var few *disassociate.TooFewError
		if err != nil && !errors.As(err, &few) { // else they wait for others
			return 0, err
		}
	}
	if _, err = tx.Exec(ctx, `CALL tailor.note_unpublished($1::oid::regclass, $2, $3)`, r.OID,
		r.Epoch, enough); err != nil {
		return 0, fmt.Errorf("note who waits: %w", err)
	}
	return publication, dropCodes(ctx, tx, r.Epoch)
}

// dropCodes drops a copy of codes that has been taken in.
func dropCodes(ctx context.Context, tx pgx.Tx, copy int) error {
	return execute(ctx, tx, fmt.Sprintf(`DROP TABLE IF EXISTS tailor_store.records_%[1]d,
		tailor_store.digest_%[1]d, tailor_store.demographics_%[1]d,
		tailor_store.differs_%[1]d, tailor_store.shape_%[1]d`, copy))
}

// publish publishes all of the relation's copy as a cohort of a publication, which begins
// with it if it has the copy's number.
func (c *Catalog) publish(ctx context.Context, tx pgx.Tx, r *Relation, publication int) error {
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
	before, err := readCohorts(ctx, tx, r, publication)
	if err != nil {
		return fmt.Errorf("read publication: %w", err)
	}
	progress := func(s disassociate.Stage, _, total int) {
		if s != stage {
			stage = s
			log.Debug("publishing set-valued table", "stage", string(s), "steps", total)
		}
	}
	rng := mathrand.New(mathrand.NewChaCha8(seed))
	p, err := disassociated(ctx, records, people, r.config(), rng, before.taken, progress)
	if err != nil {
		return fmt.Errorf("publish epoch %d: %w", r.Epoch, err)
	}
	p.number, p.before = publication, before
	err = p.store(ctx, tx, r)
	if err == nil && people != nil {
		err = p.storePeople(ctx, tx, r, people)
	}
	if err != nil {
		return fmt.Errorf("store publication of epoch %d: %w", r.Epoch, err)
	}
	log.Info("published set-valued table", "records", len(p.records), "clusters", len(p.form.Clusters),
		"duration", time.Since(started))
	return nil
}

// publication is the published form of a cohort, and one data set that it can
// be read as: what a query sees in place of the table.
type publication struct {
	number  int // of the publication that the cohort is a part of
	before  *cohortsBefore
	of      []placed // the people, in which cluster
	items   []int    // the numbers that the publication has for the form's codes
	fresh   []int    // those of the form's codes that it has not had
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
	number  int32
	cluster int32
	items   published.Record
}

// coded are the codes of a person, who is known by a digest.
type coded struct {
	person string
	codes  []string
}

// placed says which cluster a person is in. SECRET: it is never published.
type placed struct {
	person  string
	cluster int32
}

// disassociated publishes records. The form depends on the records and the
// configuration alone, but for the order of its clusters: to publish the same
// records again tells nothing new, whatever the seed. What is verified, against
// the records, is the form as it has been encoded, and everything that a reader
// is ever shown is made from that.
//
// The records of a joint publication are in groups: those that share their labels.
func disassociated(
	ctx context.Context, records []coded, groups *people, cfg disassociate.Config, rng *mathrand.Rand,
	taken map[int32]bool, progress disassociate.Progress,
) (*publication, error) {
	for _, r := range records {
		slices.Sort(r.codes)
	}
	if groups == nil {
		slices.SortFunc(records, coded.compare)
	} else {
		cfg.Groups = groups.sorted(records)
		cfg.MayBeEmpty = slices.ContainsFunc(records,
			func(r coded) bool { return len(r.codes) == 0 })
	}
	builder := disassociate.Builder{MayBeEmpty: cfg.MayBeEmpty}
	for _, r := range records {
		if err := builder.Add(r.codes...); err != nil {
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
	for i, cluster := range result.ClusterOf {
		p.of = append(p.of, placed{records[i].person, cluster})
	}
	var place []int32 // of each record of the reconstruction, after shuffling
	p.records, place = numbered(form, rng, taken)
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

// compare orders records by their codes alone.
func (c coded) compare(o coded) int { return slices.Compare(c.codes, o.codes) }

// numbered reconstructs records, gives each a random number that is not taken, and shuffles
// them. It says where each has got.
func numbered(
	form *published.Form, rng *mathrand.Rand, taken map[int32]bool,
) (out []publishedRecord, place []int32) {
	records := form.Reconstruct(rng)
	out = make([]publishedRecord, len(records))
	place = make([]int32, len(records))
	order := rng.Perm(len(records))
	cluster, left := 0, form.Clusters[0].Size // records are listed by cluster
	for i, items := range records {
		for left == 0 {
			cluster++
			left = form.Clusters[cluster].Size
		}
		left--
		number := -1 - rng.Int32N(maxPseudonym) // below 0: nobody's key
		for taken[number] {
			number = -1 - rng.Int32N(maxPseudonym)
		}
		taken[number] = true
		at := order[i]
		out[at], place[i] = publishedRecord{number, int32(cluster), items}, int32(at)
	}
	return out, place
}

// maxPseudonym is how far below 0 the numbers of published records are: whole numbers of
// four bytes hold them, and two publications have few numbers in common.
const maxPseudonym = 1<<31 - 1
