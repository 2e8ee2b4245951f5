package anonymize

// effort is how much work a relocation may do. It depends on the number of
// tuples alone, so that results do not depend on the machine.
type effort struct {
	// looks at an item or a block, after which no other round begins.
	looks uint64
	// temperature at first, in parts of what a tuple loses on average.
	temperature float64
}

// quickly is the effort of a refinement: one round of gains, and none above
// 2^18 tuples.
func quickly(tuples int) effort {
	if tuples > 1<<18 {
		return effort{}
	}
	return effort{looks: 1}
}

// thoroughly is the effort of a root partition: on one processor about 100 µs a
// tuple for up to 15,000 tuples, less for each of more, down to 20 µs.
func thoroughly(tuples int) effort {
	n := uint64(tuples)
	return effort{looks: min(4_000*n, 60_000_000+400*n), temperature: 0.5}
}

// exactBelow is up to how many tuples a block weighs cuts over all columns, in
// the first cuts of a table: what is spent on a tuple falls with their number.
func exactBelow(tuples int) int {
	switch {
	case tuples <= 1<<15:
		return recutExactBelow
	case tuples <= 1<<18:
		return 16
	}
	return 0
}

// recutExactBelow is the same for blocks that are cut anew.
const recutExactBelow = 32
