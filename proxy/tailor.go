package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
	"github.com/hiatus-tailor/tailor/internal/audit"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
	"github.com/hiatus-tailor/tailor/planner"
)

// decision is what a protected statement may read.
type decision struct {
	releases    []*catalog.Release
	parents     []*catalog.Relation // shown through releases of others
	assessments []*ecg.Assessment
	notice      []byte
	version     int64 // of the catalog
}

// view is the release that stands for a relation.
func (d *decision) view(r *catalog.Relation) string {
	for _, release := range d.releases {
		if release.Relation.OID == r.OID {
			return release.View
		}
	}
	return "" // cannot happen: a decision covers all relations of its plan
}

// passing is the plan of a text that concerns no protected relation. Nobody
// changes it.
var passing = &planner.Plan{}

// plan asks the planner about a text. Roles that are no readers are served
// under their own privileges.
func (s *session) plan(ctx context.Context, l *statementInfo) (*planner.Plan, error) {
	if !s.principal.Reader && !l.explains() {
		if s.loopSession != nil && l.activates() {
			return nil, errWaits
		}
		return passing, nil
	}
	snapshot, err := s.proxy.catalog.Snapshot()
	// Before SET TRANSACTION nothing can be asked: that would be the transaction's first query.
	if s.server.standby && !isOne(l.text, "set", "commit", "end", "rollback", "abort") {
		if err := s.assertReplayed(ctx, alone(l.text)); err != nil {
			return nil, err
		}
	}
	if err == nil && snapshot != s.lastSnapshot {
		s.lastSnapshot = snapshot
		s.snapshots++
	}
	if s.lastSnapshot != nil && s.concernsNothing(l) {
		return passing, nil
	}
	if err != nil {
		return nil, err
	}
	if s.loopSession != nil {
		return nil, errWaits
	}
	s.loopRejoin.away.Store(true)
	started := s.proxy.clock()
	defer func() { s.proxy.metrics.planning.Observe(s.proxy.clock().Sub(started)) }()
	if err := s.readSettings(ctx); err != nil {
		return nil, err
	}
	if s.principal.Reader {
		if err := reserved(l.text); err != nil {
			return nil, err
		}
	}
	plan, err := s.proxy.plans.Make(l.text, planner.Session{
		Database: s.database, SearchPath: s.settings.searchPath,
		Values: s.settings.values(s.proxy.running.Load().Terminals), Temporary: s.settings.temporary,
	}, snapshot)
	if err == nil && plan.Explain == "" && !s.principal.Reader {
		return passing, nil
	}
	if err == nil && !plan.Passes() && s.invalid != nil {
		return nil, s.invalid
	}
	if err == nil && len(plan.Cursors) > 0 {
		err = s.assertHolds(cursorWeight * len(plan.Cursors))
	}
	return plan, err
}

// concernsNothing says that a text names nothing that the session's last snapshot
// protects.
func (s *session) concernsNothing(l *statementInfo) bool {
	if l.free == s.snapshots {
		return true
	}
	if s.lastSnapshot.MayConcern(l.text) {
		return false
	}
	l.free = s.snapshots
	return true
}

// reserved refuses texts that use what is the proxy's alone: its names, and the
// ticket that lets a text read releases.
func reserved(text string) error {
	if strings.Contains(strings.ToLower(text), ownPrefix) {
		return sqlstate.New(sqlstate.InsufficientPrivilege, "names that start with %q are reserved",
			ownPrefix)
	}
	if catalog.HasTicket(text) {
		return sqlstate.New(sqlstate.InsufficientPrivilege, "a statement cannot bring its own ticket").
			WithHint("Send the statement itself; it is planned and recorded each time.")
	}
	return nil
}

// tailorAgain is tailor for a statement that was prepared before.
func (s *session) tailorAgain(ctx context.Context, plan *planner.Plan) (*decision, error) {
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	if err := assertFits(snapshot, plan); err != nil {
		return nil, err
	}
	return s.tailor(ctx, plan)
}

