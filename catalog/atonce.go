package catalog

// A policy may let departures, or changed payloads, take effect at once, whatever the
// block.
//
// Attacker: knows everybody's quasi-identifiers, and not who leaves, comes back or gets
// another payload when. Precondition: nobody but the table's owner knows that. Property:
// what vanishes is of somebody of a class, which earlier labels may tell, that is enough
// subjects and meets the models before and after; what changes is of somebody of a block
// that does, and of a class that meets the models. Test: TestAtOnce….
//
// A block that is not enough without those who leave goes as a whole. Rows that go where
// the rules for everybody would have them wait go for good: of one that came back alone,
// labels and payload together would tell in which two blocks its person was.

// forGood is the copy with which rows have gone that do not come back, in chain_N_gone.
const forGood = 0

// goAtOnce takes those out of a block who leave, unless that is allowed anyway, and the
// others as well where they cannot be shown by themselves, be it in the class that earlier
// labels tell. next is a free number.
func (b *block) goAtOnce(n needs, next int) ([]act, int) {
	leaves, rests := make(map[int]bool), make(map[int]*class)
	columns := 0
	for i := range b.members {
		m := &b.members[i]
		columns = max(columns, len(m.changes))
		if rests[m.class] == nil {
			rests[m.class] = &class{}
		}
		if leaves[m.class] = leaves[m.class] || m.leaves; !m.leaves {
			rests[m.class].add(m.person, m.shown)
		}
	}
	var leaving, staying []member
	var rest class
	for _, m := range b.members {
		if m.leaves || leaves[m.class] && !n.meets(rests[m.class]) {
			leaving = append(leaving, m)
			continue
		}
		staying = append(staying, m)
		rest.add(m.person, m.shown)
	}
	if len(leaving) == 0 || b.allows(happening{leaves: true, columns: make([]bool, columns)}, n) {
		return nil, next
	}
	if !n.meets(&rest) {
		leaving, staying = append(leaving, staying...), nil
	}
	b.members = staying
	out := make([]act, len(leaving))
	for i := range leaving {
		out[i] = act{member: &leaving[i], block: next, class: next, goes: true, forGood: true}
	}
	return out, next + 1
}

// changeAtOnce has all changes shown of a block's rows that stay, or those columns of
// them with which the block still meets the models. A row whose departure waits has no changes:
// while others of its class changed, it would be seen to be left.
func (b *block) changeAtOnce(h happening, n needs) happening {
	waits := make(map[int]bool) // classes of which somebody's departure does
	for i := range b.members {
		if m := &b.members[i]; m.leaves && !h.leaves {
			waits[m.class] = true
		}
	}
	shows := func(columns []bool) bool {
		unveiled, fresh := n.unveiled(b, columns)
		var after class
		within, changing := make(map[int]*class), make(map[int]map[int]bool)
		for i := range b.members {
			m := &b.members[i]
			if m.leaves && h.leaves {
				continue
			}
			if within[m.class] == nil {
				within[m.class], changing[m.class] = &class{}, make(map[int]bool)
			}
			for _, c := range []*class{&after, within[m.class]} {
				c.add(m.person, m.then(columns, n))
			}
			if waits[m.class] && m.changed(happening{columns: columns}) {
				return false
			}
			for column, what := range m.changes {
				changing[m.class][column] = changing[m.class][column] || what != unchanged && columns[column]
			}
		}
		for number, c := range within {
			changes := func(column int) bool { return changing[number][column] }
			if !n.meetsModels(c, changes) || !unveiled.meetsModels(c, fresh) {
				return false
			}
		}
		return unveiled.meets(&after)
	}
	all := make([]bool, len(h.columns))
	for i := range all {
		all[i] = true
	}
	if shows(all) {
		return happening{leaves: h.leaves, columns: all}
	}
	some := make([]bool, len(h.columns))
	for i := range some {
		some[i] = true
		some[i] = shows(some)
	}
	return happening{leaves: h.leaves, columns: some}
}
