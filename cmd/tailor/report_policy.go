package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hiatus-tailor/tailor/internal/policyfile"
)

// plainPolicy is a policy in words that quote no value of the table.
type plainPolicy struct {
	K        int            `json:"k"`
	Settings []plainSetting `json:"settings"`
	Models   []plainSetting `json:"models"`
	Columns  []plainColumn  `json:"columns"`
	// SetValued is whether the table holds sets of codes, DataSetOf the table that it is a
	// data set of, or empty.
	SetValued bool   `json:"set_valued,omitempty"`
	DataSetOf string `json:"data_set_of,omitempty"`
	// untold are settings that may hold values, by what they are: they are compared, and
	// written nowhere.
	untold map[string]string
}

// plainSetting is a setting by its name; a model is named for what it is of, too.
type plainSetting struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// plainColumn is what a column is and how it is shown.
type plainColumn struct {
	Name  string `json:"name"`
	Class string `json:"class"`
	Shown string `json:"shown"`
}

// schedule is when a proxy refreshes a table by itself.
type schedule struct {
	every    time.Duration // 0: never
	onChange bool
}

// plain says what a policy says.
func (d *document) plain(s *schedule) plainPolicy {
	p := plainPolicy{K: d.K, SetValued: d.SetValued != nil, untold: make(map[string]string)}
	if of := d.DataSetOf; of != nil {
		p.DataSetOf = of.Schema + "." + of.Name
		p.untold["the query of the data set"] = of.Query
	}
	if d.SetValued != nil {
		p.untold["the groups of codes, and which codes are sensitive"] = d.SetValued.String()
	}
	for _, q := range d.Require {
		p.Models = append(p.Models, plainSetting{
			strings.ReplaceAll(q.Model, "_", "-") + " of " + q.Column,
			modelInWords(policyfile.Requirement(q)),
		})
	}
	for _, c := range d.Columns {
		p.Columns = append(p.Columns, d.plainColumn(c))
		if c.Hierarchy != nil {
			p.untold["the hierarchy of column "+c.Name] = string(c.Hierarchy.Definition)
		}
	}
	p.Settings = d.settings(s)
	return p
}

// settings are all but k, models and columns; s is nil if nobody asked for it.
func (d *document) settings(s *schedule) []plainSetting {
	var out []plainSetting
	say := func(name, format string, args ...any) {
		out = append(out, plainSetting{name, fmt.Sprintf(format, args...)})
	}
	say("whom a row is about", "The person in column %s. Whatever is counted here is counted in "+
		"people, however many rows they have.", d.Subject)
	d.sayWhatIsShown(say)
	if d.DataSetOf != nil {
		return out // all else is as its table has it
	}
	d.sayHowClassesAreMade(say)
	d.sayWhatBecomes(say)
	if s != nil {
		say("refresh", "%s", s.words())
	}
	return out
}

func (d *document) sayWhatIsShown(say func(name, format string, args ...any)) {
	if of := d.DataSetOf; of != nil {
		say("data set", "One row for each person of %s, or for some, computed by a query. It is "+
			"shown by the classes of that table, with its k and all its settings, so that both "+
			"together tell no more than each.", of.Schema+"."+of.Name)
	}
	if v := d.SetValued; v != nil {
		say("sets of codes", "The codes of a person (column %s) are published so that whoever "+
			"knows up to %s of them finds at least k records that may be that person's.",
			v.Column, counted(v.M, "code", "codes"))
		if v.Joint != nil {
			size := v.Joint.GroupSize
			if size == 0 {
				size = 40 * d.K
			}
			say("codes with other columns", "Codes are published together with %s: at least %d "+
				"people share what is shown of these.", strings.Join(v.Joint.Columns, ", "), size)
		}
		if n := len(v.Constraints); n > 0 {
			say("groups of codes", "%s, which stay countable.", counted(n, "group", "groups"))
		}
		if n := len(v.Sensitive); n > 0 {
			say("sensitive codes", "%s: a person is linked to one with a probability of at most 1 "+
				"in %d.", counted(n, "code", "codes"), v.Diversity)
		}
	}
	if d.Parent != nil && d.SetValued == nil {
		names := make([]string, len(d.Parent.Columns))
		for i, c := range d.Parent.Columns {
			names[i] = c.Name
		}
		say("shown with", "Readers can join the table with %s: its classes hold for the columns "+
			"%s of that, too, with the greater k of the two.", d.Parent.Schema+"."+d.Parent.Name,
			strings.Join(names, ", "))
	}
	if d.Rows != nil && !*d.Rows {
		say("rows", "Only aggregates are answered: numbers stand in averages of at least k "+
			"people, and other values apart from the rows.")
	}
}