// tailor finds the release of every relation of a plan. What has changed since it was
// planned is to be sent again.
func (s *session) tailor(ctx context.Context, plan *planner.Plan) (*decision, error) {
	ctx, done := s.work.during(ctx)
	defer done()
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	d := &decision{version: snapshot.Version()}
	if err := s.assertProject(); err != nil {
		return nil, err
	}
	for _, planned := range plan.Parents {
		r := current(snapshot, planned)
		if r == nil {
			return nil, catalog.ErrOvertaken(planned)
		}
		d.parents = append(d.parents, r)
	}
	branches := sync.OnceValue(func() [][]ecg.Stage { return composed(plan) })
	for i, planned := range plan.Relations {
		r := current(snapshot, planned)
		if r == nil || slices.Contains(plan.Counted, planned) && r.Subjects != planned.Subjects {
			return nil, catalog.ErrOvertaken(planned)
		}
		reader, err := s.readerOf(ctx, r)
		if err != nil {
			return nil, err
		}
		release, err := s.proxy.catalog.Release(ctx, r, reader)
		if err == nil { // which may have been made, or granted, just now
			err = s.assertReplayed(ctx, false)
		}
		if err == nil && !s.beginning && s.precedes(release) && !s.looksAnew(ctx) {
			err = catalog.ErrTooNew()
		}
		if err == nil {
			err = assertRecoding(release, s.settings.recoding)
		}
		if err != nil {
			return nil, interrupted(ctx, err)
		}
		assessment, err := s.assessed(release, plan.Asked, func() []ecg.Stage { return branches()[i] })
		if err != nil {
			return nil, err
		}
		release.WithParent = slices.ContainsFunc(plan.Joined, func(child *catalog.Relation) bool {
			return child.OID == r.OID
		})
		d.releases = append(d.releases, release)
		d.assessments = append(d.assessments, assessment)
	}
	if s.beginning { // nothing of it has been sent yet
		s.began = s.proxy.clock()
	}
	return d, nil
}

// looksAnew says whether each statement of the transaction has a snapshot of its own. Within a
// pipeline the server cannot be asked.
func (s *session) looksAnew(ctx context.Context) bool {
	if s.state.InPipeline() {
		return false
	}
	rows, err := s.ask(ctx, "SELECT pg_catalog.current_setting('transaction_isolation')")
	return err == nil && len(rows) == 1 && len(rows[0]) == 1 &&
		strings.HasPrefix(string(rows[0][0]), "read ")
}

// readerOf is who reads a relation: the session's role, as it is now where projects
// have roots of their own. A session that goes on would else read for a project
// that its role has left.
func (s *session) readerOf(ctx context.Context, r *catalog.Relation) (*catalog.Principal, error) {
	if r.Scope != "project" {
		return s.principal, nil
	}
	return s.proxy.catalog.Principal(ctx, s.principal.Name)
}

// assessed is what a query comes to over a release.
func (s *session) assessed(
	release *catalog.Release, asked string, branch func() []ecg.Stage,
) (*ecg.Assessment, error) {
	if release.Root == nil {
		return &ecg.Assessment{
			Table:    release.Relation.String(),
			Recoding: recodingWithoutBlocks(release.Relation),
		}, nil
	}
	if found := s.proxy.assessments.find(release.Root, asked); found != nil {
		return found, nil
	}
	found, err := release.Root.Assess(afresh(branch(), release))
	if err == nil {
		s.proxy.assessments.keep(release.Root, asked, found)
	}
	return found, err
}

// assertProject fails where a session names a project that its role does not read
// for.
func (s *session) assertProject() error {
	if project := s.settings.project; project != "" &&
		!slices.Contains(s.principal.Projects, project) {
		return sqlstate.New(sqlstate.UndefinedObject, "role %q does not read for project %q",
			s.principal.Name, project).
			WithHint("RESET tailor.project; a database administrator declares projects with " +
				"tailor.project, and who reads for them with tailor.join_project.")
	}
	return nil
}

