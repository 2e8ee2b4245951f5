package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/hiatus-tailor/tailor/anonymize/identify"
)

// errNoAnswer says that the input has ended before the last question.
var errNoAnswer = errors.New("the answers end before the last question")

// guide asks what the tables are, question after question.
type guide struct {
	*survey
	lines chan string // answers; closed when there are no more
	out   io.Writer
	// echo says that answers are no terminal's, which shows them by itself.
	echo bool
	// yes takes all defaults and asks nothing.
	yes   bool
	asked int
	// weigh measures what the settings would do.
	weigh    func(ctx context.Context, all []setting) ([][]effect, error)
	settings []setting
	chosen   int
	effects  [][]effect
}

// question is one thing that is asked.
type question struct {
	skip   func() bool                     // it does not matter by now
	show   func(ctx context.Context) error // what is above it
	prompt func() string
	help   string
	// take takes an answer, or complains.
	take func(answer string) (complaint string)
}

// readLines hands over an input line by line.
func readLines(in io.Reader) chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(in); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// say prints text, with anything that would move a cursor taken out: names of columns may hold
// it.
func (g *guide) say(format string, args ...any) {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, fmt.Sprintf(format, args...))
	_, _ = io.WriteString(g.out, text)
}

// run asks everything, or takes the defaults.
func (g *guide) run(ctx context.Context) error {
	questions := g.questions()
	for i := 0; i < len(questions); {
		if questions[i].skip() {
			i++
			continue
		}
		back, err := g.ask(ctx, &questions[i])
		switch {
		case err != nil:
			return err
		case back:
			i = g.before(questions, i)
		default:
			i++
		}
	}
	return nil
}

// before is the question before one, the first one if there is none.
func (g *guide) before(questions []question, i int) int {
	for j := i - 1; j >= 0; j-- {
		if !questions[j].skip() {
			return j
		}
	}
	g.say("  this is the first question\n")
	return i
}

// ask puts a question until it has an answer. back says that the one before is wanted.
func (g *guide) ask(ctx context.Context, q *question) (back bool, err error) {
	if err := q.show(ctx); err != nil {
		return false, err
	}
	for {
		answer, err := g.answer(ctx, q.prompt())
		if err != nil {
			return false, err
		}
		switch answer {
		case "b":
			return true, nil
		case "?":
			g.say("%s", q.help)
			continue
		}
		complaint := q.take(answer)
		if complaint == "" {
			return false, nil
		}
		g.say("  %s; ? has help\n", complaint)
	}
}

// answer reads one line; with yes it is empty.
func (g *guide) answer(ctx context.Context, prompt string) (string, error) {
	if g.yes {
		return "", nil
	}
	g.say("  %s: ", prompt)
	select {
	case <-ctx.Done():
		g.say("\n")
		return "", context.Cause(ctx)
	case line, more := <-g.lines:
		if !more {
			g.say("\n")
			return "", errNoAnswer
		}
		g.asked++
		line = strings.TrimSpace(line)
		if g.echo {
			g.say("%s\n", line)
		}
		return line, nil
	}
}

// questions are those about each table and its columns, and the one about settings.
func (g *guide) questions() []question {
	var all []question
	for i, t := range g.tables {
		all = append(all, g.aboutTable(i, t))
		for _, c := range t.columns {
			all = append(all, g.aboutColumn(t, c))
		}
	}
	return append(all, g.aboutSettings())
}

const tableHelp = `  A policy counts people, not rows: name the column that says whom
  a row is about.
  If several rows are of one person, that is the column that refers to the person.
    Enter   what stands in brackets
    COLUMN  another column
    x       leave the table out: the file says nothing of it, and Tailor does not protect it
    b       back to the question before
`

func (g *guide) aboutTable(i int, t *surveyedTable) question {
	return question{
		skip: func() bool { return false },
		show: func(context.Context) error {
			g.say("\n%s (table %d of %d)\n", t.measured(), i+1, len(g.tables))
			if t.leave && g.yes {
				g.say("  left out: %s\n", t.whyLeft())
			}
			return nil
		},
		prompt: func() string {
			if t.leave {
				return fmt.Sprintf("whom is a row about? COLUMN, or x to leave it out, "+
					"since %s [x]", t.whyLeft())
			}
			return fmt.Sprintf("whom is a row about? COLUMN, or x to leave it out [%s]",
				t.subject)
		},
		help: tableHelp,
		take: func(answer string) string { return t.takeSubject(answer) },
	}
}

// whyLeft is why a table is left out.
func (t *surveyedTable) whyLeft() string {
	switch {
	case t.open:
		return "everybody may read it"
	case t.subject == "":
		for _, k := range t.keys {
			if c := t.column(k.column); c.Missing > 0 {
				return fmt.Sprintf("%s, which would tell whom a row is about, is missing in some rows", c.Name)
			}
		}
		return "nothing tells whom a row is about"
	}
	return "as answered"
}

func (t *surveyedTable) takeSubject(answer string) (complaint string) {
	switch answer {
	case "":
		return ""
	case "x":
		t.leave = true
		return ""
	}
	c := t.column(answer)
	switch {
	case c == nil:
		return fmt.Sprintf("there is no column %q", answer)
	case c.Missing > 0:
		return fmt.Sprintf("%s is missing in %.1f %% of the rows", c.Name, c.MissingPercent())
	}
	if c.Name != t.subject {
		for _, other := range t.columns {
			other.answer = 0
		}
	}
	t.setSubject(c.Name)
	return ""
}

