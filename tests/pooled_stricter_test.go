package tests

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// stricter has four readers ask at random before and after a policy is made stricter,
// and pools what they were shown before and after, and after alone. The answers
// before and after together tell no fewer people apart than the policy before allows.
func stricter(t *testing.T, name string, k int, change string, before, after model) {
	t.Helper()
	const share = 0.5
	direct := newFamily(t, name, k, "CALL tailor.max_share('visits', 0.5)")
	p := serveDatabase(t, name)
	conns := p.readers(t, direct, name, 4)
	sources := familySources()
	together, alone := make(map[string]*pooled), make(map[string]*pooled)
	for table, facts := range familyOf {
		together[table] = newPooled(t, direct, facts)
		alone[table] = together[table].again()
	}
	askInTurn(t, conns, 12, 3, sources, together)
	exec1(t, direct, change+";"+activateFamily)
	waitFor(t, func() bool {
		for _, s := range sources {
			_, _ = conns[0].Exec(t.Context(), "SELECT count(*) FROM "+s.of, pgx.QueryExecModeSimpleProtocol)
		}
		_, _ = conns[0].Exec(t.Context(), "SELECT count(*) FROM diagnoses")
		return one[bool](t, direct, `SELECT bool_and(c.epoch = p.epoch) FROM tailor.chain c JOIN tailor.protection p USING (relation)`)
	})
	// The same queries again, and as many others.
	askInTurn(t, conns, 12, 3, sources, alone)
	askInTurn(t, conns, 12, 4, sources, alone)
	for table, a := range alone {
		// What two refinements tell together: a row is known by its classes in both.
		shown := make([]uint64, len(a.class))
		for row, class := range a.class {
			shown[row] = uint64(class)
		}
		together[table].refine(shown)
		models := [2]model{before, after}
		if table != "patients" { // the others have no model of sensitive values
			models[0].l, models[1].l = 0, 0
			models[0].share, models[1].share = share, share
		}
		together[table].assertMeets(t, table+" before and after", models[0])
		a.assertMeets(t, table+" after", models[1])
	}
}

// TestAnswersBeforeAndAfterAGreaterKTogetherHoldTheSmaller makes k 7 of 5.
func TestAnswersBeforeAndAfterAGreaterKTogetherHoldTheSmaller(t *testing.T) {
	stricter(t, "stricter_k", 5, `CALL tailor.protect('patients', 'id', 7); CALL tailor.protect('visits', 'patient_id', 7);
		CALL tailor.protect('labs', 'patient_id', 7); CALL tailor.protect('deliveries', 'patient_id', 7)`, model{k: 5}, model{k: 7})
}

// TestAnswersBeforeAndAfterAnAddedModelTogetherHoldK adds l-diversity where k is 7.
func TestAnswersBeforeAndAfterAnAddedModelTogetherHoldK(t *testing.T) {
	stricter(t, "stricter_l", 7, requireDiverse, model{k: 7}, model{k: 7, l: 3})
}
