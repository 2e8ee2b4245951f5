package planner

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"

	"github.com/hiatus-tailor/tailor/catalog"
	"github.com/hiatus-tailor/tailor/internal/sqlstate"
)

// source is a text that is being planned, with the edits to it: the client's
// own, or the definition of a view that stands in it.
type source struct {
	statement string
	tokens    []*pg.ScanToken // without comments
	edits     []edit
	// trailing are insertions that come behind all others at their offset, each
	// of them inside of those before it.
	trailing  []edit
	fragments conditionTexts
}

// finish puts the edits in the order in which they are applied.
func (s *source) finish() {
	slices.Reverse(s.trailing)
	s.edits = append(s.edits, s.trailing...)
	s.trailing, s.tokens, s.fragments = nil, nil, conditionTexts{}
	slices.SortStableFunc(s.edits, func(x, y edit) int { return x.start - y.start })
}

// within makes another text the one that offsets and edits are about.
func (b *binder) within(s *source, do func() error) error {
	was := b.source
	b.source = s
	err := do()
	b.source = was
	return err
}

// insert adds text at an offset.
func (b *binder) insert(at int, text string) error { return b.replace(at, at, text) }

// replace puts text in place of the bytes [start, end).
func (b *binder) replace(start, end int, text string) error {
	return b.edit(edit{start: start, end: end, text: text})
}

// edit notes an edit while the rewritten text stays within its limit.
func (b *binder) edit(e edit) error {
	if err := b.grow(len(e.text) + releaseBytes); err != nil {
		return err
	}
	b.edits = append(b.edits, e)
	return nil
}

// editAt puts parts of a text at an offset, one behind the other.
func (b *binder) editAt(at int, parts []edit) error {
	for _, e := range parts {
		e.start, e.end = at, at
		if err := b.edit(e); err != nil {
			return err
		}
	}
	return nil
}

// trail notes an insertion that closes what others at its offset are inside of.
func (b *binder) trail(at int, text string) error {
	if err := b.grow(len(text)); err != nil {
		return err
	}
	b.trailing = append(b.trailing, edit{start: at, end: at, text: text})
	return nil
}

// grow counts bytes of the rewritten text, over all texts together.
func (b *binder) grow(bytes int) error {
	if b.bytes += bytes; b.bytes > maxRewrittenBytes {
		return sqlstate.New(sqlstate.ProgramLimitExceeded,
			"the statement over releases is too long (at most %d bytes)", maxRewrittenBytes).
			WithHint("Name the columns that are needed.")
	}
	return nil
}

// write appends the text with its edits applied and says which bytes of out
// stand for which of the source.
func (s *source) write(out *strings.Builder, release func(*catalog.Relation) string) []part {
	var parts []part
	from := 0
	for _, e := range s.edits {
		parts = append(parts, part{at: out.Len(), source: from, copied: true})
		out.WriteString(s.statement[from:e.start])
		parts = append(parts, part{at: out.Len(), source: e.start})
		// Blanks keep the new text from growing together with its neighbours.
		out.WriteByte(' ')
		switch {
		case e.literal:
			out.WriteString("'tailor_release." + release(e.relation) + "'")
		case e.relation != nil:
			out.WriteString("tailor_release.")
			out.WriteString(e.viewOf(release(e.relation)))
		case e.view != nil:
			out.WriteByte('(')
			e.view.write(out, release)
			out.WriteByte(')')
		}
		out.WriteString(e.text)
		out.WriteByte(' ')
		from = e.end
	}
	parts = append(parts, part{at: out.Len(), source: from, copied: true})
	out.WriteString(s.statement[from:])
	return parts
}

// viewOf is the view of a release that the edit puts in place.
func (e *edit) viewOf(release string) string {
	switch {
	case e.parent:
		return catalog.ParentView(release)
	case e.family:
		return catalog.FamilyView(release)
	case e.labels:
		return catalog.LabelView(release)
	}
	return release
}
