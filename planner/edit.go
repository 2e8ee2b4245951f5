package planner

import (
	"strings"

	"github.com/hiatus-tailor/tailor/catalog"
)

// edit replaces the bytes [start, end) of a text by text. Before it may stand
// the name of a relation's release, as a literal if asked for, or a view's
// definition in parentheses.
type edit struct {
	start, end int
	relation   *catalog.Relation
	literal    bool
	parent     bool // what the release shows of the relation's parent
	family     bool // the release with the numbers of its subjects
	labels     bool // the labels of the release by their numbers
	view       *source
	text       string
}

// Rewritten is a statement over releases, with the way back to the client's
// own text.
type Rewritten struct {
	SQL   string
	parts []part
}

// part says that rewritten bytes from at onward stand for source bytes from
// source onward; copied tells an unchanged run from inserted text.
type part struct {
	at, source int
	copied     bool
}

// Rewrite applies the plan's edits. release names the view, in schema
// tailor_release, that stands for a protected relation.
func (p *Plan) Rewrite(release func(*catalog.Relation) string) *Rewritten {
	var sql strings.Builder
	sql.Grow(len(p.text.statement) + 256)
	r := &Rewritten{parts: p.text.write(&sql, release)}
	r.SQL = sql.String()
	r.escapeBackslashes()
	return r
}

// Position maps a character position of the rewritten statement, counted from
// 1 as PostgreSQL reports it, to the client's statement. A position inside
// inserted text maps to the place of the insertion.
func (r *Rewritten) Position(position int, statement string) int {
	offset := byteOffset(r.SQL, position)
	source := 0
	for _, p := range r.parts {
		if p.at > offset {
			break
		}
		source = p.source
		if p.copied {
			source += offset - p.at
		}
	}
	return len([]rune(statement[:min(source, len(statement))])) + 1
}

// byteOffset is the offset of the character at a position counted from 1.
func byteOffset(s string, position int) int {
	for offset := range s {
		if position--; position == 0 {
			return offset
		}
	}
	return len(s)
}

// quoted writes an identifier in double quotes.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
