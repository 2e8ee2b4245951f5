package anonymize

// entries are the rows of a problem, reduced to what generalization can tell
// apart: one entry for each distinct tuple within each block of the base
// partition, then those tuples of the population table (k-map) that the table
// itself does not hold. They are immutable.
type entries struct {
	leaves  [][]uint32 // [column][entry] -> leaf
	block   []uint32   // entry -> block, nil without a base partition
	blocks  int
	ofRow   []uint32 // row -> entry
	base    *classes // every entry a class of its own
	rows    int      // rows of the table
	total   int      // subjects of the table
	members *members // nil where subjects may be added up
	domains []int    // size of the domain of each sensitive attribute
}

// members lists who is in an entry, for tables in which one subject may stand
// in several entries: then neither subjects nor their values may be added up
// over entries.
type members struct {
	subjects csr   // entry -> distinct subjects
	pairs    []csr // per sensitive attribute: entry -> subject, value, subject, value, …
	total    int   // subject numbers are below
}

func newEntries(p *Problem) *entries {
	t := p.Table
	e := &entries{ofRow: t.tupleOfRow, rows: t.Rows(), total: t.Subjects()}
	if p.Blocks == nil {
		e.leaves = t.tuples
	} else {
		e.splitByBlock(t, p.Blocks)
	}
	e.sort(t.columns)
	n := len(e.leaves[0])
	first := firstTable(t, e, n)
	if p.Population != nil {
		e.leaves, first.population = joinPopulation(e.leaves, p.Population)
		first.extend(len(e.leaves[0]))
	}
	first.reps = make([]uint32, len(e.leaves[0]))
	for i := range first.reps {
		first.reps[i] = uint32(i)
	}
	e.countSensitive(p, first, n)
	e.base = first
	return e
}

// blockOf is the block of an entry in the base partition.
func (e *entries) blockOf(entry uint32) uint32 {
	if e.block == nil {
		return 0
	}
	return e.block[entry]
}

// splitByBlock numbers the distinct pairs of tuple and block.
func (e *entries) splitByBlock(t *Table, blockOfRow []uint32) {
	index := newKeyIndex(t.Tuples())
	e.ofRow = make([]uint32, len(blockOfRow))
	var tuples []uint32
	for r, b := range blockOfRow {
		tuple := t.tupleOfRow[r]
		id, fresh := index.number(uint64(b)<<32 | uint64(tuple))
		if fresh {
			tuples = append(tuples, tuple)
			e.block = append(e.block, b)
		}
		e.blocks = max(e.blocks, int(b)+1)
		e.ofRow[r] = id
	}
	e.leaves = make([][]uint32, len(t.tuples))
	for c := range t.tuples {
		e.leaves[c] = make([]uint32, len(tuples))
		for i, tuple := range tuples {
			e.leaves[c][i] = t.tuples[c][tuple]
		}
	}
}

// firstTable counts rows and subjects of the first n entries.
func firstTable(t *Table, e *entries, n int) *classes {
	first := &classes{rows: make([]uint32, n)}
	for _, i := range e.ofRow {
		first.rows[i]++
	}
	first.subjects = first.rows
	if !t.RowPerSubject() {
		lists := subjectLists(t, e.ofRow, n)
		first.subjects = make([]uint32, n)
		sum := 0
		for i := range n {
			first.subjects[i] = uint32(len(lists.of(uint32(i))))
			sum += int(first.subjects[i])
		}
		if sum != e.total {
			e.members = &members{subjects: lists, total: subjectBound(t)}
		}
	}
	return first
}

func subjectBound(t *Table) int {
	bound := 0
	for _, s := range t.subjectOfRow {
		bound = max(bound, int(s)+1)
	}
	return bound
}

// subjectLists lists the distinct subjects of each entry.
func subjectLists(t *Table, entryOfRow []uint32, n int) csr {
	rows := groupRows(entryOfRow, n)
	lists := csr{start: make([]uint32, n+1)}
	lastEntry := make([]uint32, subjectBound(t))
	for i := range n {
		for _, r := range rows.of(uint32(i)) {
			if s := t.subjectOfRow[r]; lastEntry[s] != uint32(i)+1 {
				lastEntry[s] = uint32(i) + 1
				lists.items = append(lists.items, s)
			}
		}
		lists.start[i+1] = uint32(len(lists.items))
	}
	return lists
}

// groupRows lists the rows of each entry by a counting sort.
func groupRows(entryOfRow []uint32, n int) csr {
	lists := csr{start: make([]uint32, n+1), items: make([]uint32, len(entryOfRow))}
	for _, i := range entryOfRow {
		lists.start[i+1]++
	}
	for i := range n {
		lists.start[i+1] += lists.start[i]
	}
	next := make([]uint32, n)
	copy(next, lists.start)
	for r, i := range entryOfRow {
		lists.items[next[i]] = uint32(r)
		next[i]++
	}
	return lists
}

// joinPopulation counts the subjects of the population behind every entry and
// appends its tuples that are new.
func joinPopulation(leaves [][]uint32, population *Table) ([][]uint32, []uint32) {
	own := make(map[string]uint32, len(leaves[0]))
	key := make([]byte, 0, 4*len(leaves))
	joined := make([][]uint32, len(leaves))
	for c := range leaves {
		joined[c] = append([]uint32(nil), leaves[c]...)
	}
	for i := range leaves[0] {
		key = appendTuple(key[:0], leaves, i)
		own[string(key)] = uint32(i)
	}
	counts := make([]uint32, len(leaves[0]))
	for tuple := range population.Tuples() {
		key = appendTuple(key[:0], population.tuples, tuple)
		i, known := own[string(key)]
		if !known {
			i = uint32(len(counts))
			counts = append(counts, 0)
			for c := range joined {
				joined[c] = append(joined[c], population.tuples[c][tuple])
			}
		}
		counts[i] += uint32(len(population.RowsOf(uint32(tuple))))
	}
	return joined, counts
}

func appendTuple(key []byte, leaves [][]uint32, i int) []byte {
	for c := range leaves {
		l := leaves[c][i]
		key = append(key, byte(l), byte(l>>8), byte(l>>16), byte(l>>24))
	}
	return key
}

// countSensitive fills the histograms of the first n entries.
func (e *entries) countSensitive(p *Problem, first *classes, n int) {
	if len(p.Sensitive) == 0 {
		return
	}
	rows := groupRows(e.ofRow, n)
	for _, s := range p.Sensitive {
		e.domains = append(e.domains, s.domain())
		pairs := csr{start: make([]uint32, n+1)}
		h := histogram{start: make([]uint32, 1, len(first.reps)+1)}
		acc := newAccumulator(s.domain())
		seen := make(map[uint64]struct{})
		for i := range n {
			clear(seen)
			for _, r := range rows.of(uint32(i)) {
				subject, value := p.Table.Subject(r), s.Codes[r]
				pair := uint64(subject)<<32 | uint64(value)
				if !p.Table.RowPerSubject() {
					if _, twice := seen[pair]; twice {
						continue
					}
					seen[pair] = struct{}{}
				}
				acc.add(value, 1)
				pairs.items = append(pairs.items, subject, value)
			}
			pairs.start[i+1] = uint32(len(pairs.items))
			h.flush(acc)
		}
		for range len(first.reps) - n {
			h.flush(acc) // population only: nobody of the table
		}
		first.sensitive = append(first.sensitive, h)
		if e.members != nil {
			e.members.pairs = append(e.members.pairs, pairs)
		}
	}
}
