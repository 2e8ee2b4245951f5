package anonymize

import (
	"fmt"
)

// EquivalenceClasses are the classes of a table's tuples that form while
// columns are shown one after the other: tuples of one class look the same. It
// starts from everybody ([Table.Everyone]) or from the blocks of a partition
// ([Partition.Classes]) and is split by what is shown. Immutable.
type EquivalenceClasses struct {
	table *Table
	of    []uint32 // tuple -> class, 0..count-1
	count int
}

// Everyone is one class of all tuples.
func (t *Table) Everyone() *EquivalenceClasses {
	return &EquivalenceClasses{table: t, of: make([]uint32, t.Tuples()), count: min(1, t.Tuples())}
}

// Classes are the blocks of the partition.
func (p *Partition) Classes() *EquivalenceClasses {
	return &EquivalenceClasses{table: p.Table(), of: p.blockOf, count: p.Blocks()}
}

// Len is the number of classes. None is empty.
func (c *EquivalenceClasses) Len() int { return c.count }

// Exactly splits the classes by the values of a column.
func (c *EquivalenceClasses) Exactly(column int) *EquivalenceClasses { return c.AtLevel(column, 0) }

// AtLevel splits the classes by the groups of one level of a column's
// hierarchy.
func (c *EquivalenceClasses) AtLevel(column, level int) *EquivalenceClasses {
	groupOf := c.table.columns[column].Hierarchy.GroupOf(level)
	leaves := c.table.tuples[column]
	return c.split(func(tuple int) uint32 { return groupOf[leaves[tuple]] })
}

// split costs one hash probe a tuple.
func (c *EquivalenceClasses) split(key func(tuple int) uint32) *EquivalenceClasses {
	numbers := make(map[uint64]uint32, c.count)
	of := make([]uint32, len(c.of))
	for tuple, class := range c.of {
		k := uint64(class)<<32 | uint64(key(tuple))
		number, known := numbers[k]
		if !known {
			number = uint32(len(numbers))
			numbers[k] = number
		}
		of[tuple] = number
	}
	return &EquivalenceClasses{table: c.table, of: of, count: len(numbers)}
}

// Subjects counts the distinct subjects of each class.
func (c *EquivalenceClasses) Subjects() []uint32 {
	subjects := make([]uint32, c.count)
	t := c.table
	if t.RowPerSubject() {
		for tuple, class := range c.of {
			subjects[class] += uint32(len(t.RowsOf(uint32(tuple))))
		}
		return subjects
	}
	type member struct{ class, subject uint32 }
	seen := make(map[member]struct{}, t.Rows())
	for tuple, class := range c.of {
		for _, row := range t.RowsOf(uint32(tuple)) {
			m := member{class, t.Subject(row)}
			if _, counted := seen[m]; !counted {
				seen[m] = struct{}{}
				subjects[class]++
			}
		}
	}
	return subjects
}

// Refine parts classes by a label: of what has been in one class, and has one label, the class
// has one number. It returns how many classes there are, which are numbered from 0.
func Refine[L comparable](classOf []uint32, labelOf func(i int) L) (classes int) {
	type alike struct {
		class uint32
		label L
	}
	numbers := make(map[alike]uint32)
	for i, class := range classOf {
		a := alike{class, labelOf(i)}
		number, known := numbers[a]
		if !known {
			number = uint32(len(numbers))
			numbers[a] = number
		}
		classOf[i] = number
	}
	return len(numbers)
}

// ShownAlike counts the subjects of each class that a reader forms who looks at
// the labels of some columns alone.
func (p *Partition) ShownAlike(columns []int) []uint32 {
	classOf := make([]uint32, p.Blocks())
	classes := min(1, p.Blocks())
	for _, column := range columns {
		classes = Refine(classOf, func(block int) Node { return p.Cover(uint32(block), column) })
	}
	if !p.Table().RowPerSubject() {
		of := make([]uint32, p.Table().Tuples())
		for tuple, block := range p.blockOf {
			of[tuple] = classOf[block]
		}
		return (&EquivalenceClasses{table: p.Table(), of: of, count: classes}).Subjects()
	}
	subjects := make([]uint32, classes)
	for block, class := range classOf {
		subjects[class] += p.subjects[block]
	}
	return subjects
}

// Exactly refines the partition until every block shows one value in each of
// the columns, and records that nothing is left to gain there. It fails with an
// [*UnmetError] if a block would then not meet the requirements, of which one
// must be a [BlockK].
func (p *Partition) Exactly(columns []int, rs []Requirement) (*Partition, error) {
	exact, must, err := p.cut(columns, make([]int, len(columns)), rs)
	if err != nil {
		return nil, err
	}
	return exact.finish(columns, must.name), nil
}

// AtLevels refines the partition until each block lies within one group of the
// given level in each of the columns: full-domain generalization on top of what
// the partition shows. It fails like [Partition.Exactly]. That nothing is left to
// gain is recorded for further calls of AtLevels alone: [Partition.Refine] may
// still gain something.
func (p *Partition) AtLevels(columns, levels []int, rs []Requirement) (*Partition, error) {
	refined, must, err := p.cut(columns, levels, rs)
	if err != nil {
		return nil, err
	}
	return refined.finish(columns, must.name+atLevels), nil
}

// atLevels marks refinements that full-domain generalization has ended.
const atLevels = ", one level a column"

func (p *Partition) cut(
	columns, levels []int, rs []Requirement,
) (*Partition, *requirements, error) {
	must, err := bind(p.Table(), rs)
	if err != nil {
		return nil, nil, fmt.Errorf("cut: %w", err)
	}
	classes := p.Classes()
	for i, column := range columns {
		classes = classes.AtLevel(column, levels[i])
		if p.Table().RowPerSubject() && classes.Len() > p.Table().Subjects()/must.k {
			// So many cannot all hold k subjects.
			return nil, nil, &UnmetError{Requirement: must.name}
		}
	}
	refined := p
	if classes.Len() > p.Blocks() {
		blockAt := make([]uint32, len(p.ground.tupleAt))
		for position, tuple := range p.ground.tupleAt {
			blockAt[position] = classes.of[tuple]
		}
		refined = assemble(p.ground, blockAt, classes.Len(), p.finished)
	}
	if err := refined.unmet(must); err != nil {
		return nil, nil, err
	}
	return refined, must, nil
}

// IsFinished says whether a refinement along these columns, under these
// requirements, has been carried to its end, so that [Partition.Refine] would
// return the partition itself, or, with levels set, that one of
// [Partition.AtLevels] has.
func (p *Partition) IsFinished(columns []int, rs []Requirement, levels bool) bool {
	name := nameOf(rs)
	return p.isFinished(columns, name) || levels && p.isFinished(columns, name+atLevels)
}

// IsExact says whether every block shows one value in a column.
func (p *Partition) IsExact(column int) bool {
	for block, lo := range p.lo[column] {
		if lo != p.hi[column][block] {
			return false
		}
	}
	return true
}
