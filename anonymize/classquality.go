package anonymize

import "math"

// Discernibility sums the squared sizes of the classes that remain, and for
// each suppressed row the size of the table ([Bayardo2005] §2). Without
// suppression it grows along generalization, and a suppressed class costs no
// less than its square, so the squares of all classes of a node bound its
// generalizations.
type Discernibility struct{}

func (Discernibility) String() string { return "discernibility" }

func (Discernibility) bind(b *binding) (quality, error) {
	n := float64(b.entries.rows)
	return &classwise{
		kept: func(_ *judged, _ int, rows float64) float64 { return rows * rows },
		end:  func(j *judged, kept float64) float64 { return kept + float64(j.rows)*n },
		all:  func(_ *judged, all float64) float64 { return all },
	}, nil
}

// AverageClassSize is the mean number of rows of the classes that remain, and
// that of the table where none does. At most the suppression limit is lost,
// and no generalization has more classes than the node.
type AverageClassSize struct{}

func (AverageClassSize) String() string { return "average class size" }

func (AverageClassSize) bind(b *binding) (quality, error) {
	n := float64(b.entries.rows)
	return &classwise{
		kept: func(*judged, int, float64) float64 { return 1 },
		end: func(j *judged, kept float64) float64 {
			if kept == 0 {
				return n
			}
			return (n - float64(j.rows)) / kept
		},
		all: func(_ *judged, all float64) float64 { return (n - float64(b.limit)) / all },
	}, nil
}

// NormalizedClassSize is the normalized average equivalence class size (AECS)
// of [LeFevre2006] §5: rows over classes over k, the suppressed rows being one
// class. k is the fewest subjects that the privacy models ask of a class.
type NormalizedClassSize struct{}

func (NormalizedClassSize) String() string { return "normalized average class size" }

func (NormalizedClassSize) bind(b *binding) (quality, error) {
	scale := float64(b.entries.rows) / float64(b.least)
	return &classwise{
		kept: func(*judged, int, float64) float64 { return 1 },
		end: func(j *judged, kept float64) float64 {
			if j.rows > 0 {
				kept++
			}
			return scale / kept
		},
		all: func(_ *judged, all float64) float64 { return scale / all },
	}, nil
}

// Ambiguity is the mean number of combinations of values that a row may stand
// for ([Nergiz2007]): the product of the numbers of values that its labels
// cover. A suppressed row may stand for any.
type Ambiguity struct{}

func (Ambiguity) String() string { return "ambiguity" }

func (Ambiguity) bind(b *binding) (quality, error) {
	n, columns := float64(b.entries.rows), b.columns()
	domain := math.Exp(logDomain(columns))
	return &classwise{
		kept: func(j *judged, class int, rows float64) float64 {
			return rows * math.Exp(logArea(columns, j, class))
		},
		end: func(j *judged, kept float64) float64 { return (kept + float64(j.rows)*domain) / n },
		all: func(_ *judged, all float64) float64 { return all / n },
	}, nil
}

// Divergence is the Kullback-Leibler divergence in bits between the
// distribution of the original tuples and the one that the output suggests, in
// which the rows of a class are spread evenly over all combinations that its
// labels cover, the suppressed rows over the whole domain ([Kifer2006] §3). By
// the log-sum inequality the divergence of all classes of a node, none
// suppressed, bounds its generalizations.
type Divergence struct{}

func (Divergence) String() string { return "Kullback-Leibler divergence" }

func (Divergence) bind(b *binding) (quality, error) {
	n, columns := float64(b.entries.rows), b.columns()
	original := 0.0
	for _, rows := range b.entries.base.rows {
		original += xlogx(float64(rows) / n)
	}
	whole := logDomain(columns)
	spread := func(rows, area float64) float64 { return xlogx(rows/n) - rows/n*area }
	return &classwise{
		kept: func(j *judged, class int, rows float64) float64 {
			return spread(rows, logArea(columns, j, class))
		},
		end: func(j *judged, kept float64) float64 {
			return (original - kept - spread(float64(j.rows), whole)) / math.Ln2
		},
		all: func(_ *judged, all float64) float64 { return (original - all) / math.Ln2 },
	}, nil
}

func logDomain(columns []Column) float64 {
	sum := 0.0
	for _, c := range columns {
		sum += math.Log(float64(c.Hierarchy.Leaves()))
	}
	return sum
}

// logArea is the logarithm of the number of combinations that a class covers.
func logArea(columns []Column, j *judged, class int) float64 {
	sum := 0.0
	rep := j.classes.reps[class]
	for c, column := range columns {
		l := int(j.levels[c])
		first, last := column.Hierarchy.Range(Node{
			Level: l,
			Group: column.Hierarchy.Generalize(j.leaves(c)[rep], l),
		})
		sum += math.Log(float64(last-first) + 1)
	}
	return sum
}

// classwise is the common part of the models that sum a term over classes: end
// turns the sum over the classes that remain into a score, all turns the sum
// over all classes into a bound on the generalizations.
type classwise struct {
	unbounded
	kept func(j *judged, class int, rows float64) float64
	end  func(j *judged, kept float64) float64
	all  func(j *judged, all float64) float64
}

func (q *classwise) score(n *judged) float64 { return q.end(n, q.total(n, false)) }

func (q *classwise) above(n *judged) float64 { return q.all(n, q.total(n, true)) }

func (q *classwise) total(n *judged, all bool) float64 {
	total := 0.0
	for class, rows := range n.classes.rows {
		if rows > 0 && (all || !n.suppressed[class]) {
			total += q.kept(n, class, float64(rows))
		}
	}
	return total
}

func (q *classwise) parts(*judged) []float64 { return nil }
