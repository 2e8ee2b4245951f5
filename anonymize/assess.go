package anonymize

import (
	"fmt"
	"math"
)

// Release is a table as a reader sees it, to be assessed.
type Release struct {
	// QuasiIdentifiers by which rows are grouped, as printed.
	QuasiIdentifiers []ReleasedColumn
	Sensitive        []SensitiveAttribute
	// Subjects numbers the subject of each row densely from 0; nil says that
	// every row is a subject of its own.
	Subjects []uint32
}

// ReleasedColumn is one quasi-identifier of a release.
type ReleasedColumn struct {
	Name  string
	Cells []string
	// Original cells in the same order of rows, nil where they are not known.
	Original []string
	// Hierarchy that the recoding followed, nil where it is not known.
	Hierarchy *Hierarchy
}

// Measures of a release.
type Measures struct {
	Rows, Subjects int
	Risk           RiskMeasures
	Classes        ClassMeasures
	Sensitive      []SensitiveMeasures
	// Change is nil where the original is not known.
	Change *ChangeMeasures
}

// ClassMeasures are those that only depend on the classes.
type ClassMeasures struct {
	Count, Smallest, Largest int // Smallest is k; sizes in subjects
	Average                  float64
	// NormalizedAverage is rows over classes over k ([LeFevre2006] §5).
	NormalizedAverage float64
	// Discernibility counts rows shown as [Top] in every column as suppressed.
	Discernibility float64
	SuppressedRows int
}

// Assess measures a release. It fails with a *[ProblemError] on a release
// without rows or quasi-identifiers and on columns of different length, and
// with a *[LabelError] on a label that the hierarchy does not give the
// original value.
func Assess(r *Release) (*Measures, error) {
	e, err := r.entries()
	if err != nil {
		return nil, err
	}
	c := e.base
	m := &Measures{Rows: e.rows, Subjects: e.total, Risk: measureRisk(c), Classes: r.measureClasses(e)}
	for i := range r.Sensitive {
		m.Sensitive = append(m.Sensitive, measureSensitive(c, i, &r.Sensitive[i]))
	}
	agreeOnL(m.Sensitive, c)
	if m.Change, err = r.measureChange(); err != nil {
		return nil, err
	}
	return m, nil
}

// entries groups the rows of the release; every entry is a class.
func (r *Release) entries() (*entries, error) {
	if len(r.QuasiIdentifiers) == 0 {
		return nil, &ProblemError{"no quasi-identifiers", "name at least one column"}
	}
	sheet := &Sheet{}
	var columns []Column
	rows := len(r.QuasiIdentifiers[0].Cells)
	for _, q := range r.QuasiIdentifiers {
		if len(q.Cells) != rows || (q.Original != nil && len(q.Original) != rows) {
			return nil, &ProblemError{
				fmt.Sprintf("column %q has another number of rows than the first", q.Name),
				"give the original and the release with the same rows in the same order",
			}
		}
		sheet.header, sheet.cells = append(sheet.header, q.Name), append(sheet.cells, q.Cells)
	}
	sheet.lines = make([]uint32, rows)
	for c, q := range r.QuasiIdentifiers {
		if rows == 0 {
			break
		}
		h, err := NewHierarchy(distinctPaths(sheet.cells[c]))
		if err != nil {
			return nil, err
		}
		columns = append(columns, Column{Name: q.Name, Hierarchy: h})
	}
	if rows == 0 {
		return nil, &ProblemError{"the release is empty", "give a table with at least one row"}
	}
	table, err := sheet.Encode(columns, "")
	if err != nil {
		return nil, err
	}
	if r.Subjects != nil {
		if table, err = table.withSubjects(r.Subjects); err != nil {
			return nil, err
		}
	}
	p := &Problem{Table: table, Sensitive: r.Sensitive}
	for _, s := range r.Sensitive {
		if len(s.Codes) != rows {
			return nil, &ProblemError{fmt.Sprintf("sensitive attribute %q has another number of rows",
				s.Name), "give one value for each row"}
		}
	}
	return newEntries(p), nil
}

// distinctPaths is a hierarchy of the distinct cells alone.
func distinctPaths(cells []string) [][]string {
	seen := make(map[string]bool)
	var paths [][]string
	for _, cell := range cells {
		if !seen[cell] {
			seen[cell] = true
			paths = append(paths, []string{cell})
		}
	}
	return paths
}

func (r *Release) measureClasses(e *entries) ClassMeasures {
	m := ClassMeasures{Count: e.base.count(), Smallest: math.MaxInt}
	for i, subjects := range e.base.subjects {
		m.Smallest, m.Largest = min(m.Smallest, int(subjects)), max(m.Largest, int(subjects))
		rows := float64(e.base.rows[i])
		m.Discernibility += rows * rows
	}
	for row := range e.rows {
		hidden := true
		for _, q := range r.QuasiIdentifiers {
			hidden = hidden && q.Cells[row] == Top
		}
		if hidden {
			m.SuppressedRows++
		}
	}
	hidden := float64(m.SuppressedRows)
	m.Discernibility += hidden*float64(e.rows) - hidden*hidden
	m.Average = float64(e.rows) / float64(m.Count)
	m.NormalizedAverage = m.Average / float64(m.Smallest)
	return m
}
