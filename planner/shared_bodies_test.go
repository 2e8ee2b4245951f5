package planner_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hiatus-tailor/tailor/planner"
)

// TestQueriesThatAreReadTwiceAreWalkedOnce: each query of WITH reads the one before twice.
func TestQueriesThatAreReadTwiceAreWalkedOnce(t *testing.T) {
	var text strings.Builder
	text.WriteString("WITH c0 AS (SELECT FROM patients)")
	for i := range 40 {
		fmt.Fprintf(&text, ", c%d AS (SELECT * FROM c%d x, c%d y)", i+1, i, i)
	}
	text.WriteString(" SELECT z.id FROM c40 z")
	done := make(chan struct{})
	go func() {
		_, _ = planner.Make(text.String(), session, hospitalSnapshot())
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("it takes more than 5 s")
	}
}

// TestLongUnionsTakeLittleMemory: what a column of each arm is computed from is kept once.
func TestLongUnionsTakeLittleMemory(t *testing.T) {
	snapshot := hospitalSnapshot()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := "TABLE patients" + strings.Repeat(" UNION TABLE patients", 600)
	_, _ = planner.Make(text, session, snapshot)
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 30 {
		t.Errorf("%d MB are allocated", mb)
	}
}
