package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/hiatus-tailor/tailor/anonymize"
)

// dictionary is how a release stores what it shows of one dimension: the labels
// by their numbers, and the number of each row's label. The number is spread over
// strings of bytes, with a byte for each row, which PostgreSQL reads without a
// walk; so it does arrays of values of a fixed length that hold no NULL.
//
// Labels are names, PostgreSQL's text of a fixed length, or JSON where some are
// too long for a name: an element of text[] is found by walking there.
type dictionary struct {
	column *Column
	bytes  int  // of a number
	named  bool // every label of the hierarchy fits a name
	listed bool // the labels are asked for by their numbers
}

// dictionariesOf are those of a relation's dimensions, for all states of a chain
// over an epoch. Means can be as many as blocks, and blocks as tuples.
func dictionariesOf(r *Relation, s *state) []dictionary {
	own := len(r.QuasiIdentifiers())
	var out []dictionary
	for i, q := range r.Dimensions() {
		h := s.hierarchy(i)
		nodes, named := 0, true
		for level := range h.Height() {
			nodes += h.Groups(level)
			for group := range uint32(h.Groups(level)) {
				named = named && fitsName(h.Label(anonymize.Node{Level: level, Group: group}))
			}
		}
		if s.means[i] != nil {
			nodes += s.partition.Table().Tuples()
		}
		d := dictionary{column: q, bytes: 1, named: named, listed: i < own && r.Numbers(q)}
		for nodes >>= 8; nodes > 0; nodes >>= 8 {
			d.bytes++
		}
		out = append(out, d)
	}
	return out
}

// fixed are the types whose values have one length, as format_type prints them.
var fixed = []string{
	"smallint", "integer", "bigint", "real", "double precision", "date", "timestamp without time zone", "timestamp with time zone",
}

// isFixed says whether the values that releases show of the column have one length.
func (c *Column) isFixed() bool { return slices.Contains(fixed, c.ReleaseType()) }

// isText says that the column shows its labels themselves.
func (d dictionary) isText() bool { return d.column.Category == "S" }

// isFixed says that the values are stored as an array.
func (d dictionary) isFixed() bool {
	return !d.isText() && d.column.isFixed()
}

// isJoined says that the values are stored as rows, to be joined.
func (d dictionary) isJoined() bool { return !d.isText() && !d.isFixed() }

// own names a column of the chain's tables, or what a view calls a part.
func (d dictionary) own(part string) string {
	return ident(fmt.Sprintf("tailor %s %d", part, d.column.Number))
}

// byteColumns are the names of the strings of bytes, the lowest byte first.
func (d dictionary) byteColumns() []string {
	var out []string
	for i := range d.bytes {
		out = append(out, d.own(fmt.Sprintf("byte %d", i)))
	}
	return out
}

// plain are the columns that are to be stored as they are in memory.
func (d dictionary) plain() []string {
	out := d.byteColumns()
	if d.named {
		out = append(out, d.own("names"))
	}
	if d.isFixed() {
		out = append(out, d.own("values"))
	}
	return out
}

// definitions define the dictionary's columns in the table of the chain's rows, in
// the order of [entries.row].
func (d dictionary) definitions() []string {
	var out []string
	for _, c := range d.byteColumns() {
		out = append(out, c+" bytea NOT NULL")
	}
	if d.named {
		out = append(out, d.own("names")+" name[] NOT NULL")
	}
	if !d.named || d.listed {
		out = append(out, ident(d.column.LabelColumn())+" jsonb NOT NULL")
	}
	if d.isFixed() {
		out = append(out, fmt.Sprintf("%s %s[] NOT NULL", d.own("values"), d.column.ReleaseType()))
	}
	return out
}

// inMemory is a subquery for a column of the chain's row, made plain by a function
// that appends nothing to it.
func inMemory(chain int, function, column, nothing string) string {
	return fmt.Sprintf("(SELECT pg_catalog.%s(%s, %s) FROM tailor_store.chain_%d_row)", function, column, nothing, chain)
}

// read is the number of a row's label, computed from the bytes.
func (d dictionary) read(chain int) string {
	var parts []string
	for i, c := range d.byteColumns() {
		part := fmt.Sprintf("pg_catalog.get_byte(%s, %s)", inMemory(chain, "byteacat", c, "''"), rowColumn)
		if i > 0 {
			part += fmt.Sprintf(" * %d", 1<<(8*i))
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " + ")
}

// number is that number, where a view has read it.
func (d dictionary) number() string { return "e." + d.own("number") }

// found is the label by its number, NULL for none.
func (d dictionary) found(chain int) string {
	if d.named {
		return fmt.Sprintf(`(%s[%s])::text COLLATE pg_catalog."default"`, inMemory(chain, "array_cat", d.own("names"), "'{}'::name[]"), d.number())
	}
	return fmt.Sprintf(`%s OPERATOR(pg_catalog.->>) %s`, inMemory(chain, "jsonb_concat", ident(d.column.LabelColumn()), "'[]'"), d.number())
}

// label is the label of a row. The label of a text is its value, or NULL's.
func (d dictionary) label(chain int) string {
	if d.isText() {
		return fmt.Sprintf("COALESCE(%s, '%s')", d.found(chain), anonymize.Null)
	}
	return d.found(chain)
}

// value is the value of the column's own type that a row shows. One that is joined
// asks for the row: by itself it would be shown to a reader's own function before any
// row is admitted.
func (d dictionary) value(chain int) string {
	switch {
	case d.isText():
		return d.found(chain)
	case d.isFixed():
		return fmt.Sprintf("%s[%s]", inMemory(chain, "array_cat", d.own("values"), fmt.Sprintf("'{}'::%s[]", d.column.ReleaseType())), d.number())
	}
	return fmt.Sprintf("CASE WHEN e.%s >= 0 THEN %s.%s END", rowColumn, d.own("value"), ident(d.column.storedName()))
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
