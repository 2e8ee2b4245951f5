package main

import (
	"encoding/json"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/internal/atomicfile"
)

// anonymizeReport is what --report writes.
type anonymizeReport struct {
	Rows               int       `json:"rows"`
	Attributes         []string  `json:"attributes"`
	Sensitive          []string  `json:"sensitive"`
	Kept               []string  `json:"kept"`
	Dropped            []string  `json:"dropped"`  // all columns that are not in the output
	Unnamed            []string  `json:"unnamed"`  // of those the ones that no flag names
	Warnings           []string  `json:"warnings"` // columns that undo the recoding
	Recoding           string    `json:"recoding"`
	K                  int       `json:"k"`
	Models             []string  `json:"models"`
	Quality            string    `json:"quality"`
	Search             string    `json:"search"`
	SuppressionLimit   float64   `json:"suppression_limit"`
	LatticeSize        uint64    `json:"lattice_size"`
	NodesChecked       int       `json:"nodes_checked"`
	NodesRolledUp      int       `json:"nodes_rolled_up"`
	Optimal            bool      `json:"optimal"`
	Levels             []int     `json:"levels"` // null where columns have no one level
	Loss               float64   `json:"loss"`
	LossPerAttribute   []float64 `json:"loss_per_attribute"`
	SuppressedRows     int       `json:"suppressed_rows"`
	SuppressedCells    *int      `json:"suppressed_cells,omitempty"` // of cell recoding
	EquivalenceClasses int       `json:"equivalence_classes"`
	MinClassSize       int       `json:"min_class_size"`
	ElapsedMS          float64   `json:"elapsed_ms"`
	PeakRSSBytes       int64     `json:"peak_rss_bytes"`
}

// newAnonymizeReport adds what every kind of recoding reports.
func newAnonymizeReport(
	o *anonymizeOptions, sheet *anonymize.Sheet, p *anonymize.Problem, r *recoded,
	elapsed time.Duration,
) *anonymizeReport {
	report := r.report
	report.Sensitive, report.Kept = []string{}, []string{}
	for _, name := range sheet.Header() {
		switch o.classes[name] {
		case sensitive:
			report.Sensitive = append(report.Sensitive, name)
		case kept:
			report.Kept = append(report.Kept, name)
		}
	}
	report.Dropped, report.Unnamed = o.leftOut(sheet.Header())
	report.Rows, report.Recoding, report.K = p.Table.Rows(), o.recoding.name, o.k
	report.Quality, report.SuppressionLimit = p.Quality.String(), o.limit
	report.ElapsedMS, report.PeakRSSBytes = float64(elapsed.Microseconds())/1000, peakRSS()
	for _, c := range p.Table.Columns() {
		report.Attributes = append(report.Attributes, c.Name)
	}
	for _, m := range p.Privacy {
		report.Models = append(report.Models, m.String())
	}
	report.Warnings = o.undoing(sheet) // after the peak, which is that of the recoding
	return &report
}

// peakRSS is the largest resident size of the process so far, 0 if unknown.
func peakRSS() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Maxrss * 1024 // Linux counts kilobytes
}

func (r *anonymizeReport) writeJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

func (r *anonymizeReport) writeText(w io.Writer) error {
	if r.Levels == nil {
		return r.writeLocalText(w)
	}
	proof := "optimal"
	if !r.Optimal {
		proof = "not proven optimal"
	}
	_, err := fmt.Fprintf(w, "levels %v of %v: %s %.6g (%s)\n%d of %d rows suppressed, %d classes "+
		"of at least %d\n%d of %d nodes checked, %d rolled up, in %.1f ms\n",
		r.Levels, r.Attributes, r.Quality, r.Loss, proof, r.SuppressedRows, r.Rows, r.EquivalenceClasses,
		r.MinClassSize, r.NodesChecked, r.LatticeSize, r.NodesRolledUp, r.ElapsedMS)
	return err
}

// writeLocalText is for recodings without levels.
func (r *anonymizeReport) writeLocalText(w io.Writer) error {
	cells := ""
	if r.SuppressedCells != nil {
		cells = fmt.Sprintf("%d cells withheld, ", *r.SuppressedCells)
	}
	_, err := fmt.Fprintf(w,
		"%s recoding of %v: %s %.6g\n%s%d of %d rows suppressed, %d classes of at least %d\nin %.1f ms\n",
		r.Recoding, r.Attributes, r.Quality, r.Loss, cells, r.SuppressedRows, r.Rows,
		r.EquivalenceClasses, r.MinClassSize, r.ElapsedMS)
	return err
}

// writeTo writes to a file, compressed as its suffix says, or to the standard
// output for "-".
func writeTo(name string, stdout io.Writer, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	return atomicfile.Write(name, 0o666, compressing(name, write))
}
