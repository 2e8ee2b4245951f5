package planner

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/catalog"
)

// labelled is a quasi-identifier of a release, with its labels.
type labelled struct {
	origin
	*catalog.Column
	list codeList
}

// codeList has the labels above each code of a list, the code itself first.
type codeList map[string][]string

// codeList reads the list of a hierarchy, once a statement: it may be long. Of other
// hierarchies it is nil.
func (b *binder) codeList(h *catalog.HierarchySpec) codeList {
	if h == nil || h.Kind != "table" {
		return nil
	}
	if list, known := b.lists[h]; known {
		return list
	}
	var d struct {
		Paths [][]string `json:"paths"`
	}
	_ = json.Unmarshal(h.Definition, &d) // without a list any wider label may cover a code
	list := make(codeList, len(d.Paths))
	for _, path := range d.Paths {
		if len(path) > 0 {
			list[path[0]] = path
		}
	}
	if b.lists == nil {
		b.lists = make(map[*catalog.HierarchySpec]codeList)
	}
	b.lists[h] = list
	return list
}

// present says that a row has a value, and known that nothing else is possible.
func (o labelled) present() string {
	if o.entry.grouped {
		return o.label() + " IS NOT NULL"
	}
	return "COALESCE(" + o.number() + ", 0) > 0"
}

func (o labelled) known() string {
	return o.present() + " AND " + o.label() + " IS DISTINCT FROM '*'"
}

func (o labelled) isNull(yes bool) judged {
	if !yes {
		return judged{words(o.known()), words(o.present())}
	}
	return judged{words("NOT (" + o.present() + ")"), words("NOT (" + o.known() + ")")}
}

// exact, low and high are what is told of the label of a row, with text around.
func (o labelled) exact(before, behind string) []edit {
	return o.told(o.ExactColumn(), before, behind)
}

func (o labelled) low(before, behind string) []edit {
	return o.told(o.LowColumn(), before, behind)
}

func (o labelled) high(before, behind string) []edit {
	return o.told(o.HighColumn(), before, behind)
}

func (o labelled) told(column, before, behind string) []edit {
	if o.entry.grouped {
		return words(before + quoted(o.entry.alias) + "." + quoted(column) + behind)
	}
	return o.listed(column, before, "["+o.number()+"]"+behind)
}

// measured judges a comparison of a number or a date.
func (o labelled) measured(operator, c string) judged {
	known, present := "("+o.known()+" AND ", "("+o.present()+" AND "
	// The end of a range of dense values, [40,60), is none of them, but for the greatest.
	atEnd := func(open bool) []edit {
		switch {
		case !o.endsOpen() && open:
			return words("false")
		case !o.endsOpen():
			return words("true")
		case open:
			return slices.Concat(o.low("(", " < "), o.high("", " AND "+o.label()+" <> '*')"))
		}
		return slices.Concat(o.low("(", " = "), o.high("", " OR "+o.label()+" = '*')"))
	}
	beyond := func(before string, open bool, strict, behind string) []edit {
		return slices.Concat(
			o.high(before+"(", " "+strict+" "+c+" OR "), o.high("", " = "+c+" AND "), atEnd(open),
			words(")"+behind))
	}
	switch operator {
	case ">=":
		return judged{o.low(known, " >= "+c+")"), beyond(present, false, ">", ")")}
	case ">":
		return judged{o.low(known, " > "+c+")"), o.high(present, " > "+c+")")}
	case "<=":
		return judged{o.high(known, " <= "+c+")"), o.low(present, " <= "+c+")")}
	case "<":
		return judged{beyond(known, true, "<", ")"), o.low(present, " < "+c+")")}
	case "=":
		return judged{
			slices.Concat(o.low(known, " = "+c+" AND "), o.high("", " = "+c+")")),
			slices.Concat(o.low(present, " <= "+c+" AND "), beyond("", false, ">", ")")),
		}
	}
	return judged{
		slices.Concat(o.low(known+"(", " > "+c+" OR "), beyond("", true, "<", "))")),
		slices.Concat(o.low(present+"NOT (", " = "+c+" AND "), o.high("", " = "+c+"))")),
	}
}

