package anonymize

import (
	"cmp"
	"slices"
)

// nodeEvaluator decides which classes of a node are suppressed and whether the node is
// admissible. It holds scratch memory and is not safe for concurrent use.
type nodeEvaluator struct {
	entries   *entries
	tests     []privacyTest // models of classes beside the least size
	table     []privacyTest // models of the table
	least     uint32        // subjects that every class needs
	smallest  uint32        // fewest subjects a class can have, at least 1
	limit     int           // rows
	strict    bool
	thorough  bool // do not stop early
	spreading bool // all models of classes are monotone with suppression

	// merging says that nothing may be suppressed and that no subject stands in
	// two entries. A node that holds is then a merger of classes that all hold,
	// so that every failure is certain. Where subjects are shared, the values
	// of a merger are no mixture of those of its parts.
	merging       bool
	rowPerSubject bool
	suppressed    []bool
	order         []uint32
	inBlock       []uint32
}

// verdict on a node.
type verdict struct {
	admissible bool
	// certain is a number of rows that every specialization of the node
	// suppresses as well. Above the limit it rules out all of them.
	certain int
	rows    int // rows suppressed
	kept    int // classes that remain
}

func newNodeEvaluator(p *Problem, e *entries) (*nodeEvaluator, error) {
	j := &nodeEvaluator{
		entries: e, least: 1, smallest: 1, limit: p.limitRows(), strict: p.Strict,
		spreading: true,
	}
	j.rowPerSubject = p.Table.RowPerSubject()
	j.merging = j.limit == 0 && e.members == nil
	for _, model := range p.Privacy {
		test, err := model.bind(p)
		if err != nil {
			return nil, err
		}
		test.monotone = model.Monotone()
		j.smallest = max(j.smallest, test.smallest)
		switch {
		case test.least > 0:
			j.least = max(j.least, test.least)
		case test.counted != nil:
			j.table = append(j.table, test)
		default:
			j.tests = append(j.tests, test)
			j.spreading = j.spreading && test.monotone == WithSuppression
		}
	}
	// Models that spread come first: their rows are certain.
	slices.SortStableFunc(j.tests, func(a, b privacyTest) int {
		return cmp.Compare(a.monotone, b.monotone)
	})
	return j, nil
}

// fork returns an evaluator with scratch memory of its own.
func (j *nodeEvaluator) fork() *nodeEvaluator {
	f := *j
	f.suppressed, f.order, f.inBlock = nil, nil, nil
	return &f
}

// evaluate fills j.suppressed. classOf maps entries to classes and is needed only
// where subjects cannot be added up. It stops early where the rows that are
// certain exceed the limit; j.suppressed is then incomplete.
func (j *nodeEvaluator) evaluate(c *classes, classOf []uint32) verdict {
	n := c.count()
	j.suppressed = append(j.suppressed[:0], make([]bool, n)...)
	certain, doubtful, kept := 0, 0, 0
	for i, rows := range c.rows {
		if rows == 0 {
			continue // population only
		}
		failed := monotoneFailure
		if c.subjects[i] >= j.least {
			failed = j.test(c, i)
		}
		switch failed {
		case none:
			kept++
			continue
		case monotoneFailure:
			certain += int(rows)
		case otherFailure:
			doubtful += int(rows)
			if j.merging {
				certain += int(rows)
				doubtful -= int(rows)
			}
		}
		j.suppressed[i] = true
		if !j.thorough && certain > j.limit {
			return verdict{certain: certain, rows: certain + doubtful}
		}
	}
	v := verdict{certain: certain, rows: certain + doubtful, kept: kept}
	if len(j.table) > 0 && v.rows <= j.limit {
		v.rows += j.suppressSmallest(c, &v)
		if j.spreading && j.rowPerSubject {
			v.certain = v.rows
		}
	}
	v.admissible = v.rows <= j.limit && (!j.strict || j.formsClasses(c, classOf))
	return v
}

// failure says how a class fails.
type failure int

const (
	none            failure = iota
	monotoneFailure         // a model that is monotone with suppression
	otherFailure
)

func (j *nodeEvaluator) test(c *classes, i int) failure {
	for t := range j.tests {
		if !j.tests[t].class(c, i) {
			if j.tests[t].monotone == WithSuppression {
				return monotoneFailure
			}
			return otherFailure
		}
	}
	return none
}

// suppressSmallest suppresses the smallest classes that remain until all
// models of the table hold, and returns their rows. That is the fewest
// subjects that can be suppressed to that end, so the number never grows along
// generalization. It stops beyond the limit.
func (j *nodeEvaluator) suppressSmallest(c *classes, v *verdict) (rows int) {
	j.order = j.order[:0]
	subjects := 0.0
	counted := make([]float64, len(j.table))
	for i := range c.rows {
		if c.rows[i] == 0 || j.suppressed[i] {
			continue
		}
		j.order = append(j.order, uint32(i))
		subjects += float64(c.subjects[i])
		for t := range j.table {
			counted[t] += float64(j.table[t].counted(c.subjects[i]))
		}
	}
	slices.SortFunc(j.order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(c.subjects[a], c.subjects[b]), cmp.Compare(a, b))
	})
	for _, i := range j.order {
		if j.tableHolds(counted, subjects) || v.rows+rows > j.limit {
			return rows
		}
		j.suppressed[i] = true
		v.kept--
		rows += int(c.rows[i])
		subjects -= float64(c.subjects[i])
		for t := range j.table {
			counted[t] -= float64(j.table[t].counted(c.subjects[i]))
		}
	}
	return rows
}

func (j *nodeEvaluator) tableHolds(counted []float64, subjects float64) bool {
	for t := range j.table {
		if counted[t] > j.table[t].share*subjects+tolerance {
			return false
		}
	}
	return true
}

// formsClasses says whether the suppressed rows of each block are none or
// those of enough subjects.
func (j *nodeEvaluator) formsClasses(c *classes, classOf []uint32) bool {
	j.inBlock = append(j.inBlock[:0], make([]uint32, max(j.entries.blocks, 1))...)
	if j.entries.members != nil {
		j.countMembers(classOf)
	} else {
		for i, out := range j.suppressed {
			if out {
				j.inBlock[j.entries.blockOf(c.reps[i])] += c.subjects[i]
			}
		}
	}
	for _, subjects := range j.inBlock {
		if subjects > 0 && subjects < j.smallest {
			return false
		}
	}
	return true
}

// countMembers counts the distinct suppressed subjects of each block.
func (j *nodeEvaluator) countMembers(classOf []uint32) {
	seen := make(map[uint64]struct{})
	lists := &j.entries.members.subjects
	for i, class := range classOf {
		if !j.suppressed[class] || i+1 >= len(lists.start) {
			continue
		}
		block := j.entries.blockOf(uint32(i))
		for _, s := range lists.of(uint32(i)) {
			key := uint64(block)<<32 | uint64(s)
			if _, twice := seen[key]; !twice {
				seen[key] = struct{}{}
				j.inBlock[block]++
			}
		}
	}
}
