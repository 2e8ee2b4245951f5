package policyfile

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v4"
)

// DataSet is a query over tables, with at most one row for each subject of one of them.
type DataSet struct {
	Of    string // that table, as PostgreSQL reads its name
	Query string // without white space around it
}

// String is the value of the key data_set, on one line.
func (d *DataSet) String() string {
	if d == nil {
		return ""
	}
	return fmt.Sprintf("{of: %s, query: %s}", Scalar(d.Of), Scalar(d.Query))
}

// write prints a query of several lines as one who edits it would have it.
func (d *DataSet) write(b *strings.Builder) {
	lines := strings.Split(d.Query, "\n")
	for _, line := range lines {
		trailing := line != strings.TrimRight(line, " \t")
		if len(lines) == 1 || trailing || strings.ContainsFunc(line, unprintable) {
			fmt.Fprintf(b, "    data_set: %s\n", d)
			return
		}
	}
	fmt.Fprintf(b, "    data_set:\n      of: %s\n      query: |\n", Scalar(d.Of))
	for _, line := range lines {
		b.WriteString(strings.TrimRight("        "+line, " ") + "\n")
	}
}

// unprintable says that a character cannot stand in a block of text as it is.
func unprintable(r rune) bool {
	return r < ' ' && r != '\t' || r >= 0x7f && r <= 0x9f || r == 0x2028 || r == 0x2029 || r >= 0xfeff
}

func (r *reader) dataSet(e entry) *DataSet {
	keys := r.keys(e.value, "data_set", []string{"of", "query"}, nil)
	d := &DataSet{}
	if k, ok := keys["of"]; ok {
		if d.Of = r.text(k.value, "of"); d.Of != "" && qualified.FindStringSubmatch(d.Of) == nil {
			r.fault(k.value, "write schema.table, quoted as in SQL", "%q is no name of a table", d.Of)
		}
	}
	if k, ok := keys["query"]; ok {
		d.Query = strings.Trim(r.text(k.value, "query"), " \t\r\n;")
	}
	return d
}

// shownAs refuses settings of the root and of copies: those of the table that a data set
// is of hold for it.
func (r *reader) shownAs(t *Table, keys map[string]entry) {
	for _, name := range []string{"gate", "max_share", "cohort", "refresh", "set_valued"} {
		if k, ok := keys[name]; ok {
			r.fault(k.at, "leave it out, or say it of that table",
				"a data set is shown as the table that it is of: %q", name)
		}
	}
	for _, setting := range []struct{ name, usual string }{
		{"recoding", "auto"}, {"cuts", "by_models"}, {"departures", "batch"}, {"changes", "batch"},
	} {
		k, ok := keys[setting.name]
		if ok && k.value.Kind == yaml.ScalarNode && k.value.Value != setting.usual {
			r.fault(k.value, "leave it out, or say it of that table",
				"a data set is shown as the table that it is of: %q", setting.name)
		}
	}
	if t.AggregateOnly {
		r.fault(keys["rows"].at, "leave it out", "a data set shows rows")
	}
	if t.Scope != "table" || len(t.Seed) > 0 {
		r.fault(keys["chain"].at, "leave it out", "a data set has no root of its own")
	}
}

// ofTables checks data sets beside the tables that they are of, where the file has them.
func (r *reader) ofTables(f *File) {
	for i := range f.Tables {
		t := &f.Tables[i]
		if t.DataSet == nil {
			continue
		}
		if t.DataSet.Query != "" {
			r.query(f, t)
		}
		for j := range f.Tables {
			of := &f.Tables[j]
			switch {
			case of.Name != t.DataSet.Of:
			case of.DataSet != nil:
				r.faults = append(r.faults, Fault{
					t.Line, 1, fmt.Sprintf("%s is a data set itself", of.Name),
					"name the table that both are of",
				})
			case of.K != t.K:
				r.faults = append(r.faults, Fault{
					t.Line, 1, fmt.Sprintf("the k of %s is not that of %s", t.Name, of.Name),
					"a data set has the k of the table that it is of",
				})
			}
		}
	}
}
