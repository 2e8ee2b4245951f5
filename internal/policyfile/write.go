package policyfile

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Write prints the canonical form: every key that is not at its default, in one
// order, one line a hierarchy and a column.
func (f *File) Write(w io.Writer) error {
	var b strings.Builder
	for _, line := range f.Remarks {
		b.WriteString(strings.TrimRight(comment(line), " ") + "\n")
	}
	b.WriteString("version: 1\n")
	if len(f.Hierarchies) > 0 {
		b.WriteString("hierarchies:\n")
		for i := range f.Hierarchies {
			h := &f.Hierarchies[i]
			fmt.Fprintf(&b, "  %s: %s", Scalar(h.Name), h.flow())
			if h.Remark != "" {
				b.WriteString(" " + comment(h.Remark))
			}
			b.WriteByte('\n')
		}
	}
	b.WriteString("tables:\n")
	for i := range f.Tables {
		f.Tables[i].write(&b)
	}
	if len(f.Tables) == 0 {
		b.WriteString("  {}\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// comment is a remark in one line. Remarks hold names of columns, which may hold anything.
func comment(remark string) string {
	return "# " + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, remark)
}

func (t *Table) write(b *strings.Builder) {
	for _, line := range t.Remarks {
		b.WriteString("  " + comment(line) + "\n")
	}
	fmt.Fprintf(b, "  %s:\n    subject: %s\n    k: %d\n", Scalar(t.Name), Scalar(t.Subject), t.K)
	if len(t.Require) > 0 {
		var items []string
		for _, q := range t.Require {
			items = append(items, q.String())
		}
		fmt.Fprintf(b, "    require: [%s]\n", strings.Join(items, ", "))
	}
	fmt.Fprintf(b, "    recoding: %s\n", t.Recoding)
	if t.Gate != nil {
		fmt.Fprintf(b, "    gate: %s\n", t.Gate)
	}
	if t.MaxShare > 0 {
		fmt.Fprintf(b, "    max_share: %s\n", plainNumber(t.MaxShare))
	}
	if t.Cohort > 0 {
		fmt.Fprintf(b, "    cohort: %d\n", t.Cohort)
	}
	if t.BlindCuts {
		b.WriteString("    cuts: blind\n")
	}
	if t.DeparturesAtOnce {
		b.WriteString("    departures: at_once\n")
	}
	if t.ChangesAtOnce {
		b.WriteString("    changes: at_once\n")
	}
	fmt.Fprintf(b, "    chain: %s\n", t.Chain())
	if t.AggregateOnly {
		b.WriteString("    rows: false\n")
	}
	if t.Refresh > 0 {
		fmt.Fprintf(b, "    refresh: %s\n", t.Period())
	}
	if t.Readers != nil {
		fmt.Fprintf(b, "    readers: %s\n", flowList(t.Readers))
	}
	if t.Indexes != nil {
		fmt.Fprintf(b, "    indexes: %s\n", t.Indexes)
	}
	if t.SetValued != nil {
		fmt.Fprintf(b, "    set_valued: %s\n", t.SetValued)
	}
	if t.DataSet != nil {
		t.DataSet.write(b)
	}
	b.WriteString("    columns:\n")
	for _, c := range t.Columns {
		fmt.Fprintf(b, "      %s: %s", Scalar(c.Name), c.String())
		if c.Remark != "" {
			b.WriteString(" " + comment(c.Remark))
		}
		b.WriteByte('\n')
	}
}

// String is the requirement in the form of the file.
func (q Requirement) String() string {
	s := fmt.Sprintf("{model: %s, column: %s, parameter: %g", q.Model, Scalar(q.Column), q.Parameter)
	if q.C != 0 {
		s += fmt.Sprintf(", c: %g", q.C)
	}
	if q.Distance != "" {
		s += ", distance: " + q.Distance
	}
	return s + "}"
}

// Phrase is the requirement in a sentence.
func (q Requirement) Phrase() string {
	s := fmt.Sprintf("%s of %g", q.Model, q.Parameter)
	if q.C != 0 {
		s += fmt.Sprintf(" with c = %g", q.C)
	}
	if q.Distance != "" {
		s += fmt.Sprintf(" by %s distance", q.Distance)
	}
	return s + " on " + q.Column
}

// Chain is the value of the key chain.
func (t *Table) Chain() string {
	if len(t.Seed) == 0 {
		return fmt.Sprintf("{scope: %s}", t.Scope)
	}
	var sets []string
	for _, set := range t.Seed {
		sets = append(sets, flowList(set))
	}
	return fmt.Sprintf("{scope: %s, seed: [%s]}", t.Scope, strings.Join(sets, ", "))
}

// String is the class in the form of the file.
func (c Column) String() string {
	s := "{class: " + c.Class
	if c.Hierarchy != "" {
		s += ", hierarchy: " + Scalar(c.Hierarchy)
	}
	if c.Middle {
		s += ", representative: middle"
	}
	if c.NoMargins {
		s += ", margins: false"
	}
	if c.SharedFact {
		s += ", shared_fact: accepted"
	}
	if c.Action == "pseudonym" {
		s += ", action: pseudonym"
	}
	return s + "}"
}

// flow is the definition in the form of the file.
func (h *Hierarchy) flow() string {
	parts := []string{"type: " + h.Type}
	add := func(key, value string) { parts = append(parts, key+": "+value) }
	switch h.Type {
	case "interval":
		add("widths", flowOf(h.Widths, plainNumber))
		if h.Lower != nil && h.Upper != nil {
			add("lower", plainNumber(*h.Lower))
			add("upper", plainNumber(*h.Upper))
		}
	case "prefix":
		add("keep", flowOf(h.Keep, strconv.Itoa))
	case "date":
		add("levels", flowList(h.Levels))
		if h.LowerDay != "" {
			add("lower", Scalar(h.LowerDay))
		}
		if h.UpperDay != "" {
			add("upper", Scalar(h.UpperDay))
		}
	case "table":
		if h.Source != "" {
			add("source", Scalar(h.Source))
			add("columns", flowList(h.Columns))
		} else {
			add("paths", flowOf(h.Paths, flowList))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Equal says whether two hierarchies are defined alike.
func (h *Hierarchy) Equal(o *Hierarchy) bool { return h.flow() == o.flow() }

// String is the definition in the form of the file; a long list is cut.
func (h *Hierarchy) String() string {
	if s := h.flow(); len(s) <= 200 {
		return s
	}
	return fmt.Sprintf("{type: %s, %d paths}", h.Type, len(h.Paths))
}

func flowOf[T any](items []T, text func(T) string) string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = text(item)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func flowList(items []string) string { return flowOf(items, Scalar) }

func plainNumber(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// A text is written without quotes where no reader of YAML, of any version,
// would take it for something else.
var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)
	reserved  = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|nan|inf)$`)
)

// Scalar is a text in the form of the file.
func Scalar(s string) string {
	if plainText.MatchString(s) && !reserved.MatchString(s) {
		return s
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a text always has a form
	return escapeUnprintable(strings.TrimSuffix(b.String(), "\n"))
}

// escapeUnprintable escapes what JSON leaves as it is and YAML does not read.
func escapeUnprintable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r >= 0x7f && r <= 0x9f || r == 0xfeff || r == 0xfffe || r == 0xffff {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
