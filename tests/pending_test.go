package tests

import (
	"os"
	"testing"
)

// awaitsRootReleases marks the test of a fault that ends by construction when
// nothing is refined at query time any more. It runs, and is red, with
// TAILOR_PENDING=1; else it is skipped.
func awaitsRootReleases(t *testing.T) {
	t.Helper()
	if os.Getenv("TAILOR_PENDING") == "" {
		t.Skip("a known fault, until root releases: TAILOR_PENDING=1 shows it")
	}
}
