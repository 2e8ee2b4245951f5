package proxy

import (
	"fmt"

	"github.com/hiatus-tailor/tailor/catalog"
)

// recodingWithoutBlocks names what was done to a relation without
// quasi-identifiers.
func recodingWithoutBlocks(r *catalog.Relation) string {
	if r.SetValued != nil {
		return "disassociated"
	}
	return "none"
}

// disassociatedWording is the notice about a set-valued table.
func disassociatedWording(name string, k, m int) string {
	return fmt.Sprintf("%s: disassociated, so that whoever knows %d codes of a subject finds at "+
		"least %d that it may be; "+
		"which codes one subject has together is partly drawn at random, tailor.case_count bounds the "+
		"true number", name, m, k)
}
