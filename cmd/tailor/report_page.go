package main

import (
	"bytes"
	_ "embed"
	"fmt"
	htmltemplate "html/template"
	"io"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

//go:embed report.html.tmpl
var reportHTML string

//go:embed report.md.tmpl
var reportMarkdown string

// page is a report in words, before it has a form: texts that nothing has been escaped in.
type page struct {
	Title    string
	Lead     []string
	Chapters []*chapter
}

// chapter has a heading of its own, in the table of contents if Level is 2.
type chapter struct {
	Title  string
	Level  int
	Blocks []block
}

// block is one of its fields.
type block struct {
	Text  string
	Alarm string // a text that must not be overlooked
	Code  string
	Items []string
	Table *grid
}

// grid is a table; cells of numeric columns stand to the right.
type grid struct {
	Head []heading
	Rows [][]string
}

type heading struct {
	Name    string
	Numeric bool
}

// ID is the anchor of a chapter of level 2, whose titles are the report's own words.
func (c *chapter) ID() string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(c.Title))
}

func (p *page) chapter(title string) *chapter { return p.add(2, title) }

func (p *page) part(title string) *chapter { return p.add(3, title) }

func (p *page) add(level int, title string) *chapter {
	c := &chapter{Title: title, Level: level}
	p.Chapters = append(p.Chapters, c)
	return c
}

func (c *chapter) say(format string, args ...any) {
	c.Blocks = append(c.Blocks, block{Text: fmt.Sprintf(format, args...)})
}

func (c *chapter) warn(format string, args ...any) {
	c.Blocks = append(c.Blocks, block{Alarm: fmt.Sprintf(format, args...)})
}

func (c *chapter) code(text string) { c.Blocks = append(c.Blocks, block{Code: text}) }

func (c *chapter) list(items ...string) {
	if len(items) > 0 {
		c.Blocks = append(c.Blocks, block{Items: items})
	}
}

// table begins one; names of numeric columns end in #.
func (c *chapter) table(names ...string) *grid {
	g := &grid{}
	for _, name := range names {
		plain, numeric := strings.CutSuffix(name, "#")
		g.Head = append(g.Head, heading{plain, numeric})
	}
	c.Blocks = append(c.Blocks, block{Table: g})
	return g
}

func (g *grid) row(cells ...string) { g.Rows = append(g.Rows, cells) }

// asHTML has no scripts, and asks for nothing else.
func (p *page) asHTML(w io.Writer) error {
	t, err := htmltemplate.New("report").Funcs(htmltemplate.FuncMap{
		"line": oneLine, "long": isLong, "name": breakable,
	}).Parse(reportHTML)
	if err != nil {
		return err
	}
	return t.Execute(w, p)
}

func (p *page) asMarkdown(w io.Writer) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"text": escapeMarkdown,
		"code": func(s string) string {
			return "`" + strings.ReplaceAll(oneLine(s), "`", "'") + "`"
		},
		"hashes": func(level int) string { return strings.Repeat("#", level) },
	}).Parse(reportMarkdown)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	_, err = b.WriteTo(w)
	return err
}

// breakable is a text that a line may end in behind the dots and underscores of names: a
// table is as wide as its longest parts of names. No entity has either.
func breakable(s string) htmltemplate.HTML {
	escaped := htmltemplate.HTMLEscapeString(oneLine(s))
	return htmltemplate.HTML(strings.NewReplacer(".", ".<wbr/>", "_", "_<wbr/>").Replace(escaped))
}

// longest is how many characters a line of a cell is not to end in.
const longest = 20

// isLong is whether a part of a name has more, so that a page might be too narrow.
func isLong(s string) bool {
	return slices.ContainsFunc(strings.FieldsFunc(s, func(r rune) bool {
		return r == '.' || r == '_' || unicode.IsSpace(r)
	}), func(part string) bool { return utf8.RuneCountInString(part) > longest })
}

// oneLine is a text without control characters, in one line.
func oneLine(s string) string { return printable(strings.Join(strings.Fields(s), " ")) }

// escapeMarkdown keeps a text from ending its cell, or its line, in Markdown, and from
// being taken for markup.
func escapeMarkdown(s string) string {
	return strings.NewReplacer("|", `\|`, "`", "'", "&", "&amp;", "<", "&lt;", "[", `\[`,
		"*", `\*`, "_", `\_`, "~", `\~`, "#", `\#`, "\\", `\\`).Replace(oneLine(s))
}

func day(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// waits says how many wait, and since when.
func (w waitingSubjects) String() string {
	if w.Subjects == 0 || w.Since == nil {
		return fmt.Sprint(w.Subjects)
	}
	return fmt.Sprintf("%d since %s", w.Subjects, day(*w.Since))
}

func riskFigure(v float64) string { return fmt.Sprintf("%.3f", v) }
