package proxy

import (
	"sync"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// maxAssessments bounds what is kept; when it is reached, all are dropped.
const maxAssessments = 1024

// assessments keeps what the tailor found for queries that changed nothing, so
// that a query that is asked again costs no assessment. A partition never
// changes, so an entry never grows stale. It is safe for concurrent use.
type assessments struct {
	mu   sync.Mutex
	kept map[assessed]*ecg.Assessment
}

// assessed is a partition with the uses of a query on it.
type assessed struct {
	partition *anonymize.Partition
	uses      string
}

func (a *assessments) find(key assessed) *ecg.Assessment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[key]
}

func (a *assessments) keep(key assessed, found *ecg.Assessment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil || len(a.kept) >= maxAssessments {
		a.kept = make(map[assessed]*ecg.Assessment)
	}
	a.kept[key] = found
}
