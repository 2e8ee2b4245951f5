package catalog

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hiatus-tailor/tailor/anonymize"
	"github.com/hiatus-tailor/tailor/ecg"
)

// dictionary is what a release shows of one dimension: the labels of its blocks,
// with the values that stand for them. The number of a label is its place, from 1:
// labels that came together are in order, those with a value first. Where a text is
// NULL its number is 0.
//
// A list of labels is PostgreSQL's name[], text of a fixed length that is found
// without a walk, or JSON where some label of the hierarchy is too long for a name.
type dictionary struct {
	column  *Column
	named   bool // every label fits a name
	wide    bool // numbers are integers of four bytes
	listed  bool // labels and values are asked for by their numbers
	entries []entry
	numbers map[entry]uint32 // of what is shown
	stored  int              // entries that the release has already
}

// entry is a label with the value that stands for it, if any, and with what is lost
// where a cell shows it.
type entry struct {
	label, value string
	valued       bool
	lost         ecg.Label
}

// shown is an entry without what is lost by it: two nodes of one label and value are
// shown alike.
func (e entry) shown() entry { return entry{label: e.label, value: e.value, valued: e.valued} }

// compare orders entries as a dictionary holds them.
func (e entry) compare(o entry) int {
	switch {
	case e.valued && !o.valued:
		return -1
	case o.valued && !e.valued:
		return 1
	}
	return cmp.Or(strings.Compare(e.label, o.label), strings.Compare(e.value, o.value))
}

// entryOf is what a column shows of a node.
func entryOf(q *Column, h *anonymize.Hierarchy, node anonymize.Node) entry {
	e := entry{label: h.Label(node), lost: ecg.Label{Share: h.Share(node), Exact: node.Level == 0}}
	e.value, e.valued = released(q, h, node)
	return e
}

// newDictionaries are empty ones of a relation's dimensions.
func newDictionaries(r *Relation) []*dictionary {
	own := len(r.QuasiIdentifiers())
	var out []*dictionary
	for i, q := range r.Dimensions() {
		out = append(out, &dictionary{column: q, named: true, listed: i < own && r.Numbers(q), numbers: make(map[entry]uint32)})
	}
	return out
}

// add numbers those entries that the dictionary has not. It says whether what there
// is of the release has room for them.
func (d *dictionary) add(entries []entry) bool {
	fits := true
	lost := make(map[entry]ecg.Label)
	for _, e := range entries {
		if d.numbers[e.shown()] != 0 || d.isText() && !e.valued {
			continue
		}
		known, twice := lost[e.shown()]
		if twice {
			e.lost = ecg.Label{Share: max(e.lost.Share, known.Share), Exact: e.lost.Exact && known.Exact}
		}
		lost[e.shown()] = e.lost
	}
	var more []entry
	for e, l := range lost {
		e.lost = l
		more = append(more, e)
		if d.named && !fitsName(e.label) {
			d.named, fits = false, false
		}
	}
	slices.SortFunc(more, entry.compare)
	for _, e := range more {
		d.entries = append(d.entries, e)
		d.numbers[e.shown()] = uint32(len(d.entries))
	}
	if !d.wide && len(d.entries) > math.MaxInt16 {
		d.wide, fits = true, false
	}
	return fits
}

// number is that of an entry, which the dictionary has.
func (d *dictionary) number(e entry) int { return int(d.numbers[e.shown()]) }

// released is the value of the column's own type that stands for a node: the
// label for text, the value itself for a leaf, the middle of a range for
// numbers and dates, and nothing (NULL) where the type has no such value.
func released(q *Column, h *anonymize.Hierarchy, node anonymize.Node) (string, bool) {
	if null, ok := h.NullCode(); ok {
		if first, last := h.Range(node); first == null && last == null {
			return "", false
		}
	}
	if q.Category == "S" {
		return h.Label(node), true
	}
	if node.Level == 0 || q.Hierarchy.Kind == "interval" || q.Hierarchy.Kind == "date" {
		return h.Representative(node)
	}
	return "", false
}

// fixed are the types whose values have one length, as format_type prints them.
var fixed = []string{
	"smallint", "integer", "bigint", "real", "double precision", "date", "timestamp without time zone", "timestamp with time zone",
}

// isFixed says whether the values that releases show of the column have one length.
func (c *Column) isFixed() bool { return slices.Contains(fixed, c.ReleaseType()) }

// isText says that the column shows its labels themselves.
func (d *dictionary) isText() bool { return d.column.Category == "S" }

// isFixed says that the values by their numbers are an array.
func (d *dictionary) isFixed() bool { return !d.isText() && d.column.isFixed() }

// own names a column of the release's tables.
func (d *dictionary) own(part string) string {
	return ident(fmt.Sprintf("tailor %s %d", part, d.column.Number))
}

// numberType is the type of the labels' numbers.
func (d *dictionary) numberType() string {
	if d.wide {
		return "integer"
	}
	return "smallint"
}

// list is a column of the one row of lists, with what it is made of.
type list struct {
	column, typ string
	plain       bool   // to be stored as it is in memory
	aggregate   string // over the entries
}

// lists are those of the dictionary.
func (d *dictionary) lists() []list {
	var out []list
	if d.named {
		out = append(out, list{d.own("names"), "name[]", true, "coalesce(array_agg(label::name ORDER BY number), '{}')"})
	}
	if !d.named || d.listed {
		out = append(out, list{ident(d.column.LabelColumn()), "jsonb", false, "'[null]'::jsonb || coalesce(jsonb_agg(label ORDER BY number), '[]')"})
	}
	if d.listed && d.isFixed() {
		out = append(out, list{
			d.own("values"), d.column.ReleaseType() + "[]", true,
			fmt.Sprintf("coalesce(array_agg(value::%s ORDER BY number), '{}')", d.column.ReleaseType()),
		})
	}
	return out
}

// inMemory is a subquery for a list, made plain by a function that appends
// nothing to it.
func inMemory(release, function, column, nothing string) string {
	return fmt.Sprintf("(SELECT pg_catalog.%s(%s, %s) FROM tailor_store.%s_label)", function, column, nothing, release)
}

// label is the label of a row. The label of a text is its value, or NULL's.
func (d *dictionary) label(release string) string {
	switch number := "e." + d.own("number"); {
	case d.isText():
		return fmt.Sprintf("COALESCE(e.%s, '%s')", d.own("value"), anonymize.Null)
	case d.named:
		return fmt.Sprintf(`(%s[%s])::text COLLATE pg_catalog."default"`, inMemory(release, "array_cat", d.own("names"), "'{}'::name[]"), number)
	default:
		return fmt.Sprintf(`%s OPERATOR(pg_catalog.->>) %s::integer`, inMemory(release, "jsonb_concat", ident(d.column.LabelColumn()), "'[]'"), number)
	}
}

// longestName is the most bytes that PostgreSQL's type name holds.
const longestName = 63

// fitsName says whether a label is certain to fit a name, in any encoding.
func fitsName(label string) bool {
	if len(label) > longestName {
		return false
	}
	runes := utf8.RuneCountInString(label)
	return runes == len(label) || runes*utf8.UTFMax <= longestName
}
