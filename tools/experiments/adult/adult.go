// Package adult reads the reference table Adult for experiments.
package adult

import (
	"os"
	"path/filepath"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// Read reads the table with the hierarchies of some columns. data is the folder of the
// reference data, see package refdata.
func Read(data string, attributes []string) (*anonymize.Table, error) {
	folder := filepath.Join(data, "arx", "adult")
	f, err := os.Open(filepath.Join(folder, "adult.csv"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	sheet, err := anonymize.ReadSheet(f, ';')
	if err != nil {
		return nil, err
	}
	columns := make([]anonymize.Column, len(attributes))
	for c, name := range attributes {
		h, err := readHierarchy(filepath.Join(folder, "adult_hierarchy_"+name+".csv"))
		if err != nil {
			return nil, err
		}
		columns[c] = anonymize.Column{Name: name, Hierarchy: h}
	}
	return sheet.Encode(columns, "")
}

func readHierarchy(path string) (*anonymize.Hierarchy, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return anonymize.ReadHierarchy(f, ';')
}
