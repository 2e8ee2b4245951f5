package ecg

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// width is that of a terminal, in characters.
const width = 80

// Text is the account as lines of at most 80 characters, two a stage, with the
// candidates below where there are some.
func (e *Explanation) Text() []string {
	if len(e.Tables) == 0 {
		return []string{"No protected table: the query passes as it is."}
	}
	var lines []string
	for i := range e.Tables {
		lines = append(lines, e.Tables[i].text()...)
	}
	return lines
}

func (t *ExplainedTable) text() []string {
	lines := []string{cut(fmt.Sprintf("Table %s, %s", t.Table, t.Chain))}
	if len(t.Stages) == 0 {
		return append(lines, "  No quasi-identifier is used: nothing is generalized.")
	}
	lines = append(lines, cut(fmt.Sprintf("  blocks of at least %d subjects; %s risk up to %.4f",
		t.MinBlock, t.Measure, t.Threshold)))
	lines = append(lines, fmt.Sprintf("  %-5s %-25s %7s %7s %8s  %s", "stage", "combination", "risk",
		"after", "loss", "choice"))
	for i := range t.Stages {
		lines = append(lines, t.Stages[i].text()...)
	}
	lines = append(lines, t.total())
	return lines
}

func (s *ExplainedStage) text() []string {
	before := "-"
	if s.RiskBefore != nil {
		before = fmt.Sprintf("%.4f", *s.RiskBefore)
	}
	lines := []string{
		cut(fmt.Sprintf("  %-5s %-25s %7s %7s %8s  %s", s.Stage, shortened(list(s.Attributes), 25),
			before,
			fmt.Sprintf("%.4f", s.RiskAfter), fmt.Sprintf("%.1f %%", 100*s.Loss), s.choice())),
		cut(fmt.Sprintf("        %s: %s", s.Place, s.Condition)),
	}
	if s.Source != nil {
		lines = append(lines, cut(fmt.Sprintf("        risk from %s: %d classes below k, %d subjects, "+
			"smallest %d",
			s.Source.Attribute, s.Source.Classes, s.Source.Subjects, s.Source.Smallest)))
	}
	for _, c := range s.Candidates {
		mark := " "
		switch {
		case c.Chosen:
			mark = "*"
		case !c.Feasible:
			mark = "x"
		}
		lines = append(lines, cut(fmt.Sprintf("      %s %-33s %9.4f %8s  %s", mark,
			shortened(list(c.Attributes), 33),
			c.Risk, fmt.Sprintf("%.1f %%", 100*c.Loss), c.Recoding)))
	}
	if s.Possible > 0 {
		lines = append(lines, fmt.Sprintf("        %d of %d ways worked out", s.Considered, s.Possible))
	}
	return lines
}

func (t *ExplainedTable) total() string {
	return fmt.Sprintf("  loss %.1f %%; sum of local risks %.2f", 100*t.Loss, t.Score)
}

func list(attributes []string) string { return strings.Join(attributes, ", ") }

// shortened fits a text into so many characters.
func shortened(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most-3]) + "..."
}

func cut(line string) string { return shortened(strings.TrimRight(line, " "), width) }
