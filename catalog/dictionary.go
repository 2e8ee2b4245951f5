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
// labels that came together are in order, those with a value first. The number of NULL,
// which has no label, is 0.
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
	revised bool             // what is lost by one of these is more than it has
}

// entry is a label with the value that stands for it, if any, the ends of what it covers,
// if it is of a measured domain, and what is lost where a cell shows it. That of NULL has
// no label.
type entry struct {
	label, value string
	valued       bool
	low, high    string
	bounded      bool
	lost         ecg.Label
}

// shown is an entry without what is lost by it: two nodes of one label and value are
// shown alike.
func (e entry) shown() entry { return entry{label: e.label, value: e.value, valued: e.valued} }

// isNull says that the entry stands for NULL.
func (e entry) isNull() bool { return e.label == "" && !e.valued }

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
	if first, last := h.Range(node); first == last && isNullOf(h, first) {
		return entry{lost: ecg.Label{Exact: true}}
	}
	e := entry{label: h.Label(node), lost: ecg.Label{Share: h.Share(node), Exact: node.Level == 0}}
	e.value, e.valued = released(q, h, node)
	e.low, e.high, e.bounded = h.Bounds(node)
	return e
}

// ends is what is lost by an entry, with the ends of what it covers.
func (e entry) ends() ecg.Label {
	l := e.lost
	low, known := ecg.Coordinate(e.low)
	high, bounded := ecg.Coordinate(e.high)
	if e.bounded && known && bounded {
		l.Low, l.High, l.Bounded = low, high, true
	}
	return l
}

// newDictionaries are empty ones of a relation's dimensions.
func newDictionaries(r *Relation) []*dictionary {
	own := len(r.QuasiIdentifiers())
	var out []*dictionary
	for i, q := range r.Dimensions() {
		out = append(out, &dictionary{column: q, named: true, listed: i < own &&
			r.Numbers(q), numbers: make(map[entry]uint32)})
	}
	return out
}

// add numbers those entries that the dictionary has not. Of those that it has, as much is
// lost as by any node that is shown so. It says whether what there is of the release has
// room for them.
func (d *dictionary) add(entries []entry) bool {
	fits := true
	fresh := make(map[entry]entry)
	for _, e := range entries {
		if e.isNull() {
			continue
		}
		if n := int(d.numbers[e.shown()]); n != 0 {
			if known := &d.entries[n-1]; known.lost != mostOf(known.lost, e.lost) {
				known.lost = mostOf(known.lost, e.lost)
				d.revised = d.revised || n <= d.stored
			}
			continue
		}
		if known, twice := fresh[e.shown()]; twice {
			e.lost = mostOf(known.lost, e.lost)
		}
		fresh[e.shown()] = e
	}
	var more []entry
	for _, e := range fresh {
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

// mostOf is what is lost where a cell may show one label or another.
func mostOf(x, y ecg.Label) ecg.Label {
	return ecg.Label{Share: max(x.Share, y.Share), Exact: x.Exact && y.Exact}
}

// number is that of an entry, which the dictionary has.
func (d *dictionary) number(e entry) int { return int(d.numbers[e.shown()]) }

func isNullOf(h *anonymize.Hierarchy, leaf uint32) bool {
	null, ok := h.NullCode()
	return ok && leaf == null
}

// released is the value of the column's own type that stands for a node, by which rows
// are sorted that show labels: the label for text, the value itself for a leaf, the
// middle of a range for numbers and dates, and nothing where the type has no such value.
// Where values are not drawn, it is what rows show.
func released(q *Column, h *anonymize.Hierarchy, node anonymize.Node) (string, bool) {
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
	"smallint", "integer", "bigint", "real", "double precision", "date", "timestamp without time zone",
	"timestamp with time zone",
}

// isFixed says whether the values that releases show of the column have one length.
func (c *Column) isFixed() bool { return slices.Contains(fixed, c.ReleaseType()) }

// isFixed says that the values by their numbers are an array.
func (d *dictionary) isFixed() bool { return d.column.Category != "S" && d.column.isFixed() }

// IsMeasured says that labels of the column have ends, which are values of its type.
func (c *Column) IsMeasured() bool {
	return c.Category != "S" && c.Hierarchy != nil &&
		(c.Hierarchy.Kind == "interval" || c.Hierarchy.Kind == "date")
}

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
	array := func(part, of, typ string) {
		out = append(out, list{d.own(part), typ + "[]", true, fmt.Sprintf("coalesce(array_agg(%s::%s "+
			"ORDER BY number), '{}')", of, typ)})
	}
	if d.named {
		array("names", "label", "name")
	}
	if !d.named || d.listed {
		out = append(out, list{
			ident(d.column.LabelColumn()), "jsonb", false,
			"'[null]'::jsonb || coalesce(jsonb_agg(label ORDER BY number), '[]')",
		})
	}
	if !d.listed {
		return out
	}
	array("exact", "exact", "boolean")
	if d.isFixed() {
		array("values", "value", d.column.ReleaseType())
	}
	if d.column.IsMeasured() {
		array("low", "low", d.column.ReleaseType())
		array("high", "high", d.column.ReleaseType())
	}
	return out
}

// inMemory is a subquery for a list, made plain by a function that appends
// nothing to it.
func inMemory(release, function, column, nothing string) string {
	return fmt.Sprintf("(SELECT pg_catalog.%s(%s, %s) FROM tailor_store.%s_label)", function, column,
		nothing, release)
}

// label is the label of a row, NULL for NULL.
func (d *dictionary) label(release string) string {
	number := "e." + d.own("number")
	if d.named {
		return fmt.Sprintf(`(%s[%s])::text COLLATE pg_catalog."default"`,
			inMemory(release, "array_cat", d.own("names"), "'{}'::name[]"), number)
	}
	return fmt.Sprintf(`%s OPERATOR(pg_catalog.->>) %s::integer`,
		inMemory(release, "jsonb_concat", ident(d.column.LabelColumn()), "'[]'"), number)
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
