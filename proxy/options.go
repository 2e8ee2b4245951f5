package proxy

import (
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/hiatus-tailor/tailor/planner"
)

// assertParameters refuses a login with values that Tailor's parameters cannot have,
// given by name or among the server's options.
func assertParameters(given map[string]string) error {
	for name, value := range loginParameters(given) {
		if _, err := planner.Parameter(name, value); err != nil {
			return err
		}
	}
	return nil
}

// loginParameter is the value that a login gives a parameter of Tailor's, "" for none. As in
// PostgreSQL, one that is given by name counts before one among the options.
func loginParameter(given map[string]string, wanted string) (value string) {
	for name, text := range loginParameters(given) {
		if strings.EqualFold(name, wanted) {
			value, _ = planner.Parameter(name, text)
		}
	}
	return value
}

// loginParameters are the parameters that a login gives, the one that counts last.
func loginParameters(given map[string]string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		words := optionWords(given["options"])
		for i, word := range words {
			setting, ok := strings.CutPrefix(word, "--")
			switch {
			case ok:
			case word == "-c" && i+1 < len(words):
				setting = words[i+1]
			case strings.HasPrefix(word, "-c"):
				setting = word[len("-c"):]
			default:
				continue
			}
			name, value, _ := strings.Cut(setting, "=")
			if !yield(strings.ReplaceAll(name, "-", "_"), value) {
				return
			}
		}
		for _, name := range slices.Sorted(maps.Keys(given)) {
			if !yield(name, given[name]) {
				return
			}
		}
	}
}

// optionWords splits options as PostgreSQL does: at spaces, but for those behind a
// backslash.
func optionWords(options string) (words []string) {
	var word []byte
	inside := false
	for i := 0; i < len(options); i++ {
		c := options[i]
		switch {
		case strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			if inside {
				words = append(words, string(word))
			}
			word, inside = nil, false
			continue
		case c == '\\' && i+1 < len(options):
			i++
			c = options[i]
		}
		word, inside = append(word, c), true
	}
	if inside {
		words = append(words, string(word))
	}
	return words
}
