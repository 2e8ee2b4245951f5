package policyfile_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// complete uses every key and every kind of hierarchy.
const complete = `version: 1
hierarchies:
  age: {type: interval, widths: [5, 10, 20], lower: 0, upper: 120}
  weight: {type: interval, widths: [0.5, 2.5], lower: -1.5, upper: 200}
  zip: {type: prefix, keep: [4, 3, 2]}
  flat: {type: prefix, keep: []}
  day: {type: date, levels: [month, year, decade]}
  born: {type: date, levels: [year], lower: "1900-01-01", upper: "2029-12-31"}
  icd: {type: table, source: public.icd9, columns: [code, category, section]}
  sex: {type: table, paths: [[female, person], [male, person]]}
  "no": {type: table, paths: [["yes"], ["007"], ["a: b # c"], [" "], ["\u0085"], ["ünï\"cøde"]]}
tables:
  public.patients:
    subject: id
    k: 5
    require: [{model: l_diversity, column: diagnosis, parameter: 2}]
    recoding: auto
    chain: {scope: project, seed: [[age, zip, sex], [zip]]}
    readers: [researcher, Dr. No]
    columns:
      name: {class: direct_identifier}
      id: {class: direct_identifier, action: pseudonym}
      age: {class: quasi_identifier, hierarchy: age}
      zip: {class: quasi_identifier, hierarchy: zip}
      sex: {class: quasi_identifier, hierarchy: sex}
      diagnosis: {class: sensitive}
      ward: {class: non_sensitive}
  '"Odd "" Schema"."Visits"':
    subject: Patient Id
    k: 3
    recoding: full_domain
    gate: {measure: below_k, max_risk: 0.05}
    max_share: 0.25
    cohort: 250
    departures: at_once
    changes: at_once
    chain: {scope: table}
    rows: false
    refresh: 24h
    readers: [Dr. No, researcher]
    columns:
      "on": {class: non_sensitive, shared_fact: accepted}
      age: {class: quasi_identifier, hierarchy: builtin.age}
  public.codes:
    subject: id
    k: 5
    recoding: auto
    chain: {scope: project}
    refresh: 7d
    indexes: {add: [code], drop: [day]}
    set_valued: {column: code, m: 2, constraints: {heart: [I50], pressure: ["401.1", "401.9"]}, ` +
	`sensitive: ["042"], diversity: 3}
    columns:
      code: {class: sensitive}
  public.drugs:
    subject: id
    k: 5
    recoding: auto
    chain: {scope: table}
    refresh: on_change
    set_valued: {column: code, m: 2, joint: {columns: [age, "on"], group_size: 200}}
    columns:
      id: {class: direct_identifier, action: pseudonym}
      code: {class: sensitive}
  public.often:
    subject: id
    k: 5
    recoding: auto
    chain: {scope: table}
    data_set: {of: public.drugs, query: "SELECT id, count(*) > 3 AS often FROM drugs GROUP BY 1"}
    columns:
      often: {class: sensitive}
  public.seldom:
    subject: id
    k: 5
    recoding: auto
    chain: {scope: table}
    data_set:
      of: public.drugs
      query: |
        SELECT id, -- of whom
          count(*) < 3 AS seldom

        FROM drugs d
        	GROUP BY "id" HAVING 'a: b' <> '#'
    columns:
      seldom: {class: sensitive}
`

func TestWhatIsWrittenIsReadBackAsItWas(t *testing.T) {
	first, faults := policyfile.Parse([]byte(complete))
	if faults != nil {
		t.Fatal(faults)
	}
	var written bytes.Buffer
	if err := first.Write(&written); err != nil {
		t.Fatal(err)
	}
	second, faults := policyfile.Parse(written.Bytes())
	if faults != nil {
		t.Fatalf("%v in\n%s", faults, &written)
	}
	var again bytes.Buffer
	if err := second.Write(&again); err != nil {
		t.Fatal(err)
	}
	if written.String() != again.String() {
		t.Errorf("written\n%s\nand again\n%s", &written, &again)
	}
	if !reflect.DeepEqual(withoutLines(first), withoutLines(second)) {
		t.Errorf("read\n%+v\nwant\n%+v", second, first)
	}
	// Quotes around the second table's name are a matter of style.
	if got := strings.Replace(written.String(), `"\"Odd \"\" Schema\".\"Visits\""`,
		`'"Odd "" Schema"."Visits"'`, 1); got != complete {
		t.Errorf("the canonical form is\n%s", got)
	}
	for i := range first.Hierarchies {
		h := &first.Hierarchies[i]
		back, err := policyfile.FromDefinition(h.Name, h.Type, []byte(h.Definition()))
		if err != nil || !back.Equal(h) {
			t.Errorf("hierarchy %s came back from the database's form as %v (%v)", h.Name, &back, err)
		}
	}
}