func (d *document) sayHowClassesAreMade(say func(name, format string, args ...any)) {
	switch d.Scope {
	case "project":
		say("scope", "The readers of each project have a release of their own. What readers of "+
			"two projects find out by laying theirs beside each other is not bounded.")
	default:
		say("scope", "All readers are shown the same release, so nothing is gained by pooling "+
			"answers.")
	}
	if len(d.Require) > 0 {
		if d.Cuts == "blind" {
			say("cuts", "Classes are made by k alone. Sensitive values are withheld in classes "+
				"that fail a model.")
		} else {
			say("cuts", "Classes are made so that they meet the models. Where a class was not "+
				"made smaller can tell a little of its sensitive values.")
		}
	}
	if d.SetValued == nil {
		say("largest share of rows", "If people have several rows, nobody owns more than %s of the "+
			"rows of a class.", inPercent(d.maxShare()))
	}
	if d.Gate != nil {
		say("risk that a release keeps below", "The %s risk of what is shown together is at most "+
			"%s.", strings.ReplaceAll(d.Gate.Measure, "_", " "), plainFigure(d.Gate.MaxRisk))
	}
	if len(d.Seed) > 0 {
		sets := make([]string, len(d.Seed))
		for i, set := range d.Seed {
			sets[i] = strings.Join(set, " with ")
		}
		say("made for", "The release is finest for questions about %s.", strings.Join(sets, "; "))
	}
	if d.Recoding != "auto" && d.Recoding != "" {
		say("recoding", "%s", strings.ReplaceAll(d.Recoding, "_", " "))
	}
}

// maxShare is the largest share of the rows of a class that one person may own.
func (d *document) maxShare() float64 {
	if d.MaxShare > 0 {
		return d.MaxShare
	}
	return 0.5
}

func (d *document) sayWhatBecomes(say func(name, format string, args ...any)) {
	cohort := "the larger of 100 and 20 k"
	if d.Cohort > 0 {
		cohort = strconv.Itoa(d.Cohort)
	}
	say("newcomers", "People whom nobody has been shown before wait until they are enough (%s), "+
		"and are shown together, in classes of their own.", cohort)
	switch {
	case d.SetValued != nil:
		say("departures and changes", "Records stay as they were published; those of a cluster "+
			"go when all of it have left.")
		return
	case d.Departures == "at_once":
		say("departures", "Who leaves the table is not shown from the next copy on. Whoever "+
			"knows who has left sees, by comparing two answers, what the row held.")
	default:
		say("departures", "Who leaves the table is shown until enough people of the class have "+
			"left, so that nobody's going tells what the row held.")
	}
	if d.Changes == "at_once" {
		say("changes", "Changed values are shown with the next copy. Whoever knows whose value "+
			"has changed sees, by comparing two answers, what it was and is.")
	} else {
		say("changes", "Changed values wait until enough people of the class have changed.")
	}
}

// plainColumn says what a column is.
func (d *document) plainColumn(c documentColumn) plainColumn {
	out := plainColumn{Name: c.Name, Class: strings.ReplaceAll(c.Class, "_", "-")}
	switch {
	case c.Class == "":
		out.Class, out.Shown = "none", "hidden"
	case c.Class == "direct_identifier" && c.Action == "pseudonym":
		out.Class, out.Shown = "direct identifier", "as a number that stands for it"
	case c.Class == "direct_identifier":
		out.Class, out.Shown = "direct identifier", "hidden"
	case c.Class == "quasi_identifier" && c.Hierarchy == nil: // of a data set
		out.Shown = "as its table shows it"
	case c.Class == "quasi_identifier":
		out.Shown = hierarchyInWords(c.Hierarchy.Name, c.Hierarchy.Kind, c.Hierarchy.Definition)
		if c.Representative == "middle" {
			out.Shown += "; rows show the middle"
		}
		if c.Margins != nil && !*c.Margins {
			out.Shown += "; how many people have which value is not published"
		}
	case d.SetValued != nil && c.Name == d.SetValued.Column:
		out.Shown = "in sets, disassociated"
	case d.Rows != nil && !*d.Rows:
		out.Shown = "in aggregates"
	case c.Class == "sensitive" && d.Cuts == "blind":
		out.Shown = "as it is, or withheld"
	default:
		out.Shown = "as it is"
	}
	if c.Class == "non_sensitive" {
		out.Class = "non-sensitive"
	}
	if c.SharedFact == "accepted" {
		out.Shown += "; accepted although another table may tell the same"
	}
	return out
}

