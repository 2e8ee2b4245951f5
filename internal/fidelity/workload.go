package fidelity

import (
	"errors"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v5"
	"github.com/pganalyze/pg_query_go/v5/parser"
)

// Query is one statement of a workload.
type Query struct {
	Number int    // from 1
	Line   int    // of the file, on which the statement starts
	Name   string // the first line of the comment above it, or else its beginning
	SQL    string // without the semicolon
}

// nameLength bounds a name, in characters.
const nameLength = 80

// ReadWorkload splits a text at its semicolons. Empty statements count for nothing. What cannot
// be split because of a string that does not end, or the like, is one statement up to the end.
func ReadWorkload(text string) []Query {
	text = strings.TrimPrefix(text, "\ufeff")
	var out []Query
	w := &splitter{text: text, begin: -1}
	for _, t := range tokensOf(text) {
		switch {
		case t.Token == pg.Token_SQL_COMMENT || t.Token == pg.Token_C_COMMENT:
			w.comment(int(t.Start), int(t.End))
		case t.Token == pg.Token_ASCII_59:
			out = w.end(out, int(t.Start))
		case w.begin < 0:
			w.begin = int(t.Start)
		}
	}
	if w.begin >= 0 {
		out = w.end(out, len(text))
	}
	return out
}

// tokensOf scans a text as far as it can be scanned. Behind that a token stands for the rest.
func tokensOf(text string) []*pg.ScanToken {
	scanned, err := pg.Scan(text)
	if err == nil {
		return scanned.Tokens
	}
	var fault *parser.Error
	at := 0
	if errors.As(err, &fault) && fault.Cursorpos > 0 {
		at = byteOffset(text, fault.Cursorpos-1)
	}
	if scanned, err = pg.Scan(text[:at]); err != nil {
		at, scanned = 0, &pg.ScanResult{}
	}
	return append(
		scanned.Tokens,
		&pg.ScanToken{Token: pg.Token_IDENT, Start: int32(at), End: int32(len(text))},
	)
}

// byteOffset is where a number of characters ends.
func byteOffset(text string, characters int) int {
	at := 0
	for ; characters > 0 && at < len(text); characters-- {
		_, n := utf8.DecodeRuneInString(text[at:])
		at += n
	}
	return at
}

// splitter collects a statement and the comment above it.
type splitter struct {
	text    string
	begin   int // of the statement's first token, -1 before it
	number  int
	name    string
	nameEnd int // of the last comment of the block that the name begins
	ended   int // where the last statement ended
}

// comment notes a comment above a statement, not one behind the last statement on its line. A
// blank line between two of them starts another block.
func (w *splitter) comment(start, end int) {
	if w.begin >= 0 || w.ended > 0 && !strings.Contains(w.text[w.ended:start], "\n") {
		return
	}
	if w.name == "" || strings.Count(w.text[w.nameEnd:start], "\n") > 1 {
		words := strings.Trim(w.text[start:end], "-/* \t\r\n")
		w.name, _, _ = strings.Cut(words, "\n")
	}
	w.nameEnd = end
}

// end takes up a statement that ends at an offset.
func (w *splitter) end(out []Query, at int) []Query {
	if w.begin >= 0 {
		sql := strings.TrimSpace(w.text[w.begin:at])
		name := strings.TrimSpace(w.name)
		if name == "" || strings.Count(w.text[w.nameEnd:w.begin], "\n") > 1 {
			name = strings.Join(strings.Fields(sql), " ")
		}
		w.number++
		out = append(out, Query{
			Number: w.number, Line: 1 + strings.Count(w.text[:w.begin], "\n"),
			Name: shortened(name, nameLength), SQL: sql,
		})
	}
	w.begin, w.name, w.nameEnd, w.ended = -1, "", 0, at
	return out
}

// shortened cuts a text to a number of characters.
func shortened(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
