package main

import "fmt"

// The major versions of PostgreSQL that this version was tested with (make test-versions).
const (
	oldestTested = 14
	newestTested = 18
)

// untestedFlag is the name of the flag by which an operator takes what was never tested.
const untestedFlag = "untested-postgresql"

const untestedUsage = "go on with a major version of PostgreSQL that was never tested"

// assertTested fails for a server_version_num of another major version: what guards releases,
// row-level security and views, might act otherwise there.
func assertTested(version int, untested bool) error {
	major := version / 10000
	if untested || major >= oldestTested && major <= newestTested {
		return nil
	}
	return fmt.Errorf("the server is PostgreSQL %d, and this version of Tailor was tested with %d "+
		"to %d: take one that knows it, or say --%s after tests of your own",
		major, oldestTested, newestTested, untestedFlag)
}
