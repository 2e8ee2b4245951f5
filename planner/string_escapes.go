package planner

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v5"
)

// escapeBackslashes writes every string that holds a backslash as an E'…' one.
// What a backslash means in a plain string depends on
// standard_conforming_strings in the session, at the moment when the server
// reads the text; the parser here takes it to be on. A server that read "\'"
// as a quote would see other statements than the one that was planned.
func (r *Rewritten) escapeBackslashes() {
	if !strings.Contains(r.SQL, `\`) {
		return
	}
	scanned, err := pg.Scan(r.SQL)
	if err != nil {
		// It was made of texts that could be split: if it cannot, an empty one
		// discloses nothing.
		r.SQL, r.parts = "", nil
		return
	}
	var sql strings.Builder
	var parts []part
	from := 0
	// copyTo copies what stands before an offset, with the parts that it is of.
	copyTo := func(to int) {
		parts = append(parts, r.partsOf(from, to, sql.Len())...)
		sql.WriteString(r.SQL[from:to])
		from = to
	}
	for _, t := range scanned.Tokens {
		start, end := int(t.Start), int(t.End)
		if t.Token != pg.Token_SCONST || r.SQL[start] != '\'' ||
			!strings.Contains(r.SQL[start:end], `\`) {
			continue
		}
		copyTo(start)
		sql.WriteString(" E")
		for i := start; i < end; i++ {
			if r.SQL[i] == '\\' {
				copyTo(i)
				sql.WriteByte('\\')
			}
		}
		copyTo(end)
	}
	copyTo(len(r.SQL))
	r.SQL, r.parts = sql.String(), parts
}

// partsOf are the parts of the bytes [from, to), as they are when they stand
// from at onward.
func (r *Rewritten) partsOf(from, to, at int) []part {
	var parts []part
	for i, p := range r.parts {
		end := len(r.SQL)
		if i+1 < len(r.parts) {
			end = r.parts[i+1].at
		}
		start := max(p.at, from)
		if start >= min(end, to) {
			continue
		}
		moved := part{at: at + start - from, source: p.source, copied: p.copied}
		if p.copied {
			moved.source += start - p.at
		}
		parts = append(parts, moved)
	}
	return parts
}