// endsOpen says that ranges of the column do not hold their end: values are dense, and
// ends are whole numbers, which every type of dense values has as they are.
func (o labelled) endsOpen() bool {
	name, scale, _ := strings.Cut(o.Type, "(")
	dense := []string{"numeric", "real", "double precision"}
	if !slices.Contains(dense, name) || strings.Contains(scale, "-") {
		return false
	}
	var d struct {
		Widths []float64 `json:"widths"`
		Lower  float64   `json:"lower"`
	}
	if json.Unmarshal(o.Hierarchy.Definition, &d) != nil {
		return false
	}
	return !slices.ContainsFunc(append(d.Widths, d.Lower), func(v float64) bool {
		return v != math.Trunc(v) || math.Abs(v) > 1<<20
	})
}

// equals judges whether a text or a code is, or is not, a constant c. Its value is needed
// of a code list, empty for a prefix.
func (o labelled) equals(c, value string, not bool) judged {
	is := o.exact("("+o.present()+" AND ", " AND "+o.value()+" = "+c+")")
	may := slices.Concat(o.exact("("+o.present()+" AND (", " AND "+o.sameText(c)+" OR "),
		o.exact("NOT ", " AND "+o.covers(c, value)+"))"))
	return o.judgement(is, may, not)
}

// judgement is that of a comparison, or of its opposite.
func (o labelled) judgement(is, may []edit, not bool) judged {
	if !not {
		return judged{slices.Concat(words("("+o.known()+" AND "), is, words(")")), may}
	}
	return judged{
		slices.Concat(words("("+o.known()+" AND NOT "), may, words(")")),
		slices.Concat(words("("+o.present()+" AND NOT "), is, words(")")),
	}
}

// sameText compares the value of a row with a constant, blanks at the end apart: the type
// character does not see them.
func (o labelled) sameText(c string) string {
	if o.Category != "S" {
		return o.value() + " = " + c
	}
	return "pg_catalog.rtrim(" + o.value() + ") = pg_catalog.rtrim(" + c + ")"
}

// plainCodes are the types of which two values are equal if their texts are.
var plainCodes = []string{"text", "character varying", "boolean", "smallint", "integer", "bigint"}

// isPrefix says that the column's hierarchy keeps the beginnings of codes.
func (o labelled) isPrefix() bool { return o.Hierarchy != nil && o.Hierarchy.Kind == "prefix" }

// covers says whether the label of a row, which is no value, covers a constant.
func (o labelled) covers(c, value string) string {
	switch {
	case o.isPrefix():
		kept := o.kept()
		return "pg_catalog.rtrim(pg_catalog.left(" + c + ", pg_catalog.length(" + kept + "))) = " +
			"pg_catalog.rtrim(" + kept + ")"
	case !slices.Contains(plainCodes, strings.SplitN(o.Type, "(", 2)[0]):
		return "true"
	}
	path, known := o.list[value]
	if !known {
		return "true"
	}
	labels := []string{literal("*")}
	for _, label := range path[1:] {
		labels = append(labels, literal(label))
	}
	return o.label() + " IN (" + strings.Join(labels, ", ") + ")"
}

// kept is what the label of a row says of the beginning of a code.
func (o labelled) kept() string { return "pg_catalog.rtrim(" + o.label() + ", '*')" }

// begins judges whether a code begins, or does not, with a prefix.
func (o labelled) begins(prefix string, not bool) judged {
	length := func(text string) string { return "pg_catalog.length(" + text + ")" }
	left := func(text, n string) string { return "pg_catalog.left(" + text + ", " + n + ")" }
	is := words("(" + left(o.kept(), length(prefix)) + " = " + prefix + ")")
	least := "LEAST(" + length(prefix) + ", " + length(o.kept()) + ")"
	may := o.exact("("+o.present()+" AND CASE WHEN ",
		" THEN "+left(o.value(), length(prefix))+" = "+prefix+
			" ELSE "+left(o.kept(), least)+" = "+left(prefix, least)+" END)")
	return o.judgement(is, may, not)
}