// current is the relation of a plan as it is now, nil if the plan no longer fits it.
func current(snapshot *catalog.Snapshot, planned *catalog.Relation) *catalog.Relation {
	r := snapshot.Current(planned)
	if r == nil || r.OID != planned.OID || r.Version != planned.Version ||
		r.OneRow != planned.OneRow || r.Lent() != planned.Lent() {
		return nil
	}
	return r
}

// assertFits fails where what a plan of a prepared statement reads is not what it was.
func assertFits(snapshot *catalog.Snapshot, plan *planner.Plan) error {
	for _, planned := range slices.Concat(plan.Parents, plan.Relations) {
		r := current(snapshot, planned)
		if r == nil || slices.Contains(plan.Counted, planned) && r.Subjects != planned.Subjects {
			return errChangedResult(planned)
		}
	}
	return nil
}

// errChangedResult has the words by which drivers know that they have to prepare
// again.
func errChangedResult(r *catalog.Relation) error {
	return sqlstate.New(sqlstate.FeatureNotSupported, "cached plan must not change result type").
		WithHint("The policy or the rows of table %q have changed since the statement was prepared.",
			r.Name)
}

// decide tailors, records and words what a protected statement gets. The
// record is durable when decide returns without an error. What can be done while
// it is on its way is done by meanwhile: nothing that could show a release.
func (s *session) decide(
	ctx context.Context, plan *planner.Plan, record *audit.Record, meanwhile func(*decision),
) (*decision, error) {
	started := s.proxy.clock()
	d, err := s.tailor(ctx, plan)
	if err != nil {
		return nil, err
	}
	record.PlanMS = milliseconds(s.proxy.clock().Sub(started))
	if err := s.recorded(ctx, d, record, meanwhile); err != nil {
		return nil, err
	}
	return d, nil
}

// recorded words what a decision shows and makes its record durable; see decide.
func (s *session) recorded(
	ctx context.Context, d *decision, record *audit.Record, meanwhile func(*decision),
) error {
	record.Verdict = audit.Released
	d.describe(record)
	if s.settings.notices {
		program := !slices.Contains(s.proxy.running.Load().Terminals, s.settings.application)
		d.notice = noticeFrame(d.wording(program))
	}
	meanwhile(d)
	return s.append(ctx, record)
}

// append makes a record durable.
func (s *session) append(ctx context.Context, record *audit.Record) error {
	if err := s.proxy.audit.Append(ctx, record); err != nil {
		return sqlstate.New(sqlstate.AuditUnavailable, "the audit log is unavailable").
			WithHint("Protected tables are refused until it can be written; try again later.").Wrap(err)
	}
	return nil
}

// reads says whether a relation's own release is read.
func (d *decision) reads(r *catalog.Relation) bool {
	return slices.ContainsFunc(d.releases, func(release *catalog.Release) bool {
		return release.Relation == r
	})
}

// describe fills the part of an audit record that tells what is released.
func (d *decision) describe(record *audit.Record) {
	for _, parent := range d.parents {
		if !d.reads(parent) {
			record.Relations = append(record.Relations, parent.String())
		}
	}
	for i, release := range d.releases {
		a := d.assessments[i]
		record.Relations = append(record.Relations, release.Relation.String())
		record.Epoch, record.PolicyVersion = release.Epoch, release.Relation.Version
		record.Chain, record.Recoding = release.Chain, a.Recoding
		record.Shows(release.Chain, release.Generation)
		record.Stages = append(record.Stages, a.Stages...)
		if release.MinBlock > 0 { // else nobody is shown
			record.AggregateRisk = max(record.AggregateRisk, 1/float64(release.MinBlock))
		}
		record.AggregateLoss = max(record.AggregateLoss, a.Loss)
		if set := release.Relation.SetValued; set != nil {
			record.K, record.M = release.Relation.K, set.M
		}
		if record.MinBlock == 0 || release.MinBlock < record.MinBlock {
			record.MinBlock = release.MinBlock
		}
	}
}