func withoutLines(f *policyfile.File) *policyfile.File {
	for i := range f.Tables {
		f.Tables[i].Line = 0
		for c := range f.Tables[i].Columns {
			f.Tables[i].Columns[c].Line = 0
		}
	}
	for i := range f.Hierarchies {
		f.Hierarchies[i].Line = 0
	}
	return f
}

// FuzzParse checks that whatever is read is written in a form that is read as
// the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(complete))
	f.Add([]byte(sound))
	f.Fuzz(func(t *testing.T, source []byte) {
		file, faults := policyfile.Parse(source)
		if (file == nil) == (len(faults) == 0) {
			t.Fatal("either a file or faults")
		}
		if file == nil {
			return
		}
		var first, second bytes.Buffer
		if err := file.Write(&first); err != nil {
			t.Fatal(err)
		}
		again, faults := policyfile.Parse(first.Bytes())
		if faults != nil {
			t.Fatalf("%v in what was written:\n%s", faults, &first)
		}
		if err := again.Write(&second); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Fatalf("written as\n%s\nthen as\n%s", &first, &second)
		}
	})
}

// TestWhatIsComputedFromIdentifiersIsNotShown follows columns of a data set to those of tables.
func TestWhatIsComputedFromIdentifiersIsNotShown(t *testing.T) {
	const file = `version: 1
tables:
  public.people:
    subject: id
    k: 5
    columns:
      id: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: builtin.age}
      diagnosis: {class: sensitive}
  public.visits:
    subject: person
    k: 5
    columns:
      person: {class: direct_identifier}
      day: {class: quasi_identifier, hierarchy: builtin.event_date}
  public.study:
    subject: id
    k: 5
    data_set: {of: public.people, query: %q}
    columns:
      id: {class: direct_identifier}
      x: {class: sensitive%s}
`
	for query, computed := range map[string]bool{
		`SELECT id, age AS x FROM people`: true,
		`SELECT p.id, coalesce(p.age, 0) / 10 AS x ` +
			`FROM public.people p`: true,
		`SELECT id, x FROM (SELECT id, -age AS x FROM people) q`: true,
		`SELECT p.id, q.n AS x FROM people p JOIN (SELECT person, hashint4(person) AS n FROM visits) q ` +
			`ON q.person = p.id`: true,
		`SELECT id, diagnosis AS x FROM people`:                   false,
		`SELECT p.id, count(p.age) AS x FROM people p GROUP BY 1`: false,
		`SELECT p.id, max(v.day) - min(v.day) AS x FROM people p JOIN visits v ON v.person = p.id ` +
			`GROUP BY 1`: false,
		`SELECT p.id, EXISTS (SELECT FROM visits v WHERE v.person = p.id) AS x ` +
			`FROM people p`: false,
		`SELECT p.id, (SELECT max(v.day) FROM visits v WHERE v.person = p.id) AS x ` +
			`FROM people p`: false,
		`SELECT p.id, p.id IN (SELECT v.person FROM visits v) AS x ` +
			`FROM people p`: false,
		`SELECT p.id, EXISTS (SELECT FROM visits v WHERE v.person = p.id AND p.age > 60) AS x ` +
			`FROM people p`: true,
		`SELECT p.id, (SELECT p.id % 7) AS x FROM people p`: true,
		`SELECT p.id, (SELECT g.n FROM (SELECT min(v.day) AS n FROM visits v WHERE v.person = p.id) g) ` +
			`AS x FROM people p`: false,
		`SELECT p.id, p.age AS x FROM others p`: false,
	} {
		_, faults := policyfile.Parse(fmt.Appendf(nil, file, query, ""))
		if found := len(faults) > 0; found != computed {
			t.Errorf("%s: %v", query, faults)
		}
		if _, faults := policyfile.Parse(fmt.Appendf(nil, file, query,
			", shared_fact: accepted")); len(faults) > 0 {
			t.Errorf("%s, accepted: %v", query, faults)
		}
	}
}

// TestRemarksStayInTheirLine: they hold names of columns, which may hold line ends.
func TestRemarksStayInTheirLine(t *testing.T) {
	const name = "a\nversion: 2\r\u2028\u0085\x00#b"
	f := &policyfile.File{
		Remarks: []string{name}, Hierarchies: []policyfile.Hierarchy{{
			Name: "h", Type: "prefix", Remark: name,
		}},
		Tables: []policyfile.Table{{
			Name: "public.t", Subject: "id", K: 2, Recoding: "auto", Scope: "table",
			Remarks: []string{name, "another"},
			Columns: []policyfile.Column{{
				Name: "q", Class: "quasi_identifier", Hierarchy: "h", Remark: name,
			}},
		}},
	}
	var text bytes.Buffer
	if err := f.Write(&text); err != nil {
		t.Fatal(err)
	}
	read, faults := policyfile.Parse(text.Bytes())
	if faults != nil || len(read.Tables) != 1 || len(read.Tables[0].Columns) != 1 {
		t.Errorf("%v\n%s", faults, &text)
	}
}
