package policyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// sound is a file to break. Line 3 is the hierarchy, line 8 on are the keys of
// the table.
const sound = `version: 1
hierarchies:
  age: {type: interval, widths: [5, 10], lower: 0, upper: 119}
tables:
  public.people:
    subject: id
    k: 5
    require: [{model: l_diversity, column: illness, parameter: 2}]
    recoding: auto
    chain: {scope: project, seed: [[age]]}
    readers: [ann]
    columns:
      id: {class: direct_identifier}
      age: {class: quasi_identifier, hierarchy: age}
      illness: {class: sensitive}
`

// ages is the hierarchy of sound.
const ages = "{type: interval, widths: [5, 10], lower: 0, upper: 119}"

// faulty are ways to break sound, with the place and a part of what is to be
// said. schema says that the JSON Schema has to refuse the file as well.
var faulty = []struct {
	claim, old, new, place, message string
	schema                          bool
}{
	{
		"an unknown key of the file", "version: 1", "version: 1\nversions: 2", "2:1",
		`unknown key "versions"`, true,
	},
	{"an unknown version", "version: 1", "version: 2", "1:10", "unknown version", true},
	{"no version", "version: 1\n", "", "1:1", `no "version"`, true},
	{"a version of text", "version: 1", "version: one", "1:10", "whole number", true},
	{"no tables", "tables:", "table:", "4:1", `unknown key "table"`, true},
	{
		"tables as a list", "tables:\n  public.people:", "tables:\n- public.people:", "5:1",
		"must be a mapping", true,
	},
	{"a duplicate key", "    k: 5", "    k: 5\n    k: 6", "8:5", `duplicate key "k"`, false},
	{
		"a duplicate column", "      illness: {class: sensitive}",
		"      illness: {class: sensitive}\n      age: {class: sensitive}", "16:7", `duplicate key "age"`,
		false,
	},
	{
		"a duplicate hierarchy", "tables:", "  age: {type: prefix, keep: []}\ntables:", "4:3",
		`duplicate key "age"`, false,
	},
	{
		"an unknown key of a table", "    recoding: auto", "    recode: auto", "9:5",
		`unknown key "recode"`, true,
	},
	{
		"an unknown key of a column", "{class: sensitive}", "{class: sensitive, hidden: true}", "15:35",
		`unknown key "hidden"`, true,
	},
	{
		"an unknown key of a hierarchy", "upper: 119}", "upper: 119, step: 5}", "3:64",
		`unknown key "step"`, true,
	},
	{"a table without a schema", "public.people", "people", "5:3", "is no name of a table", true},
	{"a table with three parts", "public.people", "a.b.c", "5:3", "is no name of a table", true},
	{
		"one table twice", "tables:",
		"tables:\n  Public.People: {subject: id, k: 5, columns: {a: {class: sensitive}}}", "6:3",
		"has the name of", false,
	},
	{"no subject", "    subject: id\n", "", "6:5", `no "subject"`, true},
	{"an empty subject", "subject: id", `subject: ""`, "6:14", "is empty", true},
	{"a subject that is a number", "subject: id", "subject: 7", "6:14", "must be a text", true},
	{
		"a subject that is a list", "subject: id", "subject: [id]", "6:14",
		"must be a single value", true,
	},
	{"k of 0", "k: 5", "k: 0", "7:8", "at least 2", true},
	{"k of 1", "k: 5", "k: 1", "7:8", "at least 2", true},
	{"a negative k", "k: 5", "k: -5", "7:8", "at least 2", true},
	{"a k with a fraction", "k: 5", "k: 5.5", "7:8", "whole number", true},
	{"k as a text", "k: 5", `k: "5"`, "7:8", "whole number", true},
	{"no k", "    k: 5\n", "", "6:5", `no "k"`, true},
	{"k beyond all numbers", "k: 5", "k: 99999999999999999999", "7:8", "whole number", true},
	{"an unknown recoding", "recoding: auto", "recoding: global", "9:15", "unknown recoding", true},
	{"an unknown scope", "scope: project", "scope: projecct", "10:20", "did you mean project?", true},
	{
		"an unknown key of a chain", "seed: [[age]]", "seeds: [[age]]", "10:29",
		`unknown key "seeds"`, true,
	},
	{
		"a seed that is no list of lists", "seed: [[age]]", "seed: [age]", "10:36",
		"must be a list", true,
	},
	{
		"a seed of a sensitive column", "seed: [[age]]", "seed: [[illness]]", "10:36",
		"is no quasi-identifier", false,
	},
	{
		"a seed with a column twice", "seed: [[age]]", "seed: [[age, age]]", "10:42",
		"stands twice", true,
	},
	{"an empty set of a seed", "seed: [[age]]", "seed: [[]]", "10:36", "is empty", true},
	{
		"an unknown class", "class: sensitive", "class: sensitve", "15:24",
		"did you mean sensitive?", true,
	},
	{"a column without a class", "{class: sensitive}", "{}", "15:16", `no "class"`, true},
	{"a column that is a word", "{class: sensitive}", "sensitive", "15:16", "must be a mapping", true},
	{"no columns", "      id: {class: direct_identifier}\n      age: {class: quasi_identifier, " +
		"hierarchy: age}\n      illness: {class: sensitive}\n", "      {}\n", "12:5", "no columns", true},
	{
		"a quasi-identifier without a hierarchy", ", hierarchy: age", "", "14:7",
		"has no hierarchy", true,
	},
	{
		"a hierarchy that is not defined", "hierarchy: age", "hierarchy: aeg", "14:49",
		"did you mean age?", false,
	},
	{
		"a hierarchy of a sensitive column", "{class: sensitive}", "{class: sensitive, hierarchy: age}",
		"15:35", "is no quasi-identifier", true,
	},
	{
		"an unknown representative", "hierarchy: age}", "hierarchy: age, representative: median}",
		"14:70", "unknown representative", true,
	},
	{
		"a representative of a sensitive column", "{class: sensitive}",
		"{class: sensitive, representative: middle}", "15:35", "is no quasi-identifier", true,
	},
	{
		"an unknown word on a shared fact", "{class: sensitive}",
		"{class: sensitive, shared_fact: maybe}", "15:48", "unknown shared_fact", true,
	},
	{
		"a shared fact of a quasi-identifier", "hierarchy: age}",
		"hierarchy: age, shared_fact: accepted}", "14:54", "is not shown exact", true,
	},
	{
		"a shared fact of a hidden column", "{class: direct_identifier}",
		"{class: direct_identifier, shared_fact: accepted}", "13:38", "is not shown exact", true,
	},
	{
		"means", "hierarchy: age}", "hierarchy: age, representative: mean}", "14:70",
		"representative: mean is gone; leave it out: values are then raked to margins", true,
	},
	{
		"an unknown action", "{class: direct_identifier}", "{class: direct_identifier, action: drop}",
		"13:46", "unknown action", true,
	},
	{
		"an action of a sensitive column", "{class: sensitive}", "{class: sensitive, action: pseudonym}",
		"15:35", "has an action", true,
	},
	{
		"a pseudonym of another column", "      illness:",
		"      name: {class: direct_identifier, action: pseudonym}\n      illness:", "15:48",
		"cannot have a pseudonym", false,
	},
	{
		"a subject that is shown", "id: {class: direct_identifier}", "id: {class: non_sensitive}", "13:7",
		"would be shown", false,
	},
	{"an unknown model", "l_diversity", "m_invariance", "8:23", "unknown model", true},
	{
		"a model of a column without a class", "column: illness", "column: disease", "8:44",
		"is not a sensitive column", false,
	},
	{
		"a model of a quasi-identifier", "column: illness", "column: age", "8:44",
		"is not a sensitive column", false,
	},
	{"a parameter of 1", "parameter: 2", "parameter: 1", "8:64", "at least 2", true},
	{
		"recursive diversity without c", "model: l_diversity", "model: recursive_l_diversity", "8:15",
		"has no c", true,
	},
	{
		"a c of 0", "l_diversity, column: illness, parameter: 2",
		"recursive_l_diversity, column: illness, parameter: 2, c: 0", "8:80", "c must be above 0", true,
	},
	{
		"a c of another model", "parameter: 2}", "parameter: 2, c: 2}", "8:67",
		"l_diversity has no c", true,
	},
	{
		"a distance of another model", "parameter: 2}", "parameter: 2, distance: ordered}", "8:67",
		"l_diversity has no distance", true,
	},
	{
		"a distance that there is not", "l_diversity, column: illness, parameter: 2",
		"t_closeness, column: illness, parameter: 0.2, distance: long", "8:79", "unknown distance", true,
	},
	{
		"a t of 1", "model: l_diversity, column: illness, parameter: 2",
		"model: t_closeness, column: illness, parameter: 1", "8:64", "above 0 and below 1", true,
	},
	{
		"a beta of 0", "model: l_diversity, column: illness, parameter: 2",
		"model: beta_likeness, column: illness, parameter: 0", "8:66", "above 0", true,
	},
	{
		"a model twice", "require: [", "require: [{model: l_diversity, column: illness, parameter: 3}, ",
		"8:68", "required twice", false,
	},
	{
		"a requirement that is no list", "require: [{model: l_diversity, column: illness, parameter: 2}]",
		"require: l_diversity", "8:14", "must be a list", true,
	},
	{"a reader twice", "[ann]", "[ann, ann]", "11:20", "stands twice", true},
	{"a role of Tailor as a reader", "[ann]", "[tailor_owner]", "11:14", "cannot be a reader", false},
	{"readers as a word", "[ann]", "ann", "11:14", "must be a list", true},
	{
		"readers that differ", "tables:",
		"tables:\n  a.b: {subject: id, k: 5, readers: [bob], columns: {c: {class: sensitive}}}", "6:1",
		"are not those of", false,
	},
	{"an unknown type of hierarchy", ages, "{type: ranges}", "3:15", "unknown type", true},
	{"no type of hierarchy", ages, "{widths: [5]}", "3:3", `no "type"`, true},
	{"a hierarchy that is a word", ages, "interval", "3:8", "must be a mapping", true},
	{"negative widths", "[5, 10]", "[-5]", "3:3", "above 0", true},
	{"a width of 0", "[5, 10]", "[0]", "3:3", "above 0", true},
	{"widths that do not nest", "[5, 10]", "[5, 12]", "3:3", "not a multiple", false},
	{"widths that fall", "[5, 10]", "[10, 5]", "3:3", "not a multiple", false},
	{"a width of text", "[5, 10]", "[five]", "3:34", "must be a number", true},
	{"a width without end", "[5, 10]", "[.inf]", "3:34", "must be a number", false},
	{"no upper bound", ", upper: 119", "", "3:8", `no "upper"`, true},
	{"bounds the wrong way round", "lower: 0", "lower: 500", "3:3", "below the upper bound", false},
	{"a prefix that grows", ages, "{type: prefix, keep: [2, 3]}", "3:3", "must fall", false},
	{"a prefix below 0", ages, "{type: prefix, keep: [-1]}", "3:30", "at least 0", true},
	{
		"an unknown unit of dates", ages, "{type: date, levels: [fortnight]}", "3:30",
		"unknown unit", true,
	},
	{
		"dates that do not nest", ages, "{type: date, levels: [week, month]}", "3:3", "does not nest",
		false,
	},
	{
		"a bound that is no date", ages, "{type: date, levels: [year], lower: yesterday}", "3:3",
		"not a date", true,
	},
	{
		"a list without a source or paths", ages, "{type: table}", "3:3",
		"needs source and columns", true,
	},
	{
		"a source without columns", ages, "{type: table, source: public.icd9}", "3:3",
		"needs source and columns", true,
	},
	{
		"a source and paths", ages, "{type: table, source: a.b, columns: [c], paths: [[d]]}", "3:3",
		"needs source and columns", true,
	},
	{
		"paths that do not nest", ages, "{type: table, paths: [[a, x, p], [b, x, q]]}", "3:3",
		"do not nest", false,
	},
	{
		"paths of different length", ages, "{type: table, paths: [[a, x], [b]]}", "3:3", "has 1 levels",
		false,
	},
	{"an alias", ages, "&a " + ages + "\n  other: *a", "3:8", "anchors are not allowed", false},
	{"a tag", "k: 5", "k: !!int 5", "7:8", "tags are not allowed", false},
	{"a merge key", "    k: 5", "    k: 5\n    <<: {k: 3}", "8:5", "plain name", false},
	{"a second document", "version: 1", "version: 1\n---\nversion: 1", "2:1", "second document", true},
	{"a bracket that is not closed", "[5, 10]", "[5, 10", "3:", "not YAML", false},
	{
		"a hierarchy by the name of a built-in one", "tables:",
		"  builtin.age: {type: prefix, keep: []}\ntables:", "4:3", "are not for files", true,
	},
	{
		"a built-in hierarchy that is none", "hierarchy: age", "hierarchy: builtin.agee", "14:49",
		"did you mean builtin.age?", false,
	},
	{
		"rows as a text", "    recoding: auto", "    rows: \"false\"", "9:11",
		"must be true or false", true,
	},
	{"rows as a word", "    recoding: auto", "    rows: no", "9:11", "must be true or false", true},
	{
		"a data set without a query", "    recoding: auto", "    data_set: {of: public.others}", "9:15",
		`no "query"`, true,
	},
	{
		"a data set of a name without a schema", "    recoding: auto",
		"    data_set: {of: others, query: SELECT 1}", "9:20", "no name of a table", false,
	},
	{
		"a data set of no SELECT", "    recoding: auto",
		"    data_set: {of: public.others, query: DELETE FROM others}", "5:1", "not one SELECT", false,
	},
	{
		"a data set of no SQL", "    recoding: auto",
		"    data_set: {of: public.others, query: SELECT FROM WHERE}", "5:1", "no SQL", false,
	},
	{
		"a data set of itself", "    recoding: auto",
		"    data_set: {of: public.people, query: SELECT 1}", "5:1", "a data set itself", false,
	},
	{
		"a data set with a root of its own", "    recoding: auto",
		"    data_set: {of: public.others, query: SELECT 1}\n    recoding: full_domain", "10:15",
		"recoding", true,
	},
	{
		"a data set that is copied by itself", "    recoding: auto",
		"    data_set: {of: public.others, query: SELECT 1}\n    refresh: 24h", "10:5", "refresh", true,
	},
	{
		"a set-valued table without rows", "    recoding: auto",
		"    rows: false\n    set_valued: {column: illness, m: 2}", "9:5", "shows its codes", true,
	},
	{
		"an unknown measure of a gate", "    recoding: auto",
		"    gate: {measure: prosecutor, max_risk: 0.1}", "9:21", "unknown measure", true,
	},
	{
		"a gate without a risk", "    recoding: auto", "    gate: {measure: average}", "9:11",
		`no "max_risk"`, true,
	},
	{
		"a risk of 0", "    recoding: auto", "    gate: {measure: average, max_risk: 0}", "9:40",
		"above 0", true,
	},
	{
		"a risk above 1", "    recoding: auto", "    gate: {measure: average, max_risk: 1.5}", "9:40",
		"at most 1", true,
	},
	{
		"a refresh without a unit", "    recoding: auto", "    refresh: 24", "9:14",
		"no span of time", true,
	},
	{"a refresh of nothing", "    recoding: auto", "    refresh: 0h", "9:14", "no span of time", true},
	{
		"an index of a column that is hidden", "    recoding: auto", "    indexes: {add: [name]}", "9:21",
		"in no release", false,
	},
	{
		"an index that is added and dropped", "    recoding: auto",
		"    indexes: {add: [age], drop: [age]}", "9:34", "stands twice", false,
	},
	{
		"a joint publication without columns", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, joint: {group_size: 50}}", "9:48", `no "columns"`, true,
	},
	{
		"a joint column twice", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, joint: {columns: [age, age]}}", "9:64",
		"stands twice", true,
	},
	{
		"a joint group below k", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, joint: {columns: [age], group_size: 2}}", "9:77",
		"below k", true,
	},
	{
		"a joint publication of sensitive codes", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, sensitive: [a], diversity: 2, joint: {columns: [age]}}",
		"9:71", "sensitive codes", true,
	},
	{
		"a set-valued table without m", "    recoding: auto", "    set_valued: {column: illness}", "9:17",
		`no "m"`, true,
	},
	{
		"an m of 0", "    recoding: auto", "    set_valued: {column: illness, m: 0}", "9:38",
		"at least 1", true,
	},
	{
		"a set-valued column without a class", "    recoding: auto",
		"    set_valued: {column: disease, m: 2}", "9:26", "is not a sensitive column", true,
	},
	{
		"a set-valued subject", "    recoding: auto", "    set_valued: {column: id, m: 2}", "9:5",
		"is the subject", true,
	},
	{
		"a quasi-identifier beside codes", "    recoding: auto",
		"    set_valued: {column: illness, m: 2}", "14:1", "beside the codes", true,
	},
	{
		"a requirement of a set-valued table", "    recoding: auto",
		"    set_valued: {column: illness, m: 2}", "8:5", `no use for "require"`, true,
	},
	{
		"a diversity without sensitive codes", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, diversity: 2}", "9:5", "belong together", true,
	},
	{
		"sensitive codes without a diversity", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, sensitive: [a]}", "9:5", "belong together", true,
	},
	{
		"a constraint that is empty", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, constraints: {a: []}}", "9:58", "is empty", true,
	},
	{
		"a code in two constraints", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, constraints: {a: [x], b: [x]}}", "9:67",
		"stands twice", true,
	},
	{
		"a code that is a number", "    recoding: auto",
		"    set_valued: {column: illness, m: 2, sensitive: [250.0], diversity: 2}", "9:53",
		"must be a text", true,
	},
	{"a tab as indent", "    k: 5", "\tk: 5", "7:", "not YAML", false},
	{
		"a name beyond PostgreSQL's", "subject: id", "subject: " + strings.Repeat("x", 64), "6:14",
		"too long", true,
	},
}

func TestEveryFaultHasItsPlace(t *testing.T) {
	for _, c := range faulty {
		t.Run(c.claim, func(t *testing.T) {
			broken := strings.Replace(sound, c.old, c.new, 1)
			if broken == sound {
				t.Fatalf("%q is not in the file", c.old)
			}
			f, faults := policyfile.Parse([]byte(broken))
			if f != nil || len(faults) == 0 {
				t.Fatal("no fault")
			}
			for _, fault := range faults {
				if strings.HasPrefix(fmt.Sprintf("%d:%d", fault.Line, fault.Column), c.place) &&
					strings.Contains(fault.String(), c.message) {
					return
				}
			}
			t.Errorf("%v, want %q at %s", faults, c.message, c.place)
		})
	}
	if _, faults := policyfile.Parse([]byte(sound)); faults != nil {
		t.Fatalf("the file that was broken: %v", faults)
	}
	for _, empty := range []string{"", "\n", "# nothing\n", "---\n"} {
		if _, faults := policyfile.Parse([]byte(empty)); len(faults) == 0 {
			t.Errorf("%q has no fault", empty)
		}
	}
}
