// Package sqltext bounds the texts that PostgreSQL's scanner is given. The
// scanner is a C library: a text goes in, and nothing stops it before its end.
package sqltext

import "strings"

// Two forms take the scanner time that grows with their square: a run of
// characters that operators are made of, and comments inside comments. These
// are the longest and the deepest that are scanned, wherever they stand.
const (
	MaxOperator     = 200
	MaxCommentDepth = 100
)

// Slow says whether the scanner would take long over a text for one of its
// forms. It reads the text once, and does not look whether a form stands inside
// a string, where it would do no harm.
func Slow(text string) bool {
	run, depth := 0, 0
	for i := range len(text) {
		if strings.IndexByte("~!@#^&|`?+-*/%<>=", text[i]) < 0 {
			run = 0
			continue
		}
		if run++; run > MaxOperator {
			return true
		}
		if i == 0 {
			continue
		}
		switch text[i-1 : i+1] {
		case "/*":
			depth++
		case "*/":
			depth = max(0, depth-1)
		}
		if depth > MaxCommentDepth {
			return true
		}
	}
	return false
}
