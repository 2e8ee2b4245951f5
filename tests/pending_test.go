package tests

import (
	"os"
	"testing"
)

// awaitsEpochs marks the test of a fault that stands until the releases of
// successive epochs compose: who laid two of them beside each other sees groups
// below k. It runs, and is red, with TAILOR_PENDING=1; else it is skipped.
func awaitsEpochs(t *testing.T) {
	t.Helper()
	if os.Getenv("TAILOR_PENDING") == "" {
		t.Skip("a known fault, until epochs compose: TAILOR_PENDING=1 shows it")
	}
}
