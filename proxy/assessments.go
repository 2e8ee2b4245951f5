package proxy

import (
	"context"
	"sync"
	"weak"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/ecg"
)

// maxAssessments bounds what is kept; when it is reached, all are dropped.
const maxAssessments = 1024

// longestUses is what a query that is kept may ask, in bytes.
const longestUses = 4 << 10

// assessments keeps what the tailor found for queries that changed nothing, so
// that a query that is asked again costs no assessment. A partition never
// changes, so an entry never grows stale; it does not keep its partition from
// being freed either. It is safe for concurrent use.
type assessments struct {
	mu    sync.Mutex
	kept  map[assessed]*ecg.Assessment
	ahead sync.Mutex // held by what assesses ahead
}

// asked is what a query asks of a partition.
type asked struct{ recodings, uses string }

// assessed is a partition with what a query asks of it.
type assessed struct {
	partition weak.Pointer[anonymize.Partition]
	query     asked
}

func (a *assessments) find(p *anonymize.Partition, query asked) *ecg.Assessment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[assessed{weak.Make(p), query}]
}

func (a *assessments) keep(p *anonymize.Partition, query asked, found *ecg.Assessment) {
	if len(query.uses) > longestUses {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil || len(a.kept) >= maxAssessments {
		a.kept = make(map[assessed]*ecg.Assessment)
	}
	without := *found
	without.Partition = nil
	a.kept[assessed{weak.Make(p), query}] = &without
}

// foresee assesses a query on what it has itself brought a chain to, as it will
// be when it is asked again. It does so in the background, for one query at a
// time: whoever comes meanwhile assesses for itself when it is asked again.
func (a *assessments) foresee(m ecg.Chain, next catalog.Present, branch []ecg.Stage, query asked) {
	if !a.ahead.TryLock() {
		return
	}
	go func() {
		defer a.ahead.Unlock()
		defer func() { _ = recover() }() // the query itself reports what fails
		step, found, err := taken(context.Background(), &m, next, branch)
		if err == nil && step.Partition == next.Partition {
			a.keep(next.Partition, query, found)
		}
	}()
}

// after is a chain as the next query finds it.
func after(present catalog.Present, step catalog.Step) catalog.Present {
	present.Partition, present.Score, present.Unplanted = step.Partition, step.Score, nil
	present.Generation++
	return present
}
