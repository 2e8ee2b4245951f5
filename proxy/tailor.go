package proxy

import (
	"context"
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
	measures    [][]string // of each release
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
func (s *session) plan(ctx context.Context, l *look) (*planner.Plan, error) {
	if !s.principal.Reader && !l.explains() {
		return passing, nil
	}
	snapshot, err := s.proxy.catalog.Snapshot()
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
	if s.isInCompany() {
		return nil, errWaits
	}
	started := s.proxy.clock()
	defer func() { s.proxy.meters.planning.Observe(s.proxy.clock().Sub(started)) }()
	if err := s.readSettings(ctx); err != nil {
		return nil, err
	}
	if s.principal.Reader {
		if err := reserved(l.text); err != nil {
			return nil, err
		}
	}
	plan, err := s.proxy.plans.Make(l.text, planner.Session{
		Database: s.database, SearchPath: s.settings.searchPath, Values: s.settings.values, Temporary: s.settings.temporary,
	}, snapshot, s.mayWait)
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
func (s *session) concernsNothing(l *look) bool {
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
		return sqlstate.New(sqlstate.InsufficientPrivilege, "names that start with %q are reserved", ownPrefix)
	}
	if catalog.HasTicket(text) {
		return sqlstate.New(sqlstate.InsufficientPrivilege, "a statement cannot bring its own ticket").
			WithHint("Send the statement itself; it is planned and recorded each time.")
	}
	return nil
}

// purpose says why a plan's chains are looked at.
type purpose bool

const (
	toPrepare purpose = false // the releases are to exist; nothing is refined
	toAnswer  purpose = true
)

// tailor brings the chain of every relation of a plan to what the plan needs.
func (s *session) tailor(ctx context.Context, plan *planner.Plan, why purpose) (*decision, error) {
	ctx, done := s.work.during(ctx)
	defer done()
	ctx = s.waiting(ctx)
	snapshot, err := s.proxy.catalog.Snapshot()
	if err != nil {
		return nil, err
	}
	d := &decision{version: snapshot.Version()}
	if project := s.settings.project; project != "" && !snapshot.HasProject(project) {
		return nil, sqlstate.New(sqlstate.UndefinedObject, "project %q does not exist", project).
			WithHint("SET tailor.project = '' works without one; a database administrator declares projects with tailor.project.")
	}
	for _, planned := range plan.Parents {
		r, err := current(snapshot, planned)
		if err != nil {
			return nil, err
		}
		d.parents = append(d.parents, r)
	}
	branches := sync.OnceValue(func() [][]ecg.Stage { return composed(plan) })
	for i, planned := range plan.Relations {
		r, err := current(snapshot, planned)
		if err != nil {
			return nil, err
		}
		if slices.Contains(plan.Counted, planned) && r.Subjects != planned.Subjects {
			return nil, errChangedResult(planned)
		}
		if r.AggregateOnly {
			if err := s.proxy.catalog.AssertNoShadow(ctx, s.principal.Name, r); err != nil {
				return nil, err
			}
		}
		material, err := materialOf(r, s.settings.recoding)
		if err != nil {
			return nil, err
		}
		var assessment *ecg.Assessment
		release, err := s.proxy.catalog.Release(ctx, r, s.principal, s.settings.project,
			func(present catalog.Present) (catalog.Step, error) {
				unchanged := catalog.Step{Partition: present.Partition, Score: present.Score}
				if why == toPrepare {
					return unchanged, nil
				}
				if present.Partition == nil {
					assessment = &ecg.Assessment{Table: r.String(), Recoding: recodingWithoutBlocks(r)}
					return unchanged, nil
				}
				query := asked{strings.Join(material.Recodings, " "), plan.Asked}
				if len(present.Unplanted) == 0 {
					if assessment = s.proxy.assessments.find(present.Partition, query); assessment != nil {
						return unchanged, nil
					}
				}
				s.mayWait()
				step, found, err := taken(ctx, material, present, branches()[i])
				if err != nil {
					return catalog.Step{}, refusedBy(err, r)
				}
				assessment = found
				if step.Partition == present.Partition && step.Planted == nil {
					s.proxy.assessments.keep(present.Partition, query, found)
				} else {
					s.proxy.assessments.foresee(*material, after(present, step), branches()[i], query)
				}
				return step, nil
			})
		if err != nil {
			return nil, interrupted(ctx, err)
		}
		release.WithParent = slices.ContainsFunc(plan.Joined, func(child *catalog.Relation) bool { return child.OID == r.OID })
		d.releases = append(d.releases, release)
		d.assessments = append(d.assessments, assessment)
		d.measures = append(d.measures, plan.MeasuresOf(r))
	}
	return d, nil
}

// current is the relation of a plan as it is now, if the plan still fits it.
func current(snapshot *catalog.Snapshot, planned *catalog.Relation) (*catalog.Relation, error) {
	r := snapshot.Current(planned)
	if r == nil || r.OID != planned.OID || r.Version != planned.Version || r.OneRow != planned.OneRow || r.Lent() != planned.Lent() {
		return nil, errChangedResult(planned)
	}
	return r, nil
}

// errChangedResult has the words by which drivers know that they have to prepare
// again.
func errChangedResult(r *catalog.Relation) error {
	return sqlstate.New(sqlstate.FeatureNotSupported, "cached plan must not change result type").
		WithHint("The policy or the rows of table %q have changed since the statement was prepared.", r.Name)
}

// decide tailors, records and words what a protected statement gets. The
// record is durable when decide returns without an error. What can be done while
// it is on its way is done by meanwhile: nothing that could show a release.
func (s *session) decide(ctx context.Context, plan *planner.Plan, record *audit.Record, meanwhile func(*decision)) (*decision, error) {
	started := s.proxy.clock()
	d, err := s.tailor(ctx, plan, toAnswer)
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
func (s *session) recorded(ctx context.Context, d *decision, record *audit.Record, meanwhile func(*decision)) error {
	record.Verdict = audit.Released
	d.describe(record)
	if s.settings.notices {
		d.notice = noticeFrame(d.wording())
	}
	meanwhile(d)
	return s.append(ctx, record)
}

// append makes a record durable.
func (s *session) append(ctx context.Context, record *audit.Record) error {
	s.homecoming.waited.Store(time.Now().UnixNano())
	s.proxy.company.note(s)
	if !s.proxy.audit.Prompt() {
		s.mayWait()
	}
	if err := s.linger(func() error { return s.proxy.audit.Append(ctx, record) }); err != nil {
		return sqlstate.New(sqlstate.AuditUnavailable, "the audit log is unavailable").
			WithHint("Protected tables are refused until it can be written; try again later.").Wrap(err)
	}
	return nil
}

// reads says whether a relation's own release is read.
func (d *decision) reads(r *catalog.Relation) bool {
	return slices.ContainsFunc(d.releases, func(release *catalog.Release) bool { return release.Relation == r })
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
		record.Epoch, record.PolicyVersion = release.Relation.Epoch, release.Relation.Version
		record.Chain, record.Recoding = release.Chain, a.Recoding
		record.Shows(release.Chain, release.Generation)
		record.Stages = append(record.Stages, a.Stages...)
		for _, name := range d.measures[i] {
			record.Measures = append(record.Measures, release.Relation.String()+"."+name)
		}
		record.AggregateRisk = max(record.AggregateRisk, 1/float64(release.MinBlock))
		record.AggregateLoss = max(record.AggregateLoss, a.Loss)
		if set := release.Relation.SetValued; set != nil {
			record.K, record.M = release.Relation.K, set.M
		}
		if record.MinBlock == 0 || release.MinBlock < record.MinBlock {
			record.MinBlock = release.MinBlock
		}
	}
}

// wording is the notice: what was generalized and what was lost.
func (d *decision) wording() string {
	var parts []string
	for i, release := range d.releases {
		a := d.assessments[i]
		if set := release.Relation.SetValued; set != nil {
			parts = append(parts, disassociatedWording(release.Relation.Name, release.Relation.K, set.M))
			continue
		}
		by := ""
		if len(d.measures[i]) > 0 {
			by = ", " + strings.Join(d.measures[i], ", ") + " by means of blocks"
		}
		if len(a.Stages) == 0 {
			parts = append(parts, fmt.Sprintf("%s: no quasi-identifier is needed, nothing was generalized%s", release.Relation.Name, by))
			continue
		}
		var attributes []string
		for _, name := range a.Stages[len(a.Stages)-1].Attributes {
			attributes = append(attributes, fmt.Sprintf("%s %s", name, percent(a.LossOf[name])))
		}
		parts = append(parts, fmt.Sprintf("%s: generalized by blocks of at least %d subjects, information loss %s (%s)%s",
			release.Relation.Name, release.MinBlock, percent(a.Loss), strings.Join(attributes, ", "), by))
	}
	return strings.Join(parts, "; ")
}

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