// wordOf says what a letter means, in a few words.
var wordOf = map[byte]string{
	asQuasiIdentifier: "quasi-identifier", asSensitive: "sensitive", asKept: "keep", asHidden: "hide",
	asCodes: "codes",
}

const columnHelp = `    Enter  what stands in brackets
    q      quasi-identifier: others may know it of a person; shown generalized, until k people
           cannot be told apart
    s      sensitive: nobody is to learn it of a person; shown as it is, and each block of
           people has several values
    k      keep: neither identifies a person nor is sensitive; shown as it is
    h      hide: names a person, or is not to be seen
    c      codes, of which a person has a set, such as diagnoses: published so that several of
           them known of somebody do not tell the others; all other columns are hidden
    b      back to the question before
  When in doubt: q hides more than s, and s more than k.
`

func (g *guide) aboutColumn(t *surveyedTable, c *surveyedColumn) question {
	return question{
		skip: func() bool {
			set := t.set()
			return t.leave || c.Name == t.subject || set != nil && set != c && set.answer != 0
		},
		show: func(context.Context) error {
			if !g.yes {
				g.say("%s", t.about(c))
			}
			return nil
		},
		prompt: func() string {
			letters := "q, s, k, h"
			if t.repeats() && c.isCode() {
				letters += ", c"
			}
			return fmt.Sprintf("%s [%c]", letters, c.choice())
		},
		help: columnHelp,
		take: func(answer string) string { return t.take(c, strings.ToLower(answer)) },
	}
}

// about says what is known of a column.
func (t *surveyedTable) about(c *surveyedColumn) string {
	typed := c.Type
	if typed != "" {
		typed = " " + typed
	}
	text := fmt.Sprintf("  %s%s: %d values, %.1f %% of the rows have one of their "+
		"own, %.1f %% missing\n", c.Name, typed, c.Distinct, c.singles, c.MissingPercent())
	text += fmt.Sprintf("    %c, %s (%s confidence): %s\n",
		c.suggested, wordOf[c.suggested], c.says.Confidence, c.reason())
	if c.suggested == asQuasiIdentifier {
		text += fmt.Sprintf("    generalized by %s\n", c.hierarchy)
	}
	for _, d := range t.dependencies {
		if d.From == c.Name {
			text += fmt.Sprintf("    it tells %s, with %.2f %% exceptions\n", d.To, d.Exceptions)
		}
	}
	return text
}

func (t *surveyedTable) take(c *surveyedColumn, answer string) (complaint string) {
	if answer == "" {
		c.answer = c.choice()
		return ""
	}
	if len(answer) > 1 {
		return "answer with one of the letters"
	}
	if complaint := t.complaint(c, answer[0]); complaint != "" {
		return complaint
	}
	c.answer, c.uncovered = answer[0], ""
	return ""
}

// complaint says why a column cannot have a class, "" if it can.
func (t *surveyedTable) complaint(c *surveyedColumn, letter byte) string {
	switch {
	case classOf[letter] == identify.Unclassified:
		return "answer with one of the letters"
	case letter == asQuasiIdentifier && c.hierarchy == nil:
		return c.lack() + ": s, k or h"
	case letter == asCodes && !c.isCode():
		return fmt.Sprintf("values of type %s are no codes", c.Type)
	case letter == asCodes && !t.repeats():
		return "each " + t.subject + " has one row, and no set"
	}
	return ""
}

const settingsHelp = `    Enter  what stands in brackets
    1, 2…  the setting of that number
    b      back to the question before
  K is how many people cannot be told apart, L how many values of a sensitive column each of
  their blocks has. LOSS is how much less exact values are if everything is asked for, from
  0 % (as stored) to 100 % (withheld). HIGHEST RISK is the chance to recognize a person.
`

func (g *guide) aboutSettings() question {
	return question{
		skip: func() bool { return false },
		show: func(ctx context.Context) (err error) {
			if g.effects, err = g.weigh(ctx, g.settings); err != nil {
				return err
			}
			g.say("\nwhat settings would lose and risk on this data:\n")
			var table strings.Builder
			if err := writeEffects(&table, g.settings, g.effects); err != nil {
				return err
			}
			g.say("%s", table.String())
			g.sayHidden()
			return nil
		},
		prompt: func() string {
			return fmt.Sprintf("which one? 1 to %d [%d]", len(g.settings), g.chosen+1)
		},
		help: settingsHelp,
		take: func(answer string) string {
			if answer == "" {
				return ""
			}
			n, err := strconv.Atoi(answer)
			if err != nil || n < 1 || n > len(g.settings) {
				return fmt.Sprintf("answer with a number from 1 to %d", len(g.settings))
			}
			g.chosen = n - 1
			return ""
		},
	}
}

// sayHidden names the columns that had to be hidden.
func (g *guide) sayHidden() {
	for _, t := range g.tables {
		for _, c := range t.columns {
			if c.uncovered != "" {
				g.say("  %s.%s is hidden: %s\n", t.name, c.Name, c.uncovered)
			}
		}
	}
}
