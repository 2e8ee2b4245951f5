package ecg

import (
	"fmt"
	"strings"
)

// Mermaid is the graph as a Mermaid flowchart: one node a stage, one branch a
// table, which meet at the answer.
func (e *Explanation) Mermaid() []string {
	lines := []string{"flowchart LR"}
	e.draw(func(id, text string) {
		lines = append(lines, fmt.Sprintf(`  %s["%s"]`, id, mermaidEscapes.Replace(text)))
	}, func(from, to string) {
		lines = append(lines, fmt.Sprintf("  %s --> %s", from, to))
	})
	return lines
}

// DOT is the graph in Graphviz' language.
func (e *Explanation) DOT() []string {
	lines := []string{"digraph ecg {", "  rankdir=LR; node [shape=box];"}
	e.draw(func(id, text string) {
		lines = append(lines, fmt.Sprintf(`  %s [label="%s"];`, id, dotEscapes.Replace(text)))
	}, func(from, to string) {
		lines = append(lines, fmt.Sprintf("  %s -> %s;", from, to))
	})
	return append(lines, "}")
}

var (
	mermaidEscapes = strings.NewReplacer("&", "&amp;", `"`, "&quot;", "<", "&lt;", ">", "&gt;", "#",
		"&num;", "\n", "<br/>")
	dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
)

// draw lists nodes and edges. Texts have lines.
func (e *Explanation) draw(node func(id, text string), edge func(from, to string)) {
	for i := range e.Tables {
		t := &e.Tables[i]
		before := fmt.Sprintf("T%d", i+1)
		node(before, fmt.Sprintf("%s\n%s\nblocks of at least %d\nrisk %.4f, threshold %.4f",
			t.Table, t.Chain, t.MinBlock, t.Risk, t.Threshold))
		for j := range t.Stages {
			s := &t.Stages[j]
			risk := "-"
			if s.RiskBefore != nil {
				risk = fmt.Sprintf("%.4f", *s.RiskBefore)
			}
			node(s.Stage, fmt.Sprintf("%s %s\n%s\n%s\nrisk %s -> %.4f\nloss %.1f %%\n%s", s.Stage, s.Place,
				list(s.Attributes), s.Condition, risk, s.RiskAfter, 100*s.Loss, s.choice()))
			edge(before, s.Stage)
			before = s.Stage
		}
		edge(before, "answer")
	}
	node("answer", "answer")
}
