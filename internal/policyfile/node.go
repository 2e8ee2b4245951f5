package policyfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// reader walks a document and collects faults; it goes on after each.
type reader struct{ faults []Fault }

func (r *reader) fault(at *yaml.Node, hint, format string, args ...any) {
	r.faults = append(r.faults, Fault{at.Line, at.Column, fmt.Sprintf(format, args...), hint})
}

// entry is one key of a mapping.
type entry struct {
	key   string
	at    *yaml.Node
	value *yaml.Node
}

// mapping lists the entries of a node that must be a mapping. Repeated keys are
// faults.
func (r *reader) mapping(n *yaml.Node, what string) []entry {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "write it as key: value", "%s must be a mapping", what)
		return nil
	}
	r.plain(n)
	var out []entry
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode || k.Tag == "!!merge" {
			r.fault(k, "write every key out", "a key of %s must be a plain name", what)
			continue
		}
		if first, twice := lines[k.Value]; twice {
			r.fault(k, fmt.Sprintf("it stands in line %d already", first), "duplicate key %q", k.Value)
			continue
		}
		lines[k.Value] = k.Line
		out = append(out, entry{k.Value, k, v})
	}
	return out
}

// keys is mapping for a fixed set of keys: unknown ones and missing ones of
// required are faults.
func (r *reader) keys(n *yaml.Node, what string, required, optional []string) map[string]entry {
	out := make(map[string]entry)
	known := slices.Concat(required, optional)
	entries := r.mapping(n, what)
	for _, e := range entries {
		if !slices.Contains(known, e.key) {
			r.fault(e.at, "keys are "+strings.Join(known, ", "), "unknown key %q in %s", e.key, what)
			continue
		}
		out[e.key] = e
	}
	for _, name := range required {
		if _, ok := out[name]; !ok && n.Kind == yaml.MappingNode {
			r.fault(n, "", "%s has no %q", what, name)
		}
	}
	return out
}

// sequence lists the items of a node that must be a sequence.
func (r *reader) sequence(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "write it as [a, b]", "%s must be a list", what)
		return nil
	}
	r.plain(n)
	return n.Content
}

// plain refuses what makes one text stand for another: anchors, tags.
func (r *reader) plain(n *yaml.Node) {
	if n.Anchor != "" {
		r.fault(n, "repeat the text instead", "anchors are not allowed")
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.fault(n, "leave the tag out", "tags are not allowed")
	}
}

func (r *reader) scalar(n *yaml.Node, what string) (string, bool) {
	if n.Kind == yaml.AliasNode {
		r.fault(n, "repeat the text instead", "aliases are not allowed")
		return "", false
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, "", "%s must be a single value", what)
		return "", false
	}
	r.plain(n)
	return n.Value, true
}

// text reads a text.
func (r *reader) text(n *yaml.Node, what string) string {
	s, ok := r.scalar(n, what)
	if ok && n.Tag != "!!str" && n.Tag != "!!timestamp" {
		r.fault(n, "put it in quotes", "%s must be a text", what)
		return ""
	}
	if ok && s == "" {
		r.fault(n, "", "%s is empty", what)
	}
	return s
}

// name reads a name of PostgreSQL.
func (r *reader) name(n *yaml.Node, what string) string {
	s := r.text(n, what)
	r.checkName(n, s, what)
	return s
}

func (r *reader) checkName(n *yaml.Node, s, what string) {
	if len(s) > maxName {
		r.fault(n, fmt.Sprintf("PostgreSQL keeps %d bytes of a name", maxName), "%s is too long", what)
	}
	if strings.ContainsRune(s, 0) {
		r.fault(n, "", "%s holds a zero byte", what)
	}
}

// names reads a list of different names.
func (r *reader) names(n *yaml.Node, what string) []string {
	out := []string{}
	for _, item := range r.sequence(n, what) {
		s := r.name(item, "an item of "+what)
		if s == "" {
			continue
		}
		if slices.Contains(out, s) {
			r.fault(item, "", "%q stands twice in %s", s, what)
			continue
		}
		out = append(out, s)
	}
	return out
}

// word reads one of a few words.
func (r *reader) word(n *yaml.Node, what string, words []string) string {
	s, ok := r.scalar(n, what)
	if ok && !slices.Contains(words, s) {
		r.fault(n, "it is one of "+strings.Join(words, ", ")+nearest(s, words), "unknown %s %q", what, s)
		return ""
	}
	return s
}

// no reads true or false and says whether it is false.
func (r *reader) no(n *yaml.Node, what string) bool {
	s, ok := r.scalar(n, what)
	if ok && (n.Tag != "!!bool" || (s != "true" && s != "false")) {
		r.fault(n, "without quotes", "%s must be true or false", what)
	}
	return ok && s == "false"
}

// nearest suggests the word that a typo meant.
func nearest(s string, words []string) string {
	best, distance := "", 3
	for _, w := range words {
		if d := edits(strings.ToLower(s), w); d < distance {
			best, distance = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// edits is the Levenshtein distance.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// whole reads an integer of at least low.
func (r *reader) whole(n *yaml.Node, what string, low int) int {
	s, ok := r.scalar(n, what)
	if !ok {
		return 0
	}
	v, err := strconv.ParseInt(s, 10, 32)
	if n.Tag != "!!int" || err != nil {
		r.fault(n, "", "%s must be a whole number", what)
		return 0
	}
	if int(v) < low {
		r.fault(n, "", "%s must be at least %d", what, low)
	}
	return int(v)
}

// number reads a finite number.
func (r *reader) number(n *yaml.Node, what string) float64 {
	s, ok := r.scalar(n, what)
	if !ok {
		return 0
	}
	v, err := strconv.ParseFloat(s, 64)
	if (n.Tag != "!!int" && n.Tag != "!!float") || err != nil || v != v || v-v != 0 {
		r.fault(n, "", "%s must be a number", what)
		return 0
	}
	return v
}
