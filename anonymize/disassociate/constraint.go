package disassociate

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Constraint is a set of codes that analysts want counted together: a utility
// constraint ([Loukides2014]). Disassociation keeps its codes in one chunk
// where it can. Constraints are disjoint; codes that the data does not have do
// no harm.
type Constraint struct {
	Name  string
	Codes []string
}

// ConstraintError says which constraint is wrong, counted from 1. It quotes no
// code.
type ConstraintError struct {
	Constraint int
	Reason     string
}

func (e *ConstraintError) Error() string {
	return fmt.Sprintf("utility constraint %d: %s", e.Constraint, e.Reason)
}

// ReadConstraints reads one constraint a line: codes separated by white space,
// after an optional name that ends in a colon. Blank lines and lines that
// start with '#' are skipped; a constraint without a name gets the number of
// its line.
func ReadConstraints(r io.Reader) ([]Constraint, error) {
	var list []Constraint
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	line := 0
	for lines.Scan() {
		line++
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		c := Constraint{Name: fmt.Sprintf("line %d", line), Codes: fields}
		if name, ok := strings.CutSuffix(fields[0], ":"); ok {
			c.Name, c.Codes = name, fields[1:]
		}
		if len(c.Codes) == 0 {
			return nil, fmt.Errorf("line %d: a constraint without codes", line)
		}
		list = append(list, c)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("after line %d: %w", line, err)
	}
	return list, nil
}

// none marks an item without a constraint, and a record without a part.
const none = int32(-1)

// roles says of each item which constraint it belongs to, or none, and whether
// it is sensitive. A sensitive code is in no constraint ([Loukides2014]).
type roles struct {
	constraint []int32
	sensitive  []bool
}

// assignRoles resolves the codes of a configuration against a data set. All
// occurrences of a repeated code have the role of the code.
func assignRoles(d *Dataset, cfg *Config) (*roles, error) {
	r := &roles{constraint: make([]int32, len(d.codes)), sensitive: make([]bool, len(d.codes))}
	for i := range r.constraint {
		r.constraint[i] = none
	}
	for u, c := range cfg.Constraints {
		for _, text := range c.Codes {
			for _, it := range d.itemsOf(text) {
				if other := r.constraint[it]; other != none && other != int32(u) {
					return nil, &ConstraintError{u + 1, fmt.Sprintf("shares a code with constraint %d", other+1)}
				}
				r.constraint[it] = int32(u)
			}
		}
	}
	for _, text := range cfg.Sensitive {
		for _, it := range d.itemsOf(text) {
			r.sensitive[it] = true
			r.constraint[it] = none
		}
	}
	return r, nil
}
