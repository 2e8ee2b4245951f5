package catalog

import (
	"context"
	"fmt"
)

// What somebody waits for, in tailor.waiting.
const (
	arrived  = "a"
	departed = "d"
	changed  = "c"
)

// nextRelease is what those who wait wait for, as tailor.epochs words it.
type nextRelease struct {
	Cohort   int  `json:"cohort"`
	Unmet    bool `json:"unmet"`    // enough newcomers wait, and do not meet the policy by themselves
	Leaving  int  `json:"leaving"`  // blocks of which some have left who are shown
	Lacking  int  `json:"lacking"`  // who have to leave in addition of that where fewest do
	Changing int  `json:"changing"` // blocks of which changes are not shown
}

// wait adds the people of a block to those who wait, after it was decided what happens.
func (n *nextRelease) wait(b *block, h happening, needs needs, departures, changes map[int64]bool) {
	all, leave, change := make(map[int64]bool), make(map[int64]bool), false
	for i := range b.members {
		m := &b.members[i]
		all[m.person] = true
		if m.leaves && !h.leaves {
			leave[m.person], departures[m.person] = true, true
		}
		for column, what := range m.changes {
			if what != unchanged && !h.columns[column] {
				change, changes[m.person] = true, true
			}
		}
	}
	if change {
		n.Changing++
	}
	if len(leave) == 0 {
		return
	}
	lacking := len(all) - len(leave)
	if enough := max(len(leave), needs.subjects); len(all) >= enough+needs.subjects {
		lacking = max(1, enough-len(leave)) // where there are enough, it is a model that is not met
	}
	if n.Leaving == 0 || lacking < n.Lacking {
		n.Lacking = lacking
	}
	n.Leaving++
}

// noteWaiting writes who waits.
func (t *takingIn) noteWaiting(ctx context.Context, what string, people []int64) error {
	if len(people) == 0 {
		return nil
	}
	_, err := t.tx.Exec(ctx, `CALL tailor.note_waiting($1, $2::text::"char", $3, $4)`,
		t.chain.number, what, people, t.r.Epoch)
	if err != nil {
		return fmt.Errorf("note who waits: %w", err)
	}
	return nil
}

// noteArrivals writes which newcomers wait: those of some cohorts.
func (t *takingIn) noteArrivals(ctx context.Context, arriving string, cohorts []int) error {
	if len(cohorts) == 0 {
		return nil
	}
	var people []int64
	err := t.tx.QueryRow(ctx, fmt.Sprintf(`SELECT ARRAY(SELECT DISTINCT %s FROM %s
		WHERE "tailor cohort" = ANY ($1))`, personColumn, arriving), cohorts).Scan(&people)
	if err != nil {
		return fmt.Errorf("read who waits: %w", err)
	}
	return t.noteWaiting(ctx, arrived, people)
}

// forgetWaiting forgets those of whom the copy does not say any more that they wait.
func (t *takingIn) forgetWaiting(ctx context.Context) error {
	t.next.Cohort = t.r.cohortSize()
	_, err := t.tx.Exec(ctx, `DELETE FROM tailor.waiting WHERE chain = $1 AND epoch <> $2`,
		t.chain.number, t.r.Epoch)
	if err == nil {
		_, err = t.tx.Exec(ctx, `UPDATE tailor.chain SET next = $2 WHERE chain = $1`,
			t.chain.number, t.next)
	}
	if err != nil {
		return fmt.Errorf("note who waits: %w", err)
	}
	return nil
}
