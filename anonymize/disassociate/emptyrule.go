package disassociate

// emptyRuleHolds says whether a cluster without an item chunk keeps Guarantee
// 1 although a record cannot be empty. nonEmpty is the number of sub-records
// with a code in all record chunks together.
//
// Take a set S of at most m codes of a record. It meets at most h = min(m,
// chunks) chunks, and k records that hold S use up h·k sub-records. The other
// size-k records need one each. The rule is [Terrovitis2012]'s; with an item
// chunk nothing is needed, as its codes may stand in any record.
func emptyRuleHolds(size, nonEmpty, chunks, k, m int) bool {
	if chunks == 0 {
		return false
	}
	h := min(m, chunks)
	return nonEmpty >= size+k*(h-1)
}