// wording is the notice: what was generalized and what was lost, and where an estimate
// places rows, with a hint. For a program it is said once more, as JSON, in the detail.
func (d *decision) wording(program bool) (message, detail, hint string) {
	var parts []string
	var documents []noticed
	for i, release := range d.releases {
		a := d.assessments[i]
		set := release.Relation.SetValued
		if set != nil {
			parts = append(parts, disassociatedWording(release.Relation.Name, release.Relation.K, set.M))
			if len(a.Stages) == 0 {
				continue
			}
		}
		if len(a.Stages) == 0 {
			parts = append(parts, fmt.Sprintf("%s: no quasi-identifier is needed, nothing was generalized",
				release.Relation.Name))
			continue
		}
		name, smallest, blocks := release.Relation.Name, release.MinBlock, "blocks"
		if set != nil {
			name, smallest, blocks = release.Relation.Parent.Name, release.Root.Shown.MinBlock, "groups"
		}
		document := noticed{
			Relation: release.Relation.String(), MinBlock: smallest, Loss: a.Loss,
			AsOf: release.Copied.UTC(),
		}
		if release.Arrivals >= release.Relation.K {
			document.Waiting = release.Arrivals
		}
		var attributes, estimated []string
		for _, name := range a.Stages[len(a.Stages)-1].Attributes {
			document.Columns = append(document.Columns,
				noticedColumn{
					name, a.LossOf[name], a.CoarseOf[name], a.EstimatedOf[name] > 0, a.EstimatedOf[name],
				})
			if a.CoarseOf[name] == 0 {
				attributes = append(attributes, name+" exact")
			} else {
				attributes = append(attributes, fmt.Sprintf("%s %s, coarse in %s of rows", name,
					percent(a.LossOf[name]), percent(a.CoarseOf[name])))
			}
		}
		someExact := false
		for _, name := range a.Estimated {
			estimated = append(estimated, fmt.Sprintf("%s of its rows by %s",
				percent(a.EstimatedOf[name]), name))
			someExact = someExact || a.CoarseOf[name] < 1
		}
		part := fmt.Sprintf("%s: generalized by %s of at least %d subjects, information loss %s (%s)",
			name, blocks, smallest, percent(a.Loss), strings.Join(attributes, "; "))
		if len(estimated) > 0 {
			part += "; an estimate places " + strings.Join(estimated, ", ")
			hint = "Small counts may be far off. What differs between groups, but for their sizes, shows " +
				"smaller by up to these shares, however large they are: "
			if someExact {
				hint += "tailor.exact(column) tells which rows are certain."
			} else {
				hint += "tailor.count_bounds(condition) tells how many rows a range has for certain."
			}
		}
		if document.Waiting > 0 {
			part += fmt.Sprintf("; %d newcomers are not shown yet", document.Waiting)
		}
		parts, documents = append(parts, part), append(documents, document)
	}
	if program && documents != nil {
		if text, err := json.Marshal(documents); err == nil {
			detail = string(text)
		}
	}
	return strings.Join(parts, "; "), detail, hint
}

// noticed is what a notice tells programs of one relation.
type noticed struct {
	Relation string    `json:"relation"`
	MinBlock int       `json:"min_block"`
	Loss     float64   `json:"loss"`
	AsOf     time.Time `json:"as_of"` // when the copy was made that is shown
	// newcomers who are not shown yet, if they are k or more
	Waiting int             `json:"waiting,omitempty"`
	Columns []noticedColumn `json:"columns"`
}

type noticedColumn struct {
	Name      string  `json:"name"`
	Loss      float64 `json:"loss"`
	Coarse    float64 `json:"coarse"`    // the share of rows whose value is not the table's
	Estimated bool    `json:"estimated"` // it is compared, joined or grouped by, by an estimate
	Placed    float64 `json:"placed"`    // which places this share of the rows
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
