package anonymize

// CommonRefinement is what a reader who links all answers can tell apart: rows
// that agree in every released label. It knows labels and nothing else, so
// that it can check a chain without trusting its partition.
type CommonRefinement struct {
	classOf []uint32
	classes int
}

// NewCommonRefinement holds rows that nothing tells apart yet.
func NewCommonRefinement(rows int) *CommonRefinement {
	return &CommonRefinement{classOf: make([]uint32, rows), classes: min(1, rows)}
}

// Add tells rows apart by one more released column.
func (c *CommonRefinement) Add(label func(row int) string) {
	type seen struct {
		class uint32
		label string
	}
	index := make(map[seen]uint32, c.classes)
	for row, class := range c.classOf {
		key := seen{class, label(row)}
		id, ok := index[key]
		if !ok {
			id = uint32(len(index))
			index[key] = id
		}
		c.classOf[row] = id
	}
	c.classes = len(index)
}

// Smallest is the number of distinct subjects in the smallest class, and the
// number of classes.
func (c *CommonRefinement) Smallest(subject func(row int) uint32) (subjects, classes int) {
	type member struct{ class, subject uint32 }
	seen := make(map[member]struct{}, len(c.classOf))
	counts := make([]int, c.classes)
	for row, class := range c.classOf {
		m := member{class, subject(row)}
		if _, again := seen[m]; !again {
			seen[m] = struct{}{}
			counts[class]++
		}
	}
	if c.classes == 0 {
		return 0, 0
	}
	subjects = counts[0]
	for _, n := range counts {
		subjects = min(subjects, n)
	}
	return subjects, c.classes
}
