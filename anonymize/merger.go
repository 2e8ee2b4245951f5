package anonymize

// merger carries sensitive values and subjects of source classes over to the
// classes they are merged into.
type merger struct {
	entries *entries
	sums    []*accumulator // per sensitive attribute
	order   csr            // class -> source classes, scratch
	seen    []uint32       // subject -> class + 1 that last counted it
	pairs   map[uint64]struct{}
}

func newMerger(e *entries) *merger {
	m := &merger{entries: e}
	for _, domain := range e.domains {
		m.sums = append(m.sums, newAccumulator(domain))
	}
	if e.members != nil {
		m.seen = make([]uint32, e.members.total)
		m.pairs = make(map[uint64]struct{})
	}
	return m
}

// combine fills out.sensitive, and out.subjects where they cannot be added up.
func (m *merger) combine(src, out *classes, classOf []uint32) {
	m.sort(classOf, out.count())
	for len(out.sensitive) < len(m.sums) {
		out.sensitive = append(out.sensitive, histogram{})
	}
	for s := range m.sums {
		h := &out.sensitive[s]
		h.start, h.values, h.counts = append(h.start[:0], 0), h.values[:0], h.counts[:0]
		for class := range out.count() {
			if m.entries.members == nil {
				m.addUp(&src.sensitive[s], m.order.of(uint32(class)), m.sums[s])
			} else {
				m.addPairs(&m.entries.members.pairs[s], m.order.of(uint32(class)), m.sums[s])
			}
			h.flush(m.sums[s])
		}
	}
	if m.entries.members != nil {
		m.countSubjects(out)
	}
}

func (m *merger) addUp(h *histogram, sources []uint32, sum *accumulator) {
	for _, i := range sources {
		values, counts := h.of(int(i))
		for j, v := range values {
			sum.add(v, counts[j])
		}
	}
}

// addPairs counts each value once per subject.
func (m *merger) addPairs(pairs *csr, entries []uint32, sum *accumulator) {
	clear(m.pairs)
	for _, i := range entries {
		if int(i)+1 >= len(pairs.start) {
			continue // population only
		}
		list := pairs.of(i)
		for j := 0; j < len(list); j += 2 {
			pair := uint64(list[j])<<32 | uint64(list[j+1])
			if _, twice := m.pairs[pair]; !twice {
				m.pairs[pair] = struct{}{}
				sum.add(list[j+1], 1)
			}
		}
	}
}

// countSubjects counts the distinct subjects of each class.
func (m *merger) countSubjects(out *classes) {
	clear(m.seen)
	for class := range out.subjects {
		out.subjects[class] = 0
		for _, i := range m.order.of(uint32(class)) {
			if int(i)+1 >= len(m.entries.members.subjects.start) {
				continue // population only
			}
			for _, s := range m.entries.members.subjects.of(i) {
				if m.seen[s] != uint32(class)+1 {
					m.seen[s] = uint32(class) + 1
					out.subjects[class]++
				}
			}
		}
	}
}

// sort lists the source classes of each class.
func (m *merger) sort(classOf []uint32, n int) {
	start := append(m.order.start[:0], make([]uint32, n+2)...)
	for _, c := range classOf {
		start[c+2]++
	}
	for i := 2; i < len(start); i++ {
		start[i] += start[i-1]
	}
	items := append(m.order.items[:0], make([]uint32, len(classOf))...)
	for i, c := range classOf {
		items[start[c+1]] = uint32(i)
		start[c+1]++
	}
	m.order = csr{start: start, items: items}
}
