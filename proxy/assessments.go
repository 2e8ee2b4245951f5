package proxy

import (
	"sync"
	"weak"

	"github.com/hiatus-tailor/tailor/ecg"
)

// maxAssessments bounds what is kept; when it is reached, all are dropped.
const maxAssessments = 1024

// longestUses is what a query that is kept may ask, in bytes.
const longestUses = 4 << 10

// assessments keeps what was found for queries, so that one that is asked again
// costs no assessment. A root never changes, so an entry never grows stale; it does
// not keep its root from being freed either. It is safe for concurrent use.
type assessments struct {
	mu   sync.Mutex
	kept map[assessed]*ecg.Assessment
}

// assessed is a root with what a query asks of it.
type assessed struct {
	root weak.Pointer[ecg.Root]
	uses string
}

func (a *assessments) find(root *ecg.Root, uses string) *ecg.Assessment {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.kept[assessed{weak.Make(root), uses}]
}

func (a *assessments) keep(root *ecg.Root, uses string, found *ecg.Assessment) {
	if len(uses) > longestUses {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.kept == nil || len(a.kept) >= maxAssessments {
		a.kept = make(map[assessed]*ecg.Assessment)
	}
	a.kept[assessed{weak.Make(root), uses}] = found
}