// hierarchyInWords says by which steps a value gets coarser, without any value of a list.
func hierarchyInWords(name, kind string, definition []byte) string {
	h, err := policyfile.FromDefinition(name, kind, definition)
	if err != nil {
		return "by hierarchy " + name
	}
	switch kind {
	case "interval":
		widths := make([]string, len(h.Widths))
		for i, w := range h.Widths {
			widths[i] = plainFigure(w)
		}
		return "in ranges of " + orList(widths)
	case "prefix":
		if len(h.Keep) == 0 {
			return "as it is, or not at all"
		}
		keep := make([]string, len(h.Keep))
		for i, n := range h.Keep {
			keep[i] = strconv.Itoa(n)
		}
		return "by its first " + orList(keep) + " characters"
	case "date":
		return "by " + orList(h.Levels)
	}
	levels := len(h.Columns)
	for _, path := range h.Paths {
		levels = max(levels, len(path))
	}
	if levels <= 1 {
		return "as it is, or not at all"
	}
	return fmt.Sprintf("in groups of a list (%s)", counted(levels-1, "level", "levels"))
}

// modelInWords says what a model bounds.
func modelInWords(q policyfile.Requirement) string {
	switch p := plainFigure(q.Parameter); q.Model {
	case "l_diversity":
		return fmt.Sprintf("Each class has at least %s different values of %s: nobody's is "+
			"certain. How likely the most frequent one is, this does not bound.", p, q.Column)
	case "entropy_l_diversity":
		return fmt.Sprintf("The values of %s in each class are as even as %s equally frequent "+
			"ones.", q.Column, p)
	case "recursive_l_diversity":
		return fmt.Sprintf("The most frequent value of %s in a class is less than %s times as "+
			"frequent as all but the %s most frequent ones together.", q.Column, plainFigure(q.C),
			plainFigure(q.Parameter-1))
	case "alpha":
		return fmt.Sprintf("No value of %s is that of more than %s of the people of a class: "+
			"nobody's can be guessed with more confidence.", q.Column, inPercent(q.Parameter))
	case "t_closeness":
		distance := "counting each other value as equally far"
		if q.Distance == "ordered" {
			distance = "by their order"
		}
		return fmt.Sprintf("The values of %s in each class are distributed as among all, within "+
			"a distance of %s (%s).", q.Column, p, distance)
	case "beta_likeness":
		return fmt.Sprintf("No value of %s is more than %s times as frequent in a class as among "+
			"all.", q.Column, plainFigure(1+q.Parameter))
	case "enhanced_beta_likeness":
		return fmt.Sprintf("No value of %s is more than %s times as frequent in a class as among "+
			"all, and frequent values less than that.", q.Column, plainFigure(1+q.Parameter))
	case "delta_disclosure":
		return fmt.Sprintf("Each value of %s occurs in each class, with a share within a factor "+
			"of e^%s of that among all.", q.Column, p)
	}
	return q.Phrase()
}

func (s schedule) words() string {
	switch {
	case s.onChange:
		return "A copy is made once the table has changed."
	case s.every > 0:
		return "A copy is made every " + span(s.every) + "."
	}
	return "A copy is made if an administrator asks for it."
}

// span is a time in the largest unit that it is whole in.
func span(d time.Duration) string {
	switch day := 24 * time.Hour; {
	case d%day == 0:
		return counted(int(d/day), "day", "days")
	case d%time.Hour == 0:
		return counted(int(d/time.Hour), "hour", "hours")
	}
	return counted(int(d/time.Minute), "minute", "minutes")
}

func counted[N int | int64](n N, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}

func plainFigure(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func inPercent(share float64) string {
	return strconv.FormatFloat(100*share, 'f', 1, 64) + " %"
}

func orList(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " or " + parts[last]
}
