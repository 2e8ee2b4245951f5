package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// stricterSteps make the policy of a family stricter, one after the other.
var stricterSteps = []struct {
	name, change string
	k, l         int // of every class after the step; l of patients only
}{
	{name: "as it was", k: 5},
	{
		name: "a greater k", k: 7,
		change: `CALL tailor.protect('patients', 'id', 7); CALL tailor.protect('visits', 'patient_id', 7);
		CALL tailor.protect('labs', 'patient_id', 7);
			CALL tailor.protect('deliveries', 'patient_id', 7);`,
	},
	{name: "l-diversity added", k: 7, l: 3, change: requireDiverse + ";"},
}

// TestAnswersBeforeAndAfterAStricterPolicyArePooled has four readers ask at random
// before and after each step. After the step all classes meet the stricter policy; the
// answers since the step before, and all there have been, tell no fewer people apart
// than the policy allowed when they were given.
func TestAnswersBeforeAndAfterAStricterPolicyArePooled(t *testing.T) {
	direct := newFamily(t, "stricter", stricterSteps[0].k, "CALL tailor.max_share('visits', 0.5)")
	p := serveDatabase(t, "stricter")
	conns := p.readers(t, direct, "stricter_reader", 4)
	sources := familySources()
	before, ever := make(map[string]*pooled), make(map[string]*pooled)
	for table, facts := range familyOf {
		ever[table] = newPooled(t, direct, facts)
	}
	for i, step := range stricterSteps {
		t.Run(step.name, func(t *testing.T) {
			if i > 0 {
				mustExec(t, direct, step.change+activateFamily)
				inForce(t, direct, conns[0], sources)
			}
			after := make(map[string]*pooled)
			for table := range familyOf {
				after[table] = ever[table].again()
			}
			askInTurn(t, conns, 10, 3, sources, after)           // the same in each step
			askInTurn(t, conns, 10, 4+uint64(i), sources, after) // and others
			for table, a := range after {
				want := model{k: step.k}
				if table == "patients" {
					want.l = step.l
				} else {
					want.share = 0.5
				}
				a.assertMeets(t, table+", "+step.name, want)
				ever[table].refineBy(a)
				want.l = 0 // which the policy did not ask for from the beginning
				want.k = stricterSteps[0].k
				ever[table].assertMeets(t, table+", all answers", want)
				if i > 0 {
					want.k = stricterSteps[i-1].k
					before[table].refineBy(a)
					before[table].assertMeets(t, table+", before and after", want)
				}
				before[table] = a
			}
		})
	}
}

// inForce waits until every release is of the present epoch.
func inForce(t *testing.T, direct, conn *pgx.Conn, sources []source) {
	t.Helper()
	waitFor(t, func() bool {
		for _, s := range sources {
			_, _ = conn.Exec(t.Context(), "SELECT count(*) FROM "+s.of, pgx.QueryExecModeSimpleProtocol)
		}
		_, _ = conn.Exec(t.Context(), "SELECT count(*) FROM diagnoses", pgx.QueryExecModeSimpleProtocol)
		return one[bool](t, direct,
			`SELECT bool_and(c.epoch = p.epoch) FROM tailor.chain c JOIN tailor.protection p `+
				`USING (relation)`)
	})
}
